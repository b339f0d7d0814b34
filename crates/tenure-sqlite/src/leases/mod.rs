//! Leases: reading the rows of a batch, and writing what it has changed. `engine::leases` has the rules.

mod line;
mod row;
mod views;

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Error, OptionalExtension, Result, params};
use tenure_core::{Fence, LeaseAct, LeaseId, LeaseName, LeaseOutcome, Timestamp, limits};
use tenure_store::engine::leases::{Batch, Now, Reads, Row};
use tenure_store::{LeaseWish, Steps};

use crate::fault::{is_unreadable, of_lease};
use crate::value;
use crate::writing::Writing;
use row::Stored;

#[cfg(test)]
pub(crate) use line::{GONE, LINE, SIT, STAND_UP};
#[cfg(test)]
pub(crate) use row::BY_NAME;
pub(crate) use row::{holder, keep_copied, meta};
#[cfg(test)]
pub(crate) use views::{INFO, PAGE};
pub(crate) use views::{info, page};

/// Repeats one decision of the domain, that of a renewal in time, because nearly all wishes are such: it
/// needs not read the row. Whatever it does not touch goes the long way.
pub(crate) const PROLONG: &str = "UPDATE lease SET until = min(?4 + ttl, ?5)
     WHERE name = ?1 AND id = ?2 AND fence = ?3 AND phase = 0 AND (until > ?4 OR until IS NULL)
     RETURNING until";
pub(crate) const LAPSED: &str = "SELECT name FROM lease WHERE phase = 0 AND until <= ?1
     ORDER BY until, name LIMIT ?2 + 0";

/// The leases of a call, as they were read.
#[derive(Default)]
struct Leases {
    rows: BTreeMap<LeaseName, Row<Error>>,
    known: BTreeMap<LeaseName, Known>,
}

/// The row of a readable lease.
struct Known {
    number: i64,
    /// The note with which its present ownership began.
    began: Option<i64>,
}

