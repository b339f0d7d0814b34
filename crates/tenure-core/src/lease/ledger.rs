//! The ledger: the record of who held what, from when to when, and how it ended. It is only added to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Fence, Holder, LeaseName, Timestamp};

/// An event in the history of a lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerNote {
    /// When it happened. A lapse is noticed later than it happens.
    pub at: Timestamp,
    /// The lease.
    pub name: LeaseName,
    /// The ownership that it is about.
    pub fence: Fence,
    /// What.
    pub what: What,
    /// Who: the holder, or whoever was refused or asked for it.
    pub by: Holder,
    /// Since when that ownership had lasted.
    pub since: Option<Timestamp>,
    /// Until when it was to last then; without end, or over, if `None`.
    pub until: Option<Timestamp>,
    /// Why, in words; often empty.
    pub note: String,
}

/// A history event with its number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerEntry {
    /// Its number: later notes have greater ones.
    pub number: u64,
    /// The note.
    #[serde(flatten)]
    pub note: LedgerNote,
}

/// The type of an event in the history of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// A free lease was acquired.
    Acquired,
    /// A lapsed or broken lease was acquired.
    TookOver,
    /// The holder renewed the lease after it had lapsed and before anybody else acquired it.
    RenewedLate,
    /// The holder changed the ID.
    Changed,
    /// A request was refused; recorded once per ownership and host.
    Refused,
    /// A break was requested.
    Broke,
    /// The lease expired.
    Lapsed,
    /// The holder released the lease.
    Released,
    /// The name was removed.
    Forgotten,
}

impl What {
    /// All, in the order of a lease's life.
    pub const ALL: [Self; 9] = [
        Self::Acquired,
        Self::TookOver,
        Self::RenewedLate,
        Self::Changed,
        Self::Refused,
        Self::Broke,
        Self::Lapsed,
        Self::Released,
        Self::Forgotten,
    ];

    /// The name as text.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Acquired => "acquired",
            Self::TookOver => "took_over",
            Self::RenewedLate => "renewed_late",
            Self::Changed => "changed",
            Self::Refused => "refused",
            Self::Broke => "broke",
            Self::Lapsed => "lapsed",
            Self::Released => "released",
            Self::Forgotten => "forgotten",
        }
    }

    /// Whether an ownership begins with it.
    #[must_use]
    pub fn begins(self) -> bool {
        matches!(self, Self::Acquired | Self::TookOver)
    }

    /// Whether an ownership ends with it, at the time that its note tells.
    #[must_use]
    pub fn ends(self) -> bool {
        matches!(self, Self::Broke | Self::Lapsed | Self::Released)
    }
}

/// One ownership of a lease from beginning to end, as recorded in the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holding {
    /// The lease.
    pub name: LeaseName,
    /// The fencing token.
    pub fence: Fence,
    /// The holder.
    pub by: Holder,
    /// Time of acquisition.
    pub from: Timestamp,
    /// Time of the end; `None` if no end is recorded.
    pub to: Option<Timestamp>,
    /// How it ended.
    pub end: Option<What>,
}

/// Makes a holding of the note with which it began and the one with which it ended: the last that
/// [ends](What::ends) it, for what is broken with a period may be given back sooner.
///
/// A holding that was broken with a period ended when the period was over.
#[must_use]
pub fn holding(began: &LedgerNote, ended: Option<&LedgerNote>) -> Holding {
    Holding {
        name: began.name.clone(),
        fence: began.fence,
        by: began.by.clone(),
        from: began.at,
        to: ended.map(LedgerNote::ended_at),
        end: ended.map(|note| note.what),
    }
}

/// The holdings that these notes tell, as they began. Notes of a holding whose beginning is not among
/// them tell nothing.
#[must_use]
pub fn holdings<'a>(notes: impl IntoIterator<Item = &'a LedgerNote>) -> Vec<Holding> {
    let mut told: Vec<Holding> = Vec::new();
    let mut places: BTreeMap<(&LeaseName, Fence), usize> = BTreeMap::new();
    for note in notes {
        if note.what.begins() {
            places.insert((&note.name, note.fence), told.len());
            told.push(holding(note, None));
            continue;
        }
        let Some(holding) = places.get(&(&note.name, note.fence)).and_then(|place| told.get_mut(*place))
        else {
            continue;
        };
        if note.what.ends() {
            (holding.to, holding.end) = (Some(note.ended_at()), Some(note.what));
        } else if note.what == What::RenewedLate {
            // Nobody had it in between.
            (holding.to, holding.end) = (None, None);
        }
    }
    told
}

impl LedgerNote {
    /// When the ownership was over that ends with this note.
    fn ended_at(&self) -> Timestamp {
        match self.what {
            What::Broke => self.until.unwrap_or(self.at),
            What::Acquired
            | What::TookOver
            | What::RenewedLate
            | What::Changed
            | What::Refused
            | What::Lapsed
            | What::Released
            | What::Forgotten => self.at,
        }
    }
}
