//! Facts from earlier looks, which the present rows no longer show.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{Fence, Job, Key, LeaseName, LimitKey, QueueName, State, Timestamp};

use super::{Rows, Since};

/// Facts about the past, which the present rows do not show.
#[derive(Debug)]
pub(super) struct Past {
    /// The rows of the last look.
    pub(super) rows: Option<Rows>,
    /// The latest time that the store's clock has shown.
    pub(super) latest: Timestamp,
    /// True if more than one call may have happened between two looks.
    pub(super) misses_calls: bool,
    /// True if looks missed changes, or the clock was set back. Then a job that was due when enqueued may be scheduled again.
    pub(super) is_blurred: bool,
    /// The greatest fence of each lease. A forgotten lease is not among the rows.
    pub(super) fences: BTreeMap<LeaseName, Fence>,
    /// True if entries of the history were removed.
    pub(super) is_pruned: bool,
    /// Jobs that had ended and were retried.
    pub(super) retried: BTreeSet<u64>,
    /// The limits that the jobs of a limit key state, each with the job's place in the order of acceptance.
    pub(super) numbers: BTreeMap<Key, BTreeSet<(u64, u32)>>,
    /// Queues that had a job with a share key.
    pub(super) shared: BTreeSet<QueueName>,
}

impl Default for Past {
    fn default() -> Self {
        Self {
            rows: None,
            latest: Timestamp::EPOCH,
            misses_calls: false,
            is_blurred: false,
            is_pruned: false,
            fences: BTreeMap::new(),
            retried: BTreeSet::new(),
            numbers: BTreeMap::new(),
            shared: BTreeSet::new(),
        }
    }
}

impl Past {
    /// Records facts from the rows of this look for later looks.
    pub(super) fn note(&mut self, rows: &Rows, since: Since) {
        self.misses_calls |= since == Since::ManyCalls;
        self.is_blurred |= self.misses_calls || rows.now < self.latest;
        self.is_pruned |= self.misses_calls;
        self.latest = self.latest.max(rows.now);
        for job in &rows.jobs {
            if let Some(LimitKey { key, most: Some(most) }) = &job.terms.limit {
                self.numbers.entry(key.clone()).or_default().insert((job.seq, *most));
            }
            if job.terms.share.is_some() {
                self.shared.insert(job.queue.clone());
            }
        }
        let Some(before) = &self.rows else { return };
        let has_ended = |seq| before.at(seq).is_some_and(|was| was.state.is_finished());
        self.retried.extend(rows.unfinished().map(|job| job.seq).filter(|seq| has_ended(*seq)));
        let is_there = |number: u64| rows.ledger.iter().any(|entry| entry.number == number);
        self.is_pruned |= before.ledger.iter().any(|entry| !is_there(entry.number));
    }

    pub(super) fn remember(&mut self, rows: Rows) {
        for info in &rows.leases {
            self.fences.insert(info.lease.name.clone(), info.lease.fence);
        }
        self.rows = Some(rows);
    }

    /// Returns true if a turn has certainly found this waiting job due, because it was due when enqueued.
    pub(super) fn is_surely_due(&self, job: &Job) -> bool {
        !self.is_blurred && matches!(job.state, State::Waiting { due, .. } if due <= job.created)
    }

    /// Returns true if the job was certainly never retried after its end.
    pub(super) fn is_certain(&self, job: &Job) -> bool {
        !self.misses_calls && !self.retried.contains(&job.seq)
    }

    /// True if a turn may have found this waiting job due.
    pub(super) fn is_maybe_due(&self, job: &Job) -> bool {
        matches!(job.state, State::Waiting { due, .. } if due <= self.latest || self.misses_calls)
    }
}
