//! Effects in the store's own file: the ownership is verified where they commit.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::common::Plain;
use tenure::rusqlite::{Connection, TransactionBehavior};
use tenure::{
    Chance, CheckInError, Failed, Faults, FaultyStore, Held, ManualClock, Run, SqliteOptions, SqliteStore,
    Store, Tenure, Worker,
};
use tokio::sync::Notify;

const TTL: Duration = Duration::from_secs(15);

/// A file that two hosts use. The clock of one of them stands still, as that of a suspended machine does.
struct Site {
    path: std::path::PathBuf,
    clock: ManualClock,
    suspended: Tenure,
    other: Tenure,
    _folder: tempfile::TempDir,
}

fn site() -> Site {
    let folder = tempfile::tempdir().unwrap();
    let (path, clock) = (folder.path().join("jobs.db"), ManualClock::new());
    let store: Arc<dyn Store> =
        SqliteStore::open(&path, SqliteOptions::default(), Arc::new(clock.clone())).unwrap();
    let still =
        FaultyStore::new(Arc::clone(&store), Faults::none(1)).with_clock(Arc::new(ManualClock::new()));
    let suspended = Tenure::on(Arc::new(still), Chance::seeded(1)).leases_on_runtime();
    let other = Tenure::on(store, Chance::seeded(2)).leases_on_runtime();
    open(&path).execute("CREATE TABLE shelf (entry TEXT)", []).unwrap();
    Site { path, clock, suspended, other, _folder: folder }
}

fn open(path: &Path) -> Connection {
    let conn = Connection::open(path).unwrap();
    conn.busy_timeout(Duration::from_secs(5)).unwrap();
    conn
}

fn put(
    path: &Path,
    entry: &str,
    check: impl Fn(&Connection) -> Result<(), CheckInError>,
) -> Result<(), CheckInError> {
    let mut conn = open(path);
    let txn = conn.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    check(&txn)?;
    txn.execute("INSERT INTO shelf VALUES (?1)", [entry]).unwrap();
    txn.commit().unwrap();
    Ok(())
}

fn shelf(path: &Path) -> Vec<String> {
    let conn = open(path);
    let mut rows = conn.prepare("SELECT entry FROM shelf ORDER BY rowid").unwrap();
    let entries = rows.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>();
    entries.unwrap()
}

/// T009: it believes in its lease, and its clock agrees.
#[tokio::test]
async fn a_holder_that_does_not_know_that_it_was_suspended_is_refused_where_it_writes() {
    let site = site();
    let late = site.suspended.leases().try_hold("shelf", TTL).await.unwrap().unwrap();
    let put_by = |held: &Held, entry: &str| put(&site.path, entry, |conn| held.check_in(conn));
    put_by(&late, "first").unwrap();

    site.clock.advance(TTL);
    let present = site.other.leases().try_hold("shelf", TTL).await.unwrap().unwrap();
    put_by(&present, "second").unwrap();
    assert!(late.is_held(), "as far as it can know");
    assert!(matches!(put_by(&late, "late"), Err(CheckInError::Lost)));
    put_by(&present, "third").unwrap();
    assert_eq!(shelf(&site.path), ["first", "second", "third"]);
}

#[tokio::test]
async fn without_a_transaction_or_on_another_file_nothing_is_verified() {
    let site = site();
    let held = site.other.leases().try_hold("shelf", TTL).await.unwrap().unwrap();
    assert!(matches!(held.check_in(&open(&site.path)), Err(CheckInError::NotInTransaction)));
    let elsewhere = Connection::open_in_memory().unwrap();
    elsewhere.execute_batch("BEGIN").unwrap();
    assert!(matches!(held.pass().check_in(&elsewhere), Err(CheckInError::NotTheStore)));
    site.clock.advance(TTL);
    assert!(matches!(held.check_in(&open(&site.path)), Err(CheckInError::Lost)), "it knows by itself");
}

/// T009: a job has the same.
#[tokio::test]
async fn an_attempt_writes_only_while_the_job_is_its_own() {
    let site = site();
    site.other.enqueue(Plain { number: 1 }).await.unwrap();
    let (path, other, clock) = (site.path.clone(), site.other.clone(), site.clock.clone());
    let ended = Arc::new(Notify::new());
    let ends = Arc::clone(&ended);
    let worker = Worker::new(&site.suspended, ()).queue("default", 1).job(move |run: Run<()>, job: Plain| {
        let (path, other, clock, ends) = (path.clone(), other.clone(), clock.clone(), Arc::clone(&ends));
        async move {
            put(&path, "mine", |conn| run.check_in(conn)).unwrap();
            clock.advance(crate::common::LEASE);
            assert_eq!(crate::common::try_reserve(&other).await.len(), 1, "another host has it");
            assert!(run.is_held(), "as far as it can know");
            assert!(matches!(put(&path, "late", |conn| run.check_in(conn)), Err(CheckInError::Lost)));
            ends.notify_one();
            Ok::<_, Failed>(job.number)
        }
    });
    let stopped = worker.keeper_on_runtime().run(async { ended.notified().await }).await.unwrap();
    assert_eq!(stopped.fenced, 1);
    assert_eq!(shelf(&site.path), ["mine"]);
}
