//! Asking a schedule for its slots.

use super::passage::{self, ClockChange, Passage};
use super::rule::{OfWall, Repeats};
use super::wall::Wall;
use super::zone::Instants;
use super::{Rule, Schedule};
use crate::{Timestamp, limits};

const SECOND: i64 = 1_000_000;

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
    /// It takes microseconds even if the run is years away, and is bounded if there is none.
    #[must_use]
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        let slot = self.next_of(&self.rule, self.bounds.after(after))?;
        (!self.bounds.have_ended(slot)).then_some(slot)
    }

    /// Returns the first slot of one of the rules, regardless of the bounds.
    fn next_of(&self, rule: &Rule, after: Timestamp) -> Option<Timestamp> {
        match rule {
            Rule::Cron(cron) => self.next_local(cron.repeats(), &|wall| cron.next(wall), after),
            Rule::Times(times) => self.next_local(Repeats::Once, &|wall| times.next(wall), after),
            Rule::Rrule(rule) => {
                let own = self.next_local(rule.repeats(), &|wall| rule.next(wall), after);
                let own = own.filter(|slot| rule.until().is_none_or(|until| *slot <= until));
                let added = self.next_local(Repeats::Once, &|wall| rule.next_added(wall), after);
                own.into_iter().chain(added).min()
            }
            Rule::Every(every) => self.next_allowed(&|after| every.next(after), after),
            Rule::Delay(delay) => self.next_delayed(*delay, after),
            Rule::At(at) => self.next_allowed(&|after| at.next(after), after),
            Rule::AnyOf(rules) => rules.iter().filter_map(|rule| self.next_of(rule, after)).min(),
        }
    }

    /// Like [`Schedule::next_after`], with the effect of a clock change.
    #[must_use]
    pub fn next(&self, after: Timestamp) -> Option<Slot> {
        self.next_after(after).map(|at| self.slot(at))
    }

    /// Returns the runs after `from` and up to `to` inclusive, at most `most` and at most [`limits::SLOTS_ASKED`]. A
    /// [`Delay`](super::Delay) is treated as if each run took no time.
    #[must_use]
    pub fn between(&self, from: Timestamp, to: Timestamp, most: usize) -> Vec<Slot> {
        let mut slots = Vec::new();
        let mut after = from;
        while slots.len() < most.min(limits::SLOTS_ASKED) {
            let Some(at) = self.next_after(after).filter(|at| *at <= to) else {
                break;
            };
            slots.push(self.slot(at));
            after = at;
        }
        slots
    }

    /// Returns the last run at or before `by`; `None` if there is none, and for a [`Delay`](super::Delay).
    ///
    /// It takes at most a hundred steps, however many runs were missed.
    #[must_use]
    pub fn latest(&self, by: Timestamp) -> Option<Slot> {
        if self.follows_runs() {
            return None;
        }
        let is_before = |micros: i64| {
            let after = Timestamp::from_micros(micros).ok()?;
            self.next_after(after).filter(|slot| *slot <= by)
        };
        // Back in growing steps to an instant that has a slot behind it, then halving the way to the last such one.
        let mut step = SECOND;
        let mut low = by.as_micros();
        let mut high = by.as_micros();
        let mut found = None;
        while found.is_none() && low > 0 {
            high = low;
            low = (low - step).max(0);
            step = step.saturating_mul(4);
            found = is_before(low);
        }
        while let Some(slot) = found.filter(|slot| slot.as_micros() < high) {
            low = slot.as_micros();
            // Whatever is after this slot is found by asking from it on.
            let Some(later) = is_before(low) else {
                break;
            };
            found = Some(later);
            let middle = later.as_micros() + (high - later.as_micros()) / 2;
            match is_before(middle) {
                Some(later) => found = Some(later),
                None => high = middle,
            }
        }
        found.map(|at| self.slot(at))
    }

    fn slot(&self, at: Timestamp) -> Slot {
        Slot { at, change: self.change(&self.rule, at) }
    }

    /// Returns the effect of a clock change on a slot of a rule.
    fn change(&self, rule: &Rule, at: Timestamp) -> Option<ClockChange> {
        let of = |is_match: &dyn Fn(Wall) -> bool| {
            passage::change_at(&self.zone, at.as_micros().div_euclid(SECOND), is_match)
        };
        match rule {
            Rule::Cron(cron) => of(&|wall| cron.next(wall) == Some(wall)),
            Rule::Times(times) => of(&|wall| times.next(wall) == Some(wall)),
            Rule::Rrule(rule) => {
                of(&|wall| rule.next(wall) == Some(wall) || rule.next_added(wall) == Some(wall))
            }
            Rule::AnyOf(rules) => {
                let before = at.before(std::time::Duration::from_micros(1));
                let has_slot = |rule: &&Rule| self.next_of(rule, before) == Some(at);
                rules.iter().find(has_slot).and_then(|rule| self.change(rule, at))
            }
            Rule::Every(_) | Rule::Delay(_) | Rule::At(_) => None,
        }
    }

    /// The first slot of a rule that speaks of local times.
    fn next_local(
        &self,
        repeats: Repeats,
        next: &dyn Fn(Wall) -> Option<Wall>,
        after: Timestamp,
    ) -> Option<Timestamp> {
        let after = after.as_micros().div_euclid(SECOND);
        let allowed = |from: Wall| self.allowed(next, from);
        let next = if self.except.is_empty() { next } else { &allowed };
        let second = Passage::after(&OfWall { repeats, next }, &self.zone, after).next()?;
        Timestamp::from_micros(second.checked_mul(SECOND)?).ok()
    }

    /// The first local time that is not on a day that is left out.
    fn allowed(&self, next: &dyn Fn(Wall) -> Option<Wall>, mut from: Wall) -> Option<Wall> {
        for _ in 0..limits::LEFT_OUT_IN_A_ROW {
            let wall = next(from)?;
            if !self.except.leaves_out(wall) {
                return Some(wall);
            }
            from = wall.next_midnight();
        }
        None
    }

    /// The first slot of a rule that speaks of instants.
    fn next_allowed(
        &self,
        next: &dyn Fn(Timestamp) -> Option<Timestamp>,
        mut after: Timestamp,
    ) -> Option<Timestamp> {
        if self.except.is_empty() {
            return next(after);
        }
        for _ in 0..limits::LEFT_OUT_IN_A_ROW {
            let slot = next(after)?;
            let Some(midnight) = self.end_of_left_out(slot) else {
                return Some(slot);
            };
            // A microsecond before, since midnight itself may be a slot.
            after = Timestamp::from_micros(midnight.as_micros() - 1).ok()?.max(slot);
        }
        None
    }

    fn next_delayed(&self, delay: super::Delay, after: Timestamp) -> Option<Timestamp> {
        let mut slot = match self.bounds.starts_at {
            Some(start) if after < start => start,
            _ => delay.next(after)?,
        };
        for _ in 0..limits::LEFT_OUT_IN_A_ROW {
            let Some(midnight) = self.end_of_left_out(slot) else {
                return Some(slot);
            };
            slot = midnight;
        }
        None
    }

    /// If a slot falls on a day that is left out: the midnight at the end of that day.
    fn end_of_left_out(&self, slot: Timestamp) -> Option<Timestamp> {
        let second = slot.as_micros().div_euclid(SECOND);
        let wall = self.zone.wall(second);
        if !self.except.leaves_out(wall) {
            return None;
        }
        let midnight = match self.zone.instants(wall.next_midnight()) {
            Instants::One(midnight)
            | Instants::Gap { shifted: midnight }
            | Instants::Fold { first: midnight, .. } => midnight,
        };
        // At a fold at midnight the day goes on after its end was shown once; the next look sees that.
        let midnight = midnight.max(second + 1);
        Timestamp::from_micros(midnight.checked_mul(SECOND)?).ok()
    }
}
