//! Reading several ordered lines as one, without reading more of each than is needed.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Fewest places read of a line at once.
const CHUNK: usize = 8;

struct Line<P> {
    lane: i64,
    read: VecDeque<P>,
    last: Option<P>,
    ended: bool,
    taken: usize,
}

/// How many of the first `at_most` admitted places of all lines are in each lane. `read(lane, behind, most)`
/// answers the next places of a lane, in order; one that is not admitted is passed over.
pub(crate) fn merge<P: Ord + Copy, E>(
    lanes: &[i64],
    at_most: usize,
    mut read: impl FnMut(i64, Option<P>, usize) -> Result<Vec<P>, E>,
    mut admit: impl FnMut(i64, P) -> Result<bool, E>,
) -> Result<Vec<(i64, usize)>, E> {
    let chunk = (at_most / lanes.len().max(1) + 1).max(CHUNK);
    let mut lines: Vec<Line<P>> = lanes
        .iter()
        .map(|lane| Line { lane: *lane, read: VecDeque::new(), last: None, ended: false, taken: 0 })
        .collect();
    let mut heads = BinaryHeap::with_capacity(lines.len());
    for (index, line) in lines.iter_mut().enumerate() {
        heads.extend(line.next(chunk, &mut read)?.map(|place| Reverse((place, index))));
    }
    let mut taken = 0;
    while taken < at_most {
        let Some(Reverse((place, index))) = heads.pop() else { break };
        if admit(lines[index].lane, place)? {
            lines[index].taken += 1;
            taken += 1;
        }
        heads.extend(lines[index].next(chunk, &mut read)?.map(|place| Reverse((place, index))));
    }
    Ok(lines.into_iter().filter(|line| line.taken > 0).map(|line| (line.lane, line.taken)).collect())
}

impl<P: Ord + Copy> Line<P> {
    fn next<E>(
        &mut self,
        chunk: usize,
        read: &mut impl FnMut(i64, Option<P>, usize) -> Result<Vec<P>, E>,
    ) -> Result<Option<P>, E> {
        if self.read.is_empty() && !self.ended {
            let places = read(self.lane, self.last, chunk)?;
            self.ended = places.len() < chunk;
            self.last = places.last().copied().or(self.last);
            self.read = places.into();
        }
        Ok(self.read.pop_front())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_admitted_places_of_all_lines_are_found_chunk_by_chunk() {
        let lines: Vec<Vec<i64>> =
            vec![(0..100).map(|n| n * 2).collect(), (0..100).map(|n| n * 3 + 1).collect(), vec![]];
        let mut all: Vec<(i64, i64)> = vec![];
        for (lane, line) in (0_i64..).zip(&lines) {
            all.extend(line.iter().map(|place| (*place, lane)));
        }
        all.sort_unstable();
        for at_most in [0, 1, 7, 30, 150, 1000] {
            let read = |lane, behind: Option<i64>, most| {
                let line = &lines[usize::try_from(lane).unwrap()];
                let rest = line.iter().copied().filter(|place| behind.is_none_or(|behind| *place > behind));
                Ok::<_, ()>(rest.take(most).collect())
            };
            let taken = merge(&[0, 1, 2], at_most, read, |_, place| Ok(place % 5 != 0)).unwrap();
            for lane in 0..3 {
                let admitted = all.iter().filter(|(place, _)| place % 5 != 0);
                let wanted = admitted.take(at_most).filter(|(_, of)| *of == lane).count();
                let found = taken.iter().find(|(of, _)| *of == lane).map_or(0, |(_, taken)| *taken);
                assert_eq!(found, wanted, "lane {lane} of the first {at_most}");
            }
        }
    }
}
