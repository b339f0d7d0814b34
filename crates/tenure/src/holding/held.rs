//! A lease that is held, and what work gets to see of it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{Fence, LeaseId, LeaseName, Timestamp};
use tenure_sqlite::CheckInError;
use tenure_sqlite::rusqlite::Connection;

use super::grip::Grip;
use super::hand::Hand;
use super::loss::{LeaseLost, Loss};
use crate::Error;

/// A lease that this program holds.
///
/// It is renewed in the background for as long as this or one of its [passes](Held::pass) lives. When the
/// last of them is dropped it is given back, and not before: nobody else gets it while work under it may
/// still run. [`Held::release`] gives it back and tells how that went.
///
/// A holder can lose it, and is told: by [`Held::lost`], by [`Held::is_held`], which compares the clock at
/// each call, and by [`Held::guard`] before each effect. All of them are about what this host may believe.
/// Only the [fence](Held::fence) is proof: whoever keeps what the lease guards refuses an older one.
#[must_use = "a lease is given back when it is dropped"]
pub struct Held {
    hand: Arc<Hand>,
    grace: Duration,
}

/// What work under a lease gets: the same looks as its holder has. As long as one lives, the lease is not
/// given back. Cloning it is cheap.
#[derive(Clone)]
pub struct Pass {
    hand: Arc<Hand>,
}

impl Held {
    pub(super) fn new(hand: Hand, grace: Duration) -> Self {
        Self { hand: Arc::new(hand), grace }
    }

    fn grip(&self) -> &Grip {
        self.hand.grip()
    }

    /// The lease.
    #[must_use]
    pub fn name(&self) -> &LeaseName {
        &self.grip().name
    }

    /// The acquisition.
    #[must_use]
    pub fn id(&self) -> LeaseId {
        self.grip().id
    }

    /// The number of this ownership, greater than that of every earlier one of this name.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.grip().fence
    }

    /// Until when the store had it on record when it last answered; without end if `None`.
    #[must_use]
    pub fn until(&self) -> Option<Timestamp> {
        self.grip().belief().until
    }

    /// Whether it is held, as far as this host may believe. It turns false at the deadline even if
    /// everything else hangs, and never true again.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.loss().is_none()
    }

    /// Whether it is held, but the last try to renew it failed.
    #[must_use]
    pub fn is_doubtful(&self) -> bool {
        self.is_held() && self.grip().belief().doubtful
    }

    /// How it was lost; `None` while it is held.
    #[must_use]
    pub fn loss(&self) -> Option<Loss> {
        self.grip().loss()
    }

    /// Resolves when it is lost.
    pub fn lost(&self) -> impl Future<Output = Loss> + Send + '_ {
        self.grip().lost()
    }

    /// The check at the boundary: to be made right before each effect outside of this program.
    ///
    /// # Errors
    /// Says how it was lost.
    pub fn guard(&self) -> Result<(), LeaseLost> {
        self.grip().guard()
    }

    /// Verifies in a transaction of one's own on the store's SQLite file that the lease is held. From then until
    /// the transaction has ended nobody else can take it: what is written in it is never written late.
    ///
    /// To be called before anything else in a transaction that began with `BEGIN IMMEDIATE`.
    ///
    /// # Errors
    /// Says why nothing may be written. Roll back, whatever it is.
    pub fn check_in(&self, conn: &Connection) -> Result<(), CheckInError> {
        self.grip().check_in(conn)
    }

    /// A pass for work that runs beside this.
    #[must_use]
    pub fn pass(&self) -> Pass {
        Pass { hand: Arc::clone(&self.hand) }
    }

    /// Runs work that may go on only while the lease is held, then gives the lease back.
    ///
    /// If the lease is lost, the work is told by its pass and has the [grace](crate::Hold::grace) to come
    /// to an end; then it is dropped. Whatever happens, a panic included, the lease is given back only
    /// after the work has ended or was dropped.
    ///
    /// # Errors
    /// How the lease was lost, if it was before the work had ended. What the work answered is dropped
    /// then: it was not protected.
    pub async fn run<T, Fut>(self, work: impl FnOnce(Pass) -> Fut) -> Result<T, LeaseLost>
    where
        Fut: Future<Output = T>,
    {
        let done = {
            let mut work = std::pin::pin!(work(self.pass()));
            tokio::select! {
                biased;
                done = &mut work => Some(done),
                _ = self.lost() => {
                    // Whatever it still answers was done without protection.
                    tokio::select! {
                        biased;
                        _ = &mut work => {}
                        () = self.grip().clock().sleep(self.grace) => {}
                    }
                    None
                }
            }
        };
        let (Some(done), Ok(())) = (done, self.guard()) else {
            let loss = self.grip().lost().await;
            return Err(self.grip().lost_by(loss));
        };
        match self.release().await {
            Err(Error::LeaseLost(lost)) => Err(lost),
            // It was held until the work had ended; if it could not be given back, it lapses.
            Ok(()) | Err(_) => Ok(done),
        }
    }

    /// Gives it back, as soon as the last [pass](Held::pass) is gone; those that live are told that it is
    /// over. What the reply was lost of is asked again.
    ///
    /// # Errors
    /// [`Error::LeaseLost`] if it had been lost before. A fault if the store did not answer before the
    /// lease lapsed by itself: then others can have it all the same.
    pub async fn release(self) -> Result<(), Error> {
        Hand::release(self.hand).await
    }
}

impl Pass {
    fn grip(&self) -> &Grip {
        self.hand.grip()
    }

    /// The lease.
    #[must_use]
    pub fn name(&self) -> &LeaseName {
        &self.grip().name
    }

    /// The acquisition.
    #[must_use]
    pub fn id(&self) -> LeaseId {
        self.grip().id
    }

    /// The number of this ownership, greater than that of every earlier one of this name.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.grip().fence
    }

    /// As [`Held::is_held`].
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.loss().is_none()
    }

    /// As [`Held::loss`].
    #[must_use]
    pub fn loss(&self) -> Option<Loss> {
        self.grip().loss()
    }

    /// Resolves when the lease is lost: then the work shall come to an end.
    pub fn lost(&self) -> impl Future<Output = Loss> + Send + '_ {
        self.grip().lost()
    }

    /// As [`Held::guard`].
    ///
    /// # Errors
    /// Says how the lease was lost.
    pub fn guard(&self) -> Result<(), LeaseLost> {
        self.grip().guard()
    }

    /// As [`Held::check_in`].
    ///
    /// # Errors
    /// Says why nothing may be written. Roll back, whatever it is.
    pub fn check_in(&self, conn: &Connection) -> Result<(), CheckInError> {
        self.grip().check_in(conn)
    }

    /// Waits so long by the injected clock, or until the lease is lost.
    ///
    /// # Errors
    /// Says how the lease was lost.
    pub async fn sleep(&self, span: Duration) -> Result<(), LeaseLost> {
        tokio::select! {
            biased;
            loss = self.lost() => Err(self.grip().lost_by(loss)),
            () = self.grip().clock().sleep(span) => Ok(()),
        }
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Held({} fence {})", self.name(), self.fence())
    }
}

impl fmt::Debug for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pass({} fence {})", self.name(), self.fence())
    }
}
