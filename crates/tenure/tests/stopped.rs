//! Real processes hold a lease and write. Again and again, a test pauses one for longer than its lease, and another test
//! kills one (-9).
//!
//! What they write goes into a table of their own in the same file, in transactions that check the ownership.
//! The order of its rows is the order of the commits. The fences in it never go back, whoever was stopped
//! where; and who takes over after a kill does so in time.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};
use rustix::process::{Pid, Signal, kill_process};
use tenure::{Chance, Clock, Fence, Held, SystemClock, Tenure};
use tokio::task::JoinHandle;

const FOLDER: &str = "TENURE_STOP_TEST_FOLDER";
const NAME: &str = "the pen";
const LEASE: Duration = Duration::from_secs(2);
/// Pairs of processes that work at the same time, each on a file of its own.
const PAIRS: usize = 10;
/// How often each pair is disturbed.
const ROUNDS: usize = 3;
/// With `--long`.
const MORE_ROUNDS: usize = 10;
/// From the death of a holder to the next grant, at the longest: the lease and two seconds, and what a machine takes that does
/// other things as well. Whoever waits would do so for two minutes.
const TAKEOVER: Duration = Duration::from_secs(4 + 20);

fn url(folder: &Path) -> String {
    format!("sqlite://{}", folder.join("jobs.db").display())
}

fn connect(folder: &Path) -> Connection {
    let conn = Connection::open(folder.join("jobs.db")).unwrap();
    conn.busy_timeout(Duration::from_secs(20)).unwrap();
    conn
}

/// Writes once under an ownership, as a careless program would: it never asks whether it still has it.
fn write(conn: &mut Connection, held: &Held) -> bool {
    let txn = conn.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    let now = SystemClock.now();
    if tenure_sqlite::check_lease(&txn, held.name(), held.id(), held.fence(), now).is_err() {
        return false;
    }
    txn.execute("INSERT INTO effect (fence) VALUES (?1)", [i64::try_from(held.fence().number()).unwrap()])
        .unwrap();
    txn.commit().unwrap();
    true
}

fn say(word: &str, fence: Fence) {
    std::io::stdout().write_all(format!("{word} {fence}\n").as_bytes()).unwrap();
}

/// Not a test of its own: what the process runs that is stopped or killed.
#[test]
fn the_process_that_is_disturbed() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    runtime().block_on(async {
        let tenure = Tenure::open(&url(&folder)).await.unwrap();
        let mut conn = connect(&folder);
        loop {
            let held = tenure.leases().hold(NAME).ttl(LEASE).await.unwrap();
            say("HELD", held.fence());
            while write(&mut conn, &held) {
                say("WROTE", held.fence());
                SystemClock.sleep(Duration::from_millis(3)).await;
            }
            say("REFUSED", held.fence());
        }
    });
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

