//! Every slot has one record.

use std::collections::BTreeMap;

use tenure_core::{Name, NewTimer, SlotRecord, Timestamp, limits};
use tenure_store::{TimerAct, TimerOutcome, TimerSet};

use super::super::Check;
use super::{Roster, batches, keeps};
use crate::history::{Entry, Timed, TimerDoing, What};

/// The records of a timer follow its schedule slot by slot, from the instant at which it was set: none is left out,
/// none comes twice, none is invented. Whoever fires leaves nothing that is ripe; whoever edits, pauses or lets go
/// on leaves nothing of the time before.
#[derive(Default)]
pub(in super::super) struct Timetable {
    roster: Roster,
    lines: BTreeMap<Name, Line>,
}

/// How far the records of a timer have come.
#[derive(Default)]
struct Line {
    /// The slot whose record comes next; `None` if its instant depends on runs.
    next: Option<Timestamp>,
    decided: Option<Timestamp>,
    /// A timer that was removed and set again while the clock was put back finds slots up to here on record.
    before: Option<Timestamp>,
}

impl Check for Timetable {
    fn rule(&self) -> &'static str {
        "every slot of a timer has one record"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        let What::Timed(timed) = &entry.what else { return Ok(()) };
        for (name, seen) in batches(timed) {
            let Some(agreed) = self.roster.judged_by(name) else {
                return Err(format!("{name} has a record of a slot, and is not there"));
            };
            let line = self.lines.entry(name.clone()).or_default();
            for seen in seen {
                line.take(&agreed, &seen.record)?;
            }
        }
        self.look_back(timed, entry.store_now)?;
        self.set(timed, entry.store_now);
        self.resumed(timed, entry.store_now);
        self.roster.see(timed);
        Ok(())
    }
}

impl Timetable {
    /// Whether anything was left that had to be decided by now.
    fn look_back(&self, timed: &Timed, now: Timestamp) -> Result<(), String> {
        for (name, line) in &self.lines {
            let Some(agreed) = self.roster.timers.get(name) else { continue };
            let Some(next) = line.next.filter(|next| Some(*next) > line.before) else { continue };
            let due = agreed.new.schedule.due(name.as_str(), next);
            let is_left = match &timed.doing {
                TimerDoing::Fires => !agreed.paused && due <= now,
                TimerDoing::Sets { .. } => {
                    let new = self.roster.rescheduled(timed, name);
                    // One that its jitter still puts off keeps its time if the new schedule has it as well.
                    new.is_some_and(|new| next <= now && !(due > now && keeps(new, next, now)))
                }
                TimerDoing::Changes { name: of, act, outcome: TimerOutcome::Done } if of == name => match act
                {
                    TimerAct::Pause { .. } => !agreed.paused && due <= now,
                    TimerAct::Resume => agreed.paused && due <= now,
                    TimerAct::Remove => next <= now,
                    TimerAct::Trigger { .. } | TimerAct::Backfill { .. } => false,
                },
                TimerDoing::Changes { .. } | TimerDoing::Looks { .. } => false,
            };
            if is_left {
                return Err(format!("{name} has no record of its slot {next}"));
            }
        }
        Ok(())
    }

    /// Where the records of a timer go on that was paused.
    fn resumed(&mut self, timed: &Timed, now: Timestamp) {
        let TimerDoing::Changes { name, act: TimerAct::Resume, outcome: TimerOutcome::Done } = &timed.doing
        else {
            return;
        };
        let agreed = self.roster.timers.get(name).filter(|agreed| agreed.paused);
        if let (Some(agreed), Some(line)) = (agreed, self.lines.get_mut(name)) {
            line.forget(&agreed.new, now);
        }
    }

    /// Where the records go on after timers were set.
    fn set(&mut self, timed: &Timed, now: Timestamp) {
        let TimerDoing::Sets { timers, .. } = &timed.doing else { return };
        for (new, set) in timers {
            let is_rescheduled = self.roster.rescheduled(timed, &new.name).is_some();
            let line = self.lines.entry(new.name.clone()).or_default();
            match set {
                TimerSet::New => {
                    line.before = line.before.max(line.decided.take());
                    line.next = first(new, now);
                }
                TimerSet::Changed if is_rescheduled => {
                    line.forget(new, now);
                    // Whether one is on record from before nobody asks who keeps it: then it is passed by.
                    let kept = line.next.filter(|next| *next <= now && keeps(new, *next, now));
                    let after = line.decided.map_or(now, |decided| decided.max(now));
                    line.next = kept.or_else(|| first(new, after));
                }
                TimerSet::Changed | TimerSet::Same | TimerSet::Outdated { .. } | TimerSet::Over { .. } => {}
            }
        }
    }
}

