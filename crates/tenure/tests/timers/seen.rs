//! What the tests of timers share: a kind of jobs, and what its handler was told.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::{
    Failed, Fate, Job, Order, Origin, Run, Skipped, SlotRecord, SlotsAsk, Tenure, Timestamp, Worker,
};

use crate::common::{Rig, rigs_with_one_writer};

pub const SECOND: Duration = Duration::from_secs(1);
pub const MINUTE: Duration = Duration::from_secs(60);
pub const HOUR: Duration = Duration::from_secs(3_600);
pub const DAY: Duration = Duration::from_secs(86_400);

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Report {
    pub number: u64,
}

impl Job for Report {
    const KIND: &'static str = "report";
    type Output = ();
}

/// One run of a handler.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// Seconds after the beginning of 2026.
    pub slot: u64,
    pub origin: Origin,
    pub attempt: u32,
    /// When the handler began.
    pub began: u64,
    /// How late that was, and how late the job was enqueued.
    pub late: Duration,
    pub fired_late: Duration,
    /// Whether the run is past due, and whether the job was when it was enqueued.
    pub run_past_due: bool,
    pub past_due: bool,
    pub number: u64,
    pub host: &'static str,
}

/// What all handlers of a test have seen, and what they do.
#[derive(Clone, Default)]
pub struct Seen {
    told: Arc<Mutex<Vec<Told>>>,
    takes: Arc<Mutex<Duration>>,
    host: &'static str,
}

impl Seen {
    /// Handlers that take so long.
    pub fn taking(span: Duration) -> Self {
        Self { takes: Arc::new(Mutex::new(span)), ..Self::default() }
    }

    /// The same on another host.
    pub fn on(&self, host: &'static str) -> Self {
        Self { host, ..self.clone() }
    }

    pub fn told(&self) -> Vec<Told> {
        self.told.lock().unwrap().clone()
    }

    pub fn slots(&self) -> Vec<u64> {
        self.told().iter().map(|told| told.slot).collect()
    }
}

pub async fn report(run: Run<Seen>, job: Report) -> Result<(), Failed> {
    let slot = run.slot().expect("a job of a timer");
    let told = Told {
        slot: seconds_of(slot.at),
        origin: slot.origin,
        attempt: run.attempt(),
        began: seconds_of(run.tenure().now()),
        late: run.lateness().expect("a job of a timer"),
        fired_late: slot.lateness(),
        run_past_due: run.is_past_due(),
        past_due: slot.past_due,
        number: job.number,
        host: run.app().host,
    };
    run.app().told.lock().unwrap().push(told);
    let takes = *run.app().takes.lock().unwrap();
    if !takes.is_zero() {
        run.sleep(takes).await?;
    }
    Ok(())
}

/// A worker that handles reports.
pub fn reporting(worker: Worker<Seen>) -> Worker<Seen> {
    worker.queue("default", 10).job(report)
}

/// The stores on which all is asked that needs no worker.
pub fn stores() -> Vec<Rig> {
    rigs_with_one_writer()
}

pub fn begin() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

pub fn second(seconds: u64) -> Timestamp {
    begin().after(Duration::from_secs(seconds))
}

pub fn seconds_of(at: Timestamp) -> u64 {
    at.since(begin()).as_secs()
}

/// What became of all slots: the first and the last in seconds, and a word.
pub async fn records(tenure: &Tenure) -> Vec<(u64, u64, &'static str)> {
    let ask = SlotsAsk { order: Order::OldestFirst, at_most: 1_000, ..SlotsAsk::default() };
    let mut page = tenure.timers().slots(ask.clone()).await.unwrap();
    let mut all = page.slots;
    while let Some(behind) = page.next.take() {
        page = tenure.timers().slots(SlotsAsk { behind: Some(behind), ..ask.clone() }).await.unwrap();
        all.append(&mut page.slots);
    }
    all.iter().map(|record| (seconds_of(record.first), seconds_of(record.last), word(record))).collect()
}

fn word(record: &SlotRecord) -> &'static str {
    match &record.fate {
        Fate::Ran { .. } => "ran",
        Fate::Coalesced { .. } => "coalesced",
        Fate::Skipped { why } => match why {
            Skipped::Busy { .. } => "busy",
            Skipped::Missed => "missed",
            Skipped::TooMany => "too many",
            Skipped::TooLate => "too late",
            Skipped::Paused => "paused",
            Skipped::Edited => "edited",
            Skipped::IdTaken { .. } => "id taken",
        },
    }
}

/// Every second from one until another has one record, and it ran.
pub fn all_ran(from: u64, to: u64) -> Vec<(u64, u64, &'static str)> {
    (from..=to).map(|slot| (slot, slot, "ran")).collect()
}
