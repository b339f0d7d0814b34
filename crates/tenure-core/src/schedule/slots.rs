//! Asking a schedule for its slots.

use super::passage::ClockChange;
use super::{Schedule, Search, Steps};
use crate::{Timestamp, limits};

/// A run of a schedule, by its scheduled time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Slot {
    /// The scheduled time.
    pub at: Timestamp,
    /// Effect of a clock change (DST).
    pub change: Option<ClockChange>,
}

impl Schedule {
    /// Returns the first run strictly after a time; `None` if there is none. For a [`Delay`](super::Delay), pass the
    /// end of the last run.
    ///
    /// This takes microseconds even if the run is years away. If there is no run, the search ends after at most
    /// [`limits::SCHEDULE_STEPS`] steps.
    #[must_use]
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        Search::new(self, &Steps::default()).next_after(after)
    }

    /// Like [`Schedule::next_after`], with the effect of a clock change.
    #[must_use]
    pub fn next(&self, after: Timestamp) -> Option<Slot> {
        Search::new(self, &Steps::default()).next(after)
    }

    /// Returns the runs after `from` and up to `to` inclusive, at most `most` and at most [`limits::SLOTS_ASKED`]. The list is
    /// shorter if the search needs more than [`limits::SCHEDULE_STEPS`] steps. A [`Delay`](super::Delay) is treated as if
    /// each run took no time.
    #[must_use]
    pub fn between(&self, from: Timestamp, to: Timestamp, most: usize) -> Vec<Slot> {
        self.between_within((from, to), most, &Steps::default())
    }

    /// Like [`Schedule::between`], in so many steps.
    pub(crate) fn between_within(
        &self,
        (from, to): (Timestamp, Timestamp),
        most: usize,
        steps: &Steps,
    ) -> Vec<Slot> {
        let mut search = Search::new(self, steps);
        let mut slots = Vec::new();
        let mut after = from;
        while slots.len() < most.min(limits::SLOTS_ASKED) {
            let Some(slot) = search.next(after).filter(|slot| slot.at <= to && !steps.are_spent()) else {
                break;
            };
            slots.push(slot);
            after = slot.at;
        }
        slots
    }

    /// Returns `true` if the scheduler finds one run in so many steps, from `now` and behind the next run of each rule: there
    /// the search for a rule that runs rarely is the longest. It takes at most twice as many steps.
    pub(crate) fn fires_within(&self, now: Timestamp, most: u32) -> bool {
        let steps = Steps::new(most);
        let mut search = Search::for_firing(self, &steps);
        search.next_after(now);
        !search.is_cut() && search.finds_next_but_one(&Steps::new(most))
    }

    /// Returns the last run at or before `by`; `None` if there is none, and for a [`Delay`](super::Delay).
    ///
    /// This takes at most [`limits::SCHEDULE_STEPS`] steps, however many runs were missed. It ignores a rule whose runs take
    /// too long to find.
    #[must_use]
    pub fn latest(&self, by: Timestamp) -> Option<Slot> {
        Search::for_firing(self, &Steps::default()).latest(by)
    }
}
