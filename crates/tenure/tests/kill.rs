//! A real process enqueues and works on a file and is killed (-9) again and again; now and then two
//! processes do, at once.
//!
//! What it acknowledged it wrote to its parent; what its handlers did they appended to a log that
//! Tenure does not know. In the end every acknowledged job has ended, no ownership did its work
//! twice, and the file is whole.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

use crate::common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use common::Plain;
use tenure::{Chance, Draft, Failed, JobId, Run, StateName, SystemClock, Tenure, Worker};
use tenure_store::Clock;

const KILLS: usize = 40;
/// With `--long`.
const MORE_KILLS: usize = 200;
const FOLDER: &str = "TENURE_KILL_TEST_FOLDER";
const LEASE: Duration = Duration::from_secs(1);

struct Effects {
    log: Mutex<File>,
}

/// One line an attempt, appended in one write.
async fn leave_a_mark(run: Run<Effects>, job: Plain) -> Result<u64, Failed> {
    let line = format!("{} {}\n", run.id(), run.fence());
    run.app().log.lock().unwrap().write_all(line.as_bytes())?;
    Ok(job.number)
}

fn effects(folder: &Path) -> Effects {
    let log = OpenOptions::new().create(true).append(true).open(folder.join("effects.log")).unwrap();
    Effects { log: Mutex::new(log) }
}

fn worker(tenure: &Tenure, folder: &Path) -> Worker<Effects> {
    Worker::new(tenure, effects(folder)).queue("default", 8).prefetch(8).lease(LEASE).job(leave_a_mark)
}

fn url(folder: &Path) -> String {
    format!("sqlite://{}", folder.join("jobs.db").display())
}

/// Not a test of its own: what the killed process runs.
#[test]
fn the_process_that_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let tenure = Tenure::open(&url(&folder)).await.unwrap();
        let enqueuer = tenure.clone();
        tokio::spawn(async move {
            for number in 0.. {
                let drafts = (0..number % 5 + 1).map(|n| Draft::of(&Plain { number: number * 10 + n }));
                let accepted = enqueuer.enqueue_all(drafts).await.unwrap();
                let lines: String = accepted.iter().map(|job| format!("ACK {}\n", job.id())).collect();
                // One write: a kill cuts between batches, not within a line that counts.
                std::io::stdout().write_all(lines.as_bytes()).unwrap();
            }
        });
        worker(&tenure, &folder).run(std::future::pending::<()>()).await.unwrap();
    });
}

fn start(folder: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::the_process_that_is_killed", "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// A process at work, and what it has told so far.
struct Victim {
    child: Child,
    lines: BufReader<ChildStdout>,
    told: String,
}

impl Victim {
    fn start(folder: &Path) -> Self {
        let mut child = start(folder);
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines, told: String::new() }
    }

    fn listen(&mut self, lines: u64) {
        for _ in 0..lines {
            if self.lines.read_line(&mut self.told).unwrap() == 0 {
                return;
            }
        }
    }

    /// Kills it and answers what it acknowledged. A line that the kill cut does not count.
    fn kill(mut self) -> Vec<JobId> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.lines.read_to_string(&mut self.told).unwrap();
        let whole = self.told.rfind('\n').map_or("", |end| &self.told[..end]);
        whole.lines().filter_map(|line| line.split("ACK ").nth(1)).map(|id| id.parse().unwrap()).collect()
    }
}

/// Lets a process work until a moment that chance decides and kills it, now and then a second one
/// that works on the same file. Answers what they acknowledged.
fn work_and_die(folder: &Path, chance: &Chance) -> Vec<JobId> {
    let mut one = Victim::start(folder);
    let other = (chance.below(4) == 0).then(|| Victim::start(folder));
    // Some die before their first job is acknowledged, most some time after.
    one.listen(chance.below(150));
    let patience = Duration::from_micros(chance.below(20_000));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // A real process dies at a real moment.
    runtime.block_on(async { SystemClock.sleep(patience).await });
    let mut acknowledged = one.kill();
    acknowledged.extend(other.map(Victim::kill).unwrap_or_default());
    acknowledged
}

#[test]
fn killed_forty_times_nothing_acknowledged_is_lost_and_no_ownership_works_twice() {
    killed(KILLS);
}

#[test]
#[ignore = "takes a minute: `cargo xtask test --long`"]
fn killed_two_hundred_times_nothing_acknowledged_is_lost_and_no_ownership_works_twice() {
    killed(MORE_KILLS);
}

fn killed(kills: usize) {
    let folder = tempfile::tempdir().unwrap();
    let chance = Chance::seeded(20_261_121);
    let mut acknowledged = BTreeSet::new();
    for _ in 0..kills {
        acknowledged.extend(work_and_die(folder.path(), &chance));
    }
    assert!(acknowledged.len() > kills * 10, "the test must have something to lose: {}", acknowledged.len());

    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(finish_and_check(folder.path(), &acknowledged));
    no_ownership_worked_twice(folder.path());
    the_file_is_whole(folder.path());
}

async fn finish_and_check(folder: &Path, acknowledged: &BTreeSet<JobId>) {
    let tenure = Tenure::open(&url(folder)).await.unwrap();
    let waiting = tenure.clone();
    let all_done = async move {
        loop {
            let counts = waiting.counts().await.unwrap();
            let open = |count: &&tenure::Count| !matches!(count.state, StateName::Succeeded);
            if counts.iter().filter(open).map(|count| count.jobs).sum::<u64>() == 0 {
                return;
            }
            SystemClock.sleep(Duration::from_millis(50)).await;
        }
    };
    worker(&tenure, folder).run(all_done).await.unwrap();
    for id in acknowledged {
        let job = tenure.jobs().get(*id).await.unwrap();
        assert_eq!(job.state.name(SystemClock.now()), StateName::Succeeded, "{job:?}");
    }
    tenure.close().await.unwrap();
}

fn no_ownership_worked_twice(folder: &Path) {
    let log = std::fs::read_to_string(folder.join("effects.log")).unwrap();
    let mut times: BTreeMap<&str, u32> = BTreeMap::new();
    log.lines().for_each(|line| *times.entry(line).or_default() += 1);
    let twice: Vec<_> = times.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
}

fn the_file_is_whole(folder: &Path) {
    let file = rusqlite::Connection::open(folder.join("jobs.db")).unwrap();
    let verdict: String = file.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(verdict, "ok");
}
