//! What has been counted and is not written yet.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tenure_core::{Job, Kind, NewJob, QueueName, Settlement, SlotRecord, State, StateName, Timestamp};
use tenure_store::Settled;

use super::totals::Totals;
use super::{KINDS, MINUTE, OTHER, Went};

/// Minutes of queues that are kept while they cannot be written.
const MOST: usize = 10_000;

/// What has been counted and is not written yet.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    /// What tells it from those of other programs.
    id: u64,
    counted: Mutex<Counted>,
    /// All since this program started, written nowhere.
    totals: Mutex<Totals>,
}

#[derive(Debug, Default)]
struct Counted {
    minutes: BTreeMap<u64, BTreeMap<QueueName, Bucket>>,
    /// What is being written: it is here until it is known to be there.
    writing: Vec<(u64, QueueName, Bucket)>,
    last: u64,
}

/// What happened in a queue in a minute.
#[derive(Debug, Clone, Default)]
pub(super) struct Bucket {
    /// What tells it from all others of this heap.
    pub number: u64,
    pub kinds: BTreeMap<String, Went>,
}

impl Heap {
    /// One that is told from those of other programs by this.
    pub(crate) fn of(id: u64) -> Self {
        Self { id, ..Self::default() }
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// Jobs were accepted.
    pub(crate) fn enqueued<'a>(&self, jobs: impl IntoIterator<Item = &'a NewJob>, now: Timestamp) {
        let (mut counted, mut totals) = (self.lock(), lock(&self.totals));
        let mut jobs = jobs.into_iter().peekable();
        while let Some(job) = jobs.next() {
            let mut alike = 1;
            while jobs.next_if(|next| next.kind == job.kind && next.queue == job.queue).is_some() {
                alike += 1;
            }
            counted.of(number(now), &job.queue, &job.kind).enqueued += alike;
            totals.of(&job.queue, &job.kind).enqueued += alike;
        }
    }

    /// Jobs were granted.
    pub(crate) fn granted<'a>(&self, jobs: impl IntoIterator<Item = &'a Job>) {
        let jobs: Vec<&Job> = jobs.into_iter().collect();
        let mut totals = lock(&self.totals);
        jobs.chunk_by(|one, next| are_alike(one, next)).for_each(|alike| totals.granted(alike));
    }

    /// Attempts were settled: jobs as they were granted, how they were to end, and what came of that.
    pub(crate) fn settled<'a>(&self, attempts: impl IntoIterator<Item = Ended<'a>>, now: Timestamp) {
        let attempts: Vec<Ended<'_>> = attempts.into_iter().collect();
        let (mut counted, mut totals) = (self.lock(), lock(&self.totals));
        for alike in attempts.chunk_by(|(one, ..), (next, ..)| are_alike(one, next)) {
            totals.settled(alike, now);
            counted.settled(alike, now);
        }
    }

    /// Slots of timers were decided.
    pub(crate) fn fired(&self, records: &[SlotRecord]) {
        let mut totals = lock(&self.totals);
        records.iter().for_each(|record| totals.fired(record));
    }

    /// A holder elsewhere was told that it has lost its lease.
    pub(crate) fn lease_lost(&self) {
        lock(&self.totals).leases_lost += 1;
    }

    /// All since this program started.
    pub(crate) fn totals(&self) -> Totals {
        lock(&self.totals).clone()
    }

    /// Shows what is not known to be written.
    pub(super) fn each(&self, mut each: impl FnMut(u64, &QueueName, &Bucket)) {
        let counted = self.lock();
        for (minute, queues) in &counted.minutes {
            queues.iter().for_each(|(queue, bucket)| each(*minute, queue, bucket));
        }
        counted.writing.iter().for_each(|(minute, queue, bucket)| each(*minute, queue, bucket));
    }

    /// Takes what is to be written: the minutes that are over, or all of them; at most so much at once.
    pub(super) fn begin(&self, all: bool, now: Timestamp, most: usize) -> Vec<(u64, QueueName, Bucket)> {
        let mut counted = self.lock();
        let present = if all { BTreeMap::new() } else { counted.minutes.split_off(&number(now)) };
        let over = std::mem::replace(&mut counted.minutes, present);
        let over = over.into_iter().flat_map(|(minute, queues)| {
            queues.into_iter().map(move |(queue, bucket)| (minute, queue, bucket))
        });
        counted.writing.extend(over);
        // What cannot be written for long is let go, the oldest first.
        let excess = counted.writing.len().saturating_sub(MOST);
        counted.writing.drain(..excess);
        counted.writing.iter().take(most).cloned().collect()
    }

    /// These are written.
    pub(super) fn written(&self, buckets: &[(u64, QueueName, Bucket)]) {
        let numbers: BTreeSet<u64> = buckets.iter().map(|(_, _, bucket)| bucket.number).collect();
        self.lock().writing.retain(|(_, _, bucket)| !numbers.contains(&bucket.number));
    }

    fn lock(&self) -> MutexGuard<'_, Counted> {
        lock(&self.counted)
    }
}

/// A job as it was granted, how it was to end, and what came of that.
pub(super) type Ended<'a> = (&'a Job, &'a Settlement, Settled);

/// Whether jobs are counted together.
fn are_alike(one: &Job, other: &Job) -> bool {
    one.kind == other.kind && one.queue == other.queue
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Counted {
    /// Attempts at jobs of one kind and queue were settled.
    fn settled(&mut self, alike: &[Ended<'_>], now: Timestamp) {
        let done = alike.iter().filter_map(|(job, settlement, settled)| match *settled {
            Settled::Done(state) => Some((*job, settlement.has_failed(), state)),
            Settled::Repeated | Settled::Fenced | Settled::Gone => None,
        });
        let mut done = done.peekable();
        let Some((first, ..)) = done.peek() else { return };
        let went = self.of(number(now), &first.queue, &first.kind);
        for (job, has_failed, state) in done {
            *went.count_of(state, has_failed) += 1;
            let Some(started) = job.started else { continue };
            went.ran.add(now.since(started));
            if let State::Running { due, .. } = job.state {
                went.waited.add(started.since(due.max(job.created)));
            }
        }
    }

    fn of(&mut self, minute: u64, queue: &QueueName, kind: &Kind) -> &mut Went {
        let queues = self.minutes.entry(minute).or_default();
        if !queues.contains_key(queue) {
            self.last += 1;
            queues.insert(queue.clone(), Bucket { number: self.last, ..Bucket::default() });
        }
        let kinds = &mut queues.entry(queue.clone()).or_default().kinds;
        let name =
            if kinds.contains_key(kind.as_str()) || kinds.len() < KINDS { kind.as_str() } else { OTHER };
        if !kinds.contains_key(name) {
            kinds.insert(name.to_owned(), Went::default());
        }
        kinds.entry(name.to_owned()).or_default()
    }
}

impl Went {
    fn count_of(&mut self, state: StateName, has_failed: bool) -> &mut u64 {
        match (state, has_failed) {
            (StateName::Succeeded, _) => &mut self.succeeded,
            (StateName::Failed, _) => &mut self.failed,
            (StateName::Cancelled, _) => &mut self.cancelled,
            (StateName::Scheduled | StateName::Queued | StateName::Blocked | StateName::Running, true) => {
                &mut self.retried
            }
            (StateName::Scheduled | StateName::Queued | StateName::Blocked | StateName::Running, false) => {
                &mut self.released
            }
        }
    }
}

/// The number of the minute of an instant.
pub(super) fn number(at: Timestamp) -> u64 {
    at.since(Timestamp::EPOCH).as_secs() / MINUTE.as_secs()
}
