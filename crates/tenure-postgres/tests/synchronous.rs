//! A server whose commits wait for a replica: what is granted is granted on both, or nobody says that it is.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]
#![allow(clippy::disallowed_methods, reason = "the server is not on the clock of the test")]

use crate::given;

use std::sync::Arc;
use std::time::Duration;

use own_postgres::Server;
use tenure_core::{Args, Fence, LeaseOutcome, NewJob};
use tenure_postgres::PostgresStore;
use tenure_store::{
    Accepted, Enqueued, Fault, Hints, Jobs, Leases, ManualClock, Prepared, Refusal, Store, TxnRequest,
};
use tokio::task::JoinHandle;
use tokio_postgres::Client;

use given::jobs::{ask, new_jobs};
use given::leases::{acquire, granted, release, renew, wish};
use given::{host, number, options, user};

/// A server that waits for its replica.
fn pair() -> (Server, Server) {
    let primary = Server::start_hasty().unwrap();
    let replica = primary.replica(&["synchronous_standby_names="]).unwrap();
    primary.set("synchronous_standby_names=*").unwrap();
    (primary, replica)
}

/// The commit has happened there, and perhaps nowhere else: whoever says that it was granted may be wrong, and whoever
/// says that it was not, too.
#[tokio::test]
async fn a_commit_that_stops_waiting_for_the_replica_is_unknown() {
    let (primary, replica) = pair();
    let clock = ManualClock::new();
    let store = PostgresStore::open(&primary.url(), options("tenure"), Some(Arc::new(clock))).await.unwrap();
    let fence = granted(wish(&*store, acquire("ledger", 1)).await);
    assert_eq!(wish(&*store, release("ledger", 1, fence)).await, LeaseOutcome::Released);
    replica.stop().unwrap();
    let operator = user(&primary.url()).await;
    let asked = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.lease(vec![acquire("ledger", 2)]).await }
    });
    let waits = "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    while number(&operator, waits).await == 0 {}
    let fault = asked.await.unwrap().unwrap_err();
    assert!(matches!(fault, Fault::Unknown(_)), "{fault}");
    // It may be repeated, and tells then how it went.
    replica.start_again().unwrap();
    let again = loop {
        match store.lease(vec![acquire("ledger", 2)]).await {
            Ok(outcomes) => break granted(outcomes.into_iter().next().unwrap()),
            Err(fault) => assert!(fault.is_passing(), "{fault}"),
        }
    };
    assert!(again > fence);
}

/// Nothing is lost, and still no fence can be granted twice.
#[tokio::test]
async fn what_was_granted_before_the_promotion_of_a_synchronous_replica_is_known_after_it() {
    let (primary, replica) = pair();
    let both = format!("127.0.0.1:{},127.0.0.1:{}", primary.port(), replica.port());
    let url = format!("postgres://postgres@{both}/postgres");
    let clock = ManualClock::new();
    let store = PostgresStore::open(&url, options("tenure"), Some(Arc::new(clock.clone()))).await.unwrap();
    let mut fences: Vec<Fence> = Vec::new();
    for number in 1..=20 {
        let fence = granted(wish(&*store, acquire("ledger", number)).await);
        fences.push(fence);
        if number < 20 {
            wish(&*store, release("ledger", number, fence)).await;
        }
    }
    primary.crash().unwrap();
    replica.promote().unwrap();
    let last = *fences.last().unwrap();
    let renewed = loop {
        match store.lease(vec![renew("ledger", 20, last)]).await {
            Ok(outcomes) => break outcomes.into_iter().next().unwrap(),
            Err(fault) => assert!(fault.is_passing(), "{fault}"),
        }
    };
    assert!(matches!(renewed, LeaseOutcome::Renewed { .. }), "{renewed:?}");
    clock.advance(given::leases::TTL);
    let next = granted(wish(&*store, acquire("ledger", 21)).await);
    assert!(next > last);
    store.close().await.unwrap();
}

/// So many commits wait for a replica.
const WAITING: &str = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
const THERE: &str = "SELECT count(*) FROM tenure.ready";
/// Long after a program has told something it may tell the next along with what it writes.
const APART: Duration = Duration::from_millis(500);
const LONG: Duration = Duration::from_secs(60);

/// A server with two programs that know a lane and hear hints, on which commits wait from now on; one does. Both programs may tell hints.
struct HeldUp {
    server: Server,
    one: Arc<PostgresStore>,
    other: Arc<PostgresStore>,
    operator: Client,
}

