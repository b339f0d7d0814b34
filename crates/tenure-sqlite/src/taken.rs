//! Of which limits a turn takes how many jobs in which lanes.

use std::collections::BTreeMap;

/// What a turn takes.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    /// How many jobs, by limit and lane.
    jobs: BTreeMap<(i64, i64), u32>,
    /// Limits that have no room for all that their lanes show.
    pub surplus: Vec<i64>,
}

impl Taken {
    /// Takes one more job of a limit, unless that is more than there is room for.
    pub(crate) fn take(&mut self, limit: i64, lane: i64, room: u32) -> bool {
        let all: u32 = self.jobs.range((limit, i64::MIN)..=(limit, i64::MAX)).map(|(_, jobs)| jobs).sum();
        if all >= room {
            if !self.surplus.contains(&limit) {
                self.surplus.push(limit);
            }
            return false;
        }
        *self.jobs.entry((limit, lane)).or_default() += 1;
        true
    }

    /// How many jobs of a limit it takes in a lane.
    pub(crate) fn of(&self, limit: i64, lane: i64) -> u32 {
        self.jobs.get(&(limit, lane)).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lanes_together_take_no_more_of_a_limit_than_there_is_room_for() {
        let mut taken = Taken::default();
        assert!(taken.take(1, 7, 2) && taken.take(1, 8, 2) && !taken.take(1, 7, 2) && !taken.take(1, 9, 2));
        assert!(taken.take(2, 7, 1));
        assert_eq!((taken.of(1, 7), taken.of(1, 9), taken.surplus.clone()), (1, 0, vec![1]));
    }
}
