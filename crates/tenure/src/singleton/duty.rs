//! What a singleton's body knows of its time in office.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tenure_core::Fence;
use tokio_util::sync::CancellationToken;

use crate::{CutShort, LeaseLost, Pass, Stopping, Tenure};

/// One period in which a singleton holds its lease and runs. Cloning it is cheap; the lease is not released while a
/// clone lives.
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

    /// Returns the application state.
    #[must_use]
    pub fn app(&self) -> &App {
        &self.inner.app
    }

    /// Returns the store handle.
    #[must_use]
    pub fn tenure(&self) -> &Tenure {
        &self.inner.tenure
    }

    /// Returns the lease as a pass for the work under it.
    #[must_use]
    pub fn pass(&self) -> &Pass {
        &self.inner.pass
    }

    /// Returns the fencing token, which is greater than that of every earlier holder. A resource outside the store is
    /// protected from late writers if it rejects smaller ones.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.inner.pass.fence()
    }

    /// Checks that the lease is held. Call it right before each effect outside this program.
    ///
    /// # Errors
    /// Returns how the lease was lost.
    pub fn guard(&self) -> Result<(), LeaseLost> {
        self.inner.pass.guard()
    }

    /// Reports that the start is complete, for a singleton with a [start timeout](crate::Singleton::ready_within).
    pub fn ready(&self) {
        self.inner.reins.ready.cancel();
    }

    /// Returns why the singleton must stop; `None` while it may continue.
    #[must_use]
    pub fn stopping(&self) -> Option<Stopping> {
        self.inner.reins.why.get().cloned()
    }

    /// Resolves when the singleton must stop. It is dropped after its grace period.
    pub async fn stopped(&self) -> Stopping {
        self.inner.reins.stopped().await
    }

    /// Sleeps by the injected clock, or until the singleton must stop.
    ///
    /// # Errors
    /// Returns why the singleton must stop.
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
