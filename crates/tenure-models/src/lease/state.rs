//! A state of the leases' model: the row, the parties, the resource, and the first promise that was broken.

use std::hash::{Hash, Hasher};

use super::party::Party;
use super::row::{Claim, Row};

/// Parties at most.
pub const MOST_PARTIES: usize = 3;

/// All that matters for what can happen next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// The row of the name.
    pub row: Row,
    /// Those who want it.
    pub parties: [Party; MOST_PARTIES],
    /// A resource outside of the store, which remembers the greatest fence that it saw.
    pub resource: Resource,
    /// The grants that somebody broke before their time, as bits: their holders may go on believing for a while.
    pub cut_short: u8,
    /// The promise that the last step broke.
    pub broken: Option<Promise>,
}

/// A resource outside of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Resource {
    /// The greatest fence of an effect that it accepted.
    pub fence: u8,
    /// The grant of the last effect that it accepted; it does not know this.
    pub grant: u8,
}

/// What is promised about leases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Promise {
    /// Nobody believes to hold what another does.
    OneBeliever,
    /// A grant takes nothing from anybody.
    OneGrant,
    /// No fence comes twice.
    FencesGrow,
    /// Who is not the owner changes nothing.
    OwnerOnly,
    /// A renewal that comes too late is refused.
    LapsedStaysLapsed,
    /// In the store, no effect follows the grant of a greater fence.
    EffectsUnderThePresentFence,
    /// Outside of it, no effect follows one of a greater fence.
    EffectsInOrder,
    /// Asking again is harmless.
    NotInItsOwnWay,
    /// Silence ends an ownership.
    ComesFree,
}

impl Promise {
    /// All.
    pub const ALL: [Self; 9] = [
        Self::OneBeliever,
        Self::OneGrant,
        Self::FencesGrow,
        Self::OwnerOnly,
        Self::LapsedStaysLapsed,
        Self::EffectsUnderThePresentFence,
        Self::EffectsInOrder,
        Self::NotInItsOwnWay,
        Self::ComesFree,
    ];

    /// The promise in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::OneBeliever => "at most one party believes that it holds the name",
            Self::OneGrant => "a name is granted only while nobody holds it",
            Self::FencesGrow => "every grant has a greater fence than all before it",
            Self::OwnerOnly => "nobody but the present owner renews or releases",
            Self::LapsedStaysLapsed => "what has lapsed is not renewed",
            Self::EffectsUnderThePresentFence => "the store accepts an effect under the present fence only",
            Self::EffectsInOrder => "a resource accepts effects in the order of the grants",
            Self::NotInItsOwnWay => "nobody is refused because of its own acquisition",
            Self::ComesFree => "what a silent holder had can be had by others in the end",
        }
    }
}

impl State {
    /// The beginning: nobody ever held the name.
    #[must_use]
    pub fn first() -> Self {
        Self {
            row: Row::default(),
            parties: [Party::default(); MOST_PARTIES],
            resource: Resource::default(),
            cut_short: 0,
            broken: None,
        }
    }

    /// Whether two believe at once, neither because somebody broke a lease.
    #[must_use]
    pub fn has_two_believers(&self) -> bool {
        let claims = || self.parties.iter().filter_map(|party| party.belief).map(|belief| belief.claim);
        let is_cut_short = |claim: Claim| self.cut_short & (1 << (claim.grant % 8)) != 0;
        let believers = claims().count();
        let newest = claims().map(|claim| claim.grant).max();
        believers > 1 && claims().any(|claim| Some(claim.grant) != newest && !is_cut_short(claim))
    }
}

/// States that differ only in the names of parties and acquisitions are one: such names are drawn, and nothing depends
/// on them. The search keeps the state that it met first, so a path through it reads as it happened.
impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let mut parties: [(u8, Party); MOST_PARTIES] = std::array::from_fn(|number| {
            let owned = self.row.held.filter(|held| usize::from(held.party) == number);
            let mut party = self.parties[number];
            let owned = party.rename(owned.map_or(0, |held| held.id));
            (owned, party)
        });
        parties.sort_unstable();
        parties.hash(hasher);
        let held = self.row.held.map(|held| (held.left, held.broken, held.noticed));
        (self.row.fence, self.row.grant, held).hash(hasher);
        (self.resource, self.cut_short, self.broken).hash(hasher);
    }
}
