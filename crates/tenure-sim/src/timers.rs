//! The timers that the hosts of a cluster declare, in the versions of their program.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::when::{When, cron, delay, every};
use tenure::{
    Backoff, CatchUp, Failed, Job, Keep, OnEdit, Overlap, Retention, RetryPolicy, Run, TimerDraft, Worker,
};
use tenure_store::Chance;

use crate::asks::{How, Script};
use crate::handlers::{App, play};
use crate::plan::{Plan, stream};

/// Streams of chance for the timers of a seed and for the jobs that they bring.
const STREAM: u64 = 50_000;
const SLOT_STREAM: u64 = 60_000;
/// A timer that nobody declares, and that people set and remove.
pub(crate) const LOOSE: &str = "loose";

/// Which timers there are.
#[derive(Debug, Clone)]
pub(crate) struct TimerPlan {
    /// How many the program declares.
    pub(crate) declared: u64,
    /// Whether the program says its version. If not, whoever starts last has its way.
    pub(crate) says_revision: bool,
    /// Whether hosts of another version come in while the old ones run.
    pub(crate) deploys: bool,
    /// Whether people change timers while they fire.
    pub(crate) people: bool,
    /// When the store is out of reach for ten minutes, if it is.
    pub(crate) long_outage: Option<Duration>,
}

impl TimerPlan {
    /// A part of the seeds have timers: each of their jobs costs as much as one that a client asks for.
    pub(crate) fn draw(seed: u64) -> Option<Self> {
        let chance = Chance::seeded(stream(seed, 11));
        let has_timers = chance.below(4) == 0;
        let some = || chance.below(2) == 0;
        let plan = Self {
            declared: 2 + chance.below(3),
            says_revision: chance.below(3) > 0,
            deploys: some(),
            people: chance.below(3) > 0,
            long_outage: (chance.below(12) == 0).then(|| Duration::from_secs(15 + chance.below(20))),
        };
        has_timers.then_some(plan)
    }

    /// Of which version a host is in one of its lives.
    pub(crate) fn version(&self, number: usize, life: u32) -> u64 {
        if self.deploys { (number as u64 + u64::from(life)) % 3 } else { 0 }
    }

    pub(crate) fn name(number: u64) -> String {
        format!("timer-{number}")
    }

    /// What this version of the program wants of a timer.
    pub(crate) fn draft(&self, seed: u64, plan: &Plan, name: &str, version: u64) -> TimerDraft {
        let part = name.bytes().fold(STREAM, |sum, byte| sum * 31 + u64::from(byte));
        // Not every version changes every timer.
        let is_changed = Chance::seeded(stream(seed, part + version)).below(3) > 0;
        let chance = Chance::seeded(stream(seed, part + if is_changed { 1_000 + version } else { 0 }));
        let (when, waits) = when(&chance);
        let draft = TimerDraft::new(name, when, &Tick {}).runs_elsewhere();
        // A wait after each run has no slots that policies could mean.
        let draft = if waits { draft } else { agreed(draft, &chance) };
        let queue = &plan.queues[usize::try_from(chance.below(plan.queues.len() as u64)).unwrap_or(0)].name;
        let queue = if queue == crate::plan::SHARED { &plan.queues[0].name } else { queue };
        let retry = RetryPolicy {
            backoff: Backoff::Fixed(Duration::from_millis(chance.below(4_000))),
            max_attempts: u32::try_from(1 + chance.below(4)).unwrap_or(1),
            max_deliveries: 10_000,
        };
        let retain = Retention { succeeded: Keep::For(Duration::from_secs(10)), failed: Keep::Forever };
        draft.job(|job| job.queue(queue).retry(retry).retain(retain)).revision(if self.says_revision {
            version
        } else {
            0
        })
    }
}

/// When a timer fires, and whether it waits after each run.
fn when(chance: &Chance) -> (When, bool) {
    let secs = |low: u64, high: u64| Duration::from_secs(low + chance.below(high - low + 1));
    let when = match chance.below(8) {
        0 => every(Duration::from_secs(1)),
        1..=2 => every(secs(2, 8)),
        3 => every(Duration::from_millis(2_500)).jitter(secs(1, 5)),
        4 => cron(["*/2 * * * * *", "*/3 * * * * *"][usize::try_from(chance.below(2)).unwrap_or(0)]),
        5 => cron("7,23,24,41 * * * * *").zone("Europe/Berlin"),
        6 => cron("*/5 * * * * *").jitter(secs(1, 3)),
        _ => return (delay(secs(2, 6)), true),
    };
    (when, false)
}

fn agreed(draft: TimerDraft, chance: &Chance) -> TimerDraft {
    let most = || u32::try_from(1 + chance.below(4)).unwrap_or(1);
    let draft = draft.catch_up(match chance.below(4) {
        0 => CatchUp::Skip,
        1..=2 => CatchUp::One,
        _ => CatchUp::All { most: most() },
    });
    let draft = draft.overlap(match chance.below(6) {
        0..=1 => Overlap::Skip,
        2 => Overlap::QueueOne,
        3 => Overlap::QueueAll,
        4 => Overlap::CancelPrevious,
        _ => Overlap::Allow { most: most() },
    });
    let draft = draft.on_edit(if chance.below(2) == 0 { OnEdit::Keep } else { OnEdit::Drop });
    let draft = if chance.below(4) == 0 { draft.run_on_start() } else { draft };
    if chance.below(4) == 0 { draft.max_lateness(Duration::from_secs(2 + chance.below(40))) } else { draft }
}

/// The same worker with the timers that its version of the program declares.
pub(crate) fn with_timers(mut worker: Worker<App>, app: &TimerApp<'_>) -> Worker<App> {
    let Some(timers) = &app.plan.timers else { return worker };
    worker = worker.job(tick);
    for number in 0..timers.declared {
        worker = worker.timer_with(timers.draft(app.seed, app.plan, &TimerPlan::name(number), app.version));
    }
    worker
}

/// A host's program, as far as its timers go.
pub(crate) struct TimerApp<'a> {
    pub(crate) seed: u64,
    pub(crate) plan: &'a Plan,
    pub(crate) version: u64,
}

/// What every timer enqueues.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Tick {}

impl Job for Tick {
    const KIND: &'static str = "tick";
    type Output = u64;
}

/// What it does depends on its slot, and is the same at each attempt.
async fn tick(run: Run<App>, _: Tick) -> Result<u64, Failed> {
    let slot = run.slot().map_or(0, |slot| slot.at.as_micros().unsigned_abs());
    let chance = Chance::seeded(stream(run.app().world.seed ^ slot, SLOT_STREAM));
    let how = match chance.below(16) {
        0..=8 => How::Done,
        9..=11 => How::Works { ms: chance.below(3_000) },
        12 => How::Works { ms: 3_000 + chance.below(9_000) },
        13 => How::Deaf { ms: chance.below(8_000) },
        14 => How::Fails { times: 1 + u32::from(chance.below(2) == 0), ms: chance.below(1_000) },
        _ => How::Snoozes { times: 1, ms: chance.below(3_000) },
    };
    play(run, Script { ask: 0, how }).await
}
