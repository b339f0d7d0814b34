//! The use of what a lease guards: who may read and write it.

use super::step::lapse_of;
use crate::{Fence, Lease, LeaseId, LeaseState, LedgerNote, Timestamp};

/// What somebody wants to do with what a lease guards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// See it.
    Read,
    /// Change it.
    Write,
}

/// Why somebody may not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// It is held, and no ownership was named.
    #[error("the lease is held, and the request names no lease")]
    Missing,
    /// It is held by somebody else.
    #[error("the lease is held by another owner")]
    Mismatch,
    /// The ownership that was named is over.
    #[error("the lease named in the request is no longer held")]
    Lost,
}

/// Whether what a lease guards may be used by somebody who names this ownership, or none.
///
/// A write without an ownership makes a lapsed or broken lease free for good: whoever had it cannot renew
/// it late any more, and whoever keeps the resource has to write that down ([`Lease::touched`]).
///
/// # Errors
/// Says why not.
pub fn may_use(
    lease: &Lease,
    access: Access,
    claim: Option<(LeaseId, Fence)>,
    now: Timestamp,
) -> Result<(), Unfit> {
    let by_fence = |fence| lease.fence == fence || cfg!(mutant = "guard-ignores-fence");
    let is_mine = |(id, fence)| lease.held.as_ref().is_some_and(|held| held.id == id) && by_fence(fence);
    match (lease.state(now).is_locked(), claim) {
        (true, Some(claim)) if is_mine(claim) => Ok(()),
        (true, Some(_)) => Err(Unfit::Mismatch),
        (true, None) if access == Access::Read => Ok(()),
        (true, None) => Err(Unfit::Missing),
        (false, Some(_)) => Err(Unfit::Lost),
        (false, None) => Ok(()),
    }
}

impl Lease {
    /// This lease after what it guards was written by somebody who names no ownership, and what is to be
    /// added to the ledger.
    #[must_use]
    pub fn touched(mut self, now: Timestamp) -> (Self, Option<LedgerNote>) {
        let lapsed = lapse_of(&self, now);
        match self.state(now) {
            LeaseState::Lapsed | LeaseState::Broken => {
                self.freed = self.free_since(now).unwrap_or(now);
                self.held = None;
            }
            LeaseState::Free | LeaseState::Held | LeaseState::Breaking => {}
        }
        (self, lapsed)
    }
}
