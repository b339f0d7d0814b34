//! Several programs on one database, and people who change jobs meanwhile.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that unwraps fails where it stands"
)]

use crate::common;

use std::sync::Arc;
use std::time::Duration;

use common::agree::assert_agrees;
use common::{ask, jobs, open};
use own_postgres::Server;
use tenure_core::{
    Cause, Due, Failure, JobId, Keep, NewJob, OnConflict, Priority, QueueName, QueueTerms, Retention,
    RetryPolicy, Terms, Unique, UniqueKey, Verdict, Window,
};
use tenure_postgres::PostgresStore;
use tenure_store::{
    Chance, Change, Enqueued, Fault, Filter, Jobs, QueueEdit, Refusal, Selection, Store, Views,
};

const PROGRAMS: u64 = 4;
const STEPS: usize = 60;

/// Jobs of several sorts: some due later, some that are kept for a moment, some with unique keys.
fn batch(chance: &Chance, seed: u64) -> Vec<NewJob> {
    let mut batch = jobs(1 + chance.below(20) as usize, seed);
    for new in &mut batch {
        if chance.below(5) == 0 {
            new.due = Due::In(Duration::from_millis(chance.below(300)));
        }
        let mut terms = Terms::default();
        if chance.below(3) == 0 {
            terms.retention = Retention::always(Keep::For(Duration::from_millis(chance.below(100))));
        }
        if chance.below(8) == 0 {
            let on_conflict = [OnConflict::Return, OnConflict::Replace][chance.below(2) as usize];
            let key = UniqueKey([chance.below(4) as u8; 16]);
            terms.unique = Some(Unique { key, window: Window::WhileUnfinished, on_conflict });
        }
        new.terms = Arc::new(terms);
        new.priority = Priority::new(chance.below(3) as i64).unwrap();
    }
    batch
}

fn verdict(chance: &Chance) -> Verdict {
    let failure = || Failure::new(Cause::Error, "no luck");
    match chance.below(8) {
        0 => Verdict::Released,
        1 => Verdict::Snoozed(Due::In(Duration::from_millis(50))),
        2 => Verdict::Retry { failure: failure(), due: Some(Due::Now) },
        3 => Verdict::Failed(failure()),
        _ => Verdict::Succeeded(None),
    }
}

fn change(chance: &Chance) -> Change {
    match chance.below(6) {
        0 => Change::Cancel { grace: Duration::from_millis(50), reason: "enough".to_owned() },
        1 => Change::Redo,
        2 => Change::Delete,
        3 => Change::Move(QueueName::new(["mail", "post"][chance.below(2) as usize]).unwrap()),
        4 => Change::Reprioritise(Priority::new(chance.below(5) as i64).unwrap()),
        _ => Change::Reschedule(Due::In(Duration::from_millis(chance.below(100)))),
    }
}

/// What one program does, over and over: what cannot be had is asked for again by nobody.
async fn turmoil(store: Arc<PostgresStore>, program: u64, known: Arc<std::sync::Mutex<Vec<JobId>>>) -> usize {
    let chance = Chance::seeded(program);
    let mut refused = 0;
    let mut note = |fault: Fault| {
        assert!(fault.is_passing(), "{fault}");
        refused += 1;
    };
    for step in 0..STEPS {
        match chance.below(10) {
            0..3 => {
                let batch = batch(&chance, program << 20 | step as u64);
                let ids: Vec<JobId> = batch.iter().map(|new| new.id).collect();
                match store.enqueue(batch).await {
                    Ok(_) => known.lock().unwrap().extend(ids),
                    Err(fault) => note(fault),
                }
            }
            3..7 => {
                let mut wish = ask(program as u8, 10);
                wish.ttl = Duration::from_millis(if chance.below(5) == 0 { 1 } else { 10_000 });
                let taken = match store.reserve(wish).await {
                    Ok(reservation) => reservation.jobs,
                    Err(fault) => {
                        note(fault);
                        continue;
                    }
                };
                let settlements = taken
                    .into_iter()
                    .map(|one| one.settle(verdict(&chance), &RetryPolicy::default(), 0.5))
                    .collect();
                if let Err(fault) = store.settle(settlements, None).await {
                    note(fault);
                }
            }
            7..9 => {
                let ids: Vec<JobId> = {
                    let known = known.lock().unwrap();
                    let some = |_| known.get(chance.below(known.len().max(1) as u64) as usize).copied();
                    (0..4).filter_map(some).collect()
                };
                let selection = match chance.below(6) {
                    0 => Selection::Matching { filter: Filter::default(), after: None },
                    _ => Selection::Ids(ids),
                };
                if let Err(fault) = store.change(change(&chance), selection).await {
                    note(fault);
                }
            }
            _ => {
                if let Err(fault) = store.tend().await {
                    note(fault);
                }
            }
        }
    }
    refused
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_kept_twice_agrees_after_a_turmoil_of_several_programs() {
    let server = Server::start_hasty().unwrap();
    let known = Arc::default();
    let mut stores = Vec::new();
    for _ in 0..PROGRAMS {
        stores.push(open(&server).await);
    }
    let running = stores
        .iter()
        .zip(1..)
        .map(|(store, program)| tokio::spawn(turmoil(Arc::clone(store), program, Arc::clone(&known))));
    let running: Vec<_> = running.collect();
    let mut refused = 0;
    for program in running {
        refused += program.await.unwrap();
    }
    assert_agrees(&server.url()).await;
    println!("{refused} calls met somebody too often");
    assert!(refused <= STEPS / 10, "{refused}");
    for store in stores {
        store.close().await.unwrap();
    }
}

/// A program enqueues without a look at the queue while it knows of no terms, and another may have set some since.
#[tokio::test]
async fn terms_that_another_program_has_set_hold_for_the_next_job() {
    let server = Server::start_hasty().unwrap();
    let (one, two) = (open(&server).await, open(&server).await);
    one.enqueue(jobs(1, 1)).await.unwrap();
    let terms = QueueTerms { max_depth: Some(1), ..QueueTerms::default() };
    let edit = QueueEdit { terms: Some(terms), ..QueueEdit::default() };
    two.edit_queue(&QueueName::new("mail").unwrap(), edit).await.unwrap();
    let refused = Enqueued::Refused { index: 0, refusal: Refusal::QueueFull { most: 1 } };
    assert_eq!(one.enqueue(jobs(1, 2)).await, Ok(refused));
}
