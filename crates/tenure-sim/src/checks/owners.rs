//! Who owns which name, as the answers of the store tell it: what several checkers have to know.

use std::collections::BTreeMap;

use tenure_core::{
    Fence, Holder, LeaseAct, LeaseId, LeaseName, LeaseOutcome, LeaseRefusal, LedgerNote, Timestamp, Ttl,
    What as Noted,
};

use crate::history::{Entry, Leased, What};

/// All names that were ever held.
#[derive(Debug, Default)]
pub(super) struct Owners {
    names: BTreeMap<LeaseName, Owned>,
}

/// One name.
#[derive(Debug, Clone, Default)]
pub(super) struct Owned {
    /// The greatest fence that was granted.
    pub(super) fence: Fence,
    /// Its last owner, until it is released or forgotten.
    pub(super) owner: Option<Owner>,
    /// Since when it was free, if its owner is gone.
    freed: Option<Timestamp>,
    /// When it was free at the latest, though it would be later by what its owner was granted.
    free_by: Option<Timestamp>,
    /// Whether its name was removed since.
    pub(super) forgotten: bool,
}

/// An owner.
#[derive(Debug, Clone)]
pub(super) struct Owner {
    pub(super) id: LeaseId,
    pub(super) by: Holder,
    pub(super) ttl: Ttl,
    /// Until when; without end if `None`, or over if it was broken at once.
    pub(super) until: Option<Timestamp>,
    broken: bool,
    /// Whether its lapse is on record: from then on no clock brings it back.
    lapsed: bool,
}

/// How an owner stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stands {
    Held,
    Lapsed,
    Breaking,
    Broken,
}

impl Owners {
    /// Returns the owner of a name as an answer at `now` sees it.
    pub(super) fn of(&self, name: &LeaseName, now: Timestamp) -> Owned {
        let mut owned = self.names.get(name).cloned().unwrap_or_default();
        owned.cut(now);
        owned
    }

    /// Takes note of what happened, without judging it.
    pub(super) fn see(&mut self, entry: &Entry) {
        if let What::Leased(leased) = &entry.what {
            self.follow(leased, entry.store_now);
        }
        if let What::Ledger(told) = &entry.what {
            told.iter().for_each(|told| self.notice(&told.note));
        }
    }

    fn notice(&mut self, note: &LedgerNote) {
        let Some(owned) = self.names.get_mut(&note.name) else { return };
        if note.what == Noted::Lapsed && note.fence == owned.fence {
            owned.with_owner(|owner| owner.lapsed = true);
        }
    }

    fn follow(&mut self, leased: &Leased, now: Timestamp) {
        let owned = self.names.entry(leased.name.clone()).or_default();
        owned.cut(now);
        match (&leased.act, &leased.outcome) {
            (LeaseAct::Acquire { id, by, ttl, .. }, LeaseOutcome::Granted { fence, until }) => {
                let again = owned.live(now).is_some_and(|owner| owner.id == *id);
                let by = owned.owner.as_ref().filter(|_| again).map_or(by, |owner| &owner.by).clone();
                let (until, broken, lapsed) = (*until, false, false);
                owned.owner = Some(Owner { id: *id, by, ttl: *ttl, until, broken, lapsed });
                (owned.fence, owned.free_by) = (owned.fence.max(*fence), None);
                owned.forgotten = false;
            }
            (_, LeaseOutcome::Renewed { until } | LeaseOutcome::RenewedLate { until, .. }) => {
                owned.with_owner(|owner| (owner.until, owner.lapsed) = (*until, false));
                owned.free_by = None;
            }
            (LeaseAct::Change { to, .. }, LeaseOutcome::Changed { .. }) => {
                owned.with_owner(|owner| owner.id = *to);
            }
            (_, LeaseOutcome::Released) => owned.leave(now),
            (LeaseAct::Leave { id }, LeaseOutcome::Left)
                if owned.owner.as_ref().is_some_and(|owner| owner.id == *id) =>
            {
                owned.leave(now);
            }
            (_, LeaseOutcome::Forgotten) => {
                owned.leave(now);
                owned.forgotten = true;
            }
            (_, LeaseOutcome::Breaks { free }) => owned.break_at(*free, now),
            (_, LeaseOutcome::Refused(LeaseRefusal::Awaited { .. })) => owned.be_free_by(now),
            _ => {}
        }
    }
}

impl Owned {
    /// The owner, if nobody else may take the name.
    pub(super) fn live(&self, now: Timestamp) -> Option<&Owner> {
        let is_live = |owner: &&Owner| matches!(owner.stands(now), Stands::Held | Stands::Breaking);
        self.owner.as_ref().filter(is_live)
    }

    /// Since when nobody has it; unknown if nobody ever had it.
    pub(super) fn free_since(&self, now: Timestamp) -> Option<Timestamp> {
        let since = match &self.owner {
            None => self.freed,
            Some(owner) if owner.stands(now) == Stands::Broken => owner.until.or(self.freed),
            Some(owner) => owner.until.filter(|_| owner.stands(now) == Stands::Lapsed),
        };
        since.map(|since| self.free_by.map_or(since, |by| by.min(since)))
    }

    /// Whether this is the last ownership.
    pub(super) fn is_of(&self, id: LeaseId, fence: Fence) -> bool {
        self.fence == fence && self.owner.as_ref().is_some_and(|owner| owner.id == id)
    }

    /// Cuts an end that lies too far ahead because a clock was set back.
    fn cut(&mut self, now: Timestamp) {
        self.with_owner(|owner| {
            let latest = owner.ttl.until(now).filter(|_| !owner.lapsed);
            owner.until = owner.until.map(|until| latest.map_or(until, |latest| until.min(latest)));
        });
    }

    fn leave(&mut self, now: Timestamp) {
        self.freed = match &self.owner {
            Some(_) => Some(self.free_since(now).unwrap_or(now)),
            None => self.freed,
        };
        self.owner = None;
    }

    /// If a clock was put back it is free since the first look after that, and not only when it is as late again.
    fn be_free_by(&mut self, now: Timestamp) {
        if self.free_since(now).is_some_and(|free| free > now) {
            self.free_by = Some(now);
        }
    }

    fn break_at(&mut self, free: Timestamp, now: Timestamp) {
        let Some(owner) = &mut self.owner else { return };
        match owner.stands(now) {
            Stands::Held | Stands::Breaking => {
                self.freed = Some(free);
                owner.until = Some(free).filter(|free| *free > now);
            }
            // What has lapsed has been free since then.
            Stands::Lapsed => self.freed = owner.until.take(),
            Stands::Broken => {}
        }
        owner.broken = true;
    }

    fn with_owner(&mut self, change: impl FnOnce(&mut Owner)) {
        self.owner.as_mut().map(change);
    }
}

impl Owner {
    pub(super) fn stands(&self, now: Timestamp) -> Stands {
        let is_over = self.until.map_or(self.broken, |until| until <= now);
        match (self.broken, is_over || (self.lapsed && !self.broken)) {
            (true, true) => Stands::Broken,
            (true, false) => Stands::Breaking,
            (false, true) => Stands::Lapsed,
            (false, false) => Stands::Held,
        }
    }
}
