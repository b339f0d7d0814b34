//! Why a timer does not fire: the first question that anybody asks of a schedule.

use std::fmt;
use std::time::Duration;

use super::fire::{Firing, IN_TIME, Open};
use super::{Skipped, Timer};
use crate::{JobId, Timestamp, limits};

/// A ripe slot that nobody has decided for so long tells that no host fires timers.
const NOBODY: Duration = Duration::from_secs(5);

/// A reason for which a timer does not run, most important first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TimerReason {
    /// It is paused.
    Paused {
        /// Start of the pause.
        since: Timestamp,
        /// Reason of the pause.
        reason: String,
    },
    /// A clock that was ahead has decided future runs, or has postponed the next check.
    ClockWasAhead {
        /// Time until which the timer does not run.
        until: Timestamp,
        /// `true` if pausing and resuming the timer, or a new schedule, ends this at once. Otherwise the time has to
        /// pass.
        ends_by_pause: bool,
    },
    /// It has enqueued its maximum number of jobs.
    Spent {
        /// The number of jobs.
        runs: u64,
    },
    /// It has no more runs.
    Over,
    /// A run is overdue, and no host has decided it.
    Unattended {
        /// Scheduled time of the run.
        slot: Timestamp,
        /// How long it has been overdue.
        late: Duration,
    },
    /// Its next run is in the future.
    NotYet {
        /// Scheduled time of the run.
        slot: Timestamp,
        /// Time at which its job is enqueued.
        wake: Timestamp,
    },
    /// Its next run is counted from the end of a job that had not ended at the last check.
    AfterRun {
        /// The job.
        job: JobId,
        /// How long the next check has been overdue.
        late: Duration,
    },
    /// Its last runs were skipped.
    LastSkipped {
        /// Scheduled time of the last of them.
        slot: Timestamp,
        /// The reason.
        why: Skipped,
    },
    /// Jobs of the timer have not ended.
    Open {
        /// The first of them.
        job: JobId,
        /// Their number.
        jobs: usize,
    },
}

/// What is to be said of a timer, given what is known of its jobs now.
#[must_use]
pub fn explain_timer(timer: &Timer, open: &Open, now: Timestamp) -> Vec<TimerReason> {
    let mut reasons = Vec::new();
    if let Some(pause) = &timer.paused {
        reasons.push(TimerReason::Paused { since: pause.since, reason: pause.reason.clone() });
    }
    reasons.extend(ahead(timer, now));
    match next(timer, open, now) {
        None if timer.is_spent() => reasons.push(TimerReason::Spent { runs: timer.runs }),
        None => reasons.push(TimerReason::Over),
        Some(slot) => reasons.extend(timer.wake().map(|wake| until(timer, open, (slot, wake), now))),
    }
    if let Some((slot, why)) = timer.last_skip.as_ref().filter(|(slot, _)| timer.decided == Some(*slot)) {
        reasons.push(TimerReason::LastSkipped { slot: *slot, why: why.clone() });
    }
    if let Some(&job) = open.unfinished.first() {
        reasons.push(TimerReason::Open { job, jobs: open.unfinished.len() });
    }
    reasons
}

/// Whether a clock that was ahead keeps it silent.
fn ahead(timer: &Timer, now: Timestamp) -> Option<TimerReason> {
    let schedule = &timer.agreed.schedule;
    if schedule.follows_runs() {
        // A look is never further away than one wait, whoever takes it. Whoever asks may have a clock of their own.
        let latest = schedule.next_after(now.after(IN_TIME));
        let far = timer.next.filter(|next| latest.is_some_and(|latest| *next > latest));
        if let Some(until) = far {
            return Some(TimerReason::ClockWasAhead { until, ends_by_pause: true });
        }
    }
    let until = timer.decided.filter(|decided| *decided > now)?;
    let ends_by_pause = until.since(now) > limits::CLOCK_AHEAD;
    Some(TimerReason::ClockWasAhead { until, ends_by_pause })
}

/// Its next slot. One that waits after each run may know the end of its last job, though nobody has looked yet.
fn next(timer: &Timer, open: &Open, now: Timestamp) -> Option<Timestamp> {
    let has_ended = !timer.open.is_empty() && open.unfinished.is_empty();
    match timer.agreed.schedule.follows_runs() && has_ended {
        true => Firing::of(timer, open, now).timer.next,
        false => timer.next,
    }
}

/// What is to be said of a timer that has a next slot, and is looked at by then.
fn until(timer: &Timer, open: &Open, (slot, wake): (Timestamp, Timestamp), now: Timestamp) -> TimerReason {
    let late = now.since(wake);
    match open.unfinished.first() {
        // What the row has for its next slot is the next look at the job.
        Some(&job) if timer.agreed.schedule.follows_runs() => TimerReason::AfterRun { job, late },
        Some(_) | None if late > NOBODY => TimerReason::Unattended { slot, late },
        Some(_) | None => TimerReason::NotYet { slot, wake: wake.max(timer.agreed.due(slot)) },
    }
}

impl fmt::Display for TimerReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Paused { since, reason } if reason.is_empty() => write!(f, "paused at {since}"),
            Self::Paused { since, reason } => write!(f, "paused at {since}: {reason}"),
            Self::ClockWasAhead { until, ends_by_pause } => {
                write!(f, "the store's clock was ahead, so it does not run until {until}")?;
                match ends_by_pause {
                    true => f.write_str("; pause and resume it to run it sooner"),
                    false => Ok(()),
                }
            }
            Self::Spent { runs } => write!(f, "it has enqueued {runs} jobs, its maximum"),
            Self::Over => f.write_str("it has no more runs"),
            Self::Unattended { slot, late } => write!(
                f,
                "its run {slot} has been overdue for {} s: no worker or server is running schedules",
                late.as_secs()
            ),
            Self::NotYet { slot, wake } if slot == wake => write!(f, "its next run is {slot}"),
            Self::NotYet { slot, wake } => write!(f, "its next run is {slot}, enqueued at {wake}"),
            Self::AfterRun { job, late } => {
                write!(f, "its next run is counted from the end of job {job}")?;
                match late {
                    late if *late > NOBODY => write!(
                        f,
                        "; that has not been checked for {} s: no worker or server is running schedules",
                        late.as_secs()
                    ),
                    _ => Ok(()),
                }
            }
            Self::LastSkipped { slot, why } => write!(f, "its run {slot} was skipped: {why}"),
            Self::Open { job, jobs: 1 } => write!(f, "its job {job} has not ended"),
            Self::Open { job, jobs } => write!(f, "{jobs} of its jobs have not ended; the first is {job}"),
        }
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy { job } => write!(f, "job {job} of an earlier run had not ended"),
            Self::Missed => f.write_str("it was missed, and missed runs are not caught up"),
            Self::TooMany => f.write_str("more runs were missed than are caught up"),
            Self::TooLate => f.write_str("it was later than the allowed lateness"),
            Self::Paused => f.write_str("the schedule was paused"),
            Self::Edited => f.write_str("the schedule was changed"),
            Self::IdTaken { job } => write!(f, "another job already has the ID {job}"),
        }
    }
}
