//! Leases, who waits for them, and the ledger.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::ops::Bound;

use tenure_core::{
    Epoch, Fence, Lease, LeaseId, LeaseName, LeaseOutcome, LedgerEntry, LedgerNote, Phase, Timestamp, What,
    limits,
};

use super::news::News;
use crate::engine::leases::{Batch, Now, Place, Reads, Refused};
use crate::{
    Clock, LeaseInfo, LeasePage, LeaseWish, LeasesAsk, LedgerAsk, LedgerPage, Order, Pruned, Steps, engine,
};

/// All that is known of names.
#[derive(Debug, Default)]
pub(super) struct LeaseRows {
    rows: BTreeMap<LeaseName, Row>,
    ledger: BTreeMap<u64, LedgerNote>,
    /// Refusals on record: one for each ownership and holder.
    refused: BTreeSet<Refused>,
    last_entry: u64,
    steps: Steps,
}

#[derive(Debug)]
struct Row {
    lease: Lease,
    line: BTreeMap<LeaseId, Place>,
}

impl LeaseRows {
    /// Reads the clock before requests are decided.
    pub fn look(&mut self, clock: &dyn Clock) -> Timestamp {
        self.steps.look(clock)
    }

    /// Follows the clock from now on, wherever it goes.
    pub fn follow_the_clock(&mut self) {
        self.steps = Steps::blind();
    }

    /// Decides the requests of a call.
    pub fn take(
        &mut self,
        wishes: &[LeaseWish],
        epoch: Epoch,
        now: Timestamp,
        news: &mut News,
    ) -> Vec<LeaseOutcome> {
        let reads = Reads::of(wishes.iter());
        let fence = |name: &LeaseName| self.rows.get(name).map_or(Fence::NONE, |row| row.lease.fence);
        let refused = reads.wanting.iter().map(|(name, by)| {
            let name = LeaseName::clone(name);
            (name.clone(), fence(&name), by.host, by.who.clone())
        });
        let refused = refused.filter(|refused| self.refused.contains(refused)).collect();
        let known =
            reads.names.iter().filter(|name| self.rows.contains_key(**name) || reads.wanted.contains(**name));
        let rows = known.map(|name| (LeaseName::clone(name), self.read(name))).collect();
        let mut batch = Batch::new(Now { at: now, epoch, bar: now, steps: &self.steps }, rows, refused);
        let Ok(outcomes) = batch.call(wishes);
        news.freed |= batch.frees;
        news.asked |= batch.asks();
        let Batch { rows, notes, .. } = batch;
        self.write(rows, notes);
        outcomes
    }

    fn read(&self, name: &LeaseName) -> engine::leases::Row<Infallible> {
        let Some(row) = self.rows.get(name) else { return engine::leases::Row::new(Ok(None)) };
        let mut read = engine::leases::Row::new(Ok(Some(row.lease.clone())));
        row.line.iter().for_each(|(id, place)| read.line.read(*id, *place));
        read
    }

    fn write(&mut self, rows: BTreeMap<LeaseName, engine::leases::Row<Infallible>>, notes: Vec<LedgerNote>) {
        for (name, changed) in rows {
            if let Some(lease) = changed.after {
                match self.rows.get_mut(&name) {
                    Some(row) => row.lease = lease,
                    None => self.copied(lease),
                }
            }
            let Some(row) = self.rows.get_mut(&name) else { continue };
            changed.line.gone().for_each(|id| _ = row.line.remove(&id));
            row.line.extend(changed.line.kept());
        }
        notes.into_iter().for_each(|note| self.write_down(note));
    }

    /// Records a bounded number of expired leases, earliest first. Returns true if there are more.
    pub fn notice(&mut self, epoch: Epoch, now: Timestamp) -> bool {
        let is_held =
            |lease: &Lease| lease.held.as_ref().is_some_and(|held| matches!(held.phase, Phase::Held { .. }));
        let steady = |row: &Row| self.steps.steady(row.lease.clone()).until();
        let held = self.rows.values().filter(|row| is_held(&row.lease));
        let expired = held.filter_map(|row| Some((steady(row)?, row.lease.name.clone())));
        let mut expired: Vec<(Timestamp, LeaseName)> = expired.filter(|(until, _)| *until <= now).collect();
        expired.sort();
        let more = expired.len() > limits::SWEEP_ROWS;
        expired.truncate(limits::SWEEP_ROWS);
        let rows = expired.iter().map(|(_, name)| (name.clone(), self.read(name))).collect();
        let now = Now { at: now, epoch, bar: now, steps: &self.steps };
        let mut batch = Batch::new(now, rows, BTreeSet::new());
        for (_, name) in &expired {
            batch.notice(name);
        }
        let Batch { rows, notes, .. } = batch;
        self.write(rows, notes);
        more
    }

    /// Keeps a lease as it was copied.
    pub fn copied(&mut self, lease: Lease) {
        self.rows.insert(lease.name.clone(), Row { lease, line: BTreeMap::new() });
    }

    /// Keeps an entry of the ledger as it was copied.
    pub fn copied_entry(&mut self, LedgerEntry { number, note }: LedgerEntry) {
        self.last_entry = self.last_entry.max(number);
        self.keep_entry(number, note);
    }

    /// How many leases are shown, and how many entries there are.
    pub fn totals(&self) -> (usize, usize) {
        let shown = self.rows.values().filter(|row| !row.lease.forgotten);
        (shown.count(), self.ledger.len())
    }

    fn write_down(&mut self, note: LedgerNote) {
        self.last_entry += 1;
        self.keep_entry(self.last_entry, note);
    }

    fn keep_entry(&mut self, number: u64, note: LedgerNote) {
        if note.what == What::Refused {
            self.refused.insert((note.name.clone(), note.fence, note.by.host, note.by.who.clone()));
        }
        self.ledger.insert(number, note);
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
                    .is_some_and(|row| row.lease.held.is_some() && row.lease.fence == note.fence)
        };
        let old = self.ledger.iter().filter(|(_, note)| note.at < before && !is_present(note));
        let mut numbers: Vec<u64> = old.map(|(number, _)| *number).take(limits::PRUNE_LEDGER + 1).collect();
        let more = numbers.len() > limits::PRUNE_LEDGER;
        numbers.truncate(limits::PRUNE_LEDGER);
        for number in &numbers {
            let Some(note) = self.ledger.remove(number) else { continue };
            if note.what == What::Refused {
                self.refused.remove(&(note.name, note.fence, note.by.host, note.by.who));
            }
        }
        Pruned { removed: numbers.len(), more }
    }
}

impl Row {
    fn info(&self, now: Timestamp) -> Option<LeaseInfo> {
        let lease = Some(&self.lease).filter(|lease| !lease.forgotten)?.clone();
        let waiting = self.line.values().filter(|place| place.until > now).count();
        let state = lease.state(now);
        Some(LeaseInfo { lease, state, waiting: u32::try_from(waiting).unwrap_or(u32::MAX) })
    }
}
