//! Probes about timers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{Fate, Name, NewTimer, Origin, Skipped, SlotRecord, Timestamp};
use tenure_store::{TimerAct, TimerOutcome, TimerSet};

use super::{Hits, Probe};
use crate::history::{Entry, Timed, TimerDoing, What};

/// Later than this a slot was fired late.
const LATE: Duration = Duration::from_secs(5);
/// Nothing but a long outage makes a slot as late as this.
const VERY_LATE: Duration = Duration::from_secs(400);

/// What is needed to know when a probe about timers is hit.
#[derive(Debug, Default)]
pub(super) struct TimerProbes {
    agreed: BTreeMap<Name, Arc<NewTimer>>,
    decided: BTreeMap<Name, Timestamp>,
}

impl TimerProbes {
    pub(super) fn see(&mut self, entry: &Entry, hits: &mut Hits) {
        let What::Timed(timed) = &entry.what else { return };
        match &timed.doing {
            TimerDoing::Sets { timers, .. } => {
                for (new, set) in timers {
                    self.set(new, *set, timed, entry.store_now, hits);
                }
            }
            TimerDoing::Changes { act: TimerAct::Trigger { .. }, outcome: TimerOutcome::Busy(_), .. } => {
                hits.hit(Probe::TriggerRefused);
            }
            TimerDoing::Changes { act: TimerAct::Remove, outcome: TimerOutcome::Done, name } => {
                self.agreed.remove(name);
                hits.hit(Probe::TimerRemoved);
            }
            TimerDoing::Fires | TimerDoing::Changes { .. } | TimerDoing::Looks { .. } => {}
        }
        for seen in &timed.slots {
            tell(&seen.record, hits);
            if seen.record.origin == Origin::Schedule {
                self.decided.insert(seen.record.timer.clone(), seen.record.last);
            }
        }
    }

    fn set(&mut self, new: &Arc<NewTimer>, set: TimerSet, timed: &Timed, now: Timestamp, hits: &mut Hits) {
        match set {
            TimerSet::Outdated { .. } => return hits.hit(Probe::OutdatedTimer),
            TimerSet::Same | TimerSet::Over { .. } => return,
            TimerSet::New | TimerSet::Changed => {}
        }
        let before = self.agreed.insert(new.name.clone(), Arc::clone(new));
        let is_rescheduled = before.is_some_and(|before| before.schedule != new.schedule);
        if !is_rescheduled {
            return;
        }
        let is_of = |record: &SlotRecord| record.timer == new.name && record.origin == Origin::Schedule;
        if timed.slots.iter().any(|seen| is_of(&seen.record)) {
            hits.hit(Probe::EditedWhileDue);
        }
        if self.decided.get(&new.name).is_some_and(|decided| *decided > now) {
            hits.hit(Probe::EditedBehindTheClock);
        }
    }
}

fn tell(record: &SlotRecord, hits: &mut Hits) {
    let probe = match (&record.fate, record.origin) {
        (Fate::Ran { .. }, Origin::Schedule) => Probe::SlotFired,
        (Fate::Ran { .. }, Origin::Start) => Probe::RanOnStart,
        (Fate::Ran { .. }, Origin::Trigger) => Probe::TimerTriggered,
        (Fate::Ran { .. }, Origin::Backfill) => Probe::SlotBackfilled,
        (Fate::Coalesced { .. }, _) => Probe::SlotCoalesced,
        (Fate::Skipped { why: Skipped::Busy { .. } }, _) => Probe::SlotSkippedBusy,
        (Fate::Skipped { why: Skipped::Missed }, _) => Probe::SlotSkippedMissed,
        (Fate::Skipped { why: Skipped::TooMany }, _) => Probe::SlotSkippedTooMany,
        (Fate::Skipped { why: Skipped::TooLate }, _) => Probe::SlotSkippedTooLate,
        (Fate::Skipped { why: Skipped::Paused }, _) => Probe::SlotSkippedPaused,
        (Fate::Skipped { why: Skipped::Edited }, _) => Probe::SlotSkippedEdited,
        // The check of the record fails.
        (Fate::Skipped { why: Skipped::IdTaken { .. } }, _) => return,
    };
    hits.hit(probe);
    if record.origin == Origin::Schedule {
        let late = record.at.since(record.first);
        if late > LATE && record.job().is_some() {
            hits.hit(Probe::SlotFiredLate);
        }
        if late > VERY_LATE {
            hits.hit(Probe::SlotAfterLongOutage);
        }
    }
}
