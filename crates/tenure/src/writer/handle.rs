//! One try of a batch: from messages in hand to what becomes of each.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{Cause, Failure, Verdict};

use super::batch::Batch;
use super::message::{Open, Opened};
use super::outcome::{Outcome, after_failure, before_try};
use super::pending::Pending;
use super::settings::Writer;
use crate::singleton::Reins;
use crate::worker::{Body, catching, let_go, words_of};
use crate::{Duty, Failed, Stopping};

/// What a try leaves to do, beside the decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// Nothing: so many messages have ended.
    Ended(usize),
    /// The messages have to be taken one by one, so many of them: one of them fails.
    OneByOne(usize),
    /// To rest for so long; the first message stays the first.
    Rest(Duration),
    /// To pause the mailbox.
    Pause,
}

/// Tries to write a batch, and decides about each of its messages.
pub(super) async fn handle<App: Send + Sync + 'static>(
    writer: &Writer,
    open: &Open<App>,
    (duty, grace): (&Duty<App>, Duration),
    mut batch: Batch,
    pending: &mut Pending,
) -> Left {
    let jobs = batch.jobs();
    let Some(first) = jobs.first() else { return Left::Ended(0) };
    if let Some(outcome) = before_try(writer, first) {
        return decide_first(outcome, batch, pending);
    }
    // The check at the boundary: a host that was suspended since the grant begins nothing.
    if duty.guard().is_err() || !batch.is_held() {
        give_back(batch, pending);
        return Left::Rest(Duration::ZERO);
    }
    let failed = |verdict| {
        let (chance, now) = (duty.tenure().chance().fraction(), duty.tenure().now());
        after_failure(writer, first, verdict, chance, now)
    };
    let reins = Arc::new(Reins::default());
    let opened = catch_unwind(AssertUnwindSafe(|| open(duty.with(Arc::clone(&reins)), &jobs)));
    let (body, taken) = match opened {
        Ok(Opened::Work { body, taken }) => (body, taken),
        Ok(Opened::Unreadable(failure)) => {
            return decide_first(failed(Verdict::Failed(failure)), batch, pending);
        }
        Err(panic) => return decide_first(failed(panicked(&words_of(&*panic))), batch, pending),
    };
    let behind = batch.split_off(taken);
    let done = run(body, &reins, (duty, grace), &batch).await;
    let left = match done {
        Done::All if duty.guard().is_ok() => {
            let ended = batch.len();
            batch.take().into_iter().for_each(|message| pending.decide(message, Verdict::Succeeded(None)));
            Left::Ended(ended)
        }
        // What was done without protection counts as nothing.
        Done::All | Done::Stopped => {
            stop(&mut batch, pending);
            Left::Rest(Duration::ZERO)
        }
        Done::Failed(verdict) if batch.len() > 1 => {
            tracing::warn!(
                writer = writer.name,
                messages = batch.len(),
                "a batch failed; writing its messages one by one ({verdict:?})"
            );
            let messages = batch.len();
            give_back(batch, pending);
            Left::OneByOne(messages)
        }
        Done::Failed(verdict) => decide_first(failed(verdict), batch, pending),
    };
    give_back(behind, pending);
    left
}

/// How the work on a batch ended.
enum Done {
    All,
    Failed(Verdict),
    Stopped,
}

/// Runs the work. It is told when the lease or one of the messages is lost, when one is cancelled, and when
/// the host stops; then it has the grace to come to an end.
async fn run<App>(
    mut body: Body<Result<(), Failed>>,
    reins: &Reins,
    (duty, grace): (&Duty<App>, Duration),
    batch: &Batch,
) -> Done {
    let told = tokio::select! {
        biased;
        done = catching(&mut body) => return ended(done),
        why = duty.stopped() => why,
        why = batch.stopped() => why,
    };
    reins.stop(told);
    // A little less than the writer itself has, so that it can still give back what it holds.
    let done = tokio::select! {
        biased;
        done = catching(&mut body) => ended(done),
        () = duty.tenure().pause_for(grace.mul_f64(0.8)) => Done::Stopped,
    };
    let_go(body, "a writer");
    match done {
        Done::All => Done::All,
        Done::Failed(_) | Done::Stopped => Done::Stopped,
    }
}

fn ended(done: Result<Result<(), Failed>, crate::worker::Panic>) -> Done {
    match done {
        Ok(Ok(())) => Done::All,
        Ok(Err(failed)) => Done::Failed(failed.into_verdict()),
        Err(panic) => Done::Failed(panicked(&words_of(&*panic))),
    }
}

fn panicked(words: &str) -> Verdict {
    Verdict::Retry { failure: Failure::new(Cause::Panic, words), due: None }
}

/// Decides about the first message; those behind it are given back.
fn decide_first(outcome: Outcome, mut batch: Batch, pending: &mut Pending) -> Left {
    let behind = batch.split_off(1);
    batch.take().into_iter().for_each(|message| pending.decide(message, outcome.verdict.clone()));
    give_back(behind, pending);
    match outcome {
        Outcome { pauses: true, .. } => Left::Pause,
        Outcome { verdict: Verdict::Failed(_) | Verdict::Cancelled(_), .. } => Left::Ended(1),
        Outcome { rest, .. } => Left::Rest(rest),
    }
}

/// The messages go back to their places. No attempt is spent.
pub(super) fn give_back(mut batch: Batch, pending: &mut Pending) {
    batch.take().into_iter().for_each(|message| pending.decide(message, Verdict::Released));
}

/// Ends the messages that somebody cancelled and gives back the others.
fn stop(batch: &mut Batch, pending: &mut Pending) {
    for (reserved, control) in batch.take() {
        let verdict = match control.stopping() {
            Some(Stopping::Cancelled { reason, .. }) => {
                Verdict::Cancelled(Failure::new(Cause::Cancelled, &reason))
            }
            _ => Verdict::Released,
        };
        pending.decide((reserved, control), verdict);
    }
}