impl Writing<'_> {
    /// Decides requests about leases, each by itself.
    pub(crate) fn lease(&mut self, wishes: &[LeaseWish]) -> Result<Vec<LeaseOutcome>> {
        let renewed = self.prolong_all(wishes)?;
        let rest = wishes.iter().zip(&renewed).filter(|(_, renewed)| renewed.is_none());
        let rest: Vec<&LeaseWish> = rest.map(|(wish, _)| wish).collect();
        let mut decided = if rest.is_empty() { Vec::new() } else { self.decide(wishes, &rest)? }.into_iter();
        Ok(renewed.into_iter().filter_map(|renewed| renewed.or_else(|| decided.next())).collect())
    }

    /// Renews each lease that is still held, by one statement. If a name has several requests, a batch decides them in order.
    fn prolong_all(&self, wishes: &[LeaseWish]) -> Result<Vec<Option<LeaseOutcome>>> {
        let mut requests: BTreeMap<&LeaseName, usize> = BTreeMap::new();
        wishes.iter().for_each(|wish| *requests.entry(&wish.name).or_default() += 1);
        let prolong = |LeaseWish { name, act }: &LeaseWish| {
            if let LeaseAct::Renew { id, fence, .. } = act
                && requests.get(name) == Some(&1)
            {
                return self.prolong(name, *id, *fence);
            }
            Ok(None)
        };
        wishes.iter().map(prolong).collect()
    }

    /// Renews a lease that is held so; `None` if it is not, or not simply.
    fn prolong(&self, name: &LeaseName, id: LeaseId, fence: Fence) -> Result<Option<LeaseOutcome>> {
        let (now, last) = (self.now.as_micros(), Timestamp::LAST.as_micros());
        let held = params![name.as_str(), id.as_bytes(), value::signed(fence.number()), now, last];
        let until = |row: &rusqlite::Row<'_>| value::maybe_instant(row, 0);
        let renewed = self.conn.prepare_cached(PROLONG)?.query_row(held, until).optional()?;
        Ok(renewed.map(|until| LeaseOutcome::Renewed { until }))
    }

    /// Decides the rest of a call's requests.
    fn decide(&mut self, wishes: &[LeaseWish], rest: &[&LeaseWish]) -> Result<Vec<LeaseOutcome>> {
        let reads = Reads::of(rest.iter().copied());
        let mut leases = self.read_leases(reads.names.iter().copied())?;
        for name in &reads.wanted {
            leases.rows.entry(LeaseName::clone(name)).or_insert_with(|| Row::new(Ok(None)));
        }
        for name in &reads.lines {
            if let (Some(known), Some(row)) = (leases.known.get(*name), leases.rows.get_mut(*name)) {
                match line::read(self.conn, known.number, &mut row.line) {
                    Err(error) if is_unreadable(&error) => row.before = Err(of_lease(name, error)),
                    read => read?,
                }
            }
        }
        // An unreadable lease fails a call about it alone.
        if let [wish] = wishes
            && leases.rows.get(&wish.name).is_some_and(|row| row.before.is_err())
            && let Some(Row { before: Err(error), .. }) = leases.rows.remove(&wish.name)
        {
            return Err(error);
        }
        let mut refused = BTreeSet::new();
        for (name, by) in reads.wanting {
            if let (Some(known), Some(row)) = (leases.known.get(name), leases.rows.get(name))
                && self.is_refused(known.number, row.fence_before(), by)?
            {
                refused.insert((name.clone(), row.fence_before(), by.host, by.who.clone()));
            }
        }
        let steps = self.memory.steps.clone();
        let mut batch = Batch::new(self.at(&steps), leases.rows, refused);
        let outcomes = rest.iter().map(|wish| batch.decide(wish)).collect();
        self.write_leases(&batch, leases.known)?;
        Ok(outcomes)
    }

    fn at<'s>(&self, steps: &'s Steps) -> Now<'s> {
        Now { at: self.now, epoch: self.memory.epoch, bar: self.now, steps }
    }

    fn read_leases<'n>(&self, names: impl Iterator<Item = &'n LeaseName>) -> Result<Leases> {
        let mut by_name = row::by_name(self.conn)?;
        let mut leases = Leases::default();
        for name in names {
            let row = match by_name.query_row([name.as_str()], row::read).optional() {
                Ok(None) => continue,
                Ok(Some(Stored { number, lease, began })) => {
                    leases.known.insert(name.clone(), Known { number, began });
                    Row::new(Ok(Some(lease)))
                }
                Err(error) if is_unreadable(&error) => Row::new(Err(of_lease(name, error))),
                Err(error) => return Err(error),
            };
            leases.rows.insert(name.clone(), row);
        }
        Ok(leases)
    }

    /// Writes what a batch has changed.
    fn write_leases(
        &mut self,
        batch: &Batch<'_, Error>,
        mut known: BTreeMap<LeaseName, Known>,
    ) -> Result<()> {
        if batch.is_idle() {
            return Ok(());
        }
        if batch.frees {
            self.call_freed();
        }
        if batch.asks() {
            self.call_asked()?;
        }
        let changed = || batch.rows.iter().filter_map(|(name, row)| Some((name, row, row.after.as_ref()?)));
        for (name, ..) in changed() {
            if !known.contains_key(name) {
                let number = row::insert(self.conn, name, self.now)?;
                known.insert(name.clone(), Known { number, began: None });
            }
        }
        let mut began: BTreeMap<&LeaseName, i64> = BTreeMap::new();
        for note in &batch.notes {
            let Some(known) = known.get(&note.name) else { continue };
            let (lasts, number) = (batch.lasts(note), known.number);
            let entry = self.note_as(number, note, None, lasts)?;
            if lasts {
                began.insert(&note.name, entry);
            }
        }
        for (name, row, lease) in changed() {
            let Some(known) = known.get(name) else { continue };
            let goes_on = lease.held.is_some() && lease.fence == row.fence_before();
            if let (Some(began), false) = (known.began, goes_on) {
                self.set_past(began)?;
            }
            let began = began.get(name).copied().or(known.began.filter(|_| goes_on));
            let stored = Stored { number: known.number, lease: lease.clone(), began };
            row::update(self.conn, row.fence_before(), &stored)?;
        }
        for (name, row) in &batch.rows {
            if let Some(known) = known.get(name) {
                self.write_places(known.number, &row.line)?;
            }
        }
        Ok(())
    }

    /// Records expired leases, earliest first. Returns true if there are more.
    pub(crate) fn notice_lapses(&mut self) -> Result<bool> {
        let most = value::bound(limits::SWEEP_ROWS + 1);
        let names = self
            .conn
            .prepare_cached(LAPSED)?
            .query_map([self.now.as_micros(), most], |row| row.get(0))?
            .collect::<Result<Vec<String>>>()?;
        let lapsed = names.iter().take(limits::SWEEP_ROWS).filter_map(|name| LeaseName::new(name).ok());
        let lapsed: Vec<LeaseName> = lapsed.collect();
        let leases = self.read_leases(lapsed.iter())?;
        let steps = self.memory.steps.clone();
        let mut batch = Batch::new(self.at(&steps), leases.rows, BTreeSet::new());
        let noticed = lapsed.iter().filter(|name| batch.notice(name)).count();
        self.write_leases(&batch, leases.known)?;
        // If none of them could be read, another call would not help.
        Ok(noticed > 0 && names.len() > limits::SWEEP_ROWS)
    }
}
