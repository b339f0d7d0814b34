//! A job that goes the ordinary way has no row that tells how it stands: neighbours share one while they run, and one when
//! they have succeeded. That they are neighbours shows nowhere.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::common;
use crate::given;

use std::sync::Arc;
use std::time::Duration;

use common::agree::assert_schema_agrees;
use given::jobs::{ask, held, new_job, new_jobs, settle};
use given::{host, number, open, schema, server, user};
use tenure_core::{
    AfterJobs, Cause, Failure, IfFailed, JobId, Key, Progress, Reserved, StateName, Terms, Verdict,
};
use tenure_postgres::{CheckInError, PostgresStore};
use tenure_store::{
    Call, Change, ChangeOutcome, Clock, Enqueued, Held, Jobs, ManualClock, Prepared, Renew, Renewal, Report,
    Reported, Selection, Settled, Store, TxnRequest, Views,
};
use tokio_postgres::{Client, Error};

const DONE: Settled = Settled::Done(StateName::Succeeded);
/// As long as [`ask`] has a job granted.
const TTL: Duration = Duration::from_secs(60);

/// A store in which so many jobs were granted together.
async fn granted(schema: &str, clock: &ManualClock, count: u64) -> (Arc<PostgresStore>, Vec<Reserved>) {
    let store = open(schema, clock).await;
    store.enqueue(new_jobs(1, count)).await.unwrap();
    let jobs = store.reserve(ask(host(1), count as usize)).await.unwrap().jobs;
    assert_eq!(jobs.len() as u64, count);
    (store, jobs)
}

async fn succeed(store: &PostgresStore, jobs: Vec<Reserved>) -> Vec<Settled> {
    let ends = jobs.into_iter().map(|job| settle(job, Verdict::Succeeded(None))).collect();
    store.settle(ends, None).await.unwrap().settled
}

async fn state(store: &PostgresStore, clock: &ManualClock, id: JobId) -> StateName {
    store.job(id).await.unwrap().unwrap().state.name(clock.now())
}

async fn renew(store: &PostgresStore, held: Vec<Held>) -> Vec<Renewal> {
    store.renew(Renew { ttl: TTL, held }).await.unwrap()
}

