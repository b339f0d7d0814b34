//! Leases: the ownership of names.
//!
//! A lease is a row with a time and a fence, as everything that is held. [`step`] is the one function
//! that decides what becomes of it; stores read the row, ask, and write what it answers.
//!
//! ```text
//!             acquire                 break, period > 0              its time
//!    Free ──────────────▶ Held ─────────────────────▶ Breaking ────────────────▶ Broken
//!     ▲                    │ ▲ └──── break now ─────────────────────────────────▶ │ │
//!     │               time │ │ renew (late), acquire                              │ │
//!     │                    ▼ │                                   acquire (a grant)│ │
//!     └───── release ──── Lapsed                                                  │ │
//!     └───── release ─────────────────────────────────────────────────────────────┘ │
//! ```
//! A grant, and nothing else, raises the fence. No row is ever deleted: the fence outlives all.

mod act;
mod guarded;
mod ledger;
mod line;
mod name;
mod step;
mod ttl;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use act::{Late, LeaseAct, LeaseOutcome, LeaseRefusal};
pub use guarded::{Access, Unfit, may_use};
pub use ledger::{Holding, LedgerEntry, LedgerNote, What, holding, holdings};
pub use line::Line;
pub use name::LeaseName;
pub use step::{Stepped, Ticket, step};
pub use ttl::Ttl;

use crate::{Fence, HostId, Invalid, Timestamp, invalid, limits};

/// Identifies one acquisition of a lease. The caller generates it, so that a request whose answer was lost can be
/// repeated safely. It is compared as a number, ignoring case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LeaseId(Uuid);

/// The holder of a lease, as shown to people and programs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Holder {
    /// The host, if the holder uses the store directly.
    pub host: Option<HostId>,
    /// Its name, such as `web-3 (pid 4711)`.
    pub who: String,
    /// User-defined metadata.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub meta: BTreeMap<String, String>,
}

/// A lease as a store has it. The row is never deleted.
#[derive(Debug, Clone, PartialEq)]
pub struct Lease {
    /// The name.
    pub name: LeaseName,
    /// The number of its last ownership.
    pub fence: Fence,
    /// The last ownership, until it is released or its name is forgotten.
    pub held: Option<Ownership>,
    /// Since when it has been free, if it was released or broken.
    pub freed: Timestamp,
    /// Whether somebody removed the name; it shows again when it is acquired.
    pub forgotten: bool,
}

/// One ownership of a lease.
#[derive(Debug, Clone, PartialEq)]
pub struct Ownership {
    /// The acquisition.
    pub id: LeaseId,
    /// Who.
    pub by: Holder,
    /// Since when.
    pub since: Timestamp,
    /// For how long at a time.
    pub ttl: Ttl,
    /// How far it has come.
    pub phase: Phase,
}

/// How far an ownership has come, as it was last written. Time may have passed since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It lasts until then; without end if `None`.
    Held {
        /// Unless renewed.
        until: Option<Timestamp>,
    },
    /// Somebody breaks it: it ends then and cannot be renewed.
    Breaking {
        /// When.
        until: Timestamp,
    },
    /// It was broken.
    Broken,
    /// It lapsed, and that is on record. Its holder may go on if nobody has had it since.
    Lapsed {
        /// When.
        at: Timestamp,
    },
}

/// The state of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeaseState {
    /// Free, and no earlier holder can continue.
    Free,
    /// Held.
    Held,
    /// Held until a break takes effect.
    Breaking,
    /// Broken, and not acquired since.
    Broken,
    /// Expired, and not acquired since. Its last holder can renew it late.
    Lapsed,
}

impl LeaseState {
    /// Returns `true` if nobody else can acquire it.
    #[must_use]
    pub fn is_locked(self) -> bool {
        match self {
            Self::Held | Self::Breaking => true,
            Self::Free | Self::Broken | Self::Lapsed => false,
        }
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Held => "held",
            Self::Breaking => "breaking",
            Self::Broken => "broken",
            Self::Lapsed => "lapsed",
        }
    }
}

impl fmt::Display for LeaseState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Lease {
    /// A name that nobody has held yet.
    #[must_use]
    pub fn fresh(name: LeaseName, now: Timestamp) -> Self {
        Self { name, fence: Fence::NONE, held: None, freed: now, forgotten: false }
    }

