//! Three real processes fire ten timers of every second in one file, and are killed (-9) at random and started again:
//! one of them, two, or all at once.
//!
//! In the end every slot has one record, every slot that ran has one job, which has ended, and nobody did the work of
//! one ownership twice. No slot waited longer for its decision than a lease and two seconds, counted from its instant
//! or, while no host was alive, from the start of the next one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenure::when::every;
use tenure::{
    CatchUp, Chance, Clock, Failed, JobId, Name, Order, Overlap, Run, SlotRecord, SlotsAsk, StateName,
    SystemClock, Tenure, Timer, TimerDraft, Timestamp, Worker,
};

use crate::timers::seen::{Report, SECOND};

const FOLDER: &str = "TENURE_TIMER_TEST_FOLDER";
const TIMERS: u64 = 10;
const HOSTS: usize = 3;
const LEASE: Duration = Duration::from_secs(1);
/// The longest that a slot may wait for its decision while a host is alive, on a machine that does other things as well.
const RECOVERY: Duration = Duration::from_secs(10);

struct Marks {
    log: Mutex<File>,
}

/// One line an ownership, written at its end in one write.
async fn report(run: Run<Arc<Marks>>, report: Report) -> Result<(), Failed> {
    // Most are quick; some take longer than it is to the next slot.
    let second = run.slot().unwrap().at.as_millis().unsigned_abs() / 1_000;
    let takes = [20, 60, 100, 140, 1_200][usize::try_from((second + report.number / 2) % 5).unwrap()];
    run.sleep(Duration::from_millis(takes)).await?;
    let line = format!("{} {} {}\n", run.id(), run.fence(), report.number);
    run.app().log.lock().unwrap().write_all(line.as_bytes())?;
    Ok(())
}

fn name(number: u64) -> String {
    format!("timer-{number}")
}

/// Timers of all kinds of agreements.
fn timer(number: u64) -> TimerDraft {
    let timer = TimerDraft::new(&name(number), every(SECOND), &Report { number });
    match number % 5 {
        0 => timer,
        1 => timer.overlap(Overlap::QueueAll).catch_up(CatchUp::All { most: 100 }),
        2 => timer.overlap(Overlap::Allow { most: 4 }).catch_up(CatchUp::All { most: 4 }),
        3 => timer.overlap(Overlap::QueueOne).max_lateness(SECOND * 2),
        _ => timer.overlap(Overlap::CancelPrevious).catch_up(CatchUp::Skip),
    }
}

fn worker(tenure: &Tenure, folder: &Path) -> Worker<Arc<Marks>> {
    let log = OpenOptions::new().create(true).append(true).open(folder.join("marks.log")).unwrap();
    let marks = Arc::new(Marks { log: Mutex::new(log) });
    let worker = Worker::new(tenure, marks).queue("default", 16).lease(LEASE).job(report);
    (0..TIMERS).fold(worker, |worker, number| worker.timer_with(timer(number)))
}

fn url(folder: &Path) -> String {
    format!("sqlite://{}", folder.join("jobs.db").display())
}

/// Not a test of its own: what the killed process runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_host_that_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let tenure = Tenure::open(&url(&folder)).await.unwrap();
    worker(&tenure, &folder).run(std::future::pending::<()>()).await.unwrap();
}

/// The processes, and what happened to them.
struct Hosts {
    folder: PathBuf,
    alive: Vec<Child>,
    kills: u64,
    /// From when until when no host was there.
    nobody: Vec<(Timestamp, Timestamp)>,
}

impl Hosts {
    fn start(&mut self) {
        if self.alive.is_empty()
            && let Some((_, until)) = self.nobody.last_mut()
        {
            *until = SystemClock.now();
        }
        while self.alive.len() < HOSTS {
            let child = Command::new(std::env::current_exe().unwrap())
                .args([
                    "--exact",
                    "timers::killed::the_host_that_is_killed",
                    "--nocapture",
                    "--test-threads=1",
                ])
                .env(FOLDER, &self.folder)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn();
            self.alive.push(child.unwrap());
        }
    }

