//! How a holder stops being one.

use std::fmt;

use tenure_core::{Fence, LeaseName, Timestamp};

/// How a lease went that somebody held. It never comes back: a new grant is a new fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Somebody else has had it since.
    TakenAway {
        /// The number of the last ownership that is known.
        fence: Fence,
    },
    /// Somebody breaks it, or did.
    Broken,
    /// Its time was over before a renewal got through.
    Expired {
        /// When, by this host's time of day.
        at: Timestamp,
    },
    /// It was given back: by its holder, or by somebody else who knows its id.
    Released,
    /// The handle was closed.
    Closed,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TakenAway { fence } => write!(f, "it was taken away: its last ownership has fence {fence}"),
            Self::Broken => f.write_str("somebody broke it"),
            Self::Expired { at } => write!(f, "its time was over at {at}, before a renewal got through"),
            Self::Released => f.write_str("it was given back"),
            Self::Closed => f.write_str("the handle on the store was closed"),
        }
    }
}

/// A lease is not held any more by whoever goes on as if it were.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("lease {name} is not held any more under fence {fence}: {loss}")]
pub struct LeaseLost {
    /// The lease.
    pub name: LeaseName,
    /// The number of the ownership that is over.
    pub fence: Fence,
    /// How it went.
    pub loss: Loss,
}
