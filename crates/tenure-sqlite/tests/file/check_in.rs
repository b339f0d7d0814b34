//! A user's own transaction on the store's file: what it writes counts only while the ownership does.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};
use tenure_core::{Access, Fence, LeaseAct, LeaseId, LeaseOutcome, Ttl, Verdict, may_use};
use tenure_sqlite::{
    CHECK_JOB_SQL, CHECK_LEASE_SQL, CheckInError, Options, SqliteStore, check_job, check_lease,
};
use tenure_store::{Clock, Fault, Held, Jobs, LeaseWish, Leases, ManualClock};

use crate::given::leases::{acquire, granted, id, name, other, release, who, wish};
use crate::given::{ask, file, host, new_jobs, runtime, settle};

fn open(file: &Path, clock: &ManualClock) -> Arc<SqliteStore> {
    let impatient = Options { busy_timeout: Duration::ZERO, ..Options::default() };
    SqliteStore::open(file, impatient, Arc::new(clock.clone())).unwrap()
}

/// A connection of a user's own, with a table for effects.
fn user(file: &Path) -> Connection {
    let conn = other(file);
    // The store may be tidying its log for a moment.
    conn.busy_timeout(Duration::from_secs(5)).unwrap();
    conn.execute("CREATE TABLE IF NOT EXISTS entry (text TEXT)", []).unwrap();
    conn
}

