//! What wishes come to, decided in memory on rows that were read and are locked.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tenure_core::{
    Epoch, Fence, HostId, Lease, LeaseAct, LeaseName, LeaseOutcome, LeaseRefusal, LedgerNote, Phase, Stepped,
    Ticket, Timestamp, What, step,
};
use tenure_store::{Fault, LeaseWish, Steps};

use super::line::{Seats, acquisition};

/// How long a lease that this version cannot read is left alone by those who want it.
const SET_ASIDE: Duration = Duration::from_secs(60);
/// When somebody looks again who was kept back by a transaction that has checked in.
const CHECKED_IN: Duration = Duration::from_millis(250);

/// What a turn goes by.
#[derive(Debug, Clone)]
pub(super) struct Now<'s> {
    pub at: Timestamp,
    pub epoch: Epoch,
    /// The instant before which nothing is granted.
    pub bar: Timestamp,
    pub steps: &'s Steps,
}

/// A lease that was read.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub number: i64,
    /// As it was read; `None` if nobody has ever held it, and a fault if it cannot be read.
    pub before: Result<Option<Lease>, Fault>,
    /// As it has become, if it has changed.
    pub after: Option<Lease>,
    pub seats: Seats,
    /// Whether a transaction has checked in under its last ownership and has not ended.
    pub checked_in: bool,
}

/// Whose refusal is on record: told once for each ownership.
pub(super) type Told = (i64, Fence, Option<HostId>, String);

/// A turn: some wishes of some calls, together.
#[derive(Debug, Clone)]
pub(super) struct Turn<'s> {
    pub now: Now<'s>,
    pub rows: BTreeMap<LeaseName, Known>,
    pub told: BTreeSet<Told>,
    /// What is to be added to the ledger, by lease.
    pub notes: Vec<(i64, LedgerNote)>,
    /// Whether others may have a lease sooner than they were told.
    pub frees: bool,
}

impl Known {
    pub(super) fn new(number: i64, before: Result<Option<Lease>, Fault>) -> Self {
        Self { number, before, after: None, seats: Seats::default(), checked_in: false }
    }

    /// The fence that it had when it was read.
    pub(super) fn fence_before(&self) -> Fence {
        self.before.as_ref().ok().and_then(|lease| lease.as_ref()).map_or(Fence::NONE, |lease| lease.fence)
    }

    /// Whether it was granted, after others had it.
    pub(super) fn is_taken(&self) -> bool {
        let before = self.fence_before();
        before != Fence::NONE && self.after.as_ref().is_some_and(|after| after.fence != before)
    }

    /// Whether nothing but its end has changed.
    pub(super) fn is_prolonged(&self) -> bool {
        let (Ok(Some(before)), Some(after)) = (&self.before, &self.after) else { return false };
        let (Some(held), Some(goes_on)) = (&before.held, &after.held) else { return false };
        let is_held = |phase| matches!(phase, Phase::Held { until: Some(_) });
        if !is_held(held.phase) || !is_held(goes_on.phase) {
            return false;
        }
        let mut as_before = after.clone();
        if let Some(held_on) = &mut as_before.held {
            held_on.phase = held.phase;
        }
        as_before == *before
    }
}

