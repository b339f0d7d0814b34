//! What everybody sees of a lease that this program holds.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tenure_core::{Fence, LeaseId, LeaseName, Timestamp};
use tenure_sqlite::rusqlite::Connection;
use tenure_sqlite::{CheckInError, check_lease};
use tenure_store::{Clock, Moment};
use tokio_util::sync::CancellationToken;

use super::loss::{LeaseLost, Loss};

/// One ownership. Shared by its holder, the work under it, and the keeper that renews it.
#[derive(Debug)]
pub(super) struct Grip {
    pub(super) name: LeaseName,
    pub(super) id: LeaseId,
    pub(super) fence: Fence,
    clock: Arc<dyn Clock>,
    belief: Mutex<Belief>,
    lost: CancellationToken,
    loss: OnceLock<Loss>,
}

/// How long this host may believe that it holds the lease.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Belief {
    /// Until when, by its own clock that never steps; without end if `None`.
    pub(super) deadline: Option<Moment>,
    /// Until when the store has it on record.
    pub(super) until: Option<Timestamp>,
    /// Whether the last try to renew it failed.
    pub(super) doubtful: bool,
}

impl Grip {
    pub(super) fn new(
        (name, id, fence): (LeaseName, LeaseId, Fence),
        clock: Arc<dyn Clock>,
        belief: Belief,
    ) -> Self {
        let (belief, lost) = (Mutex::new(belief), CancellationToken::new());
        Self { name, id, fence, clock, belief, lost, loss: OnceLock::new() }
    }

    pub(super) fn belief(&self) -> Belief {
        *self.lock()
    }

    /// It is held for longer; answers how it was lost if it was.
    pub(super) fn renewed(&self, belief: Belief) -> Option<Loss> {
        match self.loss() {
            // Its holder has let go; work under it may still run.
            None | Some(Loss::Released) => {
                *self.lock() = belief;
                None
            }
            Some(loss) => Some(loss),
        }
    }

    /// The last try to renew it failed.
    pub(super) fn doubt(&self) {
        self.lock().doubtful = true;
    }

    pub(super) fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Whether it is held, as far as this host may believe. Looked up on the clock at each call, so that
    /// it turns false on time even if whoever renews it hangs.
    pub(super) fn guard(&self) -> Result<(), LeaseLost> {
        self.loss().map_or(Ok(()), |loss| Err(self.lost_by(loss)))
    }

    /// Verifies it in somebody's own transaction on the store's file.
    pub(super) fn check_in(&self, conn: &Connection) -> Result<(), CheckInError> {
        // What this host does not believe in any more is not asked about: it shall have stopped by now.
        self.guard().map_err(|_| CheckInError::Lost)?;
        check_lease(conn, &self.name, self.id, self.fence, self.clock.now())
    }

    /// How it went; `None` while it is held.
    pub(super) fn loss(&self) -> Option<Loss> {
        if let Some(loss) = self.loss.get() {
            return Some(*loss);
        }
        let (now, deadline) = (self.clock.moment(), self.belief().deadline?);
        if now < deadline {
            return None;
        }
        let at = self.clock.now().before(now.since(deadline));
        Some(self.lose(Loss::Expired { at }))
    }

    /// It is lost. The first word on how stands and is answered.
    pub(super) fn lose(&self, loss: Loss) -> Loss {
        let stands = *self.loss.get_or_init(|| loss);
        self.lost.cancel();
        stands
    }

    /// Resolves when it is lost: by the word of the keeper, or at its deadline without one.
    pub(super) async fn lost(&self) -> Loss {
        loop {
            if let Some(loss) = self.loss() {
                return loss;
            }
            let deadline = self.belief().deadline;
            tokio::select! {
                biased;
                () = self.lost.cancelled() => {}
                () = self.until(deadline) => {}
            }
        }
    }

    async fn until(&self, deadline: Option<Moment>) {
        match deadline {
            Some(deadline) => self.clock.sleep(deadline.since(self.clock.moment())).await,
            None => std::future::pending().await,
        }
    }

    pub(super) fn lost_by(&self, loss: Loss) -> LeaseLost {
        LeaseLost { name: self.name.clone(), fence: self.fence, loss }
    }

    fn lock(&self) -> MutexGuard<'_, Belief> {
        self.belief.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
