//! What the operator's signals say to a host of programs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tenure::{Clock, SystemClock};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::exit::Failure;

/// So long a host that has killed its programs tries to tell the store what it has given back.
const LAST: Duration = Duration::from_secs(5);

/// The first signal tells all programs to stop, the second kills them, the third ends the host.
#[derive(Debug, Clone, Default)]
pub(super) struct Orders {
    pub(super) stop: CancellationToken,
    pub(super) kill: CancellationToken,
    leave: CancellationToken,
    has_begun: Arc<AtomicBool>,
}

impl Orders {
    /// Listens from now on.
    ///
    /// # Errors
    /// If the system does not let it: a host that cannot be stopped must not start.
    pub(super) fn listen() -> Result<Self, Failure> {
        let refuse = |source| Failure::System { what: "signals cannot be listened to", source };
        let mut interrupt = signal(SignalKind::interrupt()).map_err(refuse)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(refuse)?;
        let orders = Self::default();
        let theirs = orders.clone();
        tokio::spawn(async move {
            for order in [theirs.stop, theirs.kill, theirs.leave] {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                order.cancel();
            }
        });
        Ok(orders)
    }

    /// From now on there are programs.
    pub(super) fn begin(&self) {
        self.has_begun.store(true, Ordering::SeqCst);
    }

    /// Resolves when nothing is waited for any more.
    pub(super) async fn are_over(&self) {
        self.kill.cancelled().await;
        if !self.has_begun.load(Ordering::SeqCst) {
            return;
        }
        tokio::select! {
            biased;
            () = self.leave.cancelled() => {}
            () = SystemClock.sleep(LAST) => {}
        }
    }
}