async fn change(store: &PostgresStore, change: Change, ids: Vec<JobId>) -> Vec<ChangeOutcome> {
    let changed = store.change(change, Selection::Ids(ids)).await.unwrap();
    changed.outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

fn cancel() -> Change {
    Change::Cancel { grace: Duration::from_secs(30), reason: String::new() }
}

/// Prepares the end of a job. Returns the statement that ends it.
async fn end(store: &PostgresStore, held: Held) -> Call {
    let (joint, request) = (
        store.extras().joint.unwrap(),
        TxnRequest::Complete { held, holder: None, kept_for: None, output: None },
    );
    joint.statement(&joint.prepare(request).await.unwrap()).unwrap()
}

/// Returns the statement that checks that a job is still held.
fn check(store: &PostgresStore, held: Held) -> Call {
    store.extras().joint.unwrap().statement(&Prepared::new(TxnRequest::CheckJob { held })).unwrap()
}

async fn say(client: &Client, call: &Call) -> Result<(), Error> {
    client.query(&call.sql, &[&call.text, &call.bytes]).await.map(drop)
}

async fn rows(client: &Client, schema: &str, table: &str) -> i64 {
    number(client, &format!("SELECT count(*) FROM {schema}.{table}")).await
}

#[tokio::test]
async fn an_ordinary_job_has_a_row_of_its_own_neither_while_it_runs_nor_when_it_has_succeeded() {
    let (s, clock) = (schema(), ManualClock::new());
    let (store, jobs) = granted(&s, &clock, 20).await;
    let client = user(&server().url()).await;
    assert_eq!((rows(&client, &s, "granted").await, rows(&client, &s, "standing").await), (1, 0));
    assert_eq!(succeed(&store, jobs).await, [DONE; 20]);
    assert_eq!((rows(&client, &s, "granted").await, rows(&client, &s, "standing").await), (0, 0));
    assert_eq!(rows(&client, &s, "receipt").await, 1);
    assert_schema_agrees(&server().url(), &s).await;
}

#[tokio::test]
async fn a_neighbour_of_a_job_that_has_checked_in_is_settled_meanwhile() {
    let (s, clock) = (schema(), ManualClock::new());
    let (store, mut jobs) = granted(&s, &clock, 3).await;
    let mut client = user(&server().url()).await;
    let (first, mine) = (jobs.remove(0), held(&jobs[0]));
    let transaction = client.transaction().await.unwrap();
    store.check_in().job(&transaction, &mine).await.unwrap();
    assert_eq!(succeed(&store, vec![first]).await, [DONE]);
    store.check_in().job(&transaction, &mine).await.unwrap();
    // It too, and the last of them with it.
    assert_eq!(succeed(&store, jobs).await, [DONE, DONE]);
    transaction.commit().await.unwrap();
    assert_schema_agrees(&server().url(), &s).await;
}

#[tokio::test]
async fn neighbours_are_completed_by_two_transactions_neither_of_which_waits() {
    let (s, clock) = (schema(), ManualClock::new());
    let (store, mut jobs) = granted(&s, &clock, 3).await;
    let third = jobs.remove(2);
    let clients = [user(&server().url()).await, user(&server().url()).await];
    for (client, job) in clients.iter().zip(&jobs) {
        client.batch_execute("BEGIN; SET LOCAL lock_timeout = '1s'").await.unwrap();
        say(client, &end(&store, held(job)).await).await.unwrap();
    }
    assert_eq!(succeed(&store, vec![third]).await, [DONE], "nor does the third");
    clients[0].batch_execute("COMMIT").await.unwrap();
    clients[1].batch_execute("ROLLBACK").await.unwrap();
    let states =
        [state(&store, &clock, jobs[0].job().id).await, state(&store, &clock, jobs[1].job().id).await];
    assert_eq!(states, [StateName::Succeeded, StateName::Running]);
    assert_schema_agrees(&server().url(), &s).await;
    assert_eq!(succeed(&store, vec![jobs.remove(1)]).await, [DONE], "which was undone goes on as it was");
}

/// Who prepares has a transaction open, and a turn may wait for that.
#[tokio::test]
async fn an_end_is_prepared_while_a_turn_waits_for_the_transaction_that_wants_it() {
    let (s, clock) = (schema(), ManualClock::new());
    let (store, jobs) = granted(&s, &clock, 1).await;
    let client = user(&server().url()).await;
    let mut keyed = new_job(9);
    keyed.terms = Arc::new(Terms { share: Some(Key::new("share", "a").unwrap()), ..Terms::default() });
    assert!(matches!(store.enqueue(vec![keyed]).await.unwrap(), Enqueued::Stored(_)));
    let gate = format!("BEGIN; SELECT pg_advisory_xact_lock(1413827148, hashtext('{s}'))");
    client.batch_execute(&gate).await.unwrap();
    let turn = store.reserve(ask(host(1), 1));
    let end = async {
        let waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
        while number(&client, waits).await == 0 {
            tokio::task::yield_now().await;
        }
        let _ = end(&store, held(&jobs[0])).await;
        client.batch_execute("COMMIT").await.unwrap();
    };
    let (turn, ()) = tokio::join!(turn, end);
    assert_eq!(turn.unwrap().jobs.len(), 1);
}

/// At each of the moments at which what tells of it may move.
#[tokio::test]
async fn nobody_is_given_a_job_that_has_checked_in_and_was_renewed_since() {
    let (s, clock) = (schema(), ManualClock::new());
    let (store, mut jobs) = granted(&s, &clock, 2).await;
    let mut client = user(&server().url()).await;
    let (mine, other) = (jobs.remove(0), jobs.remove(0));
    let transaction = client.transaction().await.unwrap();
    store.check_in().job(&transaction, &held(&mine)).await.unwrap();
    assert!(matches!(renew(&store, vec![held(&mine)]).await[..], [Renewal::Held(_)]));
    assert_eq!(succeed(&store, vec![other]).await, [DONE]);
    for _ in 0..3 {
        clock.advance(TTL + Duration::from_secs(1));
        store.tend().await.unwrap();
        assert!(store.reserve(ask(host(2), 1)).await.unwrap().jobs.is_empty(), "it is left to its holder");
    }
    assert_eq!(state(&store, &clock, mine.job().id).await, StateName::Running);
    transaction.commit().await.unwrap();
    let next = store.reserve(ask(host(2), 1)).await.unwrap().jobs.remove(0);
    assert!(next.job().id == mine.job().id && next.fence() > mine.fence());
    assert_schema_agrees(&server().url(), &s).await;
}

/// A transaction may last for longer than what was granted, and its holder goes on renewing.
#[tokio::test]
async fn a_long_transaction_of_a_job_that_is_renewed_is_in_nobodys_way() {
    let (s, clock) = (schema(), ManualClock::new());
    let (store, jobs) = granted(&s, &clock, 1).await;
    let mut client = user(&server().url()).await;
    let looker = user(&server().url()).await;
    let transaction = client.transaction().await.unwrap();
    store.check_in().job(&transaction, &held(&jobs[0])).await.unwrap();
    clock.advance(TTL - Duration::from_secs(10));
    assert!(matches!(renew(&store, vec![held(&jobs[0])]).await[..], [Renewal::Held(_)]));
    clock.advance(Duration::from_secs(20));
    store.tend().await.unwrap();
    let idle = store.reserve(ask(host(2), 1)).await.unwrap();
    assert!(idle.due_in.unwrap() > Duration::from_secs(30), "nobody looks all the time: {:?}", idle.due_in);
    store.enqueue(new_jobs(5, 2)).await.unwrap();
    assert_eq!(store.reserve(ask(host(2), 2)).await.unwrap().jobs.len(), 2);
    assert_eq!(rows(&looker, &s, "standing").await, 1, "others go the ordinary way");
    transaction.commit().await.unwrap();
    store.tend().await.unwrap();
    assert_eq!(rows(&looker, &s, "granted").await, 1, "what was granted with it is not kept for ever");
    assert_schema_agrees(&server().url(), &s).await;
}

/// What has lapsed, and nobody may have, is looked at ever more slowly.
#[tokio::test]
async fn what_somebody_has_locked_is_left_for_later() {
    let (s, clock) = (schema(), ManualClock::new());
    let (store, jobs) = granted(&s, &clock, 1).await;
    let mut client = user(&server().url()).await;
    let transaction = client.transaction().await.unwrap();
    store.check_in().job(&transaction, &held(&jobs[0])).await.unwrap();
    clock.advance(TTL * 2);
    let idle = store.reserve(ask(host(2), 1)).await.unwrap();
    assert_eq!((idle.jobs.len(), idle.due_in), (0, Some(Duration::ZERO)));
    transaction.commit().await.unwrap();
    assert_eq!(store.reserve(ask(host(2), 1)).await.unwrap().jobs.len(), 1);
}

#[tokio::test]
async fn neighbours_of_a_job_that_was_asked_to_stop_end_as_they_would_have() {
    let (s, clock) = (schema(), ManualClock::new());
    let (store, jobs) = granted(&s, &clock, 4).await;
    let ids: Vec<JobId> = jobs.iter().map(|job| job.job().id).collect();
    // Twice in one request: it is asked once.
    let asked = change(&store, cancel(), vec![ids[1], ids[1]]).await;
    assert_eq!(asked, [ChangeOutcome::Asked, ChangeOutcome::Already]);
    let renewals = renew(&store, jobs[..2].iter().map(held).collect()).await;
    let hears = |renewal: &Renewal| matches!(renewal, Renewal::Held(holds) if holds.cancel.is_some());
    assert_eq!(renewals.iter().map(hears).collect::<Vec<_>>(), [false, true]);
    let ends = jobs.into_iter().zip([
        Verdict::Succeeded(None),
        Verdict::Cancelled(Failure::new(Cause::Error, "stopped")),
        Verdict::Failed(Failure::new(Cause::Error, "no luck")),
        Verdict::Succeeded(None),
    ]);
    store.settle(ends.map(|(job, verdict)| settle(job, verdict)).collect(), None).await.unwrap();
    let mut states = Vec::new();
    for id in ids {
        states.push(state(&store, &clock, id).await);
    }
    let succeeded = StateName::Succeeded;
    assert_eq!(states, [succeeded, StateName::Cancelled, StateName::Failed, succeeded]);
    assert_schema_agrees(&server().url(), &s).await;
}

#[tokio::test]
async fn what_is_asked_twice_of_a_job_together_is_done_once() {
    let (s, clock) = (schema(), ManualClock::new());
    let (store, mut jobs) = granted(&s, &clock, 3).await;
    let renewals = renew(&store, vec![held(&jobs[0]), held(&jobs[0])]).await;
    assert!(matches!(renewals[..], [Renewal::Held(_), Renewal::Held(_)]), "{renewals:?}");
    let report = |fraction| Report {
        held: held(&jobs[1]),
        progress: Some(Progress { fraction, message: String::new() }),
        lines: Vec::new(),
    };
    let reported = store.report(vec![report(0.25), report(0.5)]).await.unwrap();
    assert_eq!(reported, [Reported::Kept, Reported::Kept]);
    let told = store.job(jobs[1].job().id).await.unwrap().unwrap().progress.unwrap();
    assert_eq!(told.fraction, 0.5);
    let end = settle(jobs.remove(2), Verdict::Succeeded(None));
    let settled = store.settle(vec![end.clone(), end], None).await.unwrap().settled;
    assert!(
        settled.iter().all(|settled| matches!(settled, Settled::Done(_) | Settled::Repeated)),
        "{settled:?}"
    );
    assert_schema_agrees(&server().url(), &s).await;
}

/// A job may name another twice.
#[tokio::test]
async fn a_job_waits_for_one_that_runs_and_one_that_has_succeeded_however_often_it_names_them() {
    let (s, clock) = (schema(), ManualClock::new());
    let (store, mut jobs) = granted(&s, &clock, 4).await;
    let ids: Vec<JobId> = jobs.iter().map(|job| job.job().id).collect();
    assert_eq!(succeed(&store, vec![jobs.remove(0)]).await, [DONE]);
    let waiter = |number, after: Vec<JobId>| {
        let after = Some(AfterJobs { jobs: after, if_failed: IfFailed::default() });
        let mut new = new_job(number);
        new.terms = Arc::new(Terms { after, ..Terms::default() });
        new
    };
    let both = vec![ids[1], ids[0], ids[1], ids[0]];
    let new = vec![waiter(20, both.clone()), waiter(21, both)];
    assert!(matches!(store.enqueue(new.clone()).await.unwrap(), Enqueued::Stored(_)));
    assert_eq!(state(&store, &clock, new[0].id).await, StateName::Blocked);
    // They were granted together, and so they end.
    assert_eq!(succeed(&store, jobs).await, [DONE; 3]);
    let next = store.reserve(ask(host(1), 9)).await.unwrap().jobs;
    assert_eq!(next.iter().map(|job| job.job().id).collect::<Vec<_>>(), [new[0].id, new[1].id]);
    assert_schema_agrees(&server().url(), &s).await;
}

#[tokio::test]
async fn a_job_with_a_receipt_is_done_again_or_deleted_or_pruned_and_its_neighbours_stay() {
    let (s, clock) = (schema(), ManualClock::new());
    let (store, jobs) = granted(&s, &clock, 5).await;
    let client = user(&server().url()).await;
    let ids: Vec<JobId> = jobs.iter().map(|job| job.job().id).collect();
    assert_eq!(succeed(&store, jobs).await, [DONE; 5]);
    let done = ChangeOutcome::Done;
    let redone = change(&store, Change::Redo, vec![ids[0], ids[0], ids[1]]).await;
    assert_eq!(redone, [done, ChangeOutcome::RefusedUnfinished, done]);
    let deleted = change(&store, Change::Delete, vec![ids[2], ids[2]]).await;
    assert_eq!(deleted, [done, ChangeOutcome::NotFound]);
    assert_schema_agrees(&server().url(), &s).await;
    let again = store.reserve(ask(host(1), 9)).await.unwrap().jobs;
    assert_eq!(again.len(), 2);
    clock.advance(Duration::from_secs(30));
    assert_eq!(succeed(&store, again).await, [DONE, DONE]);
    assert_eq!(store.attempts(ids[0]).await.unwrap().len(), 2, "the first attempt is not forgotten");
    let expires = store.job(ids[3]).await.unwrap().unwrap().expires.unwrap();
    clock.advance(expires.since(clock.now()));
    assert_eq!(store.tend().await.unwrap().pruned, 2);
    assert!(store.job(ids[3]).await.unwrap().is_none() && store.job(ids[4]).await.unwrap().is_none());
    assert_eq!(rows(&client, &s, "receipt").await, 0);
    assert_eq!(state(&store, &clock, ids[0]).await, StateName::Succeeded);
    assert_schema_agrees(&server().url(), &s).await;
}

#[tokio::test]
async fn what_a_holder_leaves_that_dies_in_the_midst_is_taken_from_it_and_nothing_else() {
    let (s, clock) = (schema(), ManualClock::new());
    let (store, mut jobs) = granted(&s, &clock, 6).await;
    let client = user(&server().url()).await;
    let left: Vec<JobId> = jobs[3..].iter().map(|job| job.job().id).collect();
    let lost = jobs.remove(3);
    jobs.truncate(3);
    assert_eq!(succeed(&store, jobs).await, [DONE; 3]);
    clock.advance(TTL);
    assert_eq!(store.tend().await.unwrap().lapsed, 3);
    assert_eq!(rows(&client, &s, "granted").await, 0);
    assert_schema_agrees(&server().url(), &s).await;
    assert_eq!(succeed(&store, vec![lost]).await, [Settled::Fenced]);
    let next = store.reserve(ask(host(2), 9)).await.unwrap().jobs;
    assert_eq!(next.iter().map(|job| job.job().id).collect::<Vec<_>>(), left);
    assert!(next.iter().all(|job| job.job().delivery == 2));
    assert_eq!(store.attempts(left[0]).await.unwrap().len(), 2);
}

/// As after a restart, or when too much was granted to be kept in mind.
#[tokio::test]
async fn what_another_program_was_granted_is_settled_all_the_same() {
    let (s, clock) = (schema(), ManualClock::new());
    let (_store, jobs) = granted(&s, &clock, 3).await;
    let other = open(&s, &clock).await;
    let ends: Vec<_> = jobs.into_iter().map(|job| settle(job, Verdict::Succeeded(None))).collect();
    assert_eq!(other.settle(ends.clone(), None).await.unwrap().settled, [DONE; 3]);
    assert_eq!(other.settle(ends, None).await.unwrap().settled, [Settled::Repeated; 3]);
    assert_schema_agrees(&server().url(), &s).await;
}

/// The end commits while somebody who has read that it runs is about to ask it to stop.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_was_completed_does_not_run_again_because_somebody_wanted_it_cancelled() {
    let (s, clock) = (schema(), ManualClock::new());
    let (store, jobs) = granted(&s, &clock, 1).await;
    let (client, sql) = (user(&server().url()).await, user(&server().url()).await);
    client.batch_execute("BEGIN").await.unwrap();
    say(&client, &end(&store, held(&jobs[0])).await).await.unwrap();
    let id = jobs[0].job().id;
    sql.batch_execute(&format!("SELECT {s}.cancel('{}')", uuid::Uuid::from_bytes(*id.as_bytes())))
        .await
        .unwrap();
    let turn = store.reserve(ask(host(1), 1));
    let end = async {
        let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted";
        while number(&sql, waits).await == 0 {
            tokio::task::yield_now().await;
        }
        client.batch_execute("COMMIT").await.unwrap();
    };
    let (turn, ()) = tokio::join!(turn, end);
    assert!(turn.unwrap().jobs.is_empty());
    assert_eq!(state(&store, &clock, id).await, StateName::Succeeded);
    assert_schema_agrees(&server().url(), &s).await;
}

