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

/// A cause of a fault that a client may learn: it names no file, host or table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultCause {
    /// The disk of the store has no room.
    DiskFull,
    /// The store accepts no writes.
    ReadOnly,
    /// The database server accepts no more connections.
    TooManyConnections,
    /// The store's process has no memory left.
    OutOfMemory,
    /// The store took too long.
    NoAnswer,
    /// A stored value cannot be read. All others can.
    UnreadableData,
}

impl FaultCause {
    // The text about an unreadable value quotes that value, and so may contain the words for any other cause.
    const ALL: [Self; 6] = [
        Self::UnreadableData,
        Self::DiskFull,
        Self::ReadOnly,
        Self::TooManyConnections,
        Self::OutOfMemory,
        Self::NoAnswer,
    ];

    /// Returns the words for it. A store that knows the cause of a [`Fault`] writes them into its text.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DiskFull => "disk full",
            Self::ReadOnly => "database is read-only",
            Self::TooManyConnections => "too many database connections",
            Self::OutOfMemory => "out of memory",
            Self::UnreadableData => "unreadable data",
            Self::NoAnswer => "the database did not answer in time",
        }
    }
}

impl Fault {
    /// Returns the cause, if the store knows one that a client may learn.
    #[must_use]
    pub fn cause(&self) -> Option<FaultCause> {
        match self {
            Self::Unavailable(text) | Self::Unknown(text) | Self::Broken(text) => {
                FaultCause::ALL.into_iter().find(|cause| text.contains(cause.as_str()))
            }
            Self::Closed => None,
        }
    }

    /// Returns `true` if a retry may help.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unavailable(_) | Self::Unknown(_) => true,
            Self::Broken(_) | Self::Closed => false,
        }
    }
}
