//! One attempt: from a reserved job to a verdict.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{Cause, Failure, Output, Verdict};
use tenure_store::Clock;

use super::blocking::{Blocking, Panic};
use super::control::Control;
use super::handlers::{Done, Handlers, Work};
use crate::{Run, Stopping};

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

/// Runs one attempt to its verdict: whatever the handler does, one comes out.
pub(crate) async fn attempt<App: Send + Sync + 'static>(
    handlers: Arc<Handlers<App>>,
    run: Run<App>,
    control: Arc<Control>,
    clock: Arc<dyn Clock>,
    grace: Grace,
) -> Finish {
    let timeout = run.job().terms.timeout;
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
        done = task.done() => return Finish { verdict: verdict(done, &control, timeout), ghost: None },
        why = control.stopped() => why,
        () = sleep_or_never(&clock, timeout) => {
            control.stop(Stopping::TimedOut);
            control.stopping().unwrap_or(Stopping::TimedOut)
        }
    };
    let left = match &told {
        // A little early, so that this host reports it before the store takes the job.
        Stopping::Cancelled { .. } => control.grace().mul_f64(0.9),
        Stopping::Lost => grace.lost,
        Stopping::HostStops => grace.host_stops,
        Stopping::TimedOut => Duration::ZERO,
    };
    tokio::select! {
        biased;
        done = task.done() => Finish { verdict: verdict(done, &control, timeout), ghost: None },
        () = clock.sleep(left) => Finish { verdict: deaf(&told, timeout), ghost: task.into_ghost() },
    }
}

enum Task {
    Async(std::pin::Pin<Box<dyn Future<Output = Done> + Send>>),
    Blocking(Blocking),
}

impl Task {
    async fn done(&mut self) -> Result<Done, Panic> {
        match self {
            Self::Async(future) => CatchPanic(future.as_mut()).await,
            Self::Blocking(thread) => thread.done().await,
        }
    }

    fn into_ghost(self) -> Option<Blocking> {
        match self {
            Self::Async(future) => {
                // What it holds may panic when it goes; what is known of the attempt must not go with it.
                if std::panic::catch_unwind(AssertUnwindSafe(|| drop(future))).is_err() {
                    tracing::warn!("a handler panicked while it was dropped");
                }
                None
            }
            Self::Blocking(thread) => Some(thread),
        }
    }
}

struct CatchPanic<'a>(std::pin::Pin<&'a mut (dyn Future<Output = Done> + Send)>);

impl Future for CatchPanic<'_> {
    type Output = Result<Done, Panic>;

    fn poll(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Self::Output> {
        // The future is not polled again after a panic, so nobody sees it half done.
        match std::panic::catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(context))) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => std::task::Poll::Ready(Err(panic)),
        }
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
        Ok(Ok(value)) => succeeded(value, control.take_place()),
        Ok(Err(verdict)) => stopped_short(verdict, control.stopping(), timeout),
        Err(panic) => panicked(&*panic),
    }
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
        (verdict, Some(Stopping::HostStops | Stopping::Lost | Stopping::TimedOut) | None) => verdict,
    }
}

/// The verdict on work that did not stop within the grace.
fn deaf(told: &Stopping, timeout: Option<Duration>) -> Verdict {
    let retry = |cause, message: &str| Verdict::Retry { failure: Failure::new(cause, message), due: None };
    match told {
        Stopping::Cancelled { reason, .. } => Verdict::Cancelled(Failure::new(Cause::Deaf, reason)),
        Stopping::HostStops => Verdict::Released,
        Stopping::Lost => retry(Cause::Lost, "this host could not reach the store before its lease was over"),
        Stopping::TimedOut => timed_out(timeout),
    }
}

fn timed_out(timeout: Option<Duration>) -> Verdict {
    let message = format!("it took longer than {} s", timeout.unwrap_or_default().as_secs_f64());
    Verdict::Retry { failure: Failure::new(Cause::TimedOut, &message), due: None }
}

fn no_thread(error: &std::io::Error) -> Verdict {
    let message = format!("no thread could be started for it: {error}");
    Verdict::Retry { failure: Failure::new(Cause::Error, &message), due: None }
}

fn panicked(panic: &(dyn Any + Send)) -> Verdict {
    let message = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let message = message.or_else(|| panic.downcast_ref::<String>().cloned());
    let message = message.unwrap_or_else(|| "with a value that is not text".to_owned());
    Verdict::Retry { failure: Failure::new(Cause::Panic, &message), due: None }
}
