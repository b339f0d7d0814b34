//! One attempt: from a reserved job to a verdict.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{Cause, Failure, Job, Output, Verdict};
use tenure_store::Clock;
use tracing::{Instrument, Span};

use super::blocking::Blocking;
use super::control::Control;
use super::handlers::{Done, Handlers, Work};
use super::panic::{Body, Panic, catching, let_go, words_of};
use crate::{Held, Run, Stopping, TraceContext};

/// How an attempt ended.
pub(crate) struct Finish {
    pub(crate) verdict: Verdict,
    /// A blocking handler that does not stop cannot be dropped: its thread is still busy, and so is
    /// its slot.
    pub(crate) ghost: Option<Blocking>,
}

/// How long a handler has, after it was told to stop, before it is dropped.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grace {
    pub(crate) lost: Duration,
    pub(crate) host_stops: Duration,
}

/// Runs one attempt to its verdict: whatever the handler does, one comes out. All that happens in it, and all that the handler
/// tells of itself, stands in a span of the attempt.
pub(crate) async fn attempt<App: Send + Sync + 'static>(
    handlers: Arc<Handlers<App>>,
    run: Run<App>,
    control: Arc<Control>,
    clock: Arc<dyn Clock>,
    grace: Grace,
) -> Finish {
    let (span, trace, waiter) = (span_of(run.job()), TraceContext::of(run.job()), run.waiter());
    // Boxed, because the runtime moves a task several times before it starts.
    let work = waiter.scope(Box::pin(to_verdict(handlers, run, control, clock, grace))).instrument(span);
    match trace {
        Some(trace) => trace.scope(work).await,
        None => work.await,
    }
}

fn span_of(job: &Job) -> Span {
    let worker = job.holder.map(tracing::field::display);
    tracing::info_span!(
        "attempt",
        job.id = %job.id,
        kind = %job.kind,
        queue = %job.queue,
        attempt = job.attempt,
        worker,
        trace_id = trace_of(job).map(tracing::field::display)
    )
}

/// The ID of the trace to which a job belongs.
fn trace_of(job: &Job) -> Option<String> {
    TraceContext::of(job)?.traceparent().split('-').nth(1).map(str::to_owned)
}

async fn to_verdict<App: Send + Sync + 'static>(
    handlers: Arc<Handlers<App>>,
    run: Run<App>,
    control: Arc<Control>,
    clock: Arc<dyn Clock>,
    grace: Grace,
) -> Finish {
    let timeout = run.job().terms.timeout;
    let held = match handlers.around(&run.job().kind) {
        None => None,
        Some(around) => match around.take(&run).await {
            Ok(held) => Some(held),
            Err(verdict) => return Finish { verdict, ghost: None },
        },
    };
    if let Some(held) = &held {
        run.under(held.pass());
    }
    let finish = work(&handlers, run, &control, &clock, grace, held.as_ref(), timeout).await;
    // Not before the work has ended or was dropped. A thread that does not stop has a pass of its own.
    if let Some(held) = held {
        give_back(held, &clock).await;
    }
    finish
}

async fn work<App: Send + Sync + 'static>(
    handlers: &Handlers<App>,
    run: Run<App>,
    control: &Control,
    clock: &Arc<dyn Clock>,
    grace: Grace,
    held: Option<&Held>,
    timeout: Option<Duration>,
) -> Finish {
    let started = std::panic::catch_unwind(AssertUnwindSafe(|| handlers.start(run)));
    let work = match started {
        Ok(Ok(work)) => work,
        Ok(Err(failure)) => return Finish { verdict: Verdict::Failed(failure), ghost: None },
        Err(panic) => return Finish { verdict: panicked(&*panic), ghost: None },
    };
    // A task of its own: a panic is caught, and dropping it is abort.
    let mut task = match work {
        Work::Async(future) => Task::Async(future),
        Work::Blocking(call) => match Blocking::start(call) {
            Ok(thread) => Task::Blocking(thread),
            Err(error) => return Finish { verdict: no_thread(&error), ghost: None },
        },
    };
    let told = tokio::select! {
        biased;
        done = task.done() => {
            let verdict = match held.map(Held::guard) {
                Some(Err(lost)) if control.stopping().is_none() => unprotected(&lost.to_string()),
                _ => verdict(done, control, timeout),
            };
            return Finish { verdict, ghost: None };
        }
        why = control.stopped() => why,
        () = lost_or_never(held) => stop(control, Stopping::SingletonLost),
        () = sleep_or_never(clock, timeout) => stop(control, Stopping::TimedOut),
    };
    let left = match &told {
        // A little early, so that this host reports it before the store takes the job.
        Stopping::Cancelled { .. } => control.grace().mul_f64(0.9),
        Stopping::Lost | Stopping::SingletonLost => grace.lost,
        Stopping::HostStops => grace.host_stops,
        Stopping::TimedOut => Duration::ZERO,
    };
    tokio::select! {
        biased;
        done = task.done() => Finish { verdict: verdict(done, control, timeout), ghost: None },
        () = clock.sleep(left) => Finish { verdict: deaf(&told, timeout), ghost: task.into_ghost() },
    }
}

enum Task {
    Async(Body<Done>),
    Blocking(Blocking),
}

