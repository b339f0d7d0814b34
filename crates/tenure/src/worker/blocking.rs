//! A handler that blocks, on a thread of its own.
//!
//! Not on the runtime's pool for blocking work: that is bounded, shared with everybody, and waited for
//! when the runtime ends. A handler that never returns would keep the whole program from stopping.

use std::panic::AssertUnwindSafe;

use tokio::sync::oneshot;

use super::handlers::Done;
use super::panic::Panic;
use super::waits::Waiter;
use crate::TraceContext;

/// A thread that runs a handler to its end. Dropping this does not stop it: nothing can.
#[derive(Debug)]
pub(crate) struct Blocking {
    ended: oneshot::Receiver<Result<Done, Panic>>,
}

impl Blocking {
    /// Starts the thread. It may use the runtime it was started from.
    pub(crate) fn start(call: Box<dyn FnOnce() -> Done + Send>) -> std::io::Result<Self> {
        let (runtime, span) = (tokio::runtime::Handle::current(), tracing::Span::current());
        let (trace, waiter) = (TraceContext::current(), Waiter::current());
        let call = || match trace {
            Some(trace) => trace.sync_scope(call),
            None => call(),
        };
        let call = || match waiter {
            Some(waiter) => waiter.sync_scope(call),
            None => call(),
        };
        let (end, ended) = oneshot::channel();
        std::thread::Builder::new().name("tenure-blocking".into()).spawn(move || {
            let (_inside, _told_in) = (runtime.enter(), span.enter());
            let done = std::panic::catch_unwind(AssertUnwindSafe(call));
            // Nobody waits for an attempt that was given up.
            let _ = end.send(done);
        })?;
        Ok(Self { ended })
    }

    /// Waits for the handler's end.
    pub(crate) async fn done(&mut self) -> Result<Done, Panic> {
        (&mut self.ended).await.unwrap_or_else(|_| Err(Box::new("the handler's thread ended unexpectedly")))
    }
}
