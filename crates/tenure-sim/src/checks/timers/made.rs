//! Timers and slots made by hand, for the tests of the checkers.

use std::sync::Arc;

use tenure_core::{
    Args, Fate, JobId, Kind, Name, NewTimer, Origin, Overlap, Pause, Policies, Priority, QueueName, Skipped,
    SlotRecord, Terms, Timer, TimerJob, TimerSlot,
};
use tenure_store::{TimerAct, TimerOutcome, TimerSet};

use super::super::made::{H0, at, row, second, waiting};
use crate::history::{Entry, Row, SlotSeen, Timed, TimerDoing, What};

pub(super) fn name() -> Name {
    Name::new("timer", "heartbeat").unwrap()
}

/// A timer of every so many seconds.
pub(super) fn with_every(secs: u64) -> NewTimer {
    let job = TimerJob {
        kind: Kind::new("tick").unwrap(),
        queue: QueueName::default(),
        args: Args::new(b"{}".to_vec()).unwrap(),
        priority: Priority::default(),
        terms: Arc::default(),
    };
    let schedule = format!("every {secs}s").parse().unwrap();
    let policies = Policies { overlap: Overlap::QueueAll, ..Policies::default() };
    NewTimer { name: name(), schedule, job, policies, revision: 0 }
}

/// The timer as a store has it.
pub(super) fn timer(new: NewTimer, paused: bool) -> Timer {
    let mut timer = Timer::accepted(new, second(0));
    timer.paused = paused.then(|| Pause { since: second(0), reason: String::new() });
    timer
}

pub(super) fn timed(secs: u64, doing: TimerDoing, slots: Vec<SlotSeen>) -> Entry {
    at(secs, H0, What::Timed(Timed { doing, slots }))
}

pub(super) fn sets(secs: u64, new: NewTimer, set: TimerSet) -> Entry {
    timed(secs, TimerDoing::Sets { timers: vec![(Arc::new(new), set)], starts: false }, Vec::new())
}

pub(super) fn fires(secs: u64, slots: impl Into<Vec<SlotSeen>>) -> Entry {
    timed(secs, TimerDoing::Fires, slots.into())
}

pub(super) fn done(secs: u64, act: TimerAct) -> Entry {
    timed(secs, TimerDoing::Changes { name: name(), act, outcome: TimerOutcome::Done }, Vec::new())
}

pub(super) fn looks(secs: u64, timers: Vec<Timer>) -> Entry {
    timed(secs, TimerDoing::Looks { timers }, Vec::new())
}

pub(super) fn record(slot: u64, fate: Fate, at: u64) -> SlotRecord {
    SlotRecord::of_one(&name(), second(slot), Origin::Schedule, fate, second(at))
}

pub(super) fn id_of(slot: u64) -> JobId {
    JobId::of_slot(&name(), second(slot), Origin::Schedule)
}

/// The slot of this second got its job at that second.
pub(super) fn ran(slot: u64, at: u64) -> SlotSeen {
    let record = record(slot, Fate::Ran { job: id_of(slot) }, at);
    SlotSeen { record, job: Some(job(slot, at)), unfinished: Vec::new() }
}

/// The job of a slot; its place is the second of the slot.
pub(super) fn job(slot: u64, at: u64) -> Row {
    let (timer, fired) = (name(), second(at));
    let of = TimerSlot { timer, at: second(slot), fired, origin: Origin::Schedule, past_due: false };
    let terms = Terms { slot: Some(of), ..Terms::default() };
    Row { id: id_of(slot), terms: Arc::new(terms), ..row(slot, waiting()) }
}

pub(super) fn skipped((first, last): (u64, u64), count: u64, why: Skipped, at: u64) -> SlotSeen {
    let record = record(last, Fate::Skipped { why }, at);
    let record = SlotRecord { first: second(first), count: Some(count), ..record };
    SlotSeen { record, job: None, unfinished: Vec::new() }
}
