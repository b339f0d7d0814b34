//! What becomes of messages after a try: a pure function of how it went.

use std::time::Duration;

use tenure_core::{Cause, Due, Failure, Job, Timestamp, Verdict};

use super::order::DUE;
use super::settings::{AtLast, Writer};

/// How long the writer rests when a message was given back as it is.
const GIVEN_BACK: Duration = Duration::from_secs(1);

/// What becomes of the one message of a try.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outcome {
    /// Its verdict.
    pub(crate) verdict: Verdict,
    /// How long nothing is written, so that it stays the first.
    pub(crate) rest: Duration,
    /// Whether the mailbox is paused.
    pub(crate) pauses: bool,
}

/// What becomes of a message whose try did not succeed.
pub(crate) fn after_failure(
    writer: &Writer,
    job: &Job,
    verdict: Verdict,
    chance: f64,
    now: Timestamp,
) -> Outcome {
    let in_place = |verdict, rest| Outcome { verdict, rest, pauses: false };
    match verdict {
        Verdict::Retry { failure, .. } if job.attempt >= writer.retry.max_attempts => {
            at_last(writer, failure)
        }
        Verdict::Retry { failure, due } => {
            let policy = || writer.retry.delay(job.attempt, chance);
            let rest = due.map_or_else(policy, |due| due.at(now).since(now));
            in_place(Verdict::Retry { failure, due: Some(Due::At(DUE)) }, rest)
        }
        Verdict::Failed(failure) => at_last(writer, failure),
        Verdict::Snoozed(due) => in_place(Verdict::Snoozed(Due::At(DUE)), due.at(now).since(now)),
        Verdict::Cancelled(failure) => in_place(Verdict::Cancelled(failure), Duration::ZERO),
        Verdict::Released | Verdict::Succeeded(_) => in_place(Verdict::Released, GIVEN_BACK),
    }
}

/// What becomes of a message before its try, if its tries are over: each of its hosts fell silent.
pub(crate) fn before_try(writer: &Writer, job: &Job) -> Option<Outcome> {
    let lost = job.failure.as_ref().filter(|failure| failure.cause == Cause::Lost)?;
    if job.attempt <= writer.retry.max_attempts {
        return None;
    }
    // Another cause: when somebody resumes the mailbox, it is tried once more.
    let told = format!("failed after {} attempts; the last error: {}", job.attempt - 1, lost.message);
    Some(at_last(writer, Failure::new(Cause::Error, &told)))
}

fn at_last(writer: &Writer, failure: Failure) -> Outcome {
    match writer.at_last {
        AtLast::Park => Outcome { verdict: Verdict::Failed(failure), rest: Duration::ZERO, pauses: false },
        AtLast::Pause => {
            let verdict = Verdict::Retry { failure, due: Some(Due::At(DUE)) };
            Outcome { verdict, rest: Duration::ZERO, pauses: true }
        }
    }
}
