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

/// The reason for which a lease request was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseRefusal {
    /// Another owner holds the lease.
    Held {
        /// The holder.
        by: Holder,
        /// Its fencing token.
        fence: Fence,
        /// Time of its acquisition.
        since: Timestamp,
        /// Expiry time, unless renewed; `None` for a lease without expiry.
        until: Option<Timestamp>,
        /// Number of other waiters.
        waiting: u32,
    },
    /// The lease is being broken, so it cannot be acquired, renewed or changed.
    Breaking {
        /// Time at which it will be free.
        until: Timestamp,
    },
    /// The lease is free, but reserved for earlier waiters for a moment.
    Awaited {
        /// Number of earlier waiters.
        ahead: u32,
        /// Time of the next try.
        again: Timestamp,
    },
    /// The lease is held under this fence by another ID, or this fence was never granted.
    WrongId,
    /// The lease was held by this acquisition and has been granted again since.
    Lost {
        /// The latest fencing token.
        fence: Fence,
    },
    /// The lease has expired, although nobody else has acquired it.
    Lapsed {
        /// Expiry time.
        at: Timestamp,
    },
    /// The lease was broken.
    Broken,
    /// The lease is not held.
    NotHeld,
}

impl fmt::Display for LeaseRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held { by, since, until, .. } => {
                write!(f, "held by {by} since {since}")?;
                match until {
                    Some(until) => write!(f, ", until {until} unless renewed"),
                    None => f.write_str(", without expiry"),
                }
            }
            Self::Breaking { until } => write!(f, "being broken; free at {until}"),
            Self::Awaited { ahead, again } => {
                write!(f, "free, but reserved for {ahead} earlier waiters; retry at {again}")
            }
            Self::WrongId => f.write_str("not held under this ID"),
            Self::Lost { fence } => write!(f, "lost; it was granted again under fencing token {fence}"),
            Self::Lapsed { at } => write!(f, "lapsed at {at}"),
            Self::Broken => f.write_str("it was broken"),
            Self::NotHeld => f.write_str("not held"),
        }
    }
}
