//! What went through this program since it started.

use std::collections::BTreeMap;

use tenure_core::{
    Cause, Fate, Job, Kind, Name, Origin, QueueName, Settlement, Skipped, SlotRecord, State, StateName,
    Timestamp,
};
use tenure_store::{Histogram, Settled};

use super::heap::Ended;

/// Queues and kinds, and timers, that are told apart at most; what comes beyond that is counted together.
const MOST: usize = 1_000;

/// Counters of this process since it started. Beyond 1,000 combinations of queue and kind, or 1,000 timers, the rest
/// is counted together.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Totals {
    /// Counters by queue and kind.
    pub jobs: BTreeMap<QueueName, BTreeMap<Kind, JobTotals>>,
    /// Counters of all other combinations.
    pub other_jobs: JobTotals,
    /// Runs decided by this process, by timer and outcome.
    pub slots: BTreeMap<Name, BTreeMap<&'static str, u64>>,
    /// Those of all other timers.
    pub other_slots: BTreeMap<&'static str, u64>,
    /// Delay between a scheduled run and its enqueue by this process, in seconds.
    pub lateness: Histogram,
    /// Leases of remote holders that were reported as lost when they were renewed through this process.
    pub leases_lost: u64,
    /// How many are told apart.
    kinds: usize,
}

/// Counters of one kind in one queue.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct JobTotals {
    /// Jobs enqueued through this process, also within transactions that were rolled back later.
    pub enqueued: u64,
    /// Wait between due time and grant through this process, in seconds.
    pub waited: Histogram,
    /// Run time of attempts that ended through this process, in seconds, by outcome: `succeeded`, `retried`,
    /// `failed`, `cancelled`, `released`, `timed_out` or `lease_lost`.
    pub ran: BTreeMap<&'static str, Histogram>,
}

impl JobTotals {
    /// Adds other counters.
    pub fn add_all(&mut self, other: &Self) {
        self.enqueued += other.enqueued;
        self.waited.add_all(&other.waited);
        for (outcome, took) in &other.ran {
            self.ran.entry(outcome).or_default().add_all(took);
        }
    }
}

impl Totals {
    pub(super) fn of(&mut self, queue: &QueueName, kind: &Kind) -> &mut JobTotals {
        let is_known = self.jobs.get(queue).is_some_and(|kinds| kinds.contains_key(kind));
        if !is_known {
            if self.kinds >= MOST {
                return &mut self.other_jobs;
            }
            self.kinds += 1;
        }
        self.jobs.entry(queue.clone()).or_default().entry(kind.clone()).or_default()
    }

    /// Jobs of one kind and queue were granted.
    pub(super) fn granted(&mut self, alike: &[&Job]) {
        let waited = |job: &&Job| match (job.started, &job.state) {
            (Some(started), State::Running { due, .. }) => Some(started.since((*due).max(job.created))),
            _ => None,
        };
        let mut waited = alike.iter().filter_map(waited).peekable();
        let Some(first) = alike.first().filter(|_| waited.peek().is_some()) else { return };
        let totals = self.of(&first.queue, &first.kind);
        waited.for_each(|waited| totals.waited.add_span(waited));
    }

    /// Ends of attempts at jobs of one kind and queue were written, or refused.
    pub(super) fn settled(&mut self, alike: &[Ended<'_>], now: Timestamp) {
        let ended = |(job, settlement, settled): &Ended<'_>| {
            let took = job.started.map(|started| now.since(started)).unwrap_or_default();
            outcome(settlement, *settled).map(|outcome| (outcome, took))
        };
        let mut ended = alike.iter().filter_map(ended).peekable();
        let Some((first, ..)) = alike.first().filter(|_| ended.peek().is_some()) else { return };
        let totals = self.of(&first.queue, &first.kind);
        ended.for_each(|(outcome, took)| totals.ran.entry(outcome).or_default().add_span(took));
    }

    pub(super) fn fired(&mut self, record: &SlotRecord) {
        let is_known = self.slots.contains_key(&record.timer) || self.slots.len() < MOST;
        let fates = match is_known {
            true => self.slots.entry(record.timer.clone()).or_default(),
            false => &mut self.other_slots,
        };
        *fates.entry(word_of(&record.fate)).or_default() += record.count.unwrap_or(1);
        if record.job().is_some() && record.origin == Origin::Schedule {
            self.lateness.add_span(record.at.since(record.last));
        }
    }
}

/// How an attempt ended in a word; `None` if that was counted before, or nobody knows of the job any more.
fn outcome(settlement: &Settlement, settled: Settled) -> Option<&'static str> {
    let state = match settled {
        Settled::Done(state) => state,
        Settled::Fenced => return Some("lease_lost"),
        Settled::Repeated | Settled::Gone => return None,
    };
    let cause = settlement.failure().map(|failure| failure.cause);
    Some(match (state, cause) {
        (StateName::Succeeded, _) => "succeeded",
        (StateName::Cancelled, _) => "cancelled",
        (_, Some(Cause::TimedOut)) => "timed_out",
        (StateName::Failed, _) => "failed",
        (StateName::Scheduled | StateName::Queued | StateName::Blocked | StateName::Running, Some(_)) => {
            "retried"
        }
        (StateName::Scheduled | StateName::Queued | StateName::Blocked | StateName::Running, None) => {
            "released"
        }
    })
}

/// What became of a slot, in a word.
fn word_of(fate: &Fate) -> &'static str {
    match fate {
        Fate::Ran { .. } => "ran",
        Fate::Coalesced { .. } => "coalesced",
        Fate::Skipped { why } => match why {
            Skipped::Busy { .. } => "busy",
            Skipped::Missed => "missed",
            Skipped::TooMany => "too_many",
            Skipped::TooLate => "too_late",
            Skipped::Paused => "paused",
            Skipped::Edited => "edited",
            Skipped::IdTaken { .. } => "id_taken",
        },
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn more_kinds_than_are_told_apart_are_counted_together() {
        let mut totals = Totals::default();
        let queue = QueueName::default();
        let kind = |number: u32| Kind::new(&format!("kind-{number}")).unwrap();
        (0..3_000).for_each(|number| totals.of(&queue, &kind(number)).enqueued += 1);
        totals.of(&queue, &kind(7)).enqueued += 1;
        assert_eq!((totals.jobs[&queue].len(), totals.other_jobs.enqueued), (MOST, 2_000));
        assert_eq!(totals.jobs[&queue][&kind(7)].enqueued, 2);
    }

    #[test]
    fn more_timers_than_are_told_apart_are_counted_together_and_late_is_counted_from_the_slot() {
        let mut totals = Totals::default();
        let slot = Timestamp::EPOCH;
        for number in 0..1_200 {
            let timer = Name::new("timer", &format!("t{number}")).unwrap();
            let why = Skipped::Missed;
            let at = slot.after(Duration::from_secs(90));
            totals.fired(&SlotRecord::of_one(&timer, slot, Origin::Schedule, Fate::Skipped { why }, at));
            let ran = Fate::Ran { job: tenure_core::JobId::from_bytes([1; 16]) };
            totals.fired(&SlotRecord::of_one(&timer, slot, Origin::Schedule, ran.clone(), at));
            totals.fired(&SlotRecord::of_one(&timer, slot, Origin::Backfill, ran, at));
        }
        let other = BTreeMap::from([("missed", 200), ("ran", 400)]);
        assert_eq!((totals.slots.len(), totals.other_slots), (MOST, other));
        assert_eq!((totals.lateness.count(), totals.lateness.sum()), (1_200, 90.0 * 1_200.0));
    }
}