/// A transaction whose snapshot is taken.
const OLD: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM pg_class LIMIT 1";

/// It sees what was so before.
#[tokio::test]
async fn a_transaction_with_an_old_snapshot_does_not_check_in_for_a_job_that_was_taken() {
    let (s, clock) = (schema(), ManualClock::new());
    let (store, jobs) = granted(&s, &clock, 2).await;
    let client = user(&server().url()).await;
    let mine = held(&jobs[0]);
    client.batch_execute(OLD).await.unwrap();
    let at_once = Change::Cancel { grace: Duration::ZERO, reason: String::new() };
    assert_eq!(change(&store, at_once, vec![mine.id]).await, [ChangeOutcome::Asked]);
    assert_eq!(store.tend().await.unwrap().lapsed, 1, "its neighbour runs on");
    let refused = say(&client, &check(&store, mine)).await.unwrap_err();
    assert_eq!(refused.code().unwrap().code(), "40001");
    client.batch_execute("ROLLBACK").await.unwrap();
    let refused = say(&client, &check(&store, mine)).await.unwrap_err();
    assert_eq!(refused.code().unwrap().code(), tenure_postgres::LOST);
}

/// It is told so if a neighbour has ended since, and finds things as they are when it begins anew.
#[tokio::test]
async fn a_transaction_with_an_old_snapshot_begins_again_once() {
    let (s, clock) = (schema(), ManualClock::new());
    let (store, mut jobs) = granted(&s, &clock, 3).await;
    let client = user(&server().url()).await;
    client.batch_execute(OLD).await.unwrap();
    assert_eq!(succeed(&store, vec![jobs.remove(0)]).await, [DONE]);
    let refused = say(&client, &check(&store, held(&jobs[0]))).await.unwrap_err();
    assert_eq!(refused.code().unwrap().code(), "40001");
    client.batch_execute("ROLLBACK").await.unwrap();
    client.batch_execute(OLD).await.unwrap();
    say(&client, &check(&store, held(&jobs[0]))).await.unwrap();
    assert_eq!(succeed(&store, vec![jobs.remove(1)]).await, [DONE], "nobody waits for it");
    client.batch_execute("COMMIT").await.unwrap();
    let mut tries = 0;
    loop {
        tries += 1;
        client.batch_execute(OLD).await.unwrap();
        match say(&client, &end(&store, held(&jobs[0])).await).await {
            Ok(()) => break,
            Err(error) => assert_eq!((error.code().unwrap().code(), tries), ("40001", 1)),
        }
        client.batch_execute("ROLLBACK").await.unwrap();
    }
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(state(&store, &clock, jobs[0].job().id).await, StateName::Succeeded);
}

