//! A batch of requests about leases, decided in order.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::time::Duration;

use tenure_core::{
    Epoch, Fence, HostId, Lease, LeaseAct, LeaseName, LeaseOutcome, LeaseRefusal, LedgerNote, Stepped,
    Ticket, Timestamp, What, step,
};

use super::acquisition;
use super::line::WaitLine;
use crate::{LeaseWish, Steps};

/// The time after which a request for an unreadable lease may be repeated.
const SET_ASIDE: Duration = Duration::from_secs(60);
/// The time after which a client may repeat a request that an open transaction of the last holder blocks.
const CHECKED_IN: Duration = Duration::from_millis(250);

/// The instant of a batch, and the state of the store at it.
#[derive(Debug, Clone, Copy)]
pub struct Now<'s> {
    /// The instant.
    pub at: Timestamp,
    /// The epoch of the store.
    pub epoch: Epoch,
    /// The instant before which nothing is granted.
    pub bar: Timestamp,
    /// The steps of the clock.
    pub steps: &'s Steps,
}

/// A lease that was read.
#[derive(Debug, Clone)]
pub struct Row<E> {
    /// The lease as it was read: `None` if its name was never held, and an error if it is unreadable.
    pub before: Result<Option<Lease>, E>,
    /// The lease as it is now, if it has changed.
    pub after: Option<Lease>,
    /// Its line.
    pub line: WaitLine,
    /// An open transaction has checked in under its last ownership.
    pub is_checked_in: bool,
}

/// A refusal on record. There is one for each ownership and holder.
pub type Refused = (LeaseName, Fence, Option<HostId>, String);

/// Requests about leases, decided one after the other.
#[derive(Debug, Clone)]
pub struct Batch<'s, E> {
    /// The instant.
    pub now: Now<'s>,
    /// The leases that were read. A name without a row was never held, and no request may be granted it.
    pub rows: BTreeMap<LeaseName, Row<E>>,
    /// Refusals on record.
    pub refused: BTreeSet<Refused>,
    /// New entries of the history, in order.
    pub notes: Vec<LedgerNote>,
    /// True if a lease may become available sooner than waiting clients expect.
    pub frees: bool,
}

impl<E> Row<E> {
    /// A row as it was read.
    pub fn new(before: Result<Option<Lease>, E>) -> Self {
        Self { before, after: None, line: WaitLine::default(), is_checked_in: false }
    }

    /// Returns the fence that it had when it was read.
    pub fn fence_before(&self) -> Fence {
        self.before.as_ref().ok().and_then(Option::as_ref).map_or(Fence::NONE, |lease| lease.fence)
    }

    /// Returns true if it was granted and had an owner before.
    pub fn is_taken_over(&self) -> bool {
        let before = self.fence_before();
        before != Fence::NONE && self.after.as_ref().is_some_and(|after| after.fence != before)
    }

    fn lease(&self) -> Option<&Lease> {
        self.after.as_ref().or(self.before.as_ref().ok().and_then(Option::as_ref))
    }
}

impl<'s, E: Display> Batch<'s, E> {
    /// Begins a batch with the rows that were read.
    pub fn new(now: Now<'s>, rows: BTreeMap<LeaseName, Row<E>>, refused: BTreeSet<Refused>) -> Self {
        Self { now, rows, refused, notes: Vec::new(), frees: false }
    }

    /// Decides the requests of one call.
    ///
    /// A call with one request fails if its lease is unreadable. In a call with several, requests for an unreadable
    /// lease are refused as if it were being broken, and the other requests are decided.
    ///
    /// # Errors
    /// The error of the unreadable row.
    pub fn call(&mut self, wishes: &[LeaseWish]) -> Result<Vec<LeaseOutcome>, E>
    where
        E: Clone,
    {
        let alone = if let [wish] = wishes { self.rows.get(&wish.name) } else { None };
        if let Some(Err(error)) = alone.map(|row| &row.before) {
            return Err(error.clone());
        }
        Ok(wishes.iter().map(|wish| self.decide(wish)).collect())
    }

