//! Real processes write into one file and are killed (-9) while they do.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tenure::rusqlite::{Connection, TransactionBehavior};
use tenure::{Clock, Duty, Failed, Message, OpenOptions, SystemClock, Tenure, Worker, Writer};

use crate::services::writer::book::Entry;

const FOLDER: &str = "TENURE_WRITER_TEST_FOLDER";
const KILLS: u64 = 6;
const MESSAGES: u64 = 600;
const LEASE: Duration = Duration::from_secs(1);

struct Ledger {
    file: PathBuf,
}

fn open(file: &Path) -> Connection {
    let conn = Connection::open(file).unwrap();
    conn.busy_timeout(Duration::from_secs(5)).unwrap();
    conn
}

/// The lease, the last message that was written and the new entries are of one transaction: each message is
/// written once, in its turn.
async fn write(duty: Duty<Ledger>, messages: Vec<Message<Entry>>) -> Result<(), Failed> {
    put(&duty, messages)?;
    // Long enough for a kill to come between the commit and the settling.
    duty.sleep(Duration::from_millis(5)).await?;
    Ok(())
}

fn put(duty: &Duty<Ledger>, messages: Vec<Message<Entry>>) -> Result<(), Failed> {
    let mut conn = open(&duty.app().file);
    let txn = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    duty.pass().check_in(&txn)?;
    let last: i64 = txn.query_row("SELECT coalesce(max(seq), 0) FROM entry", [], |row| row.get(0))?;
    let fence = i64::try_from(duty.fence().number())?;
    for message in messages {
        let (seq, number) = (i64::try_from(message.seq)?, i64::try_from(message.body.number)?);
        if seq > last {
            txn.execute("INSERT INTO entry (seq, number, fence) VALUES (?1, ?2, ?3)", (seq, number, fence))?;
        }
    }
    Ok(txn.commit()?)
}

async fn handle(file: &Path) -> Tenure {
    let url = format!("sqlite://{}", file.display());
    OpenOptions::new().app("ledger").program("ledger").open(&url).await.unwrap()
}

/// Not a test of its own: what the killed process runs.
#[tokio::test(flavor = "multi_thread")]
async fn the_writer_that_is_killed() {
    let Some(file) = std::env::var_os(FOLDER).map(|folder| PathBuf::from(folder).join("jobs.db")) else {
        return;
    };
    let tenure = handle(&file).await;
    let worker = Worker::new(&tenure, Ledger { file }).lease(LEASE);
    worker.writer(Writer::new("ledger").batch(7), write).run(std::future::pending::<()>()).await.unwrap();
}

fn start(folder: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "services::writer::kill::the_writer_that_is_killed",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(FOLDER, folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Killed and reaped, whatever happens to the test.
struct Processes(Vec<Child>);

impl Processes {
    fn kill(&mut self, pid: u32) {
        let place = self.0.iter().position(|child| child.id() == pid).unwrap();
        let mut child = self.0.swap_remove(place);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    for _ in 0..20_000 {
        if is_so().await {
            return;
        }
        SystemClock.sleep(Duration::from_millis(3)).await;
    }
    panic!("nobody writes any more");
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_written_once_and_in_order_by_processes_that_are_killed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("jobs.db");
    let tenure = handle(&file).await;
    open(&file)
        .execute("CREATE TABLE entry (seq INTEGER PRIMARY KEY, number INTEGER, fence INTEGER)", [])
        .unwrap();
    let mailbox = tenure.writer("ledger").unwrap();
    let written = || -> Vec<(i64, i64)> {
        let conn = open(&file);
        let mut rows = conn.prepare("SELECT number, fence FROM entry ORDER BY rowid").unwrap();
        let entries = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        entries.collect::<Result<_, _>>().unwrap()
    };

    let mut processes = Processes(vec![start(folder.path()), start(folder.path())]);
    let entries: Vec<Entry> = (0..MESSAGES).map(|number| Entry { number }).collect();
    let share = usize::try_from(MESSAGES / (KILLS + 1)).unwrap();
    let mut sent = entries.chunks(share);
    for _ in 0..KILLS {
        mailbox.send_all(sent.next().unwrap()).await.unwrap();
        let before = written().len();
        until(async || written().len() >= before + share / 2).await;
        let held = mailbox.info().await.unwrap().writer.and_then(|info| info.lease.held);
        // Its name is that of its process. Between two holders there is nobody to kill.
        if let Some(pid) = held.and_then(|held| held.by.who.strip_prefix("pid ")?.parse().ok()) {
            processes.kill(pid);
            processes.0.push(start(folder.path()));
        }
    }
    for rest in sent {
        mailbox.send_all(rest).await.unwrap();
    }
    until(async || mailbox.depth().await.unwrap() == 0).await;
    drop(processes);

    let entries = written();
    let numbers: Vec<i64> = entries.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (0..i64::try_from(MESSAGES).unwrap()).collect::<Vec<_>>());
    assert!(entries.is_sorted_by_key(|(_, fence)| *fence));
    let mut fences: Vec<i64> = entries.iter().map(|(_, fence)| *fence).collect();
    fences.dedup();
    assert!(fences.len() > 3, "several of them wrote: {fences:?}");
}