fn entries(conn: &Connection) -> Vec<String> {
    let mut statement = conn.prepare("SELECT text FROM entry ORDER BY text").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

/// Writes an entry in the name of a holder.
fn enter(conn: &mut Connection, number: u64, fence: Fence, clock: &ManualClock) -> Result<(), CheckInError> {
    let txn = conn.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    // The entry comes first, so that only the check keeps it out.
    txn.execute("INSERT INTO entry VALUES (?1)", [format!("by {number}")]).unwrap();
    check_lease(&txn, &name("ledger"), id(number), fence, clock.now())?;
    txn.commit().unwrap();
    Ok(())
}

/// T009: a holder that was paused past its lease wakes when its successor has begun.
#[test]
fn what_a_paused_holder_writes_after_its_successor_began_is_not_kept() {
    let (_directory, file) = file();
    let clock = ManualClock::new();
    let (store, mut conn) = (open(&file, &clock), user(&file));
    runtime().block_on(async {
        let paused = granted(wish(&*store, acquire("ledger", 1)).await);
        enter(&mut conn, 1, paused, &clock).unwrap();
        clock.advance(Duration::from_secs(31));
        let successor = granted(wish(&*store, acquire("ledger", 2)).await);
        assert!(matches!(enter(&mut conn, 1, paused, &clock), Err(CheckInError::Lost)));
        enter(&mut conn, 2, successor, &clock).unwrap();
        assert!(matches!(enter(&mut conn, 1, paused, &clock), Err(CheckInError::Lost)));
        assert_eq!(entries(&conn), ["by 1", "by 2"]);
    });
}

#[test]
fn nobody_takes_a_lease_between_the_check_and_the_commit() {
    let (_directory, file) = file();
    let clock = ManualClock::new();
    let (store, mut conn) = (open(&file, &clock), user(&file));
    runtime().block_on(async {
        let fence = granted(wish(&*store, acquire("ledger", 1)).await);
        for behavior in [TransactionBehavior::Deferred, TransactionBehavior::Immediate] {
            let txn = conn.transaction_with_behavior(behavior).unwrap();
            check_lease(&txn, &name("ledger"), id(1), fence, clock.now()).unwrap();
            clock.advance(Duration::from_secs(31));
            let fault = store.lease(vec![acquire("ledger", 2)]).await.unwrap_err();
            assert!(
                matches!(&fault, Fault::Unavailable(text) if text.contains("holds the write lock")),
                "{fault}"
            );
            txn.execute("INSERT INTO entry VALUES ('in time')", []).unwrap();
            txn.commit().unwrap();
            clock.step_to(clock.now().before(Duration::from_secs(31)));
        }
        clock.advance(Duration::from_secs(31));
        granted(wish(&*store, acquire("ledger", 2)).await);
        assert_eq!(entries(&conn).len(), 2);
    });
}

#[test]
fn a_takeover_that_waits_for_the_commit_is_granted_after_it() {
    let (_directory, file) = file();
    let clock = ManualClock::new();
    let store = SqliteStore::open(&file, Options::default(), Arc::new(clock.clone())).unwrap();
    let (mut conn, runtime) = (user(&file), runtime());
    let fence = granted(runtime.block_on(wish(&*store, acquire("ledger", 1))));
    let txn = conn.transaction().unwrap();
    check_lease(&txn, &name("ledger"), id(1), fence, clock.now()).unwrap();
    clock.advance(Duration::from_secs(31));
    let takeover = runtime.spawn({
        let store = store.clone();
        async move { wish(&*store, acquire("ledger", 2)).await }
    });
    txn.execute("INSERT INTO entry VALUES ('in time')", []).unwrap();
    assert!(!takeover.is_finished());
    txn.commit().unwrap();
    assert!(granted(runtime.block_on(takeover).unwrap()) > fence);
}

/// The statement repeats what the domain decides; here they are compared in every state.
#[test]
fn the_check_agrees_with_the_domain_on_who_may_write() {
    let clock = ManualClock::new();
    let (_directory, file) = file();
    let (store, mut conn) = (open(&file, &clock), user(&file));
    let acquire_for = |text: &str, ttl| {
        let act = LeaseAct::Acquire { id: id(1), by: who(1), ttl, wait: None };
        LeaseWish { name: name(text), act }
    };
    let breaking = |text: &str, seconds| {
        let within = Some(Duration::from_secs(seconds));
        LeaseWish { name: name(text), act: LeaseAct::Break { within, by: who(9), reason: String::new() } }
    };
    let short = Ttl::of_seconds(20.0).unwrap();
    runtime().block_on(async {
        let names = ["held", "endless", "freed", "lapses", "breaks", "broken", "endless breaks", "noticed"];
        for text in names {
            let ttl = if text.starts_with("endless") { Ttl::Endless } else { Ttl::of_seconds(60.0).unwrap() };
            let ttl = if matches!(text, "lapses" | "noticed") { short } else { ttl };
            granted(wish(&*store, acquire_for(text, ttl)).await);
        }
        wish(&*store, release("freed", 1, Fence::from_number(1))).await;
        wish(&*store, breaking("breaks", 20)).await;
        wish(&*store, breaking("endless breaks", 20)).await;
        wish(&*store, breaking("broken", 0)).await;
        let mut verdicts = [0, 0];
        // To the very instants at which something ends.
        for seconds in [0, 19, 20, 21, 59, 60] {
            let now = clock.now().after(Duration::from_secs(seconds));
            for text in names {
                let lease = store.lease_info(&name(text)).await.unwrap().unwrap().lease;
                for claim in [(id(1), 1), (id(2), 1), (id(1), 0), (id(1), 2)] {
                    let (who, fence) = (claim.0, Fence::from_number(claim.1));
                    let expected = may_use(&lease, Access::Write, Some((who, fence)), now);
                    let txn = conn.transaction().unwrap();
                    let checked = check_lease(&txn, &name(text), who, fence, now);
                    assert_eq!(checked.is_ok(), expected.is_ok(), "{text} after {seconds} s: {checked:?}");
                    verdicts[usize::from(checked.is_ok())] += 1;
                }
            }
        }
        assert!(verdicts.iter().all(|count| *count >= 15), "{verdicts:?}");
        clock.advance(Duration::from_secs(30));
        store.tend().await.unwrap();
        let txn = conn.transaction().unwrap();
        let fence = Fence::from_number(1);
        assert!(matches!(
            check_lease(&txn, &name("noticed"), id(1), fence, clock.now()),
            Err(CheckInError::Lost)
        ));
        // Nor is one that was never held.
        assert!(matches!(
            check_lease(&txn, &name("unheard of"), id(1), fence, clock.now()),
            Err(CheckInError::Lost)
        ));
    });
}

#[test]
fn the_text_says_the_same_to_another_driver() {
    let (_directory, file) = file();
    let clock = ManualClock::new();
    let (store, mut conn) = (open(&file, &clock), user(&file));
    runtime().block_on(async {
        let fence = granted(wish(&*store, acquire("ledger", 1)).await);
        let txn = conn.transaction().unwrap();
        let rows = |id: LeaseId, fence: u64| {
            let (fence, now) = (i64::try_from(fence).unwrap(), clock.now().as_micros());
            txn.execute(CHECK_LEASE_SQL, ("ledger", &id.as_bytes()[..], fence, now)).unwrap()
        };
        assert_eq!([rows(id(1), fence.number()), rows(id(2), fence.number())], [1, 0]);
        assert_eq!(rows(id(1), fence.number() + 1), 0);
        drop(txn);
        store.enqueue(new_jobs(1, 1)).await.unwrap();
        let job = store.reserve(ask(host(1), 1)).await.unwrap().jobs.remove(0);
        let txn = conn.transaction().unwrap();
        let rows = |fence: u64| {
            let (seq, fence) = (i64::try_from(job.job().seq).unwrap(), i64::try_from(fence).unwrap());
            txn.execute(CHECK_JOB_SQL, (seq, &job.job().id.as_bytes()[..], fence)).unwrap()
        };
        assert_eq!([rows(job.fence().number()), rows(job.fence().number() + 1)], [1, 0]);
    });
}

/// What it says can be done only with the transaction open.
#[test]
fn a_check_outside_of_a_transaction_is_refused() {
    let (_directory, file) = file();
    let clock = ManualClock::new();
    let (store, mut conn) = (open(&file, &clock), user(&file));
    runtime().block_on(async {
        let fence = granted(wish(&*store, acquire("ledger", 1)).await);
        let checked = |conn: &Connection| check_lease(conn, &name("ledger"), id(1), fence, clock.now());
        assert!(matches!(checked(&conn), Err(CheckInError::NotInTransaction)));
        checked(&conn.transaction().unwrap()).unwrap();
        checked(&conn.savepoint().unwrap()).unwrap();
        assert!(matches!(checked(&conn), Err(CheckInError::NotInTransaction)));
    });
}

#[test]
fn another_file_is_told_from_a_lost_lease() {
    let (directory, file) = file();
    let clock = ManualClock::new();
    let store = open(&file, &clock);
    runtime().block_on(async {
        let fence = granted(wish(&*store, acquire("ledger", 1)).await);
        let mut own = Connection::open(directory.path().join("own.db")).unwrap();
        let checked = |conn: &mut Connection| {
            let txn = conn.transaction().unwrap();
            check_lease(&txn, &name("ledger"), id(1), fence, clock.now())
        };
        assert!(matches!(checked(&mut own), Err(CheckInError::NotTheStore)));
        // Two files of one transaction are not committed in one go.
        own.execute("ATTACH ?1 AS store", [file.to_str().unwrap()]).unwrap();
        assert!(matches!(checked(&mut own), Err(CheckInError::NotTheStore)));
        own.execute_batch("CREATE TABLE lease (name TEXT, price INTEGER)").unwrap();
        assert!(matches!(checked(&mut own), Err(CheckInError::NotTheStore)));
    });
}

#[test]
fn a_transaction_that_cannot_write_is_told_to_begin_again() {
    let (_directory, file) = file();
    let clock = ManualClock::new();
    let (store, mut conn) = (open(&file, &clock), user(&file));
    runtime().block_on(async {
        let fence = granted(wish(&*store, acquire("ledger", 1)).await);
        let checked = |conn: &Connection| check_lease(conn, &name("ledger"), id(1), fence, clock.now());

        // It has read what is not the newest any more.
        let stale = conn.transaction().unwrap();
        stale.query_row("SELECT count(*) FROM entry", [], |row| row.get::<_, i64>(0)).unwrap();
        granted(wish(&*store, acquire("another", 1)).await);
        assert!(matches!(checked(&stale), Err(CheckInError::Busy)));
        drop(stale);

        // Somebody else is writing, and is not waited for.
        let mut second = user(&file);
        conn.busy_timeout(Duration::ZERO).unwrap();
        let writing = second.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
        assert!(matches!(checked(&conn.transaction().unwrap()), Err(CheckInError::Busy)));
        drop(writing);
        conn.busy_timeout(Duration::from_secs(5)).unwrap();
        checked(&conn.transaction().unwrap()).unwrap();
    });
}

/// T009: the same for a job.
#[test]
fn what_a_paused_attempt_writes_after_the_next_one_began_is_not_kept() {
    let (_directory, file) = file();
    let clock = ManualClock::new();
    let (store, mut conn) = (open(&file, &clock), user(&file));
    runtime().block_on(async {
        store.enqueue(new_jobs(1, 2)).await.unwrap();
        let paused = store.reserve(ask(host(1), 1)).await.unwrap().jobs.remove(0);
        let of = |reserved: &tenure_core::Reserved| {
            let (id, seq) = (reserved.job().id, reserved.job().seq);
            Held { id, seq, fence: reserved.fence() }
        };
        let mut enter = |held: Held| -> Result<(), CheckInError> {
            let txn = conn.transaction().unwrap();
            check_job(&txn, &held)?;
            txn.execute("INSERT INTO entry VALUES (?1)", [format!("under {}", held.fence)]).unwrap();
            txn.commit().unwrap();
            Ok(())
        };
        let is_lost = |checked: Result<(), CheckInError>| matches!(checked, Err(CheckInError::Lost));
        enter(of(&paused)).unwrap();
        // It has lapsed and nobody has noticed: its settlement would count, and so does this.
        clock.advance(Duration::from_secs(61));
        enter(of(&paused)).unwrap();
        let next = store.reserve(ask(host(2), 1)).await.unwrap().jobs.remove(0);
        assert_eq!(next.job().id, paused.job().id);
        assert!(is_lost(enter(of(&paused))));
        enter(of(&next)).unwrap();
        let elsewhere = Held { id: new_jobs(2, 1)[0].id, ..of(&next) };
        assert!(is_lost(enter(elsewhere)), "another job's id");
        let held = of(&next);
        store.settle(vec![settle(next, Verdict::Succeeded(None))], None).await.unwrap();
        assert!(is_lost(enter(held)), "it has ended");
        assert_eq!(entries(&conn), ["under 1", "under 1", "under 3"]);
    });
}

#[test]
fn a_read_only_connection_is_no_lost_lease() {
    let (_directory, file) = file();
    let clock = ManualClock::new();
    let (store, mut conn) = (open(&file, &clock), user(&file));
    runtime().block_on(async {
        let outcome = wish(&*store, acquire("ledger", 1)).await;
        assert!(matches!(outcome, LeaseOutcome::Granted { .. }));
        conn.execute_batch("PRAGMA query_only = ON").unwrap();
        let txn = conn.transaction().unwrap();
        let checked = check_lease(&txn, &name("ledger"), id(1), granted(outcome), clock.now());
        assert!(matches!(checked, Err(CheckInError::Failed(_))), "{checked:?}");
    });
}
