//! Setting a timer that is there already.

use std::sync::Arc;

use super::fire::{Firing, Open, fire, first_slot};
use super::passed::{Passed, TICK};
use super::{Fate, NewTimer, OnEdit, Skipped, Timer};
use crate::schedule::{Schedule, Steps};
use crate::{Timestamp, limits};

/// What setting a timer that is there already comes to.
#[derive(Debug, Clone, PartialEq)]
pub enum Edited {
    /// It is the same: nothing changes.
    Same,
    /// A program of a later version has declared it: nothing changes.
    Outdated {
        /// The version of that program.
        by: u64,
    },
    /// It changes.
    Changed(Box<Firing>),
}

/// Decides what becomes of a timer that somebody sets anew.
///
/// Slots that have passed are decided before, by what was agreed until now, so that none is lost, and a new schedule
/// begins behind them, so that none is doubled.
#[must_use]
pub fn edit(timer: &Timer, open: &Open, new: NewTimer, now: Timestamp) -> Edited {
    if new.revision < timer.agreed.revision {
        return Edited::Outdated { by: timer.agreed.revision };
    }
    if *timer.agreed == new {
        return Edited::Same;
    }
    let is_rescheduled = timer.agreed.schedule != new.schedule;
    // Slots that are ripe are decided by what was agreed when they came.
    let mut firing = if is_rescheduled { Firing::of(timer, open, now) } else { fire(timer, open, now) };
    let settles = is_rescheduled && !cfg!(mutant = "edit-loses-due");
    let kept = if settles { firing.settle_until(now, &new) } else { None };
    let timer = &mut firing.timer;
    if is_rescheduled {
        if counts_anew(&timer.agreed.schedule, &new.schedule) {
            timer.runs = 0;
        }
        timer.forget_what_was_ahead(now);
        let decided = timer.decided.filter(|_| !cfg!(mutant = "edit-goes-back"));
        timer.next = kept.or_else(|| first_slot(&new, decided, now));
    }
    timer.agreed = Arc::new(new);
    timer.version += 1;
    if cfg!(mutant = "edit-forgets-pause") {
        timer.paused = None;
    }
    timer.changed = now;
    if timer.is_spent() {
        timer.next = None;
    }
    Edited::Changed(Box::new(firing))
}

impl Firing {
    /// Decides all slots of the schedule until now: no later decision goes by it. Answers one that its jitter still
    /// puts off and that the new schedule has and puts off as well: there it keeps its time.
    fn settle_until(&mut self, now: Timestamp, new: &NewTimer) -> Option<Timestamp> {
        let agreed = Arc::clone(&self.timer.agreed);
        // The next slot of what follows runs is not known before a job has ended: none has passed.
        let first = self.timer.next.filter(|next| *next <= now && !agreed.schedule.follows_runs())?;
        let steps = Steps::new(limits::FIRING_STEPS);
        let mut passed = Passed::until(&agreed, first, now, &steps);
        let last = passed.last;
        let kept = Some(last).filter(|last| agreed.due(*last) > now && keeps(new, *last, now));
        if kept.is_some() {
            if last == first {
                return kept;
            }
            passed.last = passed.last_before(last);
        }
        if self.timer.paused.is_some() {
            self.skip(&passed, &Skipped::Paused, now);
        } else if agreed.policies.on_edit == OnEdit::Drop {
            self.skip(&passed, &Skipped::Edited, now);
        } else {
            self.decide(&passed, now);
        }
        kept
    }

    /// Skips all of these slots.
    pub(super) fn skip(&mut self, passed: &Passed<'_>, why: &Skipped, now: Timestamp) {
        self.note_range(passed, passed.first, passed.last, Fate::Skipped { why: why.clone() }, now);
        self.timer.decided = Some(passed.last);
    }
}

/// Whether the number of jobs that a timer may bring begins anew: if it got other slots or another number. When its
/// slots begin and end, which of them are left out and how far each is put off are details of the same schedule.
fn counts_anew(before: &Schedule, new: &Schedule) -> bool {
    (before.rule(), before.zone(), before.bounds().most_runs)
        != (new.rule(), new.zone(), new.bounds().most_runs)
}

/// Whether this instant is a slot of a timer, and one that its jitter puts off, and none behind it has come.
fn keeps(timer: &NewTimer, slot: Timestamp, now: Timestamp) -> bool {
    timer.schedule.next_after(slot.before(TICK)) == Some(slot)
        && timer.due(slot) > now
        && timer.schedule.next_after(slot).is_none_or(|next| next > now)
}