impl Turn<'_> {
    /// Takes the wishes of one call.
    ///
    /// A lease that cannot be read is a fault for whoever asks for it alone. Among others it is answered
    /// like one that is being broken: nobody can take, renew or change it for now, and the others have
    /// their answers.
    pub(super) fn call(&mut self, wishes: &[LeaseWish]) -> Result<Vec<LeaseOutcome>, Fault> {
        let mut outcomes = Vec::with_capacity(wishes.len());
        for wish in wishes {
            let unreadable = self.rows.get(&wish.name).and_then(|known| known.before.as_ref().err());
            outcomes.push(match unreadable {
                Some(fault) if wishes.len() == 1 => return Err(fault.clone()),
                Some(fault) => pass_by(wish, fault, self.now.at),
                None => self.take(wish),
            });
        }
        Ok(outcomes)
    }

    fn take(&mut self, LeaseWish { name, act }: &LeaseWish) -> LeaseOutcome {
        let Now { at, epoch, bar, steps } = self.now.clone();
        let Some(known) = self.rows.get_mut(name) else {
            // Nobody has ever held it, and nobody wants it now.
            return step(name, None, act, Seats::default().line(None, at), epoch, at).outcome;
        };
        let waiting = acquisition(act);
        let line = known.seats.line(waiting, at);
        let lease = known.after.as_ref().or(known.before.as_ref().ok().and_then(|lease| lease.as_ref()));
        let before = lease.cloned().map(|lease| steps.steady(lease));
        let mut stepped = step(name, before.as_ref(), act, line, epoch, at);
        let taken_from = known.checked_in.then(|| at.after(CHECKED_IN));
        if let Some(again) = taken_from.into_iter().chain([bar]).filter(|again| *again > at).max() {
            stepped = held_back(stepped, before.as_ref(), act, line.ahead, again, at);
        }
        self.frees |= stepped.frees(before.as_ref(), at);
        if let Some(id) = waiting {
            // Who waits, waits for somebody: a name that nobody has held has no line.
            if before.is_some() {
                known.seats.sit(id, stepped.ticket, at);
            }
        }
        let number = known.number;
        known.after = stepped.lease.or(known.after.take());
        stepped.notes.into_iter().for_each(|note| self.note(number, note));
        stepped.outcome
    }

    /// Notes a lapse, if there is one to note; answers whether there was.
    pub(super) fn notice(&mut self, name: &LeaseName) -> bool {
        let Some(known) = self.rows.get_mut(name) else { return false };
        let Ok(Some(lease)) = &known.before else { return false };
        let Some((lease, note)) = self.now.steps.steady(lease.clone()).noticed(self.now.at) else {
            return false;
        };
        let number = known.number;
        known.after = Some(lease);
        self.note(number, note);
        true
    }

    fn note(&mut self, number: i64, note: LedgerNote) {
        let told = || (number, note.fence, note.by.host, note.by.who.clone());
        if note.what != What::Refused || self.told.insert(told()) {
            self.notes.push((number, note));
        }
    }

    /// Whether a holder may have been asked to come to an end.
    pub(super) fn asks(&self) -> bool {
        self.notes.iter().any(|(_, note)| note.what == What::Broke)
    }

    /// Whether there is anything to write.
    pub(super) fn is_idle(&self) -> bool {
        let is_idle = |known: &Known| known.after.is_none() && !known.seats.is_changed(self.now.at);
        self.notes.is_empty() && self.rows.values().all(is_idle)
    }
}

/// What was decided, unless it grants what cannot be granted before `again`: somebody who came before may have it.
fn held_back(
    stepped: Stepped,
    before: Option<&Lease>,
    act: &LeaseAct,
    ahead: u32,
    again: Timestamp,
    now: Timestamp,
) -> Stepped {
    let fence = before.map_or(Fence::NONE, |lease| lease.fence);
    let refused = |refusal, ticket| Stepped {
        outcome: LeaseOutcome::Refused(refusal),
        lease: None,
        notes: Vec::new(),
        ticket,
    };
    match (&stepped.outcome, act) {
        (LeaseOutcome::Granted { fence: granted, .. }, LeaseAct::Acquire { wait, .. })
            if *granted != fence =>
        {
            let ticket = wait.map_or(Ticket::AsIs, |span| Ticket::Kept(now.after(span)));
            refused(LeaseRefusal::Awaited { ahead: ahead.saturating_add(1), again }, ticket)
        }
        // Somebody may have had it in between whom this server does not know of.
        (LeaseOutcome::RenewedLate { lapsed, .. }, _) => {
            refused(LeaseRefusal::Lapsed { at: *lapsed }, Ticket::AsIs)
        }
        _ => stepped,
    }
}

/// What to answer about a lease that cannot be read, among wishes about others.
fn pass_by(wish: &LeaseWish, fault: &Fault, now: Timestamp) -> LeaseOutcome {
    tracing::error!(lease = %wish.name, %fault, "unreadable lease; update this program");
    LeaseOutcome::Refused(LeaseRefusal::Breaking { until: now.after(SET_ASIDE) })
}