impl Task {
    async fn done(&mut self) -> Result<Done, Panic> {
        match self {
            Self::Async(body) => catching(body).await,
            Self::Blocking(thread) => thread.done().await,
        }
    }

    fn into_ghost(self) -> Option<Blocking> {
        match self {
            Self::Async(body) => {
                let_go(body, "a handler");
                None
            }
            Self::Blocking(thread) => Some(thread),
        }
    }
}

/// Tells the attempt to stop; the first reason stands.
fn stop(control: &Control, why: Stopping) -> Stopping {
    control.stop(why.clone());
    control.stopping().unwrap_or(why)
}

async fn lost_or_never(held: Option<&Held>) {
    match held {
        Some(held) => drop(held.lost().await),
        None => std::future::pending().await,
    }
}

/// The reply is waited for a little; without one the lease lapses by itself.
async fn give_back(held: Held, clock: &Arc<dyn Clock>) {
    tokio::select! {
        biased;
        _ = held.release() => {}
        () = clock.sleep(Duration::from_secs(1)) => {}
    }
}

async fn sleep_or_never(clock: &Arc<dyn Clock>, span: Option<Duration>) {
    match span {
        Some(span) => clock.sleep(span).await,
        None => std::future::pending().await,
    }
}

/// The verdict on work that came to an end by itself.
fn verdict(done: Result<Done, Panic>, control: &Control, timeout: Option<Duration>) -> Verdict {
    match done {
        _ if control.stopping() == Some(Stopping::SingletonLost) => unprotected("its lease was lost"),
        // If it has committed, the store has the end of this ownership on record, and another one changes nothing.
        Ok(Ok(_)) if control.is_completed() => uncommitted(),
        Ok(Ok(value)) => succeeded(value, control.take_place()),
        Ok(Err(verdict)) => stopped_short(verdict, control.stopping(), timeout),
        Err(panic) => panicked(&*panic),
    }
}

fn uncommitted() -> Verdict {
    let failure = Failure::new(Cause::Error, "the transaction that completed the job did not commit");
    Verdict::Retry { failure, due: None }
}

fn succeeded(value: Vec<u8>, place: Option<String>) -> Verdict {
    if value.is_empty() && place.is_none() {
        return Verdict::Succeeded(None);
    }
    Verdict::Succeeded(Some(Output { value, place }))
}

/// An error that comes after the handler was told to stop is most likely that: it stopped.
fn stopped_short(verdict: Verdict, told: Option<Stopping>, timeout: Option<Duration>) -> Verdict {
    match (verdict, told) {
        (verdict @ Verdict::Failed(_), _) => verdict,
        (_, Some(Stopping::Cancelled { reason, .. })) => {
            Verdict::Cancelled(Failure::new(Cause::Cancelled, &reason))
        }
        (Verdict::Retry { .. }, Some(Stopping::HostStops)) => Verdict::Released,
        (Verdict::Retry { .. }, Some(Stopping::TimedOut)) => timed_out(timeout),
        (
            verdict,
            Some(Stopping::HostStops | Stopping::Lost | Stopping::SingletonLost | Stopping::TimedOut) | None,
        ) => verdict,
    }
}

/// The verdict on work that did not stop within the grace.
fn deaf(told: &Stopping, timeout: Option<Duration>) -> Verdict {
    let retry = |cause, message: &str| Verdict::Retry { failure: Failure::new(cause, message), due: None };
    match told {
        Stopping::Cancelled { reason, .. } => Verdict::Cancelled(Failure::new(Cause::Deaf, reason)),
        Stopping::HostStops => Verdict::Released,
        Stopping::Lost => retry(Cause::Lost, "this host could not reach the store before its lease expired"),
        Stopping::SingletonLost => unprotected("its lease was lost"),
        Stopping::TimedOut => timed_out(timeout),
    }
}

/// The verdict on an attempt that was told to stop before it began.
pub(crate) fn verdict_before_start(why: &Stopping) -> Verdict {
    match why {
        Stopping::Cancelled { reason, .. } => Verdict::Cancelled(Failure::new(Cause::Cancelled, reason)),
        Stopping::Lost | Stopping::SingletonLost | Stopping::HostStops | Stopping::TimedOut => {
            Verdict::Released
        }
    }
}

/// The verdict on work that was not the only one of its scope for a while. Whatever it answered counts as
/// nothing: another attempt may have run at the same time.
fn unprotected(why: &str) -> Verdict {
    let failure = Failure::new(Cause::Lost, &format!("the job is a singleton, and {why}"));
    Verdict::Retry { failure, due: None }
}

fn timed_out(timeout: Option<Duration>) -> Verdict {
    let message = format!("timed out after {} s", timeout.unwrap_or_default().as_secs_f64());
    Verdict::Retry { failure: Failure::new(Cause::TimedOut, &message), due: None }
}

fn no_thread(error: &std::io::Error) -> Verdict {
    let message = format!("cannot start a thread for the job: {error}");
    Verdict::Retry { failure: Failure::new(Cause::Error, &message), due: None }
}

fn panicked(panic: &(dyn Any + Send)) -> Verdict {
    Verdict::Retry { failure: Failure::new(Cause::Panic, &words_of(panic)), due: None }
}
