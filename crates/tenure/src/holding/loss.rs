//! How a holder stops being one.

use std::fmt;

use tenure_core::{Fence, LeaseName, Timestamp};

/// How a lease was lost. A lost lease never comes back: a new grant has a new fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Another owner has acquired the lease.
    TakenAway {
        /// The latest known fencing token.
        fence: Fence,
    },
    /// The lease was broken, or is being broken.
    Broken,
    /// The lease expired before it was renewed.
    Expired {
        /// Expiry time, by this host's clock.
        at: Timestamp,
    },
    /// The lease was released, by its holder or by a caller that knows its ID.
    Released,
    /// The store handle was closed.
    Closed,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TakenAway { fence } => write!(f, "taken over by an owner with fencing token {fence}"),
            Self::Broken => f.write_str("it was broken"),
            Self::Expired { at } => write!(f, "it expired at {at} before it was renewed"),
            Self::Released => f.write_str("it was released"),
            Self::Closed => f.write_str("the connection to the store was closed"),
        }
    }
}

/// The error of a lease that is no longer held.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("lost lease {name} with fencing token {fence}: {loss}")]
pub struct LeaseLost {
    /// The lease.
    pub name: LeaseName,
    /// The fencing token that is no longer valid.
    pub fence: Fence,
    /// How the lease was lost.
    pub loss: Loss,
}
