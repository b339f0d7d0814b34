//! What the clients have seen, as they wrote it down. Whoever checks it needs nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};

use tenure::{Fence, JobId, StateName};
use tenure_store::Moment;

/// When a client asked and when it was answered. What it was told of happened in between.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    pub asked: Moment,
    pub heard: Moment,
}

impl Call {
    /// Whether it may have happened in that time as well.
    pub fn meets(self, other: Self) -> bool {
        self.asked <= other.heard && other.asked <= self.heard
    }
}

/// Somebody was granted something.
#[derive(Debug, Clone)]
pub struct Grant {
    /// A lease, or a job.
    pub what: String,
    pub fence: Fence,
    /// Different for each acquisition of a lease, and for each host that works on jobs.
    pub holder: String,
    pub call: Call,
    /// The last moment at which the holder looked and believed in it; it may not have come to that.
    pub believed: Option<Moment>,
}

/// What the name of a job begins with here.
const JOB: &str = "job ";

impl Grant {
    /// As what a job is granted.
    pub fn of_job(id: JobId) -> String {
        format!("{JOB}{id}")
    }

    pub fn is_of_lease(&self) -> bool {
        !self.what.starts_with(JOB)
    }
}

/// Somebody has written under a lease, in a transaction that checked it and whose commit was acknowledged.
#[derive(Debug, Clone)]
pub struct Write {
    pub what: String,
    pub fence: Fence,
    pub call: Call,
}

/// The success of a job, as it was acknowledged to whoever reported it.
#[derive(Debug, Clone, Copy)]
pub struct Success {
    pub id: JobId,
    pub fence: Fence,
    pub call: Call,
}

/// Everything.
#[derive(Debug, Default)]
pub struct History {
    /// Every job that somebody tried to enqueue.
    pub wanted: BTreeSet<JobId>,
    /// Those of them of which somebody heard that they are accepted.
    pub accepted: BTreeMap<JobId, Call>,
    pub succeeded: Vec<Success>,
    pub grants: Vec<Grant>,
    pub writes: Vec<Write>,
    /// From when to when a server acknowledged what its successor does not know: since the replica fell behind, until
    /// nobody could hear of the old server any more.
    pub lags: Vec<Call>,
    /// What the store has in the end.
    pub left: Left,
}

/// What there is when everything has come to rest.
#[derive(Debug, Default)]
pub struct Left {
    pub jobs: BTreeMap<JobId, StateName>,
    /// The jobs in whose own transactions something was written, once for each time.
    pub effects: Vec<JobId>,
    /// What was written under leases, in the order in which it was.
    pub writes: Vec<(String, Fence)>,
}

impl History {
    /// Whether a successor may not know of it.
    pub fn may_be_forgotten(&self, call: Call) -> bool {
        self.lags.iter().any(|lag| lag.meets(call))
    }
}

/// Where all clients write.
#[derive(Debug, Default)]
pub struct Book(Mutex<History>);

impl Book {
    pub fn open(&self) -> MutexGuard<'_, History> {
        self.0.lock().unwrap()
    }

    /// Notes a grant; answers its place.
    pub fn granted(&self, grant: Grant) -> usize {
        let mut history = self.open();
        history.grants.push(grant);
        history.grants.len() - 1
    }

    /// The holder of that grant believed in it at this moment.
    pub fn believes(&self, place: usize, at: Moment) {
        let believed = &mut self.open().grants[place].believed;
        *believed = (*believed).max(Some(at));
    }

    /// What was asked for after this moment and was answered: jobs accepted, jobs ended, leases granted.
    pub fn since(&self, moment: Moment) -> [usize; 3] {
        let history = self.open();
        let later = |call: &Call| call.asked > moment;
        // What came last stands last, or nearly.
        [
            history.accepted.values().rev().take(1_000).filter(|call| later(call)).count(),
            history.succeeded.iter().rev().take(1_000).filter(|success| later(&success.call)).count(),
            history
                .grants
                .iter()
                .rev()
                .filter(|grant| grant.is_of_lease())
                .take(100)
                .filter(|grant| later(&grant.call))
                .count(),
        ]
    }
}
