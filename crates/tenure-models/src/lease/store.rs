//! The store that keeps the row: it asks `tenure-core` what becomes of it.

use std::time::Duration;

use tenure_core::{
    Access, Epoch, Fence, Holder, Invalid, Late, Lease, LeaseAct, LeaseId, LeaseName, LeaseOutcome,
    LeaseRefusal, Line, Ownership, Phase, Ttl, may_use, step,
};

use super::row::{Answer, Claim, ENDLESS, Held, Row, Wish};
use super::{Bug, Setting, Takeover};
use crate::ticks::{at, left, now, span};

/// The store: the row's side of the model.
#[derive(Debug, Clone)]
pub struct Store {
    name: LeaseName,
    nobody: Holder,
    setting: Setting,
}

impl Store {
    /// The store of a model.
    ///
    /// # Errors
    /// None: the name is within the limits.
    pub fn new(setting: Setting) -> Result<Self, Invalid> {
        Ok(Self { name: LeaseName::new("name")?, nobody: Holder::default(), setting })
    }

    /// Takes a wish of a party.
    #[must_use]
    pub fn take(&self, row: Row, party: u8, wish: Wish) -> (Row, Answer) {
        let mut seen = row;
        let is_mine =
            |id| row.is_locked() && row.held.is_some_and(|held| (held.party, held.id) == (party, id));
        match wish {
            Wish::Acquire { id } if is_mine(id) && self.setting.has(Bug::RefusesItsOwnHolder) => {
                return (row, Answer::Busy);
            }
            Wish::Acquire { id } if is_mine(id) && self.setting.has(Bug::GrantsTheSameTwice) => {
                seen = row.later(ENDLESS - 1);
            }
            Wish::Acquire { id } if !is_mine(id) && self.must_have_watched(row) => {
                return (row, Answer::Busy);
            }
            Wish::TakeOver { id, unchanged: false } if !is_mine(id) && row.held.is_some() => {
                return (row, Answer::Busy);
            }
            Wish::TakeOver { unchanged: true, .. } => seen = row.later(ENDLESS - 1),
            Wish::Acquire { .. }
            | Wish::TakeOver { .. }
            | Wish::Renew(_)
            | Wish::Release(_)
            | Wish::Leave { .. } => {}
        }
        let (mut after, answer) = self.step(seen, row, self.act(row, party, wish));
        let is_free_now = row.held.is_some() && after.held.is_none();
        if is_free_now && self.setting.has(Bug::DeletesTheRowOnRelease) {
            after.fence = 0;
        }
        (after, answer)
    }

    /// Breaks the lease within so many ticks, or at its end.
    #[must_use]
    pub fn broken(&self, row: Row, within: Option<u8>) -> Row {
        let act =
            LeaseAct::Break { within: within.map(span), by: self.nobody.clone(), reason: String::new() };
        self.step(row, row, act).0
    }

    /// Puts on record that the lease has lapsed, if it has.
    #[must_use]
    pub fn noticed(&self, row: Row) -> Row {
        let noticed = self.lease(row).noticed(now());
        noticed.map_or(row, |(lease, _)| Row { held: held_of(&lease), ..row })
    }

    /// Whether the store lets somebody with this claim write what the name guards.
    #[must_use]
    pub fn lets(&self, row: Row, party: u8, claim: Claim) -> bool {
        if self.setting.has(Bug::EffectsNameThePartyOnly) {
            return row.held.is_some_and(|held| held.party == party && held.left > 0);
        }
        let named = (id_of(party, claim.id), Fence::from_number(claim.fence.into()));
        may_use(&self.lease(row), Access::Write, Some(named), now()).is_ok()
    }

    /// Whether what a silent holder had can be had by somebody new, in the end.
    #[must_use]
    pub fn comes_free(&self, row: Row) -> bool {
        const NEWCOMER: u8 = 99;
        let wish = match self.setting.takeover {
            Takeover::ByStoreTime => Wish::Acquire { id: 1 },
            Takeover::Observed => Wish::TakeOver { id: 1, unchanged: true },
        };
        matches!(self.take(row.later(ENDLESS - 1), NEWCOMER, wish).1, Answer::Granted(_))
    }

    /// Whether time by the store's clock alone does not make a name free.
    fn must_have_watched(&self, row: Row) -> bool {
        self.setting.takeover == Takeover::Observed
            && !self.setting.has(Bug::TakesOverByStoreTime)
            && row.held.is_some_and(|held| !held.broken)
    }

