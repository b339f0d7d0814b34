//! The search for runs, within a number of steps that all its parts share.

use std::cell::Cell;

use super::passage::{self, ClockChange, Passage};
use super::rule::{OfWall, Repeats};
use super::wall::Wall;
use super::zone::Instants;
use super::{Delay, Rule, Schedule, Slot};
use crate::{Timestamp, limits};

const SECOND: i64 = 1_000_000;

/// The budget of steps that is left for one question about schedules. All searches for the answer share it.
///
/// A step is a day that a recurrence rule examines, or a skipped day.
#[derive(Debug)]
pub struct Steps(Cell<u32>);

/// A search for runs of a schedule. A cache of each rule's next run keeps rare rules from being searched again for each run.
#[derive(Debug)]
pub struct Search<'a> {
    schedule: &'a Schedule,
    steps: &'a Steps,
    /// An entry for each rule; empty in the search for a share of one rule.
    known: Vec<Option<Known>>,
    /// From then on it ignores a rule whose next run takes too long to find, and keeps the other steps for the others.
    ignores_cut: bool,
    was_cut: bool,
}

/// The first run of a rule after a time.
#[derive(Debug, Clone, Copy)]
struct Known {
    after: Timestamp,
    next: Option<Timestamp>,
}

impl Default for Steps {
    /// Returns the steps of one question about one schedule.
    fn default() -> Self {
        Self::new(limits::SCHEDULE_STEPS)
    }
}

impl Steps {
    /// Returns so many steps.
    #[must_use]
    pub fn new(count: u32) -> Self {
        Self(Cell::new(count))
    }

    /// Returns the number of unused steps.
    #[must_use]
    pub fn left(&self) -> u32 {
        self.0.get()
    }

    /// Returns `true` if no step is left: then the answer may lack runs.
    #[must_use]
    pub fn are_spent(&self) -> bool {
        self.left() == 0
    }

    /// Takes `count` steps from the budget. Returns `None` and empties the budget if it has fewer.
    pub(super) fn spend(&self, count: u32) -> Option<()> {
        let left = self.left().checked_sub(count);
        self.0.set(left.unwrap_or(0));
        left.map(drop)
    }

    /// Leaves no step.
    fn use_up(&self) {
        self.0.set(0);
    }
}

impl<'a> Search<'a> {
    /// Creates a search that takes these steps.
    #[must_use]
    pub fn new(schedule: &'a Schedule, steps: &'a Steps) -> Self {
        let known = vec![None; schedule.rule.parts().len()];
        Self { schedule, steps, known, ignores_cut: false, was_cut: false }
    }

    /// Creates the search of the scheduler. If the next run of a rule takes too long to find, the search ignores that rule
    /// from then on, and finds the runs of the others.
    pub(crate) fn for_firing(schedule: &'a Schedule, steps: &'a Steps) -> Self {
        Self { ignores_cut: true, ..Self::new(schedule, steps) }
    }

