//! Why a store could not answer, by what to do next.

/// The store could not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Nothing was done. Try again later.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// It is not known whether it was done. Every call may be repeated: repeating is harmless.
    #[error("the store did not tell how it went: {0}")]
    Unknown(String),
    /// It will not work again before a person has looked at it.
    #[error("the store cannot be used: {0}")]
    Broken(String),
    /// The store was closed by this program.
    #[error("the store is closed")]
    Closed,
}

impl Fault {
    /// Whether trying again may help.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unavailable(_) | Self::Unknown(_) => true,
            Self::Broken(_) | Self::Closed => false,
        }
    }
}
