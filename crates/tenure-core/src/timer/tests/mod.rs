//! What timers do, told in slots: when they are late, when jobs run long, when somebody changes them.

mod clocks;
mod edits;
mod jitters;
mod overlaps;
mod waits;
mod wishes;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::schedule::{Bounds, Calendar, Jitter, Steps};

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// An instant of the first of January.
fn on(time: &str) -> Timestamp {
    at(&format!("2026-01-01T{time}Z"))
}

pub(super) fn new(schedule: &str, policies: Policies) -> NewTimer {
    NewTimer {
        name: Name::new("timer", "nightly").unwrap(),
        schedule: schedule.parse().unwrap(),
        job: TimerJob {
            kind: Kind::new("report").unwrap(),
            queue: QueueName::default(),
            args: Args::new(*b"{}").unwrap(),
            priority: Priority::default(),
            terms: Arc::default(),
        },
        policies,
        revision: 0,
    }
}

/// A timer, its jobs as a store has them, and the records of its slots.
struct Rig {
    timer: Timer,
    unfinished: Vec<JobId>,
    ended: BTreeMap<JobId, Timestamp>,
    records: Vec<SlotRecord>,
    cancelled: Vec<JobId>,
}

impl Rig {
    fn with(schedule: &str, policies: Policies, now: Timestamp) -> Self {
        let timer = Timer::accepted(new(schedule, policies), now);
        let (unfinished, ended) = (Vec::new(), BTreeMap::new());
        Self { timer, unfinished, ended, records: Vec::new(), cancelled: Vec::new() }
    }

    fn every_minute(policies: Policies) -> Self {
        Self::with("0 * * * * *", policies, on("00:00:00"))
    }

    /// What a store tells: of the jobs that the row names, and of no others.
    fn open(&self) -> Open {
        let named = || self.timer.open.iter();
        Open {
            unfinished: named().filter(|id| self.unfinished.contains(id)).copied().collect(),
            ended: named().filter_map(|id| self.ended.get(id)).max().copied(),
        }
    }

    /// Writes what was decided; answers how many jobs that brought.
    fn take(&mut self, firing: Firing) -> usize {
        let brought = firing.jobs.len();
        self.unfinished.extend(firing.jobs.iter().map(|job| job.id));
        self.cancelled.extend(firing.cancel);
        self.records.extend(firing.records);
        self.timer = firing.timer;
        assert_eq!(self.timer.open, self.unfinished);
        brought
    }

    fn fire(&mut self, now: Timestamp) -> usize {
        self.take(fire(&self.timer, &self.open(), now))
    }

    fn end_first(&mut self, now: Timestamp) {
        let first = self.unfinished.remove(0);
        self.ended.insert(first, now);
    }

    fn end_all(&mut self, now: Timestamp) {
        while !self.unfinished.is_empty() {
            self.end_first(now);
        }
    }

    /// The slots and what became of them, such as `00:01 ran`.
    fn told(&self) -> Vec<String> {
        let time = |at: Timestamp| at.to_string()[11..19].to_owned();
        let fate = |record: &SlotRecord| match &record.fate {
            Fate::Ran { .. } => "ran".to_owned(),
            Fate::Coalesced { into } => {
                assert!(self.records.iter().any(|other| other.first == *into && other.job().is_some()));
                "coalesced".to_owned()
            }
            Fate::Skipped { why: Skipped::Busy { .. } } => "busy".to_owned(),
            Fate::Skipped { why } => format!("{why:?}").to_lowercase(),
        };
        let row = |record: &SlotRecord| {
            let until =
                if record.first == record.last { String::new() } else { format!("-{}", time(record.last)) };
            format!("{}{until} {}", time(record.first), fate(record))
        };
        self.records.iter().map(row).collect()
    }
}

