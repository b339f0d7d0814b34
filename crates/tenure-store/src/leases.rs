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
    Err(Fault::Broken(format!("{count} lease requests in one call; the maximum is {most}")))
}

/// A wish about one lease.
#[derive(Debug, Clone, PartialEq)]
pub struct LeaseWish {
    /// The lease.
    pub name: LeaseName,
    /// The wish.
    pub act: LeaseAct,
}

/// A lease as shown to users.
#[derive(Debug, Clone, PartialEq)]
pub struct LeaseInfo {
    /// The lease.
    pub lease: Lease,
    /// Its state, by the store's clock.
    pub state: LeaseState,
    /// Number of waiters.
    pub waiting: u32,
}

/// A request for a page of leases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeasesAsk {
    /// Only names with this prefix; empty means all.
    pub prefix: String,
    /// Name to continue after.
    pub behind: Option<LeaseName>,
    /// Maximum number of leases.
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
    /// Leases by name.
    pub leases: Vec<LeaseInfo>,
    /// Name to continue after; `None` at the end.
    pub next: Option<LeaseName>,
}

/// A request for a page of lease history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerAsk {
    /// Only this lease; `None` means all.
    pub name: Option<LeaseName>,
    /// Only these events; empty means all.
    pub what: Vec<What>,
    /// Only events at or after this time.
    pub from: Option<Timestamp>,
    /// Only events before this time.
    pub before: Option<Timestamp>,
    /// Sort order, by entry number.
    pub order: Order,
    /// Entry number to continue after, in that order.
    pub behind: Option<u64>,
    /// Maximum number of entries.
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

/// A page of lease history. A page may be short or empty although more follow.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct LedgerPage {
    /// The entries.
    pub entries: Vec<LedgerEntry>,
    /// Entry number to continue after; `None` at the end.
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