    /// Where it stands. At the very instant of its end it has ended.
    #[must_use]
    pub fn state(&self, now: Timestamp) -> LeaseState {
        match self.held.as_ref().map(|held| held.phase) {
            None => LeaseState::Free,
            Some(Phase::Held { until: Some(until) }) if cfg!(mutant = "lease-ends-late") && until == now => {
                LeaseState::Held
            }
            Some(Phase::Held { until: Some(until) }) if until <= now => LeaseState::Lapsed,
            Some(Phase::Lapsed { .. }) => LeaseState::Lapsed,
            Some(Phase::Held { .. }) => LeaseState::Held,
            Some(Phase::Breaking { until }) if until <= now => LeaseState::Broken,
            Some(Phase::Breaking { .. }) => LeaseState::Breaking,
            Some(Phase::Broken) => LeaseState::Broken,
        }
    }

    /// Until when it is or was locked, as far as that is known; `None` for one without end, and for one
    /// that is free or was broken at once.
    #[must_use]
    pub fn until(&self) -> Option<Timestamp> {
        match self.held.as_ref()?.phase {
            Phase::Held { until } => until,
            Phase::Breaking { until } | Phase::Lapsed { at: until } => Some(until),
            Phase::Broken => None,
        }
    }

    /// This lease after somebody noticed that it has lapsed, and the note of it; `None` if it has not, or
    /// if that is on record. What its holder may do is the same before and after.
    #[must_use]
    pub fn noticed(&self, now: Timestamp) -> Option<(Lease, LedgerNote)> {
        let note = step::lapse_of(self, now)?;
        let mut lease = self.clone();
        lease.held.as_mut()?.phase = Phase::Lapsed { at: note.at };
        Some((lease, note))
    }

    /// Since when nobody has had it, if nobody has.
    #[must_use]
    pub fn free_since(&self, now: Timestamp) -> Option<Timestamp> {
        match self.state(now) {
            LeaseState::Held | LeaseState::Breaking => None,
            LeaseState::Free => Some(self.freed),
            LeaseState::Lapsed => self.until(),
            LeaseState::Broken => Some(self.until().unwrap_or(self.freed)),
        }
    }
}

impl Holder {
    /// A holder by words alone.
    #[must_use]
    pub fn named(who: &str) -> Self {
        Self { who: who.to_owned(), ..Self::default() }
    }

    /// Accepts what is within the limits.
    ///
    /// # Errors
    /// Refuses too long words, and notes beyond the limits of a job's.
    pub fn check(&self) -> Result<(), Invalid> {
        invalid::at_most_bytes("holder", self.who.len(), limits::HOLDER_BYTES)?;
        if let Some(odd) = self.who.chars().find(|c| c.is_control()) {
            let allowed = "text without control characters";
            return Err(Invalid::new("holder", format_args!("invalid character {odd:?}"), allowed));
        }
        crate::terms::check_meta(&self.meta)
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.who.as_str(), self.host) {
            ("", None) => f.write_str("an unnamed holder"),
            ("", Some(host)) => write!(f, "host {host}"),
            (who, _) => f.write_str(who),
        }
    }
}

impl LeaseId {
    /// An id from 128 bits of chance.
    #[must_use]
    pub fn new(chance: [u64; 2]) -> Self {
        Self(uuid::Builder::from_random_bytes(bytes_of(chance)).into_uuid())
    }

    /// The id that is stored as these bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }

    /// The sixteen bytes of this id.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }
}

fn bytes_of(chance: [u64; 2]) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&chance[0].to_be_bytes());
    bytes[8..].copy_from_slice(&chance[1].to_be_bytes());
    bytes
}

impl From<Uuid> for LeaseId {
    fn from(id: Uuid) -> Self {
        Self(id)
    }
}

impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for LeaseId {
    type Err = Invalid;

    /// Reads a UUID in any of its usual forms, whatever its letters.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        Uuid::try_parse(text).map(Self).map_err(|_| {
            let shown = invalid::cut(text, 64);
            let allowed = "a UUID such as 0190f5c2-7b1e-4c3a-9f02-6a2d8c4e5b10";
            Invalid::new("lease id", format_args!("{shown:?}"), allowed)
        })
    }
}
