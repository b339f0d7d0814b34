//! What can be done with a lease, and what came of it.

use std::fmt;
use std::time::Duration;

use crate::{Fence, Holder, Invalid, LeaseId, Timestamp, Ttl, delay_of};

/// One wish about one lease.
#[derive(Debug, Clone, PartialEq)]
pub enum LeaseAct {
    /// Have it.
    Acquire {
        /// This acquisition. With the id of the present holder the time starts again, as long as given.
        id: LeaseId,
        /// Who wants it.
        by: Holder,
        /// For how long.
        ttl: Ttl,
        /// If it cannot be had: to keep a place in line for so long, or for two thirds of that if it was
        /// kept before.
        wait: Option<Duration>,
    },
    /// Go on having it for as long as it was taken for.
    Renew {
        /// The acquisition.
        id: LeaseId,
        /// The number of the ownership.
        fence: Fence,
        /// What if its time is over.
        late: Late,
    },
    /// Have it under another id from now on. Its time does not change.
    Change {
        /// The acquisition.
        id: LeaseId,
        /// The number of the ownership.
        fence: Fence,
        /// The new id.
        to: LeaseId,
    },
    /// Give it back.
    Release {
        /// The acquisition.
        id: LeaseId,
        /// The number of the ownership.
        fence: Fence,
    },
    /// Take it from whoever has it, after a while at the longest.
    Break {
        /// How long its holder has to come to an end; what is left of its time counts if that is less.
        /// `None` is what is left, and nothing if it has no end.
        within: Option<Duration>,
        /// Who asks.
        by: Holder,
        /// Why.
        reason: String,
    },
    /// Want it no longer: give up a place in line, and the lease itself if it was granted to this
    /// acquisition meanwhile. For whoever never heard of the grant: its holder releases it by its fence.
    Leave {
        /// The acquisition that waited.
        id: LeaseId,
    },
    /// Remove a name that nobody holds. Its fence is remembered.
    Forget {
        /// Who asks.
        by: Holder,
    },
}

impl LeaseAct {
    /// Accepts a wish that is within the limits.
    ///
    /// # Errors
    /// Names the first value that is not.
    pub fn check(&self) -> Result<(), Invalid> {
        match self {
            Self::Acquire { by, ttl, wait, .. } => {
                by.check()?;
                ttl.check()?;
                wait.map_or(Ok(()), |span| delay_of("wait", span).map(drop))
            }
            Self::Break { within, by, .. } => {
                by.check()?;
                within.map_or(Ok(()), |span| delay_of("within", span).map(drop))
            }
            Self::Forget { by } => by.check(),
            Self::Renew { .. } | Self::Change { .. } | Self::Release { .. } | Self::Leave { .. } => Ok(()),
        }
    }
}

/// What becomes of a renewal that comes after the lease has lapsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Late {
    /// It is refused, even if nobody has taken it: the holder has stopped believing.
    Refused,
    /// It counts if nobody has had it in between, and the holder is told.
    Counts,
}

/// What came of one wish.
#[derive(Debug, Clone, PartialEq)]
pub enum LeaseOutcome {
    /// It is held by this acquisition, under this fence.
    Granted {
        /// The number of the ownership.
        fence: Fence,
        /// Until when, by the store's clock; without end if `None`.
        until: Option<Timestamp>,
    },
    /// It is held for longer.
    Renewed {
        /// Until when.
        until: Option<Timestamp>,
    },
    /// It is held for longer; for a while nobody had it, and anybody could have.
    RenewedLate {
        /// Until when.
        until: Option<Timestamp>,
        /// When it had lapsed.
        lapsed: Timestamp,
    },
    /// It has the new id, until when it was held before.
    Changed {
        /// Until when.
        until: Option<Timestamp>,
    },
    /// It is free.
    Released,
    /// It can be had by others from then on.
    Breaks {
        /// When.
        free: Timestamp,
    },
    /// It has no place in line and does not hold it, whatever it had before.
    Left,
    /// Its name is removed, or was never there.
    Forgotten,
    /// No.
    Refused(LeaseRefusal),
}

/// Why a wish about a lease was not granted. Each is another thing to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseRefusal {
    /// Somebody else has it.
    Held {
        /// Who.
        by: Holder,
        /// Under which fence.
        fence: Fence,
        /// Since when.
        since: Timestamp,
        /// Until when, unless renewed; without end if `None`.
        until: Option<Timestamp>,
        /// How many others wait for it.
        waiting: u32,
    },
    /// It is being broken: it can be neither taken, renewed nor changed.
    Breaking {
        /// When it will be free.
        until: Timestamp,
    },
    /// It is free, and left to those who came before for a moment.
    Awaited {
        /// How many those are.
        ahead: u32,
        /// When to try again.
        again: Timestamp,
    },
    /// It is held under this fence by another id, or this fence was never granted.
    WrongId,
    /// It was this one's, and it was granted again since.
    Lost {
        /// The number of the last ownership.
        fence: Fence,
    },
    /// Its time is over, though nobody has taken it.
    Lapsed {
        /// When.
        at: Timestamp,
    },
    /// Somebody broke it.
    Broken,
    /// Nobody holds it under any id.
    NotHeld,
}

impl fmt::Display for LeaseRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held { by, since, until, .. } => {
                write!(f, "it is held by {by} since {since}")?;
                match until {
                    Some(until) => write!(f, ", until {until} unless renewed"),
                    None => f.write_str(", without end"),
                }
            }
            Self::Breaking { until } => write!(f, "it is being broken and free at {until}"),
            Self::Awaited { ahead, again } => {
                write!(f, "it is free, but {ahead} came before; try again at {again}")
            }
            Self::WrongId => f.write_str("it is not held under this id"),
            Self::Lost { fence } => write!(f, "it was lost: its last ownership has fence {fence}"),
            Self::Lapsed { at } => write!(f, "it lapsed at {at}"),
            Self::Broken => f.write_str("somebody broke it"),
            Self::NotHeld => f.write_str("nobody holds it"),
        }
    }
}