    /// Returns `true` if no step is left, or if it ignores a rule: then the last answer may be wrong.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.was_cut || self.steps.are_spent()
    }

    /// Performs a part of the search with half of the steps that are left.
    pub(crate) fn with_half<T>(&mut self, act: impl FnOnce(&mut Search<'_>) -> T) -> T {
        let half = self.steps.left() / 2;
        let steps = Steps::new(half);
        let known = self.known.clone();
        let done = act(&mut Search { known, was_cut: false, steps: &steps, ..*self });
        let _ = self.steps.spend(half - steps.left());
        done
    }

    /// Returns the first run strictly after a time; see [`Schedule::next_after`]. Once no step is left, it ignores rules
    /// whose next run it has not found.
    pub fn next_after(&mut self, after: Timestamp) -> Option<Timestamp> {
        let schedule = self.schedule;
        let from = schedule.bounds.after(after);
        let rules = schedule.rule.parts();
        let (mut first, mut cut) = (None, Vec::new());
        for (index, rule) in rules.iter().enumerate() {
            let (next, was_cut) = self.known_next((index, rules.len() - index), rule, from);
            first = first.into_iter().chain(next).min();
            if was_cut {
                cut.push((index, rule));
            }
        }
        if self.ignores_cut {
            first = first.into_iter().chain(self.second_try(&cut, from)).min();
        } else if !cut.is_empty() {
            self.steps.use_up();
        }
        first.filter(|slot| !schedule.bounds.have_ended(*slot))
    }

    /// Searches rules again with half of the steps that their first shares left, and then ignores those without success.
    fn second_try(&mut self, cut: &[(usize, &Rule)], after: Timestamp) -> Option<Timestamp> {
        let mut first = None;
        for (place, (index, rule)) in cut.iter().enumerate() {
            let (next, was_cut) = self.part_of_next(2 * (cut.len() - place), rule, after);
            first = first.into_iter().chain(next).min();
            self.was_cut |= was_cut;
            if let Some(known) = self.known.get_mut(*index) {
                let after = if next.is_none() && was_cut { Timestamp::EPOCH } else { after };
                *known = Some(Known { after, next });
            }
        }
        first
    }

    /// Like [`Search::next_after`], with the effect of a clock change.
    pub fn next(&mut self, after: Timestamp) -> Option<Slot> {
        let at = self.next_after(after)?;
        let has_slot = |known: &Option<Known>| known.is_some_and(|known| known.next == Some(at));
        let index = if self.known.is_empty() { Some(0) } else { self.known.iter().position(has_slot) };
        let rule = index.and_then(|index| self.schedule.rule.parts().get(index));
        Some(Slot { at, change: rule.and_then(|rule| self.change(rule, at)) })
    }

    /// Returns the last run at or before a time; see [`Schedule::latest`]. Once no step is left, it returns an earlier run
    /// or none.
    pub fn latest(&mut self, by: Timestamp) -> Option<Slot> {
        if self.schedule.follows_runs() {
            return None;
        }
        let at = self.latest_at(by)?;
        self.next(at.before(std::time::Duration::from_micros(1))).filter(|slot| slot.at == at)
    }

    /// Like [`Search::latest`], without the effect of a clock change.
    pub(crate) fn latest_at(&mut self, by: Timestamp) -> Option<Timestamp> {
        latest(&mut |after| self.next_after(after), by)
    }

    /// Returns `true` if these steps are enough to find, for each rule, the run behind the one that it knows.
    pub(super) fn finds_next_but_one(&self, steps: &Steps) -> bool {
        let part = Search { steps, known: Vec::new(), ..*self };
        for (rule, known) in self.schedule.rule.parts().iter().zip(&self.known) {
            if let Some(next) = known.and_then(|known| known.next) {
                part.next_of(rule, next);
            }
        }
        !steps.are_spent()
    }

    /// Returns `true` if there is a run after a time. The search stops at the first rule that has one.
    pub(super) fn has_run(&self, after: Timestamp) -> bool {
        let (bounds, rules) = (self.schedule.bounds, self.schedule.rule.parts());
        let after = bounds.after(after);
        let mut is_cut = false;
        for (index, rule) in rules.iter().enumerate() {
            let (next, was_cut) = self.part_of_next(rules.len() - index, rule, after);
            if next.is_some_and(|slot| !bounds.have_ended(slot)) {
                return true;
            }
            is_cut |= was_cut;
        }
        if is_cut {
            self.steps.use_up();
        }
        false
    }

    /// Returns the first slot of a rule, regardless of the end of the schedule, and `true` if the search was cut. The rule
    /// and those behind it have equal shares of the steps, so a rule without any run leaves some for the others.
    fn known_next(
        &mut self,
        (index, behind): (usize, usize),
        rule: &Rule,
        after: Timestamp,
    ) -> (Option<Timestamp>, bool) {
        let holds = |known: &Known| known.after <= after && known.next.is_none_or(|next| next > after);
        if let Some(known) = self.known.get(index).copied().flatten().filter(holds) {
            return (known.next, false);
        }
        let (next, was_cut) = self.part_of_next(behind, rule, after);
        // A search that was cut says nothing about later times.
        if let Some(known) = self.known.get_mut(index) {
            *known = (next.is_some() || !was_cut).then_some(Known { after, next });
        }
        (next, was_cut)
    }

    /// Searches a rule with one of so many equal shares of the steps.
    fn part_of_next(&self, shares: usize, rule: &Rule, after: Timestamp) -> (Option<Timestamp>, bool) {
        let share = self.steps.left() / u32::try_from(shares).unwrap_or(u32::MAX).max(1);
        let steps = Steps::new(share);
        let part = Search { steps: &steps, known: Vec::new(), ..*self };
        let next = part.next_of(rule, after);
        let _ = self.steps.spend(share - steps.left());
        (next, steps.are_spent())
    }

    fn next_of(&self, rule: &Rule, after: Timestamp) -> Option<Timestamp> {
        match rule {
            Rule::Cron(cron) => self.next_local(cron.repeats(), &|wall| cron.next(wall), after),
            Rule::Times(times) => self.next_local(Repeats::Once, &|wall| times.next(wall), after),
            Rule::Rrule(rule) => {
                let own = self.next_local(rule.repeats(), &|wall| rule.next(wall, self.steps), after);
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

    /// Returns the effect of a clock change on a slot of a rule.
    fn change(&self, rule: &Rule, at: Timestamp) -> Option<ClockChange> {
        let of = |is_match: &dyn Fn(Wall) -> bool| {
            passage::change_at(&self.schedule.zone, at.as_micros().div_euclid(SECOND), is_match)
        };
        match rule {
            Rule::Cron(cron) => of(&|wall| cron.next(wall) == Some(wall)),
            Rule::Times(times) => of(&|wall| times.next(wall) == Some(wall)),
            Rule::Rrule(rule) => {
                of(&|wall| rule.next_added(wall) == Some(wall) || rule.next(wall, self.steps) == Some(wall))
            }
            Rule::AnyOf(_) | Rule::Every(_) | Rule::Delay(_) | Rule::At(_) => None,
        }
    }

    /// Returns the first slot of a rule whose times are local times.
    fn next_local(
        &self,
        repeats: Repeats,
        next: &dyn Fn(Wall) -> Option<Wall>,
        after: Timestamp,
    ) -> Option<Timestamp> {
        let after = after.as_micros().div_euclid(SECOND);
        let allowed = |from: Wall| self.allowed(next, from);
        let next = if self.schedule.except.is_empty() { next } else { &allowed };
        let second = Passage::after(&OfWall { repeats, next }, &self.schedule.zone, after).next()?;
        Timestamp::from_micros(second.checked_mul(SECOND)?).ok()
    }

    /// The first local time that is not on a day that is left out.
    fn allowed(&self, next: &dyn Fn(Wall) -> Option<Wall>, mut from: Wall) -> Option<Wall> {
        for _ in 0..limits::LEFT_OUT_IN_A_ROW {
            let wall = next(from)?;
            if !self.schedule.except.leaves_out(wall) {
                return Some(wall);
            }
            self.steps.spend(1)?;
            from = wall.next_midnight();
        }
        None
    }

    /// Returns the first slot of a rule whose times are instants.
    fn next_allowed(
        &self,
        next: &dyn Fn(Timestamp) -> Option<Timestamp>,
        mut after: Timestamp,
    ) -> Option<Timestamp> {
        if self.schedule.except.is_empty() {
            return next(after);
        }
        for _ in 0..limits::LEFT_OUT_IN_A_ROW {
            let slot = next(after)?;
            let Some(midnight) = self.end_of_left_out(slot) else {
                return Some(slot);
            };
            self.steps.spend(1)?;
            // A microsecond before, since midnight itself may be a slot.
            after = Timestamp::from_micros(midnight.as_micros() - 1).ok()?.max(slot);
        }
        None
    }

    fn next_delayed(&self, delay: Delay, after: Timestamp) -> Option<Timestamp> {
        let mut slot = match self.schedule.bounds.starts_at {
            Some(start) if after < start => start,
            _ => delay.next(after)?,
        };
        for _ in 0..limits::LEFT_OUT_IN_A_ROW {
            let Some(midnight) = self.end_of_left_out(slot) else {
                return Some(slot);
            };
            self.steps.spend(1)?;
            slot = midnight;
        }
        None
    }

    /// Returns the midnight that ends the skipped day of a slot; `None` if the slot is not on a skipped day.
    fn end_of_left_out(&self, slot: Timestamp) -> Option<Timestamp> {
        let second = slot.as_micros().div_euclid(SECOND);
        let zone = &self.schedule.zone;
        let wall = zone.wall(second);
        if !self.schedule.except.leaves_out(wall) {
            return None;
        }
        let midnight = match zone.instants(wall.next_midnight()) {
            Instants::One(midnight)
            | Instants::Gap { shifted: midnight }
            | Instants::Fold { first: midnight, .. } => midnight,
        };
        // If clocks go back at midnight, the day continues after its first midnight. The next step of the search finds that.
        let midnight = midnight.max(second + 1);
        Timestamp::from_micros(midnight.checked_mul(SECOND)?).ok()
    }
}

/// Returns the last slot at or before a time, given a search for the first slot after a time.
fn latest(next_after: &mut dyn FnMut(Timestamp) -> Option<Timestamp>, by: Timestamp) -> Option<Timestamp> {
    let mut is_before = |micros: i64| {
        let after = Timestamp::from_micros(micros).ok()?;
        next_after(after).filter(|slot| *slot <= by)
    };
    // Go back in growing steps to a time with a slot between it and `by`. Then bisect for the last such slot.
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
        // A search from this slot on finds the next one, if there is any.
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
    found
}

#[cfg(test)]
mod tests {
    use crate::schedule::{Calendar, Schedule};

    #[test]
    fn a_rule_without_any_run_hides_no_run_of_the_others() {
        let rules = "DTSTART:20240101T000000 RRULE:FREQ=MONTHLY;BYDAY=1SU or DTSTART:20240101T000000 RRULE:FREQ=HOURLY";
        let schedule = Schedule::parse(rules).unwrap().except(Calendar::of(["sun"]).unwrap()).unwrap();
        let monday = "2026-01-05T12:30:00Z".parse().unwrap();
        let latest = schedule.latest(monday).map(|slot| slot.at);
        assert_eq!(latest, Some("2026-01-05T12:00:00Z".parse().unwrap()));
        assert_eq!(schedule.next_after(monday), Some("2026-01-05T13:00:00Z".parse().unwrap()));
        let stored = serde_json::to_string(&schedule).unwrap();
        assert_eq!(serde_json::from_str::<Schedule>(&stored).unwrap().to_string(), schedule.to_string());
    }
}
