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
use crate::{Error, Moment};

/// A lease held by this program.
///
/// The lease is renewed in the background as long as this value or one of its [passes](Held::pass) lives. It is
/// released when the last of them is dropped, so nobody else acquires it while work under it may still run.
/// [`Held::release`] releases it and reports the result.
///
/// A holder can lose its lease. [`Held::lost`] resolves then, [`Held::is_held`] compares the clock at each call, and
/// [`Held::guard`] is the check before each effect. All three describe the view of this host. Only the
/// [fence](Held::fence) is proof: the protected resource must reject older ones.
#[must_use = "a lease is released when it is dropped"]
pub struct Held {
    hand: Arc<Hand>,
    grace: Duration,
}

/// A cheap, cloneable view of a held lease for the work under it. The lease is not released while a pass lives.
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

    /// Returns the lease name.
    #[must_use]
    pub fn name(&self) -> &LeaseName {
        &self.grip().name
    }

    /// Returns the ID of this acquisition.
    #[must_use]
    pub fn id(&self) -> LeaseId {
        self.grip().id
    }

    /// Returns the fencing token, which is greater than that of every earlier holder of this name.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.grip().fence
    }

    /// Returns the expiry time at the last answer of the store; `None` for a lease without expiry.
    #[must_use]
    pub fn until(&self) -> Option<Timestamp> {
        self.grip().belief().until
    }

    /// Returns `true` while the lease is held, as far as this host can know. It turns false at the deadline even if
    /// everything else hangs, and never true again.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.loss().is_none()
    }

    /// Returns `true` if the lease is held, but the last renewal failed.
    #[must_use]
    pub fn is_doubtful(&self) -> bool {
        self.is_held() && self.grip().belief().doubtful
    }

    /// Returns how the lease was lost; `None` while it is held.
    #[must_use]
    pub fn loss(&self) -> Option<Loss> {
        self.grip().loss()
    }

    /// Resolves when the lease is lost.
    pub fn lost(&self) -> impl Future<Output = Loss> + Send + '_ {
        self.grip().lost()
    }

    /// Checks that the lease is held. Call it right before each effect outside this program.
    ///
    /// # Errors
    /// Returns how the lease was lost.
    pub fn guard(&self) -> Result<(), LeaseLost> {
        self.grip().guard()
    }

    /// Checks, within your own transaction on the store's SQLite file, that the lease is held. Nobody else can
    /// acquire the lease before the transaction ends, so its writes are never late.
    ///
    /// Call it first in a transaction that began with `BEGIN IMMEDIATE`.
    ///
    /// # Errors
    /// Returns why nothing may be written. Roll back on any error.
    pub fn check_in(&self, conn: &Connection) -> Result<(), CheckInError> {
        self.grip().check_in(conn)
    }

    /// Returns a pass for concurrent work.
    #[must_use]
    pub fn pass(&self) -> Pass {
        Pass { hand: Arc::clone(&self.hand) }
    }

    /// Runs work that may continue only while the lease is held, then releases the lease.
    ///
    /// If the lease is lost, the pass tells the work, which has the [grace period](crate::Hold::grace) to finish;
    /// then it is dropped. The lease is released only after the work has ended or was dropped, even after a panic.
    ///
    /// # Errors
    /// Returns how the lease was lost, if that happened before the work ended. The result of the work is dropped
    /// then, because it was not protected.
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

    /// Releases the lease as soon as the last [pass](Held::pass) is gone; live passes are told that it is over. A
    /// request whose answer is lost is repeated.
    ///
    /// # Errors
    /// [`Error::LeaseLost`] if the lease was lost before. A fault if the store did not answer before the lease
    /// expired; others can acquire it then anyway.
    pub async fn release(self) -> Result<(), Error> {
        Hand::release(self.hand).await
    }
}

impl Pass {
    fn grip(&self) -> &Grip {
        self.hand.grip()
    }

    /// Returns the lease name.
    #[must_use]
    pub fn name(&self) -> &LeaseName {
        &self.grip().name
    }

    /// Returns the ID of this acquisition.
    #[must_use]
    pub fn id(&self) -> LeaseId {
        self.grip().id
    }

    /// Returns the fencing token, which is greater than that of every earlier holder of this name.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.grip().fence
    }

    /// Like [`Held::is_held`].
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.loss().is_none()
    }

    /// Returns the time on this host's monotonic clock until which the lease is held unless it is renewed; `None` for a
    /// lease without expiry. Pass it to a process that must not outlive the lease.
    #[must_use]
    pub fn held_until(&self) -> Option<Moment> {
        self.grip().belief().deadline
    }

    /// Like [`Held::loss`].
    #[must_use]
    pub fn loss(&self) -> Option<Loss> {
        self.grip().loss()
    }

    /// Resolves when the lease is lost and the work must stop.
    pub fn lost(&self) -> impl Future<Output = Loss> + Send + '_ {
        self.grip().lost()
    }

    /// Like [`Held::guard`].
    ///
    /// # Errors
    /// Returns how the lease was lost.
    pub fn guard(&self) -> Result<(), LeaseLost> {
        self.grip().guard()
    }

    /// Like [`Held::check_in`].
    ///
    /// # Errors
    /// Returns why nothing may be written. Roll back on any error.
    pub fn check_in(&self, conn: &Connection) -> Result<(), CheckInError> {
        self.grip().check_in(conn)
    }

    /// Sleeps by the injected clock, or until the lease is lost.
    ///
    /// # Errors
    /// Returns how the lease was lost.
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
