//! Leases, who waits for them, and the ledger.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use tenure_core::{
    Epoch, Fence, HostId, Lease, LeaseAct, LeaseId, LeaseName, LeaseOutcome, LedgerEntry, LedgerNote, Line,
    Stepped, Ticket, Timestamp, What, limits, step,
};

use super::news::News;
use crate::{Clock, LeaseInfo, LeasePage, LeaseWish, LeasesAsk, LedgerAsk, LedgerPage, Order, Pruned, Steps};

/// All that is known of names.
#[derive(Debug, Default)]
pub(super) struct LeaseRows {
    rows: BTreeMap<LeaseName, Row>,
    ledger: BTreeMap<u64, LedgerNote>,
    /// Whose refusals are on record: told once for each ownership.
    told: BTreeSet<(LeaseName, Fence, Option<HostId>, String)>,
    last_entry: u64,
    last_seat: u64,
    steps: Steps,
}

#[derive(Debug)]
struct Row {
    /// `None` if somebody waits for a name that was never held.
    lease: Option<Lease>,
    line: BTreeMap<LeaseId, Seat>,
}

/// A place in line.
#[derive(Debug, Clone, Copy)]
struct Seat {
    number: u64,
    until: Timestamp,
}

impl LeaseRows {
    /// Reads the clock before wishes are taken.
    pub fn look(&mut self, clock: &dyn Clock) -> Timestamp {
        self.steps.look(clock)
    }

    /// From now on the clock is followed wherever it goes.
    pub fn follow_the_clock(&mut self) {
        self.steps = Steps::blind();
    }

    /// Takes one wish.
    pub fn take(&mut self, wish: &LeaseWish, epoch: Epoch, now: Timestamp, news: &mut News) -> LeaseOutcome {
        let row = self.rows.entry(wish.name.clone()).or_insert(Row { lease: None, line: BTreeMap::new() });
        row.line.retain(|_, seat| seat.until > now);
        let line = row.line_before(acquisition(&wish.act));
        let before = row.lease.clone().map(|lease| self.steps.steady(lease));
        let stepped = step(&wish.name, before.as_ref(), &wish.act, line, epoch, now);
        news.freed |= stepped.frees(before.as_ref(), now);
        let Stepped { outcome, lease, notes, ticket } = stepped;
        if let Some(id) = acquisition(&wish.act) {
            row.sit(id, ticket, &mut self.last_seat, now);
        }
        row.lease = lease.or(row.lease.take());
        news.asked |= notes.iter().any(|note| note.what == What::Broke);
        if row.lease.is_none() && row.line.is_empty() {
            self.rows.remove(&wish.name);
        }
        notes.into_iter().for_each(|note| self.write_down(note));
        outcome
    }

    /// Writes down what lapsed, a bounded number, the first first; answers whether there is more.
    pub fn notice(&mut self, now: Timestamp) -> bool {
        let steady = |row: &Row| row.lease.clone().map(|lease| self.steps.steady(lease));
        let lapsed = self.rows.values().filter_map(|row| steady(row)?.noticed(now));
        let mut lapsed: Vec<(Lease, LedgerNote)> = lapsed.collect();
        lapsed.sort_by(|(_, one), (_, other)| (one.at, &one.name).cmp(&(other.at, &other.name)));
        let more = lapsed.len() > limits::SWEEP_ROWS;
        for (lease, note) in lapsed.into_iter().take(limits::SWEEP_ROWS) {
            if let Some(row) = self.rows.get_mut(&note.name) {
                row.lease = Some(lease);
            }
            self.write_down(note);
        }
        more
    }

    /// Keeps a lease as it was copied.
    pub fn copied(&mut self, lease: Lease) {
        self.rows.insert(lease.name.clone(), Row { lease: Some(lease), line: BTreeMap::new() });
    }

    /// Keeps an entry of the ledger as it was copied.
    pub fn copied_entry(&mut self, LedgerEntry { number, note }: LedgerEntry) {
        if note.what == What::Refused {
            self.told.insert((note.name.clone(), note.fence, note.by.host, note.by.who.clone()));
        }
        self.last_entry = self.last_entry.max(number);
        self.ledger.insert(number, note);
    }

    /// How many leases are shown, and how many entries there are.
    pub fn totals(&self) -> (usize, usize) {
        let shown = self.rows.values().filter_map(|row| row.lease.as_ref()).filter(|lease| !lease.forgotten);
        (shown.count(), self.ledger.len())
    }

    fn write_down(&mut self, note: LedgerNote) {
        let refused = note.what == What::Refused;
        if refused && !self.told.insert((note.name.clone(), note.fence, note.by.host, note.by.who.clone())) {
            return;
        }
        self.last_entry += 1;
        self.ledger.insert(self.last_entry, note);
    }

    /// One lease.
    pub fn info(&self, name: &LeaseName, now: Timestamp) -> Option<LeaseInfo> {
        self.rows.get(name)?.info(now)
    }

