//! The memory of a step that concerns very many jobs, or large ones: the bytes of the largest answer of the server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use own_postgres::Server;
use tenure_core::{
    AfterJobs, Args, Due, HostId, IfFailed, JobId, Keep, Kind, NewJob, Priority, QueueName, Retention,
    RetryPolicy, Terms, Timestamp,
};
use tenure_store::{Change, Clock, Kinds, ManualClock, Reserve, Selection, Store, Tended, Want};

use crate::database::Database;
use crate::link::Link;
use crate::memory::Memory;
use crate::time::Time;
use crate::transaction::Gate;
use crate::upkeep::Due as Chores;
use crate::writing::Writing;
use crate::{Options, PostgresStore, change, schema, tend};

const JOBS: u64 = 1_000;
/// Bytes of metadata in each job, so that all of them together are far more than a step may read at once.
const META: usize = 16 * 1024;
/// Bytes of args in each job. Those of one batch alone would be too many.
const ARGS: usize = 48 * 1024;
/// The bound of [`batches`](crate::batches) on terms, and kilobytes for the rest of a row.
const BOUND: usize = 4 * 1024 * 1024 + JOBS as usize * 512;

struct Given {
    link: Link,
    clock: ManualClock,
    server: Server,
}

impl Given {
    async fn new() -> Self {
        let (server, clock) = (Server::start_hasty().unwrap(), ManualClock::new());
        let time = Time::Given(Arc::new(clock.clone()));
        let database = Database::new(&server.url(), Options::default(), time).unwrap();
        let mut link = Link::new(Arc::new(database), Arc::new(Memory::default()));
        schema::migrate(&mut link).await.unwrap();
        Self { link, clock, server }
    }

    async fn enqueue(&mut self, jobs: &[NewJob]) {
        for jobs in jobs.chunks(100) {
            let (mut writing, _) = Writing::begin(&mut self.link, Gate::Keys, Vec::new()).await.unwrap();
            assert_eq!(writing.bring(jobs).await.unwrap(), jobs.len());
            writing.commit().await.unwrap();
        }
    }

    /// Changes jobs, which is not a step of maintenance.
    async fn change(&mut self, change: Change, ids: Vec<JobId>) {
        change::change(&mut self.link, &change, &Selection::Ids(ids)).await.unwrap();
        self.link.connection().await.unwrap().largest_answer.store(0, Ordering::Relaxed);
    }

    async fn cancel(&mut self, ids: Vec<JobId>) {
        self.change(Change::Cancel { grace: Duration::ZERO, reason: "no".to_owned() }, ids).await;
    }

    async fn tend(&mut self) -> Tended {
        tend::tend(&mut self.link, &Chores::all()).await.unwrap()
    }

    /// Asserts that no answer since the last call was large.
    async fn assert_small(&mut self, step: &str) {
        let connection = self.link.connection().await.unwrap();
        let bytes = connection.largest_answer.swap(0, Ordering::Relaxed);
        assert!(bytes <= BOUND, "{step}: {bytes} bytes at once");
    }
}

fn id(number: u64) -> JobId {
    JobId::new(Timestamp::from_micros(1_700_000_000_000_000).unwrap(), number)
}

fn job(number: u64, after: Vec<JobId>) -> NewJob {
    let after = (!after.is_empty()).then_some(AfterJobs { jobs: after, if_failed: IfFailed::Run });
    let retry = Some(RetryPolicy { max_attempts: 5, ..RetryPolicy::default() });
    let retention = Retention::always(Keep::For(Duration::from_secs(60)));
    NewJob {
        id: id(number),
        kind: Kind::new("echo").unwrap(),
        queue: QueueName::default(),
        args: Args::new(b"{}".as_slice()).unwrap(),
        priority: Priority::default(),
        due: Due::Now,
        terms: Arc::new(Terms { after, retry, retention, ..Terms::default() }),
    }
}

fn large(number: u64) -> NewJob {
    let job = job(number, vec![id(0)]);
    let text = "x".repeat(1_000);
    let meta: BTreeMap<String, String> =
        (0..META / 1_000).map(|entry| (entry.to_string(), text.clone())).collect();
    let args = Args::new(format!("\"{}\"", "y".repeat(ARGS)).into_bytes()).unwrap();
    NewJob { args, terms: Arc::new(Terms { meta, ..Terms::clone(&job.terms) }), ..job }
}