/// A process at work, and what it tells.
struct Other {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Other {
    fn start(folder: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "stopped::the_process_that_is_disturbed", "--nocapture", "--test-threads=1"])
            .env(FOLDER, folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// Listens until it says this word; answers the fence that it says with it.
    fn hear(&mut self, word: &str) -> u64 {
        let mut line = String::new();
        loop {
            line.clear();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "it ended before it said {word}");
            // The test harness may have begun the line.
            if let Some((_, fence)) = line.split_once(&format!("{word} ")) {
                return fence.trim().parse().unwrap();
            }
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Disturbs pairs of processes side by side; answers what each counted.
fn in_pairs<T: Send + 'static>(disturb: impl Fn(usize) -> T + Copy + Send + 'static) -> Vec<T> {
    let pairs: Vec<_> = (0..PAIRS).map(|pair| std::thread::spawn(move || disturb(pair))).collect();
    pairs.into_iter().map(|pair| pair.join().unwrap()).collect()
}

async fn prepared(folder: &Path) -> Tenure {
    let tenure = Tenure::open(&url(folder)).await.unwrap();
    connect(folder)
        .execute_batch("CREATE TABLE effect (number INTEGER PRIMARY KEY, fence INTEGER NOT NULL) STRICT")
        .unwrap();
    tenure
}

/// The fences of all effects, in the order of the commits.
fn effects(folder: &Path) -> Vec<u64> {
    let conn = connect(folder);
    let mut statement = conn.prepare("SELECT fence FROM effect ORDER BY number").unwrap();
    let fences = statement.query_map([], |row| row.get::<_, i64>(0)).unwrap();
    fences.map(|fence| u64::try_from(fence.unwrap()).unwrap()).collect()
}

/// Stands in line for the lease, so that nobody else is first when it is free.
async fn in_line(tenure: &Tenure) -> JoinHandle<Held> {
    let waiting = tokio::spawn({
        let tenure = tenure.clone();
        async move { tenure.leases().hold(NAME).ttl(LEASE).within(LEASE * 60).await.unwrap() }
    });
    while tenure.leases().info(NAME).await.unwrap().is_none_or(|info| info.waiting == 0) {
        SystemClock.sleep(Duration::from_millis(5)).await;
    }
    waiting
}

/// Takes what the stopped process had. If it was stopped within a transaction, it has locked the whole file:
/// then it has to go on first, and what it was writing counts, since nobody has taken over.
async fn succeed(mut waiting: JoinHandle<Held>, stopped: &Other) -> Held {
    tokio::select! {
        biased;
        held = &mut waiting => return held.unwrap(),
        () = SystemClock.sleep(LEASE * 5) => stopped.signal(Signal::CONT),
    }
    waiting.await.unwrap()
}

/// One pair: the other process is stopped again and again. Answers how many late writes were refused.
fn stop_again_and_again(pair: usize, rounds: usize) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let chance = Chance::seeded(pair as u64);
    let refused = runtime().block_on(async {
        let tenure = prepared(folder.path()).await;
        let mut conn = connect(folder.path());
        let mut other = Other::start(folder.path());
        let mut refused = 0;
        for _ in 0..rounds {
            let stale = other.hear("HELD");
            let waiting = in_line(&tenure).await;
            for _ in 0..=chance.below(20) {
                other.hear("WROTE");
            }
            other.signal(Signal::STOP);
            let held = succeed(waiting, &other).await;
            assert!(held.fence().number() > stale);
            assert!(write(&mut conn, &held), "who has it may write");
            other.signal(Signal::CONT);
            // The first thing that it does is to write, or to see its commit through that was under way.
            assert_eq!(other.hear("REFUSED"), stale);
            refused += 1;
            assert!(write(&mut conn, &held), "who has it still may");
            // On a machine that does other things as well it may have lapsed by now.
            if let Err(error) = held.release().await {
                assert!(matches!(error, tenure::Error::LeaseLost(_)), "{error}");
            }
        }
        other.kill();
        tenure.close().await.unwrap();
        refused
    });
    let fences = effects(folder.path());
    assert!(fences.is_sorted(), "a fence went back: {fences:?}");
    refused
}

/// T009: a paused holder's writes are refused, and the final data are the successor's.
#[test]
fn holders_that_were_stopped_past_their_lease_write_nothing_more() {
    write_nothing_more(ROUNDS);
}

/// T009, with more holders.
#[test]
#[ignore = "takes half a minute: `cargo xtask test --long`"]
fn a_hundred_holders_that_were_stopped_past_their_lease_write_nothing_more() {
    write_nothing_more(MORE_ROUNDS);
}

fn write_nothing_more(rounds: usize) {
    let refused: usize = in_pairs(move |pair| stop_again_and_again(pair, rounds)).into_iter().sum();
    assert!(refused >= PAIRS * rounds / 2, "the test must see refusals: {refused}");
}

/// One pair: the other process is killed again and again. Answers the longest takeover.
fn kill_again_and_again(rounds: usize) -> Duration {
    let folder = tempfile::tempdir().unwrap();
    let longest = runtime().block_on(async {
        let tenure = prepared(folder.path()).await;
        let mut longest = Duration::ZERO;
        for _ in 0..rounds {
            let mut other = Other::start(folder.path());
            other.hear("WROTE");
            let waiting = in_line(&tenure).await;
            other.hear("WROTE");
            other.kill();
            let killed = SystemClock.moment();
            let held = waiting.await.unwrap();
            longest = longest.max(SystemClock.moment().since(killed));
            held.release().await.unwrap();
        }
        tenure.close().await.unwrap();
        longest
    });
    let fences = effects(folder.path());
    assert!(fences.is_sorted(), "a fence went back: {fences:?}");
    longest
}

/// S-10: takeover after a kill takes no longer than the lease and two seconds, on a machine that does nothing else.
#[test]
fn holders_that_were_killed_are_succeeded_in_time() {
    succeeded_in_time(ROUNDS);
}

/// S-10, with more holders.
#[test]
#[ignore = "takes half a minute: `cargo xtask test --long`"]
fn a_hundred_holders_that_were_killed_are_succeeded_in_time() {
    succeeded_in_time(MORE_ROUNDS);
}

fn succeeded_in_time(rounds: usize) {
    let longest = in_pairs(move |_pair| kill_again_and_again(rounds)).into_iter().max().unwrap();
    assert!(longest <= TAKEOVER, "{longest:?}");
}