impl Line {
    /// Who begins anew does not wait for slots that were decided by a clock that was far ahead.
    fn forget(&mut self, agreed: &NewTimer, now: Timestamp) {
        if self.decided.is_some_and(|decided| decided.since(now) > limits::CLOCK_AHEAD) {
            self.before = self.before.max(self.decided.take());
            self.next = first(agreed, now);
        }
    }

    fn take(&mut self, agreed: &NewTimer, record: &SlotRecord) -> Result<(), String> {
        let (name, found, schedule) = (&record.timer, record.first, &agreed.schedule);
        if schedule.follows_runs() {
            // A job that ends lets it begin anew as well.
            self.forget(agreed, record.at);
            if self.decided >= Some(found) || record.last != found {
                return Err(format!("{name} has a record of {found} behind a later one"));
            }
            self.decided = Some(found);
            return Ok(());
        }
        while self.next.is_some_and(|next| next < found && Some(next) <= self.before) {
            self.next = self.next.and_then(|next| schedule.next_after(next));
        }
        match self.next {
            Some(next) if next == found => {}
            Some(next) if next < found => return Err(format!("{name} has no record of its slot {next}")),
            next => return Err(format!("{name} has a record of {found} too many: {next:?} comes next")),
        }
        let (mut slot, mut count) = (found, 1);
        while slot < record.last {
            let Some(next) = schedule.next_after(slot) else { break };
            (slot, count) = (next, count + 1);
        }
        if slot != record.last || record.count.is_some_and(|told| told != count) {
            return Err(format!(
                "{name} has {count} slots from {found} to {}, and a record of {record:?}",
                record.last
            ));
        }
        (self.decided, self.next) = (Some(slot), schedule.next_after(slot));
        Ok(())
    }
}

fn first(new: &NewTimer, after: Timestamp) -> Option<Timestamp> {
    if new.schedule.follows_runs() { None } else { new.schedule.next_after(after) }
}

#[cfg(test)]
mod tests {
    use super::super::super::made::verdict;
    use super::super::made::{done, fires, ran, sets, skipped, with_every};
    use super::*;
    use tenure_core::Skipped;

    fn says(history: impl IntoIterator<Item = Entry>) -> Result<(), String> {
        verdict(Timetable::default(), history)
    }

    fn set() -> Entry {
        sets(2, with_every(5), TimerSet::New)
    }

    #[test]
    fn a_slot_without_a_record_is_found() {
        assert!(says([set(), fires(10, [ran(10, 10)])]).is_err());
        assert!(says([set(), fires(11, [ran(5, 11)])]).is_err());
        assert!(says([set(), sets(7, with_every(7), TimerSet::Changed)]).is_err());
    }

    #[test]
    fn a_slot_with_two_records_and_one_that_is_none_are_found() {
        assert!(says([set(), fires(5, [ran(5, 5)]), fires(6, [ran(5, 6)])]).is_err());
        assert!(says([set(), fires(7, [ran(6, 7)])]).is_err());
        let back = sets(3, with_every(2), TimerSet::Changed);
        assert!(says([set(), fires(5, [ran(5, 5)]), back, fires(5, [ran(4, 5)])]).is_err());
    }

    #[test]
    fn a_slot_that_is_lost_while_paused_is_found() {
        let pause = done(6, TimerAct::Pause { reason: String::new() });
        let history = [set(), fires(5, [ran(5, 5)]), pause];
        assert!(says(history.clone().into_iter().chain([done(22, TimerAct::Resume)])).is_err());
        let mut resumed = done(22, TimerAct::Resume);
        if let What::Timed(timed) = &mut resumed.what {
            timed.slots.push(skipped((10, 20), 3, Skipped::Paused, 22));
        }
        assert_eq!(says(history.into_iter().chain([resumed, fires(25, [ran(25, 25)])])), Ok(()));
    }

    #[test]
    fn a_range_that_is_counted_wrongly_is_found() {
        let range = |count| fires(20, [skipped((5, 15), count, Skipped::TooLate, 20), ran(20, 20)]);
        assert!(says([set(), range(2)]).is_err());
        assert_eq!(says([set(), range(3)]), Ok(()));
    }

    #[test]
    fn an_edit_goes_on_behind_what_was_decided() {
        let edited = sets(6, with_every(7), TimerSet::Changed);
        let good = [set(), fires(5, [ran(5, 5)]), edited, fires(7, [ran(7, 7)])];
        assert_eq!(says(good), Ok(()));
    }
}