/// Whoever begins an epoch waits for what it may not know of.
#[tokio::test]
async fn how_long_a_job_may_be_held_is_told_by_claims_and_by_renewals() {
    let (s, clock) = (schema(), ManualClock::new());
    let (store, jobs) = granted(&s, &clock, 1).await;
    let client = user(&server().url()).await;
    let told = format!("SELECT value FROM {s}.meta WHERE name = 'ttl'");
    assert_eq!(number(&client, &told).await, TTL.as_micros() as i64);
    let ask = Renew { ttl: TTL * 10, held: vec![held(&jobs[0])] };
    assert!(matches!(store.renew(ask).await.unwrap()[..], [Renewal::Held(_)]));
    assert_eq!(number(&client, &told).await, 10 * TTL.as_micros() as i64);
}

/// A job that was taken, and was completed by whoever had it: only one of them counts.
#[tokio::test]
async fn who_has_lost_a_job_neither_checks_in_nor_completes_it() {
    let (s, clock) = (schema(), ManualClock::new());
    let (store, jobs) = granted(&s, &clock, 2).await;
    let mut client = user(&server().url()).await;
    clock.advance(TTL);
    store.tend().await.unwrap();
    let transaction = client.transaction().await.unwrap();
    let checked = store.check_in().job(&transaction, &held(&jobs[0])).await;
    assert!(matches!(checked, Err(CheckInError::Lost)), "{checked:?}");
    drop(transaction);
    let refused = say(&client, &end(&store, held(&jobs[0])).await).await.unwrap_err();
    assert_eq!(refused.code().unwrap().code(), tenure_postgres::LOST);
    assert_schema_agrees(&server().url(), &s).await;
}
