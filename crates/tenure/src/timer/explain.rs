//! Why a timer does not fire, and why its jobs do not run.

use std::fmt;

use tenure_core::{Kind, Open, QueueName, State, Timer, TimerReason, Timestamp, explain_timer};
use tenure_store::{Fault, Host, Store};

/// So many of the jobs that a timer has open are looked at, the oldest first; nothing is said of the others.
const LOOKED_AT: usize = 100;

/// A reason for which a timer does not run, or its jobs do not.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimerWhy {
    /// No worker runs on any host, so no schedule runs.
    NoWorker,
    /// A reason in the timer itself.
    Timer(TimerReason),
    /// The timer runs, but no worker handles its jobs.
    Unserved {
        /// The queue of its jobs.
        queue: QueueName,
        /// The kind of its jobs.
        kind: Kind,
    },
}

/// What has become by now of the jobs that a timer has open.
pub(super) async fn open_jobs(store: &dyn Store, timer: &Timer) -> Result<Open, Fault> {
    let mut open = Open::default();
    for id in timer.open.iter().take(LOOKED_AT) {
        match store.job(*id).await?.map(|job| job.state) {
            Some(State::Finished { at, .. }) => open.ended = open.ended.max(Some(at)),
            Some(State::Waiting { .. } | State::Blocked { .. } | State::Running { .. }) => {
                open.unfinished.push(*id);
            }
            // It was removed after its end.
            None => {}
        }
    }
    Ok(open)
}

/// All that is to be said of a timer, the weightiest first.
pub(super) fn explain_with(timer: &Timer, open: &Open, hosts: &[Host], now: Timestamp) -> Vec<TimerWhy> {
    let mut reasons = Vec::new();
    if hosts.is_empty() {
        reasons.push(TimerWhy::NoWorker);
    }
    reasons.extend(explain_timer(timer, open, now).into_iter().map(TimerWhy::Timer));
    let job = &timer.agreed.job;
    if !hosts.is_empty() && !hosts.iter().any(|host| takes(host, &job.queue, &job.kind)) {
        reasons.push(TimerWhy::Unserved { queue: job.queue.clone(), kind: job.kind.clone() });
    }
    reasons
}

fn takes(host: &Host, queue: &QueueName, kind: &Kind) -> bool {
    host.serves.iter().any(|serves| {
        serves.queue == *queue && serves.kinds.as_ref().is_none_or(|kinds| kinds.contains(kind))
    })
}

impl TimerWhy {
    /// Returns the reason code, such as `paused`. More may be added.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::NoWorker => "no_worker",
            Self::Timer(TimerReason::Paused { .. }) => "paused",
            Self::Timer(TimerReason::ClockWasAhead { .. }) => "clock_was_ahead",
            Self::Timer(TimerReason::Spent { .. }) => "spent",
            Self::Timer(TimerReason::Over) => "over",
            Self::Timer(TimerReason::Unattended { .. }) => "unattended",
            Self::Timer(TimerReason::NotYet { .. }) => "not_yet",
            Self::Timer(TimerReason::AfterRun { .. }) => "after_run",
            Self::Timer(TimerReason::LastSkipped { .. }) => "last_skipped",
            Self::Timer(TimerReason::Open { .. }) => "open",
            Self::Unserved { .. } => "unserved",
        }
    }
}

impl fmt::Display for TimerWhy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoWorker => f.write_str("no worker or server is running schedules"),
            Self::Timer(reason) => reason.fmt(f),
            Self::Unserved { queue, kind } => {
                write!(f, "no live worker handles its jobs of kind {kind} in queue {queue}")
            }
        }
    }
}
