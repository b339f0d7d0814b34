//! A naive checker: it recomputes from all rows of a store what the store derives from them, and compares.
//!
//! All stores may share code, so a mistake in that code would be in all of them, and comparing two stores would not show
//! it. This checker is written from the guide and the glossary and shares no code with a store. It has no index and no
//! cache. Each rule goes over all rows in the plainest way, so that you can see that it is right.

mod counts;
mod jobs;
mod leases;
mod limits;
mod line;
mod looks;
mod rows;
mod standing;
#[cfg(test)]
mod tests;
mod timers;
mod turns;
mod unique;
mod waits;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Debug, Display};

use tenure_core::{Fence, Job, Key, LeaseName, LimitKey, QueueName, State, Timestamp};
use tenure_store::{Fault, Store};

pub(crate) use looks::Looks;
pub use rows::{Around, Depth, Rows};

/// Contradictions between the rows of a store and its answers, a sentence each.
type Findings = Vec<String>;

/// The changes to a store since the last look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// At most one call, so that the checker can follow each change.
    OneCall,
    /// Any number of calls.
    ManyCalls,
}

/// Compares a store with its own rows, look by look.
#[derive(Debug, Default)]
pub struct Checker {
    past: Past,
}

/// Everything that the rows cannot show, because it was.
#[derive(Debug)]
struct Past {
    /// The rows of the last look.
    rows: Option<Rows>,
    /// The latest time that the store's clock has shown.
    latest: Timestamp,
    /// True if there were looks after many calls.
    misses_calls: bool,
    /// True if changes were missed, or the clock was set back: a job that was due when it came may be scheduled again.
    is_blurred: bool,
    /// The greatest fence of each lease. A forgotten lease is not among the rows.
    fences: BTreeMap<LeaseName, Fence>,
    /// True if entries of the history were removed.
    is_pruned: bool,
    /// Jobs that had ended and were retried.
    retried: BTreeSet<u64>,
    /// The numbers that the jobs of a limit key say, by place in the order of acceptance.
    numbers: BTreeMap<Key, BTreeSet<(u64, u32)>>,
    /// Queues that had a job with a share key.
    shared: BTreeSet<QueueName>,
}

impl Checker {
    /// Reads all rows of a store and compares. The store must be at rest.
    ///
    /// # Errors
    /// The store could not answer.
    pub async fn look(
        &mut self,
        store: &dyn Store,
        depth: Depth,
        since: Since,
    ) -> Result<Vec<String>, Fault> {
        Ok(self.judge(Rows::read(store, depth).await?, since))
    }

    /// Compares rows that were read already. It returns a sentence for each contradiction.
    pub fn judge(&mut self, rows: Rows, since: Since) -> Vec<String> {
        let past = &mut self.past;
        past.note(&rows, since);
        let mut findings = of_rows(&rows, past);
        if let Some(before) = &past.rows {
            findings.extend(jobs::grown(before, &rows));
            if since == Since::OneCall {
                findings.extend(limits::numbers(&rows, past));
                findings.extend(turns::passed(before, &rows));
                findings.extend(limits::granted(before, &rows));
                findings.extend(line::moved(before, &rows, past));
                findings.extend(waits::gone_on(before, &rows, past));
            }
        }
        past.remember(rows);
        findings
    }
}

/// The rules that need the present rows only.
fn of_rows(rows: &Rows, past: &Past) -> Findings {
    let rules = [
        counts::totals(rows),
        counts::counters(rows, past),
        counts::queues(rows, past),
        jobs::jobs(rows, past),
        jobs::attempts(rows),
        turns::turns(rows, past),
        limits::keys(rows, past),
        limits::standings(rows, past),
        line::lines(rows),
        waits::waits(rows, past),
        standing::surroundings(rows),
        unique::holds(rows, past),
        leases::leases(rows, past),
        leases::ledger(rows, past),
        timers::timers(rows),
        timers::records(rows),
    ];
    rules.concat()
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
    /// Notes what the rows of this look show for later ones.
    fn note(&mut self, rows: &Rows, since: Since) {
        self.misses_calls |= since == Since::ManyCalls;
        self.is_blurred |= self.misses_calls || rows.now < self.latest;
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

    fn remember(&mut self, rows: Rows) {
        for info in &rows.leases {
            self.fences.insert(info.lease.name.clone(), info.lease.fence);
        }
        self.rows = Some(rows);
    }

    /// True if a turn has certainly found this waiting job due: it was due when it came.
    fn is_surely_due(&self, job: &Job) -> bool {
        !self.is_blurred && matches!(job.state, State::Waiting { due, .. } if due <= job.created)
    }

    /// True unless the job may have ended before, and was retried.
    fn is_certain(&self, job: &Job) -> bool {
        !self.misses_calls && !self.retried.contains(&job.seq)
    }

    /// True if a turn may have found this waiting job due.
    fn is_maybe_due(&self, job: &Job) -> bool {
        matches!(job.state, State::Waiting { due, .. } if due <= self.latest)
    }
}

/// A finding, unless the store's answer is the recomputed one.
fn differs<T: Debug + PartialEq>(about: impl Display, answer: &T, recomputed: &T) -> Option<String> {
    (answer != recomputed)
        .then(|| format!("{about}: the store answers {answer:?}, its rows give {recomputed:?}"))
}

/// A finding, unless the condition holds.
fn unless(holds: bool, finding: impl FnOnce() -> String) -> Option<String> {
    (!holds).then(finding)
}
