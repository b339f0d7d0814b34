//! Slots that have passed: told without visiting each, however many there are.

use std::cell::RefCell;
use std::time::Duration;

use super::NewTimer;
use crate::schedule::{Jitter, Search, Steps};
use crate::{Timestamp, limits};

pub(super) const TICK: Duration = Duration::from_micros(1);
/// So many slots whose jitter puts them off are visited one by one.
const PUT_OFF: usize = 64;

/// The slots from one of them to the last that is ripe.
pub(super) struct Passed<'a> {
    timer: &'a NewTimer,
    pub first: Timestamp,
    pub last: Timestamp,
    /// All questions share its steps and the runs that it knows.
    search: RefCell<Search<'a>>,
}

impl<'a> Passed<'a> {
    /// The slots from `first`, which is one, to the last whose nominal instant has come.
    pub fn until(timer: &'a NewTimer, first: Timestamp, now: Timestamp, steps: &'a Steps) -> Self {
        let search = RefCell::new(Search::for_firing(&timer.schedule, steps));
        let mut passed = Self { timer, first, last: first, search };
        passed.last = passed.last_until(now);
        passed
    }

    /// The slots from `first`, which is ripe, to the last that is ripe as well.
    pub fn ripe(timer: &'a NewTimer, first: Timestamp, now: Timestamp, steps: &'a Steps) -> Self {
        let mut passed = Self::until(timer, first, now, steps);
        let Some(jitter) = timer.schedule.jitter() else { return passed };
        for _ in 0..PUT_OFF {
            if passed.last == first || timer.due(passed.last) <= now {
                return passed;
            }
            passed.last = passed.last_before(passed.last);
        }
        // Whatever is older than the longest jitter is ripe without a look.
        passed.last = passed.last_until(now.before(jitter.longest()));
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
        self.search.borrow_mut().next_after(instant).filter(|slot| *slot <= self.last)
    }

    /// The last of them that is before `from`, which is after the first.
    pub fn last_before(&self, from: Timestamp) -> Timestamp {
        self.last_until(from.before(TICK))
    }

    /// The first slot behind them.
    pub fn next(&self) -> Option<Timestamp> {
        let mut search = self.search.borrow_mut();
        let next = search.next_after(self.last);
        if !search.is_cut() {
            return next;
        }
        // With too few steps left, a rule that has runs would seem to have none.
        Search::for_firing(&self.timer.schedule, &Steps::new(limits::FIRING_STEPS)).next_after(self.last)
    }

    /// The last slot until an instant, but not one before the first.
    fn last_until(&self, until: Timestamp) -> Timestamp {
        let mut search = self.search.borrow_mut();
        // Asked from the first on, the search knows each rule without a run until then, and looks for it only once.
        match search.next_after(self.first) {
            Some(next) if next <= until => search.latest_at(until).map_or(next, |slot| slot.max(next)),
            Some(_) | None => self.first,
        }
    }

    /// How many lie from one of them to another; `None` if they are too many to be counted.
    pub fn count(&self, from: Timestamp, to: Timestamp) -> Option<u64> {
        self.search.borrow_mut().with_half(|search| {
            let mut counted = 1_u64;
            let mut slot = from;
            while slot < to {
                slot = search.next_after(slot)?;
                counted += 1;
                if counted > limits::SLOTS_COUNTED || search.is_cut() {
                    return None;
                }
            }
            Some(counted)
        })
    }

    /// The latest of them from one on, in their order. There are fewer if the search for them takes too long.
    pub fn latest(&self, from: Timestamp, most: usize) -> Vec<Timestamp> {
        self.search.borrow_mut().with_half(|search| self.latest_by(search, from, most))
    }

    fn latest_by(&self, search: &mut Search<'_>, from: Timestamp, most: usize) -> Vec<Timestamp> {
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
            let before = search.latest_at(by).map_or(self.first, |slot| slot.max(self.first));
            if search.is_cut() {
                break;
            }
            latest.push(before);
        }
        latest.reverse();
        latest
    }
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
        let steps = Steps::new(limits::FIRING_STEPS);
        let each_second = new("* * * * * *", Policies::default());
        let (first, now) = (at("2026-01-01T00:00:00Z"), at("2026-02-01T00:00:00.7Z"));
        let passed = Passed::until(&each_second, first, now, &steps);
        assert_eq!(passed.last, at("2026-02-01T00:00:00Z"));
        assert_eq!(passed.count(first, passed.last), None);
        assert_eq!(passed.count(first, at("2026-01-01T00:16:39Z")), Some(1_000));
        let latest = [at("2026-01-31T23:59:59Z"), at("2026-02-01T00:00:00Z")];
        assert_eq!(passed.latest(first, 2), latest);
    }

    #[test]
    fn slots_that_are_dense_and_then_silent_are_told_as_well() {
        let steps = Steps::new(limits::FIRING_STEPS);
        let dense = new("* 0 0 * * *", Policies::default());
        let passed = Passed::until(&dense, at("2026-01-01T00:00:05Z"), at("2026-01-09T00:08:20Z"), &steps);
        assert_eq!(passed.last, at("2026-01-09T00:00:59Z"));
        assert_eq!(passed.last_before(at("2026-01-08T00:00:00Z")), at("2026-01-07T00:00:59Z"));
        assert_eq!(passed.first_from(at("2026-01-08T00:01:00Z")), Some(at("2026-01-09T00:00:00Z")));
        assert_eq!(passed.first_from(at("2026-01-09T00:01:00Z")), None);
        assert_eq!(passed.latest(at("2026-01-09T00:00:58Z"), 5).len(), 2);
    }

    #[test]
    fn one_that_passed_is_the_first_and_the_last() {
        let steps = Steps::new(limits::FIRING_STEPS);
        let hourly = new("0 0 * * * *", Policies::default());
        let slot = at("2026-01-01T01:00:00Z");
        let passed = Passed::until(&hourly, slot, slot, &steps);
        assert_eq!((passed.first, passed.last, passed.count(slot, slot)), (slot, slot, Some(1)));
    }
}
