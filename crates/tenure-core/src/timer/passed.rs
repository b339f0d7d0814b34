//! Slots that have passed: told without visiting each, however many there are.

use std::time::Duration;

use super::NewTimer;
use crate::schedule::{Jitter, Schedule, Search, Steps};
use crate::{Timestamp, limits};

pub(super) const TICK: Duration = Duration::from_micros(1);
/// So many slots whose jitter puts them off are visited one by one.
const PUT_OFF: usize = 64;

/// The slots from one of them to the last that is ripe.
pub(super) struct Passed<'a> {
    timer: &'a NewTimer,
    pub first: Timestamp,
    pub last: Timestamp,
}

impl<'a> Passed<'a> {
    /// The slots from `first`, which is one, to the last whose nominal instant has come.
    pub fn until(timer: &'a NewTimer, first: Timestamp, now: Timestamp) -> Self {
        Self { timer, first, last: last_of(&timer.schedule, first, now) }
    }

    /// The slots from `first`, which is ripe, to the last that is ripe as well.
    pub fn ripe(timer: &'a NewTimer, first: Timestamp, now: Timestamp) -> Self {
        let mut passed = Self::until(timer, first, now);
        let Some(jitter) = timer.schedule.jitter() else { return passed };
        for _ in 0..PUT_OFF {
            if passed.last == first || timer.due(passed.last) <= now {
                return passed;
            }
            passed.last = passed.last_before(passed.last);
        }
        // Whatever is older than the longest jitter is ripe without a look.
        passed.last = last_of(&timer.schedule, first, now.before(jitter.longest()));
        passed
    }

    /// The first of them that is not before `from`.
    pub fn first_from(&self, from: Timestamp) -> Option<Timestamp> {
        if from <= self.first {
            return Some(self.first);
        }
        self.after(from.before(TICK))
    }

    /// The first of them that is due at `limit` or after it. If a jitter lets them overtake one another, those behind
    /// it count as due no earlier.
    pub fn first_due_from(&self, limit: Timestamp) -> Option<Timestamp> {
        let jitter = self.timer.schedule.jitter().map_or(Duration::ZERO, Jitter::longest);
        // Whatever is older than the longest jitter was due before, without a look.
        let mut slot = self.first_from(limit.before(jitter))?;
        for _ in 0..PUT_OFF {
            if self.timer.due(slot) >= limit {
                break;
            }
            slot = self.after(slot)?;
        }
        Some(slot)
    }

    fn after(&self, instant: Timestamp) -> Option<Timestamp> {
        self.timer.schedule.next_after(instant).filter(|slot| *slot <= self.last)
    }

    /// The last of them that is before `from`, which is after the first.
    pub fn last_before(&self, from: Timestamp) -> Timestamp {
        last_of(&self.timer.schedule, self.first, from.before(TICK))
    }

    /// How many lie from one of them to another; `None` if they are too many to be counted.
    pub fn count(&self, from: Timestamp, to: Timestamp) -> Option<u64> {
        let steps = Steps::default();
        let mut search = Search::new(&self.timer.schedule, &steps);
        let mut counted = 1_u64;
        let mut slot = from;
        while slot < to {
            slot = search.next_after(slot)?;
            counted += 1;
            if counted > limits::SLOTS_COUNTED || steps.are_spent() {
                return None;
            }
        }
        Some(counted)
    }

    /// The latest of them from one on, in their order. There are fewer if the search for them takes too long.
    pub fn latest(&self, from: Timestamp, most: usize) -> Vec<Timestamp> {
        let steps = Steps::default();
        let mut search = Search::new(&self.timer.schedule, &steps);
        let mut all = Vec::new();
        let mut slot = Some(from);
        while let Some(at) = slot.filter(|at| *at <= self.last && all.len() <= most) {
            all.push(at);
            slot = search.next_after(at);
        }
        if all.len() <= most {
            return all;
        }
        let mut latest = vec![self.last];
        while latest.len() < most {
            let by = latest.last().map_or(self.last, |slot| slot.before(TICK));
            let before = search.latest(by).map_or(self.first, |slot| slot.at.max(self.first));
            if steps.are_spent() {
                break;
            }
            latest.push(before);
        }
        latest.reverse();
        latest
    }
}

/// The last slot until an instant, but not one before `first`, which is one.
fn last_of(schedule: &Schedule, first: Timestamp, until: Timestamp) -> Timestamp {
    schedule.latest(until).map_or(first, |slot| slot.at.max(first))
}

#[cfg(test)]
mod tests {
    use super::super::Policies;
    use super::super::tests::new;
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn millions_of_slots_are_told_by_their_ends() {
        let each_second = new("* * * * * *", Policies::default());
        let (first, now) = (at("2026-01-01T00:00:00Z"), at("2026-02-01T00:00:00.7Z"));
        let passed = Passed::until(&each_second, first, now);
        assert_eq!(passed.last, at("2026-02-01T00:00:00Z"));
        assert_eq!(passed.count(first, passed.last), None);
        assert_eq!(passed.count(first, at("2026-01-01T00:16:39Z")), Some(1_000));
        let latest = [at("2026-01-31T23:59:59Z"), at("2026-02-01T00:00:00Z")];
        assert_eq!(passed.latest(first, 2), latest);
    }

    #[test]
    fn slots_that_are_dense_and_then_silent_are_told_as_well() {
        let dense = new("* 0 0 * * *", Policies::default());
        let passed = Passed::until(&dense, at("2026-01-01T00:00:05Z"), at("2026-01-09T00:08:20Z"));
        assert_eq!(passed.last, at("2026-01-09T00:00:59Z"));
        assert_eq!(passed.last_before(at("2026-01-08T00:00:00Z")), at("2026-01-07T00:00:59Z"));
        assert_eq!(passed.first_from(at("2026-01-08T00:01:00Z")), Some(at("2026-01-09T00:00:00Z")));
        assert_eq!(passed.first_from(at("2026-01-09T00:01:00Z")), None);
        assert_eq!(passed.latest(at("2026-01-09T00:00:58Z"), 5).len(), 2);
    }

    #[test]
    fn one_that_passed_is_the_first_and_the_last() {
        let hourly = new("0 0 * * * *", Policies::default());
        let slot = at("2026-01-01T01:00:00Z");
        let passed = Passed::until(&hourly, slot, slot);
        assert_eq!((passed.first, passed.last, passed.count(slot, slot)), (slot, slot, Some(1)));
    }
}
