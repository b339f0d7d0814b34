//! What a singleton's body knows of its time in office.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tenure_core::Fence;
use tokio_util::sync::CancellationToken;

use crate::{CutShort, LeaseLost, Pass, Stopping, Tenure};

/// One stretch for which a singleton holds its lease and runs. Cloning it is cheap; as long as a clone
/// lives, the lease is not given back.
pub struct Duty<App> {
    inner: Arc<Inner<App>>,
}

struct Inner<App> {
    app: Arc<App>,
    tenure: Tenure,
    pass: Pass,
    reins: Arc<Reins>,
}

impl<App> Duty<App> {
    pub(crate) fn new(app: Arc<App>, tenure: Tenure, pass: Pass, reins: Arc<Reins>) -> Self {
        Self { inner: Arc::new(Inner { app, tenure, pass, reins }) }
    }

    /// The same for a part of it, with reins of its own.
    pub(crate) fn with(&self, reins: Arc<Reins>) -> Self {
        let Inner { app, tenure, pass, .. } = &*self.inner;
        Self::new(Arc::clone(app), tenure.clone(), pass.clone(), reins)
    }

    /// The application's state.
    #[must_use]
    pub fn app(&self) -> &App {
        &self.inner.app
    }

    /// The handle on the store.
    #[must_use]
    pub fn tenure(&self) -> &Tenure {
        &self.inner.tenure
    }

    /// The lease, as work under it sees it.
    #[must_use]
    pub fn pass(&self) -> &Pass {
        &self.inner.pass
    }

    /// The number of this ownership, greater than that of every earlier one. A resource outside the store
    /// is safe from late writers if it refuses smaller ones.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.inner.pass.fence()
    }

    /// The check at the boundary: to be made right before each effect outside of this program.
    ///
    /// # Errors
    /// Says how the lease was lost.
    pub fn guard(&self) -> Result<(), LeaseLost> {
        self.inner.pass.guard()
    }

    /// Says that the start is over, for a singleton that has to be
    /// [ready within](crate::Singleton::ready_within) a time.
    pub fn ready(&self) {
        self.inner.reins.ready.cancel();
    }

    /// Why it shall stop; `None` while it may go on.
    #[must_use]
    pub fn stopping(&self) -> Option<Stopping> {
        self.inner.reins.why.get().cloned()
    }

    /// Resolves when it shall stop. It is dropped when its grace is over.
    pub async fn stopped(&self) -> Stopping {
        self.inner.reins.stopped().await
    }

    /// Waits so long by the injected clock, or until it shall stop.
    ///
    /// # Errors
    /// Why it shall stop.
    pub async fn sleep(&self, span: Duration) -> Result<(), CutShort> {
        tokio::select! {
            biased;
            why = self.stopped() => Err(CutShort(why)),
            () = self.inner.tenure.pause_for(span) => Ok(()),
        }
    }
}

impl<App> Clone for Duty<App> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<App> fmt::Debug for Duty<App> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Duty({} fence {})", self.inner.pass.name(), self.fence())
    }
}

/// Shared by a body and whoever runs it.
#[derive(Debug, Default)]
pub(crate) struct Reins {
    stop: CancellationToken,
    why: OnceLock<Stopping>,
    ready: CancellationToken,
}

impl Reins {
    /// Tells the body to stop. The first reason stands.
    pub(crate) fn stop(&self, why: Stopping) {
        if self.why.set(why).is_ok() {
            self.stop.cancel();
        }
    }

    async fn stopped(&self) -> Stopping {
        self.stop.cancelled().await;
        // The token is cancelled only after the reason is set.
        self.why.get().cloned().unwrap_or(Stopping::Lost)
    }

    pub(crate) async fn is_ready(&self) {
        self.ready.cancelled().await;
    }
}