/// A client that may only enqueue decides how large its jobs are, and how many of them wait for one.
#[tokio::test]
async fn a_step_that_concerns_a_thousand_large_jobs_reads_a_bounded_number_of_bytes_at_once() {
    let mut given = Given::new().await;
    let ids: Vec<JobId> = (1..=JOBS).map(id).collect();
    given.enqueue(&[job(0, Vec::new())]).await;
    given.enqueue(&(1..=JOBS).map(large).collect::<Vec<_>>()).await;
    given.assert_small("enqueueing").await;

    let again: Vec<NewJob> = (1..=JOBS).map(|number| job(number, Vec::new())).collect();
    let (mut writing, _) = Writing::begin(&mut given.link, Gate::Keys, Vec::new()).await.unwrap();
    assert_eq!(writing.bring(&again).await.unwrap(), 0);
    writing.commit().await.unwrap();
    given.assert_small("enqueueing with IDs that are taken").await;

    given.enqueue(&[job(JOBS + 1, ids.clone())]).await;
    given.assert_small("waiting for many").await;

    given.cancel(vec![id(0)]).await;
    assert_eq!(given.tend().await.due, ids.len());
    given.assert_small("noticing an end").await;

    reserve(&given, ids.len()).await;
    given.clock.advance(Duration::from_secs(120));
    assert_eq!(given.tend().await.lapsed, ids.len());
    given.assert_small("taking jobs from a lost worker").await;

    given.change(Change::Reschedule(Due::In(Duration::from_secs(60))), ids.clone()).await;
    given.clock.advance(Duration::from_secs(60));
    assert_eq!(given.tend().await.due, ids.len());
    given.assert_small("finding due jobs").await;

    given.cancel(vec![id(JOBS + 1)]).await;
    given.cancel(ids.clone()).await;
    given.clock.advance(Duration::from_secs(24 * 3600));
    let mut pruned = 0;
    while pruned < ids.len() {
        let step = given.tend().await.pruned;
        assert!(step > 0, "{pruned} jobs pruned");
        pruned += step;
    }
    given.assert_small("pruning").await;
}

async fn reserve(given: &Given, at_most: usize) {
    let clock: Arc<dyn Clock> = Arc::new(given.clock.clone());
    let store = PostgresStore::open(&given.server.url(), Options::default(), Some(clock)).await.unwrap();
    let want = Want { queue: QueueName::default(), kinds: Kinds::All, at_most };
    let (holder, ttl) = (HostId::from_bytes([1; 16]), Duration::from_secs(60));
    let reservation = store.reserve(Reserve { holder, ttl, wants: vec![want], at_most }).await.unwrap();
    assert_eq!(reservation.jobs.len(), at_most);
    store.close().await.unwrap();
}

/// A thousand jobs may wait for the same thousand jobs, and each end concerns all of them.
#[tokio::test]
async fn an_end_reads_neither_the_jobs_that_still_wait_for_others_nor_all_that_they_wait_for() {
    const EACH: u64 = 100;
    let mut given = Given::new().await;
    let others: Vec<JobId> = (0..EACH).map(id).collect();
    given.enqueue(&(0..EACH).map(|number| job(number, Vec::new())).collect::<Vec<_>>()).await;
    given.enqueue(&(EACH..2 * EACH).map(|number| job(number, others.clone())).collect::<Vec<_>>()).await;
    let (first, rest) = others.split_first().unwrap();
    given.cancel(vec![*first]).await;
    assert_eq!(given.tend().await.due, 0);
    let bytes = given.link.connection().await.unwrap().largest_answer.load(Ordering::Relaxed);
    // Each wait that is over has less than 128 bytes, and the terms of a waiter have 4 KB.
    assert!(bytes <= 128 * EACH as usize, "{bytes} bytes at once");
    given.cancel(rest.to_vec()).await;
    let mut free = 0;
    while free < EACH as usize {
        let tended = given.tend().await;
        free += tended.due;
        assert!(tended.more || free == EACH as usize, "{free} jobs wait no more");
    }
}
