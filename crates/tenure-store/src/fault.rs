//! Why a store could not answer, by what to do next.

/// The error of a store that could not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Nothing was done. Retry later.
    #[error("store unavailable: {0}")]
    Unavailable(String),
    /// The outcome is unknown. Every call is safe to repeat.
    #[error("outcome unknown: {0}")]
    Unknown(String),
    /// The store needs repair before it works again.
    #[error("store unusable: {0}")]
    Broken(String),
    /// This program has closed the store.
    #[error("the store is closed")]
    Closed,
}

impl Fault {
    /// Returns `true` if a retry may help.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unavailable(_) | Self::Unknown(_) => true,
            Self::Broken(_) | Self::Closed => false,
        }
    }
}
