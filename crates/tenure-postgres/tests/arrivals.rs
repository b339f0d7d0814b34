//! Arrivals from a user's transaction stop no worker, even if they name a job that this version cannot read.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use std::sync::Arc;
use std::time::Duration;

use own_postgres::Server;
use serde_json::json;
use tenure_core::{
    AfterJobs, Due, End, IfFailed, JobId, Key, LimitKey, NewJob, OnConflict, Priority, State, Terms, Unique,
    UniqueKey, Verdict, Window,
};
use tenure_postgres::{Options, PostgresStore, check, repair};
use tenure_store::{
    Accepted, Change, ChangeOutcome, Clock, Copies, Enqueued, Fault, Jobs, ManualClock, Selection, Store,
    TxnRequest, Views,
};
use tokio_postgres::Client;

use crate::given::jobs::{ask, new_job, settle};
use crate::given::{host, user};

async fn open(server: &Server, clock: &ManualClock) -> Arc<PostgresStore> {
    PostgresStore::open(&server.url(), Options::default(), Some(Arc::new(clock.clone()))).await.unwrap()
}

/// Enqueues a job as the library does in a user's transaction.
async fn enqueue(client: &Client, clock: &ManualClock, number: u64, terms: &Terms) {
    let terms = serde_json::to_string(terms).unwrap();
    let job = json!({ "id": new_job(number).id.to_string(), "kind": "echo", "queue": "default", "bytes": 2, "terms": terms });
    let (jobs, now) = (json!({ "jobs": [job] }).to_string(), clock.now().as_micros());
    let sql = format!("SELECT tenure.accept_all('{jobs}', '{{}}', {now})");
    let answer: String = client.query_one(&sql, &[]).await.unwrap().get(0);
    assert!(answer.starts_with("new"), "{answer}");
}

fn after(number: u64) -> Terms {
    let after = AfterJobs { jobs: vec![new_job(number).id], if_failed: IfFailed::Run };
    Terms { after: Some(after), ..Terms::default() }
}

/// The jobs that a host gets now.
async fn claimed(store: &PostgresStore) -> Vec<JobId> {
    store.reserve(ask(host(1), 9)).await.unwrap().jobs.iter().map(|job| job.job().id).collect()
}

/// State of the unreadable job when another job starts to wait for it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    Waiting,
    Running,
    Succeeded,
    Failed,
}

