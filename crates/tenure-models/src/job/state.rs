//! A state of a job's model: the row, the hosts, and what no store remembers.

use std::hash::{Hash, Hasher};

use super::host::Host;
use super::row::{Own, Row};

/// Hosts at most.
pub const MOST_HOSTS: usize = 3;

/// All that matters for what can happen next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// The row of the job.
    pub row: Row,
    /// Those who want it.
    pub hosts: [Host; MOST_HOSTS],
    /// How often it may still be done again.
    pub redos: u8,
    /// What has happened, as far as the promises are about it.
    pub record: Record,
    /// What somebody has decided without having written it; only where that is the bug.
    pub hearsay: Option<Row>,
    /// The promise that the last step broke.
    pub broken: Option<Promise>,
}

/// What has happened, as far as the promises are about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Record {
    /// Grants that were not given back, since the job was last asked for.
    pub spent: u16,
    /// The grants whose settlement was written, as bits.
    pub settled: u16,
    /// The grant of the last effect that was accepted.
    pub effect: u16,
}

/// What is promised about a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Promise {
    /// A holder of earlier times ends nothing.
    SettledUnderThePresentFence,
    /// There is one end.
    EndedIsFinal,
    /// A holder of earlier times has no effects.
    EffectsUnderThePresentFence,
    /// No effect follows one of a later grant.
    EffectsInOrder,
    /// No fence comes twice.
    FencesGrow,
    /// A holder of earlier times renews nothing.
    OwnerRenews,
    /// Who renews in time keeps the job.
    OnlyTheSilentLose,
    /// A job that kills its hosts comes to an end.
    AttemptsAreBounded,
    /// A job that is always given back comes to an end.
    DeliveriesAreBounded,
    /// A wish to stop is not forgotten.
    AskedToStopDoesNotWait,
    /// Whoever settles again is told the truth.
    RepeatedIsTrue,
    /// No job is stuck.
    EndsOrStaysClaimable,
}

impl Promise {
    /// All.
    pub const ALL: [Self; 12] = [
        Self::SettledUnderThePresentFence,
        Self::EndedIsFinal,
        Self::EffectsUnderThePresentFence,
        Self::EffectsInOrder,
        Self::FencesGrow,
        Self::OwnerRenews,
        Self::OnlyTheSilentLose,
        Self::AttemptsAreBounded,
        Self::DeliveriesAreBounded,
        Self::AskedToStopDoesNotWait,
        Self::RepeatedIsTrue,
        Self::EndsOrStaysClaimable,
    ];

    /// The promise in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::SettledUnderThePresentFence => "a settlement is written under the present fence only",
            Self::EndedIsFinal => "a job that has ended stays as it ended",
            Self::EffectsUnderThePresentFence => "an effect is accepted under the present fence only",
            Self::EffectsInOrder => "effects are accepted in the order of the grants",
            Self::FencesGrow => "every grant has a greater fence than all before it",
            Self::OwnerRenews => "nobody but the present owner renews",
            Self::OnlyTheSilentLose => "a job is taken only from a holder that is silent or does not stop",
            Self::AttemptsAreBounded => "no more attempts begin than the terms allow",
            Self::DeliveriesAreBounded => "no more grants are made than the terms allow",
            Self::AskedToStopDoesNotWait => "a job that is to stop does not wait again",
            Self::RepeatedIsTrue => "a settlement that is said to be written was written",
            Self::EndsOrStaysClaimable => "a job ends as soon as one healthy host works",
        }
    }
}

impl State {
    /// The beginning: the job has just been accepted.
    #[must_use]
    pub fn first(redos: u8) -> Self {
        Self {
            row: Row::accepted(0),
            hosts: [Host::default(); MOST_HOSTS],
            redos,
            record: Record::default(),
            hearsay: None,
            broken: None,
        }
    }

    /// Whether the settlement of this ownership was written.
    #[must_use]
    pub fn has_settled(&self, own: Own) -> bool {
        self.record.settled & bit(own) != 0
    }

    /// The settlement of this ownership is written.
    pub fn note_settled(&mut self, own: Own) {
        self.record.settled |= bit(own);
    }

    /// Forgets settlements of which nobody will ever hear again.
    pub fn forget_settled(&mut self) {
        let known = self.hosts.iter().flat_map(Host::settlements).fold(0, |bits, own| bits | bit(own));
        self.record.settled &= known;
    }
}

fn bit(own: Own) -> u16 {
    1 << (own.delivery % 16)
}

/// States that differ only in the names of hosts are one: such names are drawn, and nothing depends on them. The
/// search keeps the state that it met first, so a path through it reads as it happened.
impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let mut row = self.row;
        let holder = row.forget_host();
        let is_holder = |number: usize| holder.is_some_and(|host| usize::from(host) == number);
        let mut hosts: [(bool, &Host); MOST_HOSTS] =
            std::array::from_fn(|number| (is_holder(number), &self.hosts[number]));
        hosts.sort_unstable();
        hosts.hash(hasher);
        let hearsay = self.hearsay.map(|mut row| (row.forget_host(), row));
        (row, self.redos, self.record, hearsay, self.broken).hash(hasher);
    }
}
