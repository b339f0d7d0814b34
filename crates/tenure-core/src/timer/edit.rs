//! Setting a timer that is there already.

use std::sync::Arc;

use super::fire::{Firing, Open, fire, first_slot};
use super::passed::Passed;
use super::{Fate, NewTimer, OnEdit, Skipped, Timer};
use crate::Timestamp;

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
    if is_rescheduled && !cfg!(feature = "mutant-edit-loses-due") {
        firing.settle_until(now);
    }
    let timer = &mut firing.timer;
    if is_rescheduled {
        timer.runs = 0;
        timer.forget_what_was_ahead(now);
        let decided = timer.decided.filter(|_| !cfg!(feature = "mutant-edit-goes-back"));
        timer.next = first_slot(&new, decided, now);
    }
    timer.agreed = Arc::new(new);
    timer.version += 1;
    if cfg!(feature = "mutant-edit-forgets-pause") {
        timer.paused = None;
    }
    timer.changed = now;
    if timer.is_spent() {
        timer.next = None;
    }
    Edited::Changed(Box::new(firing))
}

impl Firing {
    /// Decides all slots of the schedule until now: no later decision goes by it.
    fn settle_until(&mut self, now: Timestamp) {
        let Some(first) = self.timer.next.filter(|next| *next <= now) else { return };
        if self.timer.paused.is_some() {
            self.skip_until(first, now, &Skipped::Paused);
        } else if self.timer.agreed.policies.on_edit == OnEdit::Drop {
            self.skip_until(first, now, &Skipped::Edited);
        } else if !self.timer.agreed.schedule.follows_runs() {
            let agreed = Arc::clone(&self.timer.agreed);
            self.decide(&Passed::until(&agreed.schedule, first, now), now);
        }
    }

    /// Skips all slots from one of them until now.
    pub(super) fn skip_until(&mut self, first: Timestamp, now: Timestamp, why: &Skipped) {
        if self.timer.agreed.schedule.follows_runs() {
            // Its next slot is not known before a job has ended: none has passed.
            return;
        }
        let agreed = Arc::clone(&self.timer.agreed);
        let passed = Passed::until(&agreed.schedule, first, now);
        self.note_range(&passed, first, passed.last, Fate::Skipped { why: why.clone() }, now);
        self.timer.decided = Some(passed.last);
    }
}