async fn bring(store: &PostgresStore, place: Place) {
    store.enqueue(vec![new_job(1)]).await.unwrap();
    if place == Place::Waiting {
        return;
    }
    let reserved = store.reserve(ask(host(1), 1)).await.unwrap().jobs.remove(0);
    let failure = || tenure_core::Failure::new(tenure_core::Cause::Error, "no");
    let verdict = match place {
        Place::Waiting | Place::Running => return,
        Place::Succeeded => Verdict::Succeeded(None),
        Place::Failed => Verdict::Failed(failure()),
    };
    store.settle(vec![settle(reserved, verdict)], None).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_waits_for_an_unreadable_one_stops_no_worker_and_no_repair() {
    for place in [Place::Waiting, Place::Running, Place::Succeeded, Place::Failed] {
        let (server, clock) = (Server::start_hasty().unwrap(), ManualClock::new());
        let store = open(&server, &clock).await;
        bring(&store, place).await;
        let client = user(&server.url()).await;
        client.execute("UPDATE tenure.job SET terms = '{torn' WHERE seq = 1", &[]).await.unwrap();
        enqueue(&client, &clock, 2, &after(1)).await;
        store.enqueue(vec![new_job(3)]).await.unwrap();
        // The library takes the same path.
        store.enqueue(vec![NewJob { terms: Arc::new(after(1)), ..new_job(4) }]).await.unwrap();
        let has_ended = matches!(place, Place::Succeeded | Place::Failed);
        let mut got = claimed(&store).await;
        got.extend(claimed(&store).await);
        assert!(got.contains(&new_job(3).id), "{place:?}: {got:?}");
        let waits = [2, 4].map(|number| !got.contains(&new_job(number).id));
        assert_eq!(waits, [!has_ended; 2], "{place:?}: {got:?}");
        let repaired = repair(&server.url(), Options::default(), false).await.unwrap();
        assert_eq!(repaired.moved.len(), 1, "{place:?}");
        if !has_ended {
            got.extend(claimed(&store).await);
            got.extend(claimed(&store).await);
        }
        for number in [2, 4] {
            assert!(got.contains(&new_job(number).id), "{place:?}: it waits for nothing now");
        }
        store.close().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_with_an_unreadable_limit_arrives_once_the_limit_can_be_read() {
    let (server, clock) = (Server::start_hasty().unwrap(), ManualClock::new());
    let store = open(&server, &clock).await;
    let limit = Some(LimitKey { key: Key::new("key", "smtp").unwrap(), most: Some(1) });
    let terms = Terms { limit, ..Terms::default() };
    store.enqueue(vec![NewJob { terms: Arc::new(terms.clone()), ..new_job(1) }]).await.unwrap();
    let client = user(&server.url()).await;
    let kept: String = client.query_one("SELECT kept FROM tenure.limit_key", &[]).await.unwrap().get(0);
    client.execute("UPDATE tenure.limit_key SET kept = '{torn'", &[]).await.unwrap();
    enqueue(&client, &clock, 2, &terms).await;
    store.enqueue(vec![new_job(3)]).await.unwrap();
    let got = claimed(&store).await;
    assert!(got.contains(&new_job(3).id), "{got:?}");
    client.execute("UPDATE tenure.limit_key SET kept = $1", &[&kept]).await.unwrap();
    clock.advance(Duration::from_secs(61));
    store.tend().await.unwrap();
    claimed(&store).await;
    let job = store.job(new_job(2).id).await.unwrap().unwrap();
    assert!(matches!(job.state, State::Blocked { .. } | State::Running { .. }), "{:?}", job.state);
    let left: i64 = client.query_one("SELECT count(*) FROM tenure.arrival", &[]).await.unwrap().get(0);
    assert_eq!(left, 0);
    store.close().await.unwrap();
}

/// Enqueues jobs in a transaction of a user.
async fn enqueue_jointly(store: &PostgresStore, client: &Client, jobs: Vec<NewJob>) {
    let joint = store.extras().joint.unwrap();
    let prepared = joint.prepare(TxnRequest::Enqueue { jobs, given: Vec::new() }).await.unwrap();
    let call = joint.statement(&prepared).unwrap();
    let answer: String = client.query_one(&call.sql, &[&call.text, &call.bytes]).await.unwrap().get(0);
    assert!(matches!(joint.answered(&prepared, &answer).unwrap(), Enqueued::Stored(_)), "{answer}");
}

async fn arrivals(client: &Client, which: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM tenure.arrival WHERE {which}");
    client.query_one(&sql, &[]).await.unwrap().get(0)
}

async fn outcome(store: &PostgresStore, change: Change, job: JobId) -> ChangeOutcome {
    store.change(change, Selection::Ids(vec![job])).await.unwrap().outcomes[0].1
}

/// The arrival of a new job counts it. A change before that would count it twice, or less than zero times.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_whose_arrival_waits_is_changed_only_after_it() {
    let (server, clock) = (Server::start_hasty().unwrap(), ManualClock::new());
    let store = open(&server, &clock).await;
    let client = user(&server.url()).await;
    let limit = Some(LimitKey { key: Key::new("key", "smtp").unwrap(), most: Some(1) });
    let on_conflict = OnConflict::Replace;
    let unique = Some(Unique { key: UniqueKey([7; 16]), window: Window::WhileUnfinished, on_conflict });
    let limited = Arc::new(Terms { limit: limit.clone(), ..Terms::default() });
    let with_key = Arc::new(Terms { limit, unique, ..Terms::default() });
    let job = |number, terms: &Arc<Terms>| NewJob { terms: Arc::clone(terms), ..new_job(number) };
    store.enqueue(vec![job(1, &limited)]).await.unwrap();
    let kept: String = client.query_one("SELECT kept FROM tenure.limit_key", &[]).await.unwrap().get(0);
    client.execute("UPDATE tenure.limit_key SET kept = '{torn'", &[]).await.unwrap();
    let jobs = vec![job(2, &with_key), job(3, &limited), job(4, &limited)];
    enqueue_jointly(&store, &client, jobs).await;
    claimed(&store).await;
    assert_eq!(arrivals(&client, "what = 0 AND again > 0").await, 3);
    let Err(Fault::Unavailable(reason)) = store.rest().await else { panic!("a copy would lack jobs") };
    assert!(reason.contains("3 arrivals of jobs wait"), "{reason}");
    client.execute("UPDATE tenure.limit_key SET kept = $1", &[&kept]).await.unwrap();
    let (grace, reason) = (Duration::ZERO, String::new());
    for change in [
        Change::Cancel { grace, reason },
        Change::Delete,
        Change::Reprioritise(Priority::new(5).unwrap()),
        Change::Reschedule(Due::In(Duration::from_secs(9))),
    ] {
        let outcome = outcome(&store, change, new_job(3).id).await;
        assert_eq!(outcome, ChangeOutcome::RefusedUnreadable);
    }
    let cancel = format!("SELECT tenure.cancel('{}')", new_job(4).id);
    assert!(client.query_one(&cancel, &[]).await.unwrap().get::<_, bool>(0));
    let unique = Arc::new(Terms { unique, ..Terms::default() });
    let replaced = store.enqueue(vec![job(5, &unique)]).await.unwrap();
    let (id, old) = (new_job(5).id, new_job(2).id);
    assert_eq!(replaced, Enqueued::Stored(vec![Accepted::Replaced { id, old }]));
    let mut got = claimed(&store).await;
    got.extend(claimed(&store).await);
    assert!(got.contains(&id), "{got:?}");
    assert!([2, 3, 4].iter().all(|number| !got.contains(&new_job(*number).id)), "{got:?}");
    let due = format!("again <= {}", clock.now().as_micros());
    assert_eq!((arrivals(&client, "true").await, arrivals(&client, &due).await), (5, 0));
    repair(&server.url(), Options::default(), false).await.unwrap();
    claimed(&store).await;
    assert_eq!(arrivals(&client, "true").await, 0);
    for number in [2, 4] {
        let job = store.job(new_job(number).id).await.unwrap().unwrap();
        assert!(matches!(job.state, State::Finished { end: End::Cancelled, .. }), "{:?}", job.state);
    }
    let deleted = outcome(&store, Change::Delete, new_job(3).id).await;
    assert!(matches!(deleted, ChangeOutcome::Done | ChangeOutcome::RefusedRunning), "{deleted:?}");
    assert_eq!(check(&server.url(), Options::default()).await.unwrap(), Vec::new());
    store.rest().await.unwrap();
    store.close().await.unwrap();
}

/// The repair deletes such a job, which nothing has counted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unreadable_job_whose_arrival_waits_is_repaired() {
    let (server, clock) = (Server::start_hasty().unwrap(), ManualClock::new());
    let store = open(&server, &clock).await;
    let client = user(&server.url()).await;
    let limit = Some(LimitKey { key: Key::new("key", "smtp").unwrap(), most: Some(1) });
    let terms = Arc::new(Terms { limit, ..Terms::default() });
    store.enqueue(vec![NewJob { terms: Arc::clone(&terms), ..new_job(1) }]).await.unwrap();
    enqueue_jointly(&store, &client, vec![NewJob { terms, ..new_job(2) }]).await;
    let tear = "UPDATE tenure.job SET priority = 1000 WHERE id = $1::text::uuid";
    client.execute(tear, &[&new_job(2).id.to_string()]).await.unwrap();
    assert_eq!(claimed(&store).await, [new_job(1).id]);
    assert_eq!(repair(&server.url(), Options::default(), false).await.unwrap().moved.len(), 1);
    assert_eq!(check(&server.url(), Options::default()).await.unwrap(), Vec::new());
    claimed(&store).await;
    assert_eq!(arrivals(&client, "true").await, 0);
    store.close().await.unwrap();
}

/// A newer version may write sorts and states that this version does not know.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_arrival_of_an_unknown_sort_or_an_end_of_an_unknown_state_stops_no_worker() {
    let (server, clock) = (Server::start_hasty().unwrap(), ManualClock::new());
    let store = open(&server, &clock).await;
    store.enqueue(vec![new_job(1), NewJob { terms: Arc::new(after(1)), ..new_job(2) }]).await.unwrap();
    let client = user(&server.url()).await;
    let odd = "INSERT INTO tenure.arrival (seq, what, id) SELECT seq, 77, id FROM tenure.job WHERE seq = 1;
        INSERT INTO tenure.ending (seq, id, state) SELECT seq, id, 77 FROM tenure.job WHERE seq = 1";
    client.batch_execute(odd).await.unwrap();
    assert_eq!(claimed(&store).await, [new_job(1).id]);
    store.tend().await.unwrap();
    store.close().await.unwrap();
}
