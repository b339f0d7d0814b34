//! Of which limits a turn takes how many jobs in which lanes.

use std::collections::BTreeMap;

use crate::reserve::Place;

/// What a turn takes.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    /// How many jobs, and the last of them, by limit and lane.
    jobs: BTreeMap<(i64, i64), (u32, Place)>,
    /// Limits that have no room for all that their lanes show.
    pub surplus: Vec<i64>,
}

impl Taken {
    /// Takes one more job of a limit, the next in its lane, unless that is more than there is room for.
    pub(crate) fn take(&mut self, limit: i64, lane: i64, place: Place, room: u32) -> bool {
        let all: u32 =
            self.jobs.range((limit, i64::MIN)..=(limit, i64::MAX)).map(|(_, (jobs, _))| jobs).sum();
        if all >= room {
            if !self.surplus.contains(&limit) {
                self.surplus.push(limit);
            }
            return false;
        }
        let (jobs, last) = self.jobs.entry((limit, lane)).or_insert((0, place));
        (*jobs, *last) = (*jobs + 1, place);
        true
    }

    /// The last job of a limit that it takes in a lane.
    pub(crate) fn last_of(&self, limit: i64, lane: i64) -> Option<Place> {
        self.jobs.get(&(limit, lane)).map(|(_, last)| *last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lanes_together_take_no_more_of_a_limit_than_there_is_room_for() {
        let mut taken = Taken::default();
        let mut take = |limit, lane, seq, room| taken.take(limit, lane, (0, 0, 0, seq), room);
        assert!(take(1, 7, 3, 3) && take(1, 8, 4, 3) && take(1, 7, 5, 3));
        assert!(!take(1, 7, 6, 3) && !take(1, 9, 7, 3) && take(2, 7, 8, 1));
        let last = (taken.last_of(1, 7), taken.last_of(1, 9));
        assert_eq!((last, taken.surplus), ((Some((0, 0, 0, 5)), None), vec![1]));
    }
}