#[test]
fn a_slot_has_one_job_and_one_record_however_often_somebody_looks() {
    let mut rig = Rig::every_minute(Policies::default());
    assert_eq!(rig.fire(on("00:00:59.999999")), 0);
    assert_eq!(rig.fire(on("00:01:00")), 1);
    rig.end_all(on("00:01:01"));
    assert_eq!(rig.fire(on("00:01:02")), 0);
    assert_eq!(rig.timer.next, Some(on("00:02:00")));
    assert_eq!(rig.told(), ["00:01:00 ran"]);
}

#[test]
fn a_job_that_has_ended_is_no_reason_though_nobody_has_decided_a_slot_since() {
    let mut rig = Rig::with("0 0 * * * *", Policies::default(), on("00:00:00"));
    rig.fire(on("01:00:00"));
    let job = rig.unfinished[0];
    let told = |rig: &Rig| explain_timer(&rig.timer, &rig.open(), on("01:30:00"));
    let next = TimerReason::NotYet { slot: on("02:00:00"), wake: on("02:00:00") };
    assert_eq!(told(&rig), [next.clone(), TimerReason::Open { job, jobs: 1 }]);
    rig.end_all(on("01:00:01"));
    assert_eq!((told(&rig), &rig.timer.open), (vec![next], &vec![job]));
}

/// However often somebody has asked for a job since.
#[test]
fn a_timer_keeps_why_its_last_slot_was_skipped_until_one_is_not() {
    let mut rig = Rig::every_minute(Policies::default());
    rig.fire(on("00:01:00"));
    let job = rig.unfinished[0];
    rig.fire(on("00:02:00"));
    rig.end_all(on("00:02:01"));
    let id = JobId::new(on("00:02:02"), 1);
    rig.take(trigger(&rig.timer, &rig.open(), id, None, on("00:02:02")).unwrap());
    let why = Skipped::Busy { job };
    let reason = TimerReason::LastSkipped { slot: on("00:02:00"), why: why.clone() };
    assert!(explain_timer(&rig.timer, &rig.open(), on("00:02:03")).contains(&reason));
    rig.end_all(on("00:02:04"));
    rig.fire(on("00:03:00"));
    assert!(!explain_timer(&rig.timer, &rig.open(), on("00:03:01")).contains(&reason));
    assert_eq!(rig.timer.last_skip, Some((on("00:02:00"), why)));
}

#[test]
fn a_schedule_that_waits_for_years_costs_one_answer() {
    let each_second = Policies {
        catch_up: CatchUp::All { most: 1_000 },
        overlap: Overlap::QueueAll,
        ..Policies::default()
    };
    let mut rig = Rig::with("* * * * * *", each_second, at("2026-01-01T00:00:00Z"));
    assert_eq!(rig.fire(at("2036-01-01T00:00:00Z")), 1_000);
    assert_eq!(rig.records[0].count, None);
    assert_eq!(rig.timer.next, Some(at("2036-01-01T00:00:01Z")));
}

#[test]
fn the_jobs_of_a_timer_take_no_terms_that_its_slots_decide() {
    let field = |terms: Terms, overlap| {
        let mut timer = new("0 * * * * *", Policies { overlap, ..Policies::default() });
        timer.job.terms = Arc::new(terms);
        timer.check().map_err(|invalid| invalid.field)
    };
    let ordering = Some(OrderingKey { key: Key::new("ordering_key", "a").unwrap(), head: Head::Block });
    let ordered = Terms { ordering, ..Terms::default() };
    assert_eq!(field(ordered.clone(), Overlap::Skip), Err("job.ordering_key".to_owned()));
    assert_eq!(field(ordered, Overlap::Allow { most: 1 }), Ok(()));
    assert_eq!(field(Terms::default(), Overlap::QueueAll), Ok(()));
    let limit = Some(LimitKey { key: Key::new("limit_key", "smtp").unwrap(), most: Some(50) });
    let limited = Terms { limit, ..Terms::default() };
    assert_eq!(field(limited.clone(), Overlap::Allow { most: 2 }), Err("job.limit_key".to_owned()));
    assert_eq!(field(limited, Overlap::Skip), Ok(()));
}
