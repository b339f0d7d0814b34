//! A job that is reserved.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure_core::{Fence, LeaseName, Timestamp};

use crate::{Error, Held, LeaseLost, Loss, Pass, Tenure};

/// A job that this reserver has. It is renewed for as long as this, or work under it, lives; then it can be
/// reserved by others.
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
    /// The job.
    #[must_use]
    pub fn job(&self) -> &str {
        &self.slip.job
    }

    /// The number of this ownership, greater than that of every earlier one of this job.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.slip.fence
    }

    /// Until when the store had it on record when it last answered.
    #[must_use]
    pub fn until(&self) -> Option<Timestamp> {
        self.slip.lock().as_ref().and_then(Held::until)
    }

    /// Whether it is held, as far as this host may believe. It turns false on time even if everything else
    /// hangs.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.slip.is_held()
    }

    /// The check at the boundary: to be made right before each effect outside of this program.
    ///
    /// # Errors
    /// Says how the reservation was lost.
    pub fn guard(&self) -> Result<(), LeaseLost> {
        self.slip.pass()?.guard()
    }

    /// A pass for work that runs beside this.
    ///
    /// # Errors
    /// Says how the reservation was lost.
    pub fn pass(&self) -> Result<Pass, LeaseLost> {
        self.slip.pass()
    }

    /// Resolves when it is lost, or cancelled.
    pub async fn lost(&self) -> Loss {
        match self.slip.pass() {
            Ok(pass) => pass.lost().await,
            Err(lost) => lost.loss,
        }
    }

    /// Runs work that may go on only while the job is reserved, then cancels the reservation.
    ///
    /// If it is lost or cancelled, the work is told by its pass and has five seconds to come to an end;
    /// then it is dropped. Only after that can others reserve the job.
    ///
    /// # Errors
    /// How the reservation was lost, if it was before the work had ended. What the work answered is dropped
    /// then: it was not protected.
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

    /// Cancels it: others can reserve the job, as soon as the work under it has ended.
    ///
    /// # Errors
    /// [`Error::LeaseLost`] if it had been lost before, or a fault: then it lapses.
    pub async fn cancel(self) -> Result<(), Error> {
        self.slip.cancel().await
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reservation({} fence {})", self.job(), self.fence())
    }
}
