//! Each reason in a sentence on one line.

use std::fmt;

use super::Reason;
use crate::{End, Failure, JobId, Key, Why, invalid, limits};

/// Longest part of a failure's message that a reason repeats, in bytes.
const SHOWN_BYTES: usize = 200;
/// Most jobs or kinds that a reason lists by name.
const SHOWN_NAMES: usize = 5;
/// Added if the jobs in all slots wait for other jobs.
const WAITING: &str = "; they wait for other jobs, so add slots, or a queue for the jobs that they wait for";

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finished { end, at, needed_by } => {
                write!(f, "it {} at {at}", end_words(*end))?;
                match needed_by.len() {
                    0 => Ok(()),
                    1 => write!(f, "; it is kept until {} has ended", list(needed_by)),
                    2.. => write!(f, "; it is kept until {} have ended", list(needed_by)),
                }
            }
            Self::Running { holder, until, cancelling: false } => {
                write!(f, "it is running on host {holder}, whose lease ends at {until} unless renewed")
            }
            Self::Running { holder, .. } => {
                write!(f, "it is running on host {holder}, which was asked to stop it")
            }
            Self::Ending { holder, end: End::Cancelled } => {
                write!(
                    f,
                    "host {holder} was asked to stop it and did not respond; the next maintenance turn cancels it"
                )
            }
            Self::Ending { holder, end: End::Failed | End::Succeeded } => {
                write!(
                    f,
                    "host {holder} stopped responding and no attempts are left; the next maintenance turn fails it"
                )
            }
            Self::QueuePaused { queue } => write!(f, "queue {queue} is paused"),
            Self::DueLater { due, why } => write!(f, "it is due at {due} ({})", why_words(*why)),
            Self::BackingOff { due, attempts, failure } => {
                write!(f, "attempt {attempts} failed; the next is due at {due}")?;
                failure.as_ref().map_or(Ok(()), |failure| write!(f, ": {}", first_line(failure)))
            }
            Self::AfterJobs { jobs } => write!(f, "it waits for {} to end", list(jobs)),
            Self::Spoiled { job } => {
                write!(
                    f,
                    "job {job}, which it depends on, did not succeed; the next maintenance turn cancels it"
                )
            }
            Self::NotItsTurn { key, turn: Some(turn), ahead: 0 | 1 } => {
                write!(f, "it waits for job {turn} with the same ordering key {key}")
            }
            Self::NotItsTurn { key, turn: Some(turn), ahead } => {
                let many = counted(*ahead);
                write!(
                    f,
                    "it waits for job {turn} with the same ordering key {key}; {many} jobs in total are ahead of it"
                )
            }
            Self::NotItsTurn { key, turn: None, ahead: 1 } => {
                write!(f, "1 job with the same ordering key {key} is ahead of it")
            }
            Self::NotItsTurn { key, turn: None, ahead } => {
                write!(f, "{} jobs with the same ordering key {key} are ahead of it", counted(*ahead))
            }
            Self::LimitFull { key, most: 1, running } => {
                write!(f, "{} allows one running job, and one is running", limit_words(key.as_ref()))?;
                f.write_str(&told(running))
            }
            Self::LimitFull { key, most, running } => {
                write!(
                    f,
                    "{} allows {most} running jobs, and {most} are running",
                    limit_words(key.as_ref())
                )?;
                f.write_str(&told(running))
            }
            Self::RateReached { key, next } => {
                write!(f, "{} allows the next start at {next}", limit_words(key.as_ref()))
            }
            Self::BehindInLimit { key, ahead: 1 } => {
                write!(f, "{} has room, but 1 job is ahead of it", limit_words(Some(key)))
            }
            Self::BehindInLimit { key, ahead } => {
                write!(f, "{} has room, but {} jobs are ahead of it", limit_words(Some(key)), counted(*ahead))
            }
            Self::QueueNotServed { queue } => write!(f, "no live worker serves queue {queue}"),
            Self::KindNotServed { kind, served } => {
                write!(f, "no live worker has a handler for kind {kind}; ")?;
                if served.is_empty() {
                    return f.write_str("the workers of its queue have no handlers");
                }
                write!(f, "the workers of its queue have handlers for {}", list(served))
            }
            Self::SlotsFull { slots, elsewhere, running, waiting } => {
                write_slots(f, *slots, *elsewhere, running)?;
                if *waiting { f.write_str(WAITING) } else { Ok(()) }
            }
            Self::Next { ahead: 0 } => f.write_str("it is next in line"),
            Self::Next { ahead: 1 } => f.write_str("1 job is ahead of it in line"),
            Self::Next { ahead } => {
                let or_more = if is_page(*ahead) { " or more" } else { "" };
                write!(f, "{ahead}{or_more} jobs are ahead of it in line")
            }
        }
    }
}

/// Names the jobs in all slots.
fn write_slots(f: &mut fmt::Formatter<'_>, slots: u32, elsewhere: u32, running: &[JobId]) -> fmt::Result {
    let jobs = list(running);
    match (slots, elsewhere) {
        (0, _) => f.write_str("the workers of its queue have no slots"),
        (1, 0) => write!(f, "the only slot of its queue is busy with {jobs}"),
        (_, 0) => write!(f, "all {slots} slots of its queue are busy with {jobs}"),
        (1, _) => write!(f, "the only slot of its worker is busy with a job of another queue: {jobs}"),
        _ if elsewhere == slots => {
            write!(f, "all {slots} slots of its workers are busy with jobs of other queues: {jobs}")
        }
        _ => {
            write!(
                f,
                "all {slots} slots of its workers are busy, {elsewhere} of them with jobs of other queues: {jobs}"
            )
        }
    }
}

/// The start of a failure, so that a reason stays one sentence on one line.
fn first_line(failure: &Failure) -> String {
    let whole = failure.to_string();
    let mut lines = whole.lines();
    let first = invalid::cut(lines.next().unwrap_or_default(), SHOWN_BYTES);
    if lines.next().is_some() { format!("{first} …") } else { first }
}

/// The first few, and how many more there are.
fn list(names: &[impl fmt::Display]) -> String {
    let shown: Vec<String> = names.iter().take(SHOWN_NAMES).map(ToString::to_string).collect();
    let more = names.len() - shown.len();
    let shown = shown.join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

/// What follows a sentence that can do without it.
fn told(jobs: &[JobId]) -> String {
    if jobs.is_empty() { String::new() } else { format!(": {}", list(jobs)) }
}

/// A number that was counted up to a page.
fn counted(number: u32) -> String {
    let or_more = if is_page(number) { " or more" } else { "" };
    format!("{number}{or_more}")
}

fn is_page(number: u32) -> bool {
    number as usize >= limits::PAGE_JOBS
}

fn limit_words(key: Option<&Key>) -> String {
    key.map_or_else(|| "the limit of its queue".to_owned(), |key| format!("its limit {key}"))
}

fn end_words(end: End) -> &'static str {
    match end {
        End::Succeeded => "succeeded",
        End::Failed => "failed",
        End::Cancelled => "was cancelled",
    }
}

fn why_words(why: Why) -> &'static str {
    match why {
        Why::Enqueued => "enqueued with a delay",
        Why::Retry => "waiting for a retry",
        Why::Snoozed => "snoozed by its handler",
        Why::Released => "released by its worker",
        Why::Lost => "its worker stopped responding",
        Why::Asked => "retried by request",
    }
}
