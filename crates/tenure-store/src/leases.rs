//! What can be done with leases, and what the ledger tells of them.

use serde::Serialize;
use tenure_core::{
    Lease, LeaseAct, LeaseName, LeaseOutcome, LeaseState, LedgerEntry, LedgerNote, Timestamp, What, limits,
};

use crate::{Answer, Fault, Order};

/// The ownership of names.
///
/// A store decides nothing about them: [`tenure_core::step`] does.
pub trait Leases {
    /// Takes wishes about leases, each by itself, in their order and in one go. Repeating them is harmless.
    ///
    /// No more than [`limits::LEASE_STEPS`]: of more none is taken, see [`check_wishes`]. A clock that steps
    /// ahead takes no lease from its holder, see [`Steps`](crate::Steps).
    fn lease(&self, wishes: Vec<LeaseWish>) -> Answer<'_, Vec<LeaseOutcome>>;

    /// One lease; `None` if its name was never held, or was forgotten.
    fn lease_info(&self, name: &LeaseName) -> Answer<'_, Option<LeaseInfo>>;

    /// A page of leases, by name. Forgotten ones are not among them.
    fn leases(&self, ask: LeasesAsk) -> Answer<'_, LeasePage>;

    /// A page of the ledger.
    fn ledger(&self, ask: LedgerAsk) -> Answer<'_, LedgerPage>;

    /// Removes a bounded number of entries of the ledger from before that instant, the oldest first.
    /// The note with which a present ownership began stays.
    fn prune_ledger(&self, before: Timestamp) -> Answer<'_, Pruned>;
}

/// Refuses more wishes than a call may bring.
///
/// # Errors
/// A fault, since there is no answer to some of them: whoever calls has to be mended.
pub fn check_wishes(wishes: &[LeaseWish]) -> Result<(), Fault> {
    if wishes.len() <= limits::LEASE_STEPS {
        return Ok(());
    }
    let (count, most) = (wishes.len(), limits::LEASE_STEPS);
    Err(Fault::Broken(format!("{count} wishes about leases in one call; {most} are allowed")))
}

/// A wish about one lease.
#[derive(Debug, Clone, PartialEq)]
pub struct LeaseWish {
    /// The lease.
    pub name: LeaseName,
    /// The wish.
    pub act: LeaseAct,
}

/// A lease as people see it.
#[derive(Debug, Clone, PartialEq)]
pub struct LeaseInfo {
    /// The lease.
    pub lease: Lease,
    /// Where it stands, by the store's clock.
    pub state: LeaseState,
    /// How many wait for it.
    pub waiting: u32,
}

/// Which page of leases is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeasesAsk {
    /// Whose names begin so; all if it is empty.
    pub prefix: String,
    /// Behind this name.
    pub behind: Option<LeaseName>,
    /// How many at most.
    pub at_most: usize,
}

impl Default for LeasesAsk {
    /// The first hundred of all.
    fn default() -> Self {
        Self { prefix: String::new(), behind: None, at_most: 100 }
    }
}

/// A page of leases.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LeasePage {
    /// The leases, by name.
    pub leases: Vec<LeaseInfo>,
    /// Behind which name it goes on; `None` at the end.
    pub next: Option<LeaseName>,
}

/// Which page of the ledger is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerAsk {
    /// Of which lease; of all if `None`.
    pub name: Option<LeaseName>,
    /// What happened; anything if it is empty.
    pub what: Vec<What>,
    /// It happened at this instant or later.
    pub from: Option<Timestamp>,
    /// It happened before this instant.
    pub before: Option<Timestamp>,
    /// In which order: of their numbers.
    pub order: Order,
    /// Behind the entry with this number, in that order.
    pub behind: Option<u64>,
    /// How many at most.
    pub at_most: usize,
}

impl Default for LedgerAsk {
    /// The last hundred of all.
    fn default() -> Self {
        Self {
            name: None,
            what: Vec::new(),
            from: None,
            before: None,
            order: Order::NewestFirst,
            behind: None,
            at_most: 100,
        }
    }
}

impl LedgerAsk {
    /// Whether it means this note.
    #[must_use]
    pub fn means(&self, note: &LedgerNote) -> bool {
        self.name.as_ref().is_none_or(|name| *name == note.name)
            && (self.what.is_empty() || self.what.contains(&note.what))
            && self.from.is_none_or(|from| note.at >= from)
            && self.before.is_none_or(|before| note.at < before)
    }
}

/// A page of the ledger. One that looked at many entries which nobody wants may be short, or even empty,
/// and still go on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct LedgerPage {
    /// The entries.
    pub entries: Vec<LedgerEntry>,
    /// Behind which number it goes on; `None` at the end.
    pub next: Option<u64>,
}

/// What a step of pruning did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pruned {
    /// Entries removed.
    pub removed: usize,
    /// Whether a bound stopped it: call again.
    pub more: bool,
}
