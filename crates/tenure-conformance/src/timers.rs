//! What timers promise: each slot has one record and at most one job, whoever fires it, and however often.

mod firing;
mod setting;
mod views;
mod wishes;

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{
    Args, Fate, Name, NewTimer, Overlap, Policies, Priority, QueueName, Skipped, SlotRecord, Timer, TimerJob,
    Timestamp, limits,
};

use super::Test;
use super::given::{Given, kind, minutes};
use tenure_store::{Fired, Order, SlotsAsk, TimerAct, TimerOutcome, TimerSet};

pub(super) fn tests() -> Vec<Test> {
    [setting::tests(), firing::tests(), wishes::tests(), views::tests()].into_iter().flatten().collect()
}

pub(super) fn name(text: &str) -> Name {
    Name::new("timer", text).unwrap()
}

/// A timer whose jobs are ordinary ones of queue `mail`.
pub(super) fn timer(text: &str, schedule: &str, policies: Policies) -> NewTimer {
    NewTimer {
        name: name(text),
        schedule: schedule.parse().unwrap(),
        job: TimerJob {
            kind: kind("send"),
            queue: QueueName::new("mail").unwrap(),
            args: Args::new(*b"{\"to\":7}").unwrap(),
            priority: Priority::default(),
            terms: Arc::default(),
        },
        policies,
        revision: 0,
    }
}

fn overlapping(overlap: Overlap) -> Policies {
    Policies { overlap, ..Policies::default() }
}

impl Given {
    pub(super) async fn set(&self, timer: NewTimer) -> TimerSet {
        self.store.set_timers(vec![timer], None).await.unwrap()[0]
    }

    /// Sets a timer that fires at each full minute, on a clock that stands at one.
    pub(super) async fn each_minute(&self, policies: Policies) -> Timestamp {
        let into = self.now().as_micros().rem_euclid(60_000_000);
        self.pass(minutes(1) - Duration::from_micros(into.unsigned_abs()));
        assert_eq!(self.set(timer("a", "0 * * * * *", policies)).await, TimerSet::New);
        self.now()
    }

    pub(super) async fn fire(&self) -> Fired {
        self.store.fire(limits::FIRE_TIMERS).await.unwrap()
    }

    async fn the_timer(&self, text: &str) -> Timer {
        self.store.timer(&name(text)).await.unwrap().expect("the timer is there")
    }

    async fn act(&self, text: &str, act: TimerAct) -> TimerOutcome {
        self.store.change_timer(&name(text), act).await.unwrap()
    }

    /// Every record, the oldest slot first.
    pub(super) async fn records(&self) -> Vec<SlotRecord> {
        let ask = SlotsAsk { order: Order::OldestFirst, at_most: 1_000, ..SlotsAsk::default() };
        self.store.slots(ask).await.unwrap().slots
    }

    /// The minutes after an instant of which there are records, and what became of each.
    async fn told(&self, since: Timestamp) -> Vec<(u64, u64, &'static str)> {
        let minute = |slot: Timestamp| slot.since(since).as_secs() / 60;
        let told = |record: &SlotRecord| (minute(record.first), minute(record.last), word(&record.fate));
        self.records().await.iter().map(told).collect()
    }

    async fn finish_one(&self) {
        let reserved = self.take("mail").await;
        self.succeed(reserved).await;
    }
}

fn word(fate: &Fate) -> &'static str {
    match fate {
        Fate::Ran { .. } => "ran",
        Fate::Coalesced { .. } => "coalesced",
        Fate::Skipped { why: Skipped::Busy { .. } } => "busy",
        Fate::Skipped { why: Skipped::Missed } => "missed",
        Fate::Skipped { why: Skipped::TooMany } => "too many",
        Fate::Skipped { why: Skipped::TooLate } => "too late",
        Fate::Skipped { why: Skipped::Paused } => "paused",
        Fate::Skipped { why: Skipped::Edited } => "edited",
        Fate::Skipped { why: Skipped::IdTaken { .. } } => "id taken",
    }
}