    /// A page of leases.
    pub fn page(&self, ask: &LeasesAsk, now: Timestamp) -> LeasePage {
        let at_most = ask.at_most.clamp(1, limits::PAGE_LEASES);
        let begins_so = |name: &LeaseName| name.as_str().starts_with(&ask.prefix);
        let from = ask.behind.clone().map_or(Bound::Unbounded, Bound::Excluded);
        let rows = self.rows.range((from, Bound::Unbounded)).filter(|(name, _)| begins_so(name));
        let mut infos = rows.filter_map(|(_, row)| row.info(now));
        let leases: Vec<LeaseInfo> = infos.by_ref().take(at_most).collect();
        let next = infos.next().and(leases.last()).map(|info| info.lease.name.clone());
        LeasePage { leases, next }
    }

    /// A page of the ledger.
    pub fn ledger(&self, ask: &LedgerAsk) -> LedgerPage {
        let at_most = ask.at_most.clamp(1, limits::PAGE_LEDGER);
        let mut entries: Box<dyn Iterator<Item = _>> = match (ask.order, ask.behind) {
            (Order::OldestFirst, behind) => {
                Box::new(self.ledger.range(behind.map_or(0, |behind| behind.saturating_add(1))..))
            }
            (Order::NewestFirst, behind) => Box::new(self.ledger.range(..behind.unwrap_or(u64::MAX)).rev()),
        };
        let (mut found, mut last) = (Vec::new(), None);
        for (number, note) in entries.by_ref().take(limits::PAGE_EXAMINED) {
            last = Some(*number);
            if ask.means(note) {
                found.push(LedgerEntry { number: *number, note: note.clone() });
            }
            if found.len() == at_most {
                break;
            }
        }
        let next = entries.next().and(last);
        LedgerPage { entries: found, next }
    }

    /// Removes old entries.
    pub fn prune(&mut self, before: Timestamp) -> Pruned {
        let is_present = |note: &LedgerNote| {
            note.what.begins()
                && self
                    .rows
                    .get(&note.name)
                    .and_then(|row| row.lease.as_ref())
                    .is_some_and(|lease| lease.held.is_some() && lease.fence == note.fence)
        };
        let old = self.ledger.iter().filter(|(_, note)| note.at < before && !is_present(note));
        let mut numbers: Vec<u64> = old.map(|(number, _)| *number).take(limits::PRUNE_LEDGER + 1).collect();
        let more = numbers.len() > limits::PRUNE_LEDGER;
        numbers.truncate(limits::PRUNE_LEDGER);
        for number in &numbers {
            let Some(note) = self.ledger.remove(number) else { continue };
            if note.what == What::Refused {
                self.told.remove(&(note.name, note.fence, note.by.host, note.by.who));
            }
        }
        Pruned { removed: numbers.len(), more }
    }
}

impl Row {
    fn line_before(&self, id: Option<LeaseId>) -> Line {
        let mine = id.and_then(|id| self.line.get(&id)).map(|seat| seat.number);
        let before = |seat: &&Seat| mine.is_none_or(|mine| seat.number < mine);
        let count = |seats: usize| u32::try_from(seats).unwrap_or(u32::MAX);
        Line {
            ahead: count(self.line.values().filter(before).count()),
            waiting: count(self.line.len() - usize::from(mine.is_some())),
        }
    }

    fn sit(&mut self, id: LeaseId, ticket: Ticket, last_seat: &mut u64, now: Timestamp) {
        match ticket {
            Ticket::AsIs => {}
            Ticket::GivenUp if cfg!(mutant = "place-in-line-stays") => {}
            Ticket::GivenUp => {
                self.line.remove(&id);
            }
            Ticket::Kept(until) => {
                if let Some(seat) = self.line.get_mut(&id) {
                    seat.until = ticket.prolongs(seat.until, now).unwrap_or(seat.until);
                } else if self.line.len() < limits::LEASE_WAITERS {
                    *last_seat += 1;
                    self.line.insert(id, Seat { number: *last_seat, until });
                }
            }
        }
    }

    fn info(&self, now: Timestamp) -> Option<LeaseInfo> {
        let lease = self.lease.clone().filter(|lease| !lease.forgotten)?;
        let waiting = self.line.values().filter(|seat| seat.until > now).count();
        let state = lease.state(now);
        Some(LeaseInfo { lease, state, waiting: u32::try_from(waiting).unwrap_or(u32::MAX) })
    }
}

/// The acquisition that a wish is about, if it may have a place in line.
fn acquisition(act: &LeaseAct) -> Option<LeaseId> {
    match act {
        LeaseAct::Acquire { id, .. } | LeaseAct::Leave { id } => Some(*id),
        LeaseAct::Renew { .. }
        | LeaseAct::Change { .. }
        | LeaseAct::Release { .. }
        | LeaseAct::Break { .. }
        | LeaseAct::Forget { .. } => None,
    }
}