    /// Decides a request of a call about several leases.
    pub fn decide(&mut self, LeaseWish { name, act }: &LeaseWish) -> LeaseOutcome {
        let Now { at, epoch, bar, steps } = self.now;
        let Some(row) = self.rows.get_mut(name) else {
            return step(name, None, act, WaitLine::default().ahead_of(None, at), epoch, at).outcome;
        };
        if let Err(error) = &row.before {
            tracing::error!(lease = %name, %error, "unreadable lease; update this program");
            return LeaseOutcome::Refused(LeaseRefusal::Breaking { until: at.after(SET_ASIDE) });
        }
        let waiting = acquisition(act);
        let line = row.line.ahead_of(waiting, at);
        let before = row.lease().cloned().map(|lease| steps.steady(lease));
        let mut stepped = step(name, before.as_ref(), act, line, epoch, at);
        let checked_in = row.is_checked_in.then(|| at.after(CHECKED_IN));
        if let Some(again) = checked_in.into_iter().chain([bar]).filter(|again| *again > at).max() {
            stepped = held_back(stepped, before.as_ref(), act, line.ahead, again, at);
        }
        self.frees |= stepped.frees(before.as_ref(), at);
        // A name that was never held has no line.
        if let Some(id) = waiting.filter(|_| before.is_some()) {
            row.line.apply(id, stepped.ticket, at);
        }
        row.after = stepped.lease.or(row.after.take());
        stepped.notes.into_iter().for_each(|note| self.note(note));
        stepped.outcome
    }

    /// Returns the end of a lease; `None` if it has none or is unreadable.
    pub fn end(&self, name: &LeaseName) -> Option<Timestamp> {
        self.steady(name)?.until()
    }

    /// Records that a lease has expired, if it has. Returns true if it did.
    pub fn notice(&mut self, name: &LeaseName) -> bool {
        let noticed = self.steady(name).and_then(|lease| lease.noticed(self.now.at));
        let (Some((lease, note)), Some(row)) = (noticed, self.rows.get_mut(name)) else { return false };
        row.after = Some(lease);
        self.note(note);
        true
    }

    /// Returns a lease as it would be if the clock had not stepped.
    fn steady(&self, name: &LeaseName) -> Option<Lease> {
        let row = self.rows.get(name)?;
        if let Err(error) = &row.before {
            tracing::error!(lease = %name, %error, "unreadable lease; update this program");
        }
        row.lease().cloned().map(|lease| self.now.steps.steady(lease))
    }

    fn note(&mut self, note: LedgerNote) {
        let refused = || (note.name.clone(), note.fence, note.by.host, note.by.who.clone());
        if note.what != What::Refused || self.refused.insert(refused()) {
            self.notes.push(note);
        }
    }

    /// Returns true if a note begins an ownership that lasts beyond the batch.
    pub fn lasts(&self, note: &LedgerNote) -> bool {
        let lease = self.rows.get(&note.name).and_then(|row| row.after.as_ref());
        note.what.begins() && lease.is_some_and(|lease| lease.held.is_some() && lease.fence == note.fence)
    }

    /// Returns true if a holder is asked to stop.
    pub fn asks(&self) -> bool {
        self.notes.iter().any(|note| note.what == What::Broke)
    }

    /// Returns true if there is nothing to write.
    pub fn is_idle(&self) -> bool {
        let is_idle = |row: &Row<E>| row.after.is_none() && !row.line.is_changed(self.now.at);
        self.notes.is_empty() && self.rows.values().all(is_idle)
    }
}

/// Returns the decision, unless it grants a lease that an earlier owner may still have before `again`.
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
        // An owner in between may be unknown to this server.
        (LeaseOutcome::RenewedLate { lapsed, .. }, _) => {
            refused(LeaseRefusal::Lapsed { at: *lapsed }, Ticket::AsIs)
        }
        _ => stepped,
    }
}