    fn kill(&mut self, victims: usize, chance: &Chance) {
        let since = SystemClock.now();
        for _ in 0..victims {
            let place = usize::try_from(chance.below(self.alive.len() as u64)).unwrap();
            let mut child = self.alive.swap_remove(place);
            assert_eq!(child.try_wait().unwrap(), None, "a host has ended by itself");
            child.kill().unwrap();
            child.wait().unwrap();
            self.kills += 1;
        }
        if self.alive.is_empty() {
            self.nobody.push((since, Timestamp::LAST));
        }
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for child in &mut self.alive {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

async fn pause(chance: &Chance, from: u64, to: u64) {
    SystemClock.sleep(Duration::from_millis(from + chance.below(to - from))).await;
}

/// Kills hosts for so long; answers what happened to them.
async fn disturb(folder: &Path, span: Duration, chance: &Chance) -> Hosts {
    let mut hosts = Hosts { folder: folder.to_owned(), alive: Vec::new(), kills: 0, nobody: Vec::new() };
    let end = SystemClock.now().after(span);
    hosts.start();
    while SystemClock.now() < end {
        // Most are killed at work, some while they start.
        pause(chance, 300, 1_500).await;
        let victims = [1, 1, 1, 2, HOSTS][usize::try_from(chance.below(5)).unwrap()];
        hosts.kill(victims, chance);
        // Now and then for long enough that slots are missed.
        let longest = if hosts.alive.is_empty() { 3_000 } else { 600 };
        pause(chance, 1, longest).await;
        hosts.start();
    }
    hosts
}

fn is_final(state: StateName) -> bool {
    matches!(state, StateName::Succeeded | StateName::Failed | StateName::Cancelled)
}

/// Decides the last slots and ends all jobs.
async fn finish(tenure: &Tenure, folder: &Path) {
    for number in 0..TIMERS {
        tenure.timers().pause(&name(number), "the test is over").await.unwrap();
    }
    let all_done = async {
        for _ in 0..1_200 {
            let open = |count: &tenure::Count| !is_final(count.state);
            if !tenure.counts().await.unwrap().iter().any(|count| open(count) && count.jobs > 0) {
                return;
            }
            SystemClock.sleep(Duration::from_millis(50)).await;
        }
        panic!("jobs do not end");
    };
    worker(tenure, folder).run(all_done).await.unwrap();
}

async fn records_of(tenure: &Tenure, number: u64) -> Vec<SlotRecord> {
    let timer = Some(Name::new("timer", &name(number)).unwrap());
    let mut ask = SlotsAsk { timer, order: Order::OldestFirst, at_most: 500, ..SlotsAsk::default() };
    let mut records = Vec::new();
    loop {
        let page = tenure.timers().slots(ask.clone()).await.unwrap();
        records.extend(page.slots);
        match page.next {
            Some(next) => ask.behind = Some(next),
            None => return records,
        }
    }
}

/// What the records of one timer come to.
#[derive(Debug, Default)]
struct Tally {
    slots: u64,
    ran: BTreeSet<JobId>,
    /// How long slots waited for their decision while somebody was there to take it, the longest last.
    waited: Vec<Duration>,
}

impl Tally {
    /// Every second from the first to the last has one record.
    fn of(records: &[SlotRecord], timer: &Timer, nobody: &[(Timestamp, Timestamp)]) -> Self {
        let (from, until) = (timer.created, timer.paused.as_ref().unwrap().since);
        let mut tally = Self::default();
        let second = |at: Timestamp| at.as_micros() / 1_000_000;
        let mut next = second(from) + 1;
        for record in records {
            assert_eq!(second(record.first), next, "a slot is missing or there twice: {record:?}");
            let slots = u64::try_from(second(record.last) - next + 1).unwrap();
            assert_eq!(record.count, Some(slots), "{record:?}");
            next = second(record.last) + 1;
            tally.slots += slots;
            if let Some(job) = record.job() {
                assert!(tally.ran.insert(job), "two slots have one job: {record:?}");
            }
            tally.waited.push(record.at.since(waits_from(record, nobody)));
        }
        assert!(next > second(until), "slots are missing from {next} until {until}");
        tally.waited.sort_unstable();
        tally
    }
}

/// From when on somebody could have decided a slot: from its instant, or from when there was a host again.
fn waits_from(record: &SlotRecord, nobody: &[(Timestamp, Timestamp)]) -> Timestamp {
    nobody.iter().fold(record.first, |from, (since, until)| {
        let was_open = *since < record.at && from < *until;
        // Who should have decided it before all were killed is not excused by that.
        if was_open && *since < from.after(RECOVERY) { *until } else { from }
    })
}

/// Ownerships that ended in the handler: job and fence, each once.
fn marks(folder: &Path) -> BTreeMap<JobId, BTreeSet<String>> {
    let log = std::fs::read_to_string(folder.join("marks.log")).unwrap();
    let mut marks: BTreeMap<JobId, BTreeSet<String>> = BTreeMap::new();
    for line in log.lines() {
        let (job, fence) = line.split_once(' ').unwrap();
        assert!(marks.entry(job.parse().unwrap()).or_default().insert(fence.to_owned()), "twice: {line}");
    }
    marks
}

async fn each_slot_has_one_record_and_one_job_that_ended(span: Duration, seed: u64) {
    let folder = tempfile::tempdir().unwrap();
    let hosts = disturb(folder.path(), span, &Chance::seeded(seed)).await;
    let (kills, nobody) = (hosts.kills, hosts.nobody.clone());
    let tenure = Tenure::open(&url(folder.path())).await.unwrap();
    finish(&tenure, folder.path()).await;
    drop(hosts);

    let (mut slots, mut waited, mut ran) = (0, Vec::new(), BTreeSet::new());
    for number in 0..TIMERS {
        let timer = tenure.timers().get(&name(number)).await.unwrap();
        let tally = Tally::of(&records_of(&tenure, number).await, &timer, &nobody);
        slots += tally.slots;
        waited.extend(tally.waited);
        ran.extend(tally.ran);
    }
    let marks = marks(folder.path());
    let (mut succeeded, mut again) = (0, 0);
    for job in &ran {
        let record = tenure.jobs().get(*job).await.unwrap();
        let state = record.state.name(tenure.now());
        assert!(is_final(state), "{record:?}");
        again += u64::from(record.attempt > 1);
        if state == StateName::Succeeded {
            succeeded += 1;
            assert!(marks.contains_key(job), "it did nothing: {record:?}");
        }
    }
    let jobs: u64 = tenure.counts().await.unwrap().iter().map(|count| count.jobs).sum();
    assert_eq!(jobs, ran.len() as u64, "each job is of a slot that ran");
    assert!(marks.keys().all(|job| ran.contains(job)), "somebody did the work of no slot");

    waited.sort_unstable();
    let worst = *waited.last().unwrap();
    println!(
        "{kills} kills, {} times nobody was left; {slots} slots, {} ran ({succeeded} succeeded, {again} begun \
         again); waited for a decision: median {:?}, p99 {:?}, longest {worst:?}",
        nobody.len(),
        ran.len(),
        waited[waited.len() / 2],
        waited[waited.len() * 99 / 100],
    );
    assert!(worst <= RECOVERY, "a slot waited for {worst:?}");
    assert!(kills >= span.as_secs() / 2 && !nobody.is_empty(), "hardly anybody was killed: {kills}");
    assert!(again > 0, "nobody was killed at work");
    assert!((ran.len() as u64) < slots, "no slot was missed, and none met a job that still ran");
}

/// T053, T061, T062: with real processes.
#[tokio::test(flavor = "multi_thread")]
async fn hosts_that_are_killed_lose_and_double_no_slot() {
    each_slot_has_one_record_and_one_job_that_ended(SECOND * 18, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it takes five minutes"]
async fn hosts_that_are_killed_for_five_minutes_lose_and_double_no_slot() {
    each_slot_has_one_record_and_one_job_that_ended(SECOND * 300, 2).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it takes an hour"]
async fn hosts_that_are_killed_for_an_hour_lose_and_double_no_slot() {
    each_slot_has_one_record_and_one_job_that_ended(SECOND * 3_600, 3).await;
}
