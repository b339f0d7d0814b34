//! A job that is reserved.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure_core::{Fence, LeaseName, Timestamp};

use crate::{Error, Held, LeaseLost, Loss, Pass, Tenure};

/// A job reserved by this program. The reservation is renewed as long as this value, or work under it, lives.
#[must_use = "a reservation is cancelled when it is dropped"]
pub struct Reservation {
    pub(super) slip: Arc<Slip>,
    pub(super) tenure: Tenure,
    pub(super) grace: Duration,
}

/// What a reserver and its list share of a reservation.
pub(super) struct Slip {
    job: String,
    fence: Fence,
    lease: LeaseName,
    held: Mutex<Option<Held>>,
}

impl Slip {
    pub(super) fn new(job: &str, held: Held) -> Self {
        let (fence, lease) = (held.fence(), held.name().clone());
        Self { job: job.to_owned(), fence, lease, held: Mutex::new(Some(held)) }
    }

    /// Whether it is held, by the clock and not by memory.
    pub(super) fn is_held(&self) -> bool {
        self.lock().as_ref().is_some_and(Held::is_held)
    }

    /// Gives it back as soon as the work under it has ended; that is told to end.
    pub(super) async fn cancel(&self) -> Result<(), Error> {
        let held = self.lock().take();
        match held {
            Some(held) => held.release().await,
            None => Ok(()),
        }
    }

    fn pass(&self) -> Result<Pass, LeaseLost> {
        let over = || LeaseLost { name: self.lease.clone(), fence: self.fence, loss: Loss::Released };
        self.lock().as_ref().map(Held::pass).ok_or_else(over)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reservation {
    /// Returns the name of the job.
    #[must_use]
    pub fn job(&self) -> &str {
        &self.slip.job
    }

    /// Returns the fencing token, which is greater than that of every earlier reservation of this job.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.slip.fence
    }

    /// Returns the expiry time at the last answer of the store.
    #[must_use]
    pub fn until(&self) -> Option<Timestamp> {
        self.slip.lock().as_ref().and_then(Held::until)
    }

    /// Returns `true` while the job is reserved, as far as this host can know. It turns false on time even if
    /// everything else hangs.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.slip.is_held()
    }

    /// Checks that the job is reserved. Call it right before each effect outside this program.
    ///
    /// # Errors
    /// Returns how the reservation was lost.
    pub fn guard(&self) -> Result<(), LeaseLost> {
        self.slip.pass()?.guard()
    }

    /// Returns a pass for concurrent work.
    ///
    /// # Errors
    /// Returns how the reservation was lost.
    pub fn pass(&self) -> Result<Pass, LeaseLost> {
        self.slip.pass()
    }

    /// Resolves when the reservation is lost or cancelled.
    pub async fn lost(&self) -> Loss {
        match self.slip.pass() {
            Ok(pass) => pass.lost().await,
            Err(lost) => lost.loss,
        }
    }

    /// Runs work that may continue only while the job is reserved, then cancels the reservation.
    ///
    /// If the reservation is lost or cancelled, the pass tells the work, which has five seconds to finish; then it is
    /// dropped. After a cancellation, others can reserve the job only after that. After a loss, the lease can end earlier.
    ///
    /// # Errors
    /// Returns how the reservation was lost, if that happened before the work ended. The result of the work is
    /// dropped then, because it was not protected.
    pub async fn run<T, Fut>(self, work: impl FnOnce(Pass) -> Fut) -> Result<T, LeaseLost>
    where
        Fut: Future<Output = T>,
    {
        let pass = self.slip.pass()?;
        let done = {
            let mut work = std::pin::pin!(work(pass.clone()));
            tokio::select! {
                biased;
                done = &mut work => Some(done),
                _ = pass.lost() => {
                    tokio::select! {
                        biased;
                        _ = &mut work => {}
                        () = self.tenure.pause_for(self.grace) => {}
                    }
                    None
                }
            }
        };
        pass.guard()?;
        drop(pass);
        // It was held until the work had ended. If it cannot be given back, it lapses.
        let _ = self.slip.cancel().await;
        done.ok_or_else(|| LeaseLost {
            name: self.slip.lease.clone(),
            fence: self.slip.fence,
            loss: Loss::Released,
        })
    }

    /// Cancels the reservation. Others can reserve the job as soon as the work under it has ended.
    ///
    /// # Errors
    /// [`Error::LeaseLost`] if the reservation was lost before, or a fault; it expires then.
    pub async fn cancel(self) -> Result<(), Error> {
        self.slip.cancel().await
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reservation({} fence {})", self.job(), self.fence())
    }
}