    fn act(&self, row: Row, party: u8, wish: Wish) -> LeaseAct {
        let owner = |bug, claim: Claim| match row.held {
            Some(held) if self.setting.has(bug) => {
                (id_of(held.party, held.id), Fence::from_number(row.fence.into()))
            }
            _ => (id_of(party, claim.id), Fence::from_number(claim.fence.into())),
        };
        match wish {
            Wish::Acquire { id } | Wish::TakeOver { id, .. } => {
                let id = id_of(party, id);
                LeaseAct::Acquire { id, by: self.nobody.clone(), ttl: self.ttl(), wait: None }
            }
            Wish::Renew(claim) => {
                let (id, fence) = owner(Bug::RenewsWithoutFence, claim);
                let late = match self.setting.has(Bug::RenewsWhatHasLapsed) {
                    true => Late::Counts,
                    false => Late::Refused,
                };
                LeaseAct::Renew { id, fence, late }
            }
            Wish::Release(claim) => {
                let (id, fence) = owner(Bug::ReleasesWithoutFence, claim);
                LeaseAct::Release { id, fence }
            }
            Wish::Leave { id } => LeaseAct::Leave { id: id_of(party, id) },
        }
    }

    fn ttl(&self) -> Ttl {
        match self.setting.has(Bug::LastsForEver) {
            true => Ttl::Endless,
            false => Ttl::For(span(self.setting.lease)),
        }
    }

    /// Asks the domain. `seen` is the row as the store takes it to be, `row` as it is.
    fn step(&self, seen: Row, row: Row, act: LeaseAct) -> (Row, Answer) {
        let mut lease = self.lease(seen);
        let acquires = matches!(act, LeaseAct::Acquire { .. });
        if acquires && !seen.is_locked() && self.setting.has(Bug::CountsLiveRowsOnly) {
            lease.fence = Fence::NONE;
        }
        let stepped = step(&self.name, Some(&lease), &act, Line::default(), Epoch::default(), now());
        let mut after = row;
        if let Some(lease) = &stepped.lease {
            (after.held, after.fence) = (held_of(lease), small(lease.fence));
        }
        let answer = match stepped.outcome {
            LeaseOutcome::Granted { fence, .. } => {
                after.grant += u8::from(!seen.is_locked());
                let id = after.held.map_or(0, |held| held.id);
                Answer::Granted(Claim { id, fence: small(fence), grant: after.grant })
            }
            LeaseOutcome::Renewed { .. } | LeaseOutcome::RenewedLate { .. } => Answer::Renewed,
            LeaseOutcome::Released | LeaseOutcome::Left => Answer::Released,
            LeaseOutcome::Refused(LeaseRefusal::Held { .. } | LeaseRefusal::Awaited { .. })
            | LeaseOutcome::Changed { .. }
            | LeaseOutcome::Breaks { .. }
            | LeaseOutcome::Forgotten => Answer::Busy,
            LeaseOutcome::Refused(LeaseRefusal::Lapsed { .. }) => Answer::Lapsed,
            LeaseOutcome::Refused(LeaseRefusal::Breaking { .. } | LeaseRefusal::Broken) => Answer::Broken,
            LeaseOutcome::Refused(
                LeaseRefusal::Lost { .. } | LeaseRefusal::WrongId | LeaseRefusal::NotHeld,
            ) => Answer::NotYours,
        };
        (after, answer)
    }

    /// The lease that a row of the model stands for.
    fn lease(&self, row: Row) -> Lease {
        let held = row.held.map(|held| Ownership {
            id: id_of(held.party, held.id),
            by: self.nobody.clone(),
            since: now(),
            ttl: self.ttl(),
            phase: match (held.broken, held.left) {
                (false, 0) if held.noticed => Phase::Lapsed { at: at(0) },
                (false, ENDLESS) => Phase::Held { until: None },
                (false, left) => Phase::Held { until: Some(at(left)) },
                (true, left) => Phase::Breaking { until: at(left) },
            },
        });
        let fence = Fence::from_number(row.fence.into());
        Lease {
            name: self.name.clone(),
            fence,
            held,
            freed: now().before(Duration::from_secs(1)),
            forgotten: false,
        }
    }
}

/// The ownership of the model that a lease stands for.
fn held_of(lease: &Lease) -> Option<Held> {
    let held = lease.held.as_ref()?;
    let [party, id, ..] = *held.id.as_bytes();
    let (left, broken) = match held.phase {
        Phase::Held { until } => (until.map_or(ENDLESS, left), false),
        Phase::Breaking { until } => (left(until), true),
        Phase::Broken => (0, true),
        Phase::Lapsed { at } => (left(at), false),
    };
    let noticed = matches!(held.phase, Phase::Lapsed { .. });
    Some(Held { party, id, left, broken, noticed })
}

/// The id that an acquisition of a party has in the store.
fn id_of(party: u8, id: u8) -> LeaseId {
    let mut bytes = [0; 16];
    [bytes[0], bytes[1]] = [party, id];
    LeaseId::from_bytes(bytes)
}

fn small(fence: Fence) -> u8 {
    u8::try_from(fence.number()).unwrap_or(u8::MAX)
}
