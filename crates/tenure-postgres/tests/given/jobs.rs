//! What the tests of jobs start from.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{
    Args, Due, HostId, JobId, Kind, NewJob, Priority, QueueName, Reserved, RetryPolicy, Settlement, Terms,
    Timestamp, Verdict,
};
use tenure_store::{Held, Kinds, Reserve, Want};

/// A job to be done at once, told apart by its number.
pub fn new_job(number: u64) -> NewJob {
    NewJob {
        id: JobId::new(Timestamp::from_micros(1_700_000_000_000_000).unwrap(), number),
        kind: Kind::new("echo").unwrap(),
        queue: QueueName::default(),
        args: Args::new(format!("{{\"number\":{number}}}").into_bytes()).unwrap(),
        priority: Priority::default(),
        due: Due::Now,
        terms: Arc::new(Terms::default()),
    }
}

/// So many jobs, from this number on.
pub fn new_jobs(from: u64, count: u64) -> Vec<NewJob> {
    (from..from + count).map(new_job).collect()
}

/// A wish for jobs of the default queue, for a minute.
pub fn ask(holder: HostId, at_most: usize) -> Reserve {
    let want = Want { queue: QueueName::default(), kinds: Kinds::All, at_most };
    Reserve { holder, ttl: Duration::from_secs(60), wants: vec![want], at_most }
}

pub fn settle(reserved: Reserved, verdict: Verdict) -> Settlement {
    reserved.settle(verdict, &RetryPolicy::default(), 0.5)
}

pub fn held(reserved: &Reserved) -> Held {
    let (id, seq) = (reserved.job().id, reserved.job().seq);
    Held { id, seq, fence: reserved.fence() }
}