impl HeldUp {
    async fn given() -> Self {
        let server = Server::start_hasty().unwrap();
        let one = PostgresStore::open(&server.url(), options("tenure"), None).await.unwrap();
        let other = PostgresStore::open(&server.url(), options("tenure"), None).await.unwrap();
        // Whoever begins to listen is called.
        other.due().changed().await.unwrap();
        one.enqueue(new_jobs(1, 1)).await.unwrap();
        assert_eq!(other.reserve(ask(host(1), 1)).await.unwrap().jobs.len(), 1);
        assert_eq!(other.enqueue(new_jobs(1, 1)).await, repeated(1), "it knows the lane");
        let operator = user(&server.url()).await;
        operator.batch_execute("CREATE TABLE probe (number int)").await.unwrap();
        server.set("synchronous_standby_names=nobody").unwrap();
        while number(&operator, WAITING).await == 0 {
            drop(begin(&server, "INSERT INTO probe VALUES (1)").await);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        tokio::time::sleep(APART).await;
        Self { server, one, other, operator }
    }

    /// Waits until so many commits do, besides that of the beginning.
    async fn until_waiting(&self, commits: i64) {
        let before = number(
            &self.operator,
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE '%probe%'",
        )
        .await;
        self.until(WAITING, before + commits).await;
    }

    async fn until(&self, sql: &str, expected: i64) {
        for _ in 0..20_000 {
            if number(&self.operator, sql).await == expected {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("{sql} is never {expected}");
    }

    fn let_go(&self) {
        self.server.set("synchronous_standby_names=").unwrap();
    }
}

/// Runs something on a connection of its own, whose commit waits; it ends by itself.
async fn begin(server: &Server, sql: &'static str) -> JoinHandle<()> {
    let client = user(&server.url()).await;
    client.batch_execute("SET synchronous_commit = on").await.unwrap();
    tokio::spawn(async move { client.batch_execute(sql).await.unwrap() })
}

fn enqueue(store: &Arc<PostgresStore>, jobs: Vec<NewJob>) -> JoinHandle<Result<Enqueued, Fault>> {
    let store = Arc::clone(store);
    tokio::spawn(async move { store.enqueue(jobs).await })
}

fn stored(number: u64) -> Result<Enqueued, Fault> {
    Ok(Enqueued::Stored(vec![Accepted::New(new_jobs(number, 1)[0].id)]))
}

fn repeated(number: u64) -> Result<Enqueued, Fault> {
    Ok(Enqueued::Stored(vec![Accepted::Repeated(new_jobs(number, 1)[0].id)]))
}

/// Stores a job in a transaction of a user's own, whose commit waits.
async fn commit_with_a_job(held: &HeldUp, number: u64) -> JoinHandle<()> {
    let (mut client, store, jobs) =
        (user(&held.server.url()).await, Arc::clone(&held.one), new_jobs(number, 1));
    let id = jobs[0].id;
    let jobs = Prepared::new(TxnRequest::Enqueue { jobs, given: Vec::new() });
    client.batch_execute("SET synchronous_commit = on").await.unwrap();
    let call = store.extras().joint.unwrap().statement(&jobs).unwrap();
    tokio::spawn(async move {
        let tx = client.transaction().await.unwrap();
        let answer: String = tx.query_one(&call.sql, &[&call.text, &call.bytes]).await.unwrap().get(0);
        let enqueued = store.extras().joint.unwrap().answered(&jobs, &answer).unwrap();
        assert_eq!(enqueued, Enqueued::Stored(vec![Accepted::New(id)]));
        tx.commit().await.unwrap();
    })
}

/// Whoever told something in it would hold a lock until his commit is done, and they would commit one after the other.
#[tokio::test]
async fn users_transactions_that_enqueue_commit_at_the_same_time_and_others_hear_of_them_afterwards() {
    let held = HeldUp::given().await;
    let mut due = held.other.due();
    due.borrow_and_update();
    let (two, three) = (commit_with_a_job(&held, 2).await, commit_with_a_job(&held, 3).await);
    held.until_waiting(2).await;
    assert!(!due.has_changed().unwrap() && !two.is_finished() && !three.is_finished());
    held.let_go();
    tokio::time::timeout(LONG, due.changed()).await.expect("it is heard of").unwrap();
    two.await.unwrap();
    three.await.unwrap();
    assert_eq!(held.other.reserve(ask(host(1), 9)).await.unwrap().jobs.len(), 2);
}

/// A disk that is slow is waited for once from enqueueing to the handler, and not once for each.
#[tokio::test]
async fn others_hear_of_a_job_before_it_lasts_and_nobody_is_told_that_it_is_there_or_his() {
    let held = HeldUp::given().await;
    let mut due = held.other.due();
    due.borrow_and_update();
    let asked = enqueue(&held.one, new_jobs(2, 1));
    due.changed().await.unwrap();
    held.until(THERE, 1).await;
    held.until_waiting(1).await;
    let again = enqueue(&held.other, new_jobs(2, 1));
    held.until_waiting(2).await;
    let mut another = new_jobs(2, 1);
    another[0].args = Args::new(b"{}".to_vec()).unwrap();
    let taken = enqueue(&held.one, another);
    held.until_waiting(3).await;
    let id = new_jobs(2, 1)[0].id;
    let by_sql = format!("SELECT tenure.enqueue('echo', '{{\"number\":2}}', id => '{id}')");
    let by_sql = begin(&held.server, Box::leak(by_sql.into())).await;
    held.until_waiting(4).await;
    let granting = tokio::spawn({
        let other = Arc::clone(&held.other);
        async move { other.reserve(ask(host(1), 1)).await }
    });
    held.until_waiting(5).await;
    assert!(!asked.is_finished() && !again.is_finished() && !taken.is_finished());
    assert!(!by_sql.is_finished() && !granting.is_finished());
    held.let_go();
    assert_eq!(asked.await.unwrap(), stored(2));
    assert_eq!(again.await.unwrap(), repeated(2));
    let refused = Enqueued::Refused { index: 0, refusal: Refusal::IdTaken(id) };
    assert_eq!(taken.await.unwrap(), Ok(refused));
    by_sql.await.unwrap();
    assert_eq!(granting.await.unwrap().unwrap().jobs.len(), 1);
}

/// They are there, and perhaps on no other disk: whoever says that they are accepted may be wrong.
#[tokio::test]
async fn jobs_of_which_it_is_not_heard_that_they_last_are_not_accepted_and_not_lost_either() {
    let held = HeldUp::given().await;
    let asked = enqueue(&held.one, new_jobs(2, 1));
    held.until(THERE, 1).await;
    held.until_waiting(1).await;
    let ends = "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'
        AND query NOT LIKE '%probe%'";
    held.until(ends, 1).await;
    let fault = asked.await.unwrap().unwrap_err();
    assert!(matches!(fault, Fault::Unknown(_)), "{fault}");
    held.let_go();
    assert_eq!(held.one.enqueue(new_jobs(2, 1)).await, repeated(2));
    assert_eq!(held.other.reserve(ask(host(1), 2)).await.unwrap().jobs.len(), 1);
}

/// Two who tell something commit one after the other, and one of them may wait for very long.
#[tokio::test]
async fn whoever_tells_something_in_a_commit_that_takes_long_keeps_nobody_from_enqueueing() {
    let held = HeldUp::given().await;
    let telling = begin(&held.server, "BEGIN; INSERT INTO probe VALUES (2); NOTIFY probe; COMMIT").await;
    held.until(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE '%NOTIFY%'",
        1,
    )
    .await;
    let asked = enqueue(&held.one, new_jobs(2, 1));
    held.until_waiting(1).await;
    assert_eq!(number(&held.operator, THERE).await, 0, "it is seen when it lasts");
    let mut due = held.other.due();
    due.borrow_and_update();
    held.let_go();
    assert_eq!(asked.await.unwrap(), stored(2));
    telling.await.unwrap();
    due.changed().await.unwrap();
}

/// It is known that they are there, and not for how long.
#[tokio::test]
async fn jobs_behind_which_nothing_can_be_written_are_not_accepted() {
    let server = Server::start_hasty().unwrap();
    let store = PostgresStore::open(&server.url(), options("tenure"), None).await.unwrap();
    store.enqueue(new_jobs(1, 1)).await.unwrap();
    let operator = user(&server.url()).await;
    operator
        .batch_execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE deadlock_detected; END';
             CREATE TRIGGER refuse BEFORE INSERT ON tenure.tally FOR EACH ROW WHEN (NEW.queued = 0) EXECUTE FUNCTION refuse()",
        )
        .await
        .unwrap();
    tokio::time::sleep(APART).await;
    let fault = store.enqueue(new_jobs(2, 1)).await.unwrap_err();
    assert!(matches!(fault, Fault::Unknown(_)), "{fault}");
    assert_eq!(number(&operator, THERE).await, 2);
    operator.batch_execute("DROP TRIGGER refuse ON tenure.tally").await.unwrap();
    assert_eq!(store.enqueue(new_jobs(2, 1)).await, repeated(2));
    // The connection is as good as before.
    assert_eq!(store.enqueue(new_jobs(3, 1)).await, stored(3));
}
