//! The records of slots that have been read, so that what is new or different among them shows.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tenure_core::{JobId, Name, SlotRecord};
use tenure_store::SlotCursor;

use crate::history::Who;

/// Two hosts that come within this time have come for the same slot.
const AT_ONCE: Duration = Duration::from_millis(20);

/// What was read so far, and which jobs of timers may be open.
#[derive(Debug, Default)]
pub(crate) struct Records {
    read: BTreeMap<SlotCursor, SlotRecord>,
    open: BTreeMap<Name, Vec<JobId>>,
    cancelled: BTreeSet<JobId>,
    fired: Option<(Who, Duration)>,
}

impl Records {
    /// Whether a record is new, or not what it was.
    pub(crate) fn learn(&mut self, record: &SlotRecord) -> bool {
        let before = self.read.insert(SlotCursor::of(record), record.clone());
        before.is_none_or(|before| before != *record)
    }

    /// A timer of this name is a new one: it knows nothing of the jobs of an earlier one.
    pub(crate) fn renew(&mut self, timer: &Name) {
        self.open.remove(timer);
    }

    /// A host has fired something, or found nothing to fire; answers whether another has just fired.
    pub(crate) fn came(&mut self, who: Who, now: Duration, fired: bool) -> bool {
        let by_another = |(other, at): (Who, Duration)| other != who && now < at + AT_ONCE;
        let is_late = !fired && self.fired.is_some_and(by_another);
        if fired {
            self.fired = Some((who, now));
        }
        is_late
    }

    /// A timer has brought a job.
    pub(crate) fn open(&mut self, timer: &Name, job: JobId) {
        let open = self.open.entry(timer.clone()).or_default();
        if !open.contains(&job) {
            open.push(job);
        }
    }

    /// The jobs that a timer has brought and of which none is known to have ended.
    pub(crate) fn opened(&self, timer: &Name) -> Vec<JobId> {
        self.open.get(timer).cloned().unwrap_or_default()
    }

    /// It has ended.
    pub(crate) fn close(&mut self, timer: &Name, job: JobId) {
        if let Some(open) = self.open.get_mut(timer) {
            open.retain(|open| *open != job);
        }
    }

    /// Whether this is the first time that a job is seen cancelled.
    pub(crate) fn cancel(&mut self, job: JobId) -> bool {
        self.cancelled.insert(job)
    }
}
