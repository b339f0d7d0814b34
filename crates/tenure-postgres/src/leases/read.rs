//! What a turn reads, in one round trip with the locks that it takes.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{Fence, Holder, Lease, LeaseAct, LeaseId, LeaseName};
use tenure_store::{Fault, LeaseWish};
use tokio_postgres::Row;
use uuid::Uuid;

use super::line::{Seat, asks_for_line};
use super::row;
use super::turn::{Known, Told};
use crate::fault::unreadable;
use crate::query::Query;
use crate::value;

/// Gives names their rows that have none: in their order, as locks are taken, so that no two wait for each other.
const ROOM: &str = "INSERT INTO lease (name, fence, forgotten, freed)
     SELECT u.name, 0, false, 0 FROM unnest($1::text[]) u (name)
     WHERE NOT EXISTS (SELECT FROM lease l WHERE l.name = u.name)
     ORDER BY u.name COLLATE \"C\" ON CONFLICT (name) DO NOTHING";
/// Nobody else changes them from now on. Who has checked in is not waited for, see [`TAKE`].
const LOCK: &str =
    "SELECT number, name, fence, forgotten, freed, phase, id, since, ttl, until, host, who, meta
     FROM lease WHERE name = ANY ($1) ORDER BY name FOR NO KEY UPDATE";
/// The same without waiting for anybody.
const LOCK_FREE: &str =
    "SELECT number, name, fence, forgotten, freed, phase, id, since, ttl, until, host, who, meta
     FROM lease WHERE name = ANY ($1) ORDER BY name FOR NO KEY UPDATE SKIP LOCKED";
const THERE: &str = "SELECT name FROM lease WHERE name = ANY ($1)";
const LINES: &str = "SELECT l.number, w.id, w.place, w.until
     FROM unnest($1::text[]) u (name)
     CROSS JOIN LATERAL (SELECT number FROM lease WHERE lease.name = u.name LIMIT 1) l
     CROSS JOIN LATERAL (SELECT id, place, until FROM lease_line WHERE lease_line.lease = l.number) w";
/// Of those who want something: whose refusal is on record.
const TOLD: &str = "SELECT l.number, l.fence, u.who, u.host
     FROM unnest($1::text[], $2::text[], $3::uuid[]) u (name, who, host)
     CROSS JOIN LATERAL (SELECT number, fence FROM lease WHERE lease.name = u.name LIMIT 1) l
     CROSS JOIN LATERAL (SELECT FROM ledger e
         WHERE e.lease = l.number AND e.fence = l.fence AND e.who = u.who AND e.host IS NOT DISTINCT FROM u.host
             AND e.what = 4 LIMIT 1) e";
/// Of leases that are locked already, those that nobody has checked in under: nobody can before the commit.
pub(super) const TAKE: &str =
    "SELECT number FROM lease WHERE number = ANY ($1) ORDER BY number FOR UPDATE SKIP LOCKED";
/// Those that may have lapsed, as far as nobody else is at them.
pub(super) const LAPSED: &str =
    "SELECT number, name, fence, forgotten, freed, phase, id, since, ttl, until, host, who, meta
     FROM lease WHERE number = ANY (ARRAY(
         SELECT number FROM lease WHERE look <= (SELECT coalesce($1::bigint, micros())) ORDER BY look, name LIMIT $2))
     ORDER BY name FOR NO KEY UPDATE SKIP LOCKED";

/// What to do about a row that somebody else has locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Locked {
    /// Wait for it: whoever has it is about to commit.
    Wait,
    /// Leave it out: whoever has it takes too long.
    LeaveOut,
}

/// What some wishes are about.
#[derive(Debug, Default)]
pub(super) struct Subject<'w> {
    names: BTreeSet<&'w LeaseName>,
    /// Those that somebody wants.
    wanted: BTreeSet<&'w LeaseName>,
    /// Those whose line counts.
    lines: BTreeSet<&'w LeaseName>,
    wanting: Vec<(&'w LeaseName, &'w Holder)>,
}

impl<'w> Subject<'w> {
    pub(super) fn of(wishes: impl Iterator<Item = &'w LeaseWish>) -> Self {
        let mut subject = Self::default();
        for LeaseWish { name, act } in wishes {
            subject.names.insert(name);
            if asks_for_line(act) {
                subject.lines.insert(name);
            }
            if let LeaseAct::Acquire { by, .. } = act {
                subject.wanted.insert(name);
                subject.wanting.push((name, by));
            }
        }
        subject
    }

    /// Whether something may be granted.
    pub(super) fn is_wanted(&self) -> bool {
        !self.wanted.is_empty()
    }

    /// What locks and reads it.
    pub(super) fn queries(&self, locked: Locked) -> Vec<Query> {
        let mut queries = Vec::new();
        if self.is_wanted() {
            queries.push(Query::new(ROOM).with(texts(&self.wanted)));
        }
        match locked {
            Locked::Wait => queries.push(Query::new(LOCK).with(texts(&self.names))),
            Locked::LeaveOut => {
                queries.push(Query::new(THERE).with(texts(&self.names)));
                queries.push(Query::new(LOCK_FREE).with(texts(&self.names)));
            }
        }
        if !self.lines.is_empty() {
            queries.push(Query::new(LINES).with(texts(&self.lines)));
        }
        if self.is_wanted() {
            let names: Vec<String> = self.wanting.iter().map(|(name, _)| name.as_str().to_owned()).collect();
            let whos: Vec<String> = self.wanting.iter().map(|(_, by)| by.who.clone()).collect();
            let hosts: Vec<Option<Uuid>> =
                self.wanting.iter().map(|(_, by)| by.host.map(value::of_host)).collect();
            queries.push(Query::new(TOLD).with(names).with(whos).with(hosts));
        }
        queries
    }

    /// What they answered.
    pub(super) fn read(&self, answers: Vec<Vec<Row>>, locked: Locked) -> Result<Read, Fault> {
        let mut answers = answers.into_iter().skip(usize::from(self.is_wanted()));
        let mut left_out = BTreeSet::new();
        if locked == Locked::LeaveOut {
            for row in answers.next().unwrap_or_default() {
                left_out.insert(LeaseName::new(row.get(0)).map_err(unreadable)?);
            }
        }
        let rows = rows(&answers.next().unwrap_or_default());
        left_out.retain(|name| !rows.contains_key(name));
        let mut read = Read { rows, told: BTreeSet::new(), left_out };
        if !self.lines.is_empty() {
            let mut seats: BTreeMap<i64, Vec<(LeaseId, Seat)>> = BTreeMap::new();
            for row in answers.next().unwrap_or_default() {
                let seat = Seat { place: row.get(2), until: value::instant(&row, 3)? };
                seats.entry(row.get(0)).or_default().push((LeaseId::from(row.get::<_, Uuid>(1)), seat));
            }
            for known in read.rows.values_mut() {
                let line = seats.remove(&known.number).unwrap_or_default();
                line.into_iter().for_each(|(id, seat)| known.seats.read(id, seat));
            }
        }
        for row in answers.next().unwrap_or_default() {
            let (fence, host) = (value::fence(row.get(1))?, value::host_id(&row, 3));
            read.told.insert((row.get(0), fence, host, row.get(2)));
        }
        Ok(read)
    }
}

/// What was read.
#[derive(Debug)]
pub(super) struct Read {
    pub rows: BTreeMap<LeaseName, Known>,
    pub told: BTreeSet<Told>,
    /// Those that somebody else keeps locked.
    pub left_out: BTreeSet<LeaseName>,
}

/// Leases as they were read, by name.
pub(super) fn rows(rows: &[Row]) -> BTreeMap<LeaseName, Known> {
    let mut known = BTreeMap::new();
    for row in rows {
        let (number, name) = match row::key(row) {
            Ok(key) => key,
            // Nobody can have asked for it.
            Err(fault) => {
                tracing::error!(%fault, "unreadable lease name; update this program");
                continue;
            }
        };
        let lease = row::read(row).map_err(|fault| super::of_lease(&name, fault));
        // It was given its row in this very transaction.
        let was_held = |lease: &Lease| lease.fence != Fence::NONE || lease.held.is_some();
        known.insert(name, Known::new(number, lease.map(|lease| Some(lease).filter(was_held))));
    }
    known
}

fn texts(names: &BTreeSet<&LeaseName>) -> Vec<String> {
    names.iter().map(|name| name.as_str().to_owned()).collect()
}

#[cfg(test)]
pub(super) const STATEMENTS: [&str; 8] = [ROOM, LOCK, LOCK_FREE, THERE, LINES, TOLD, TAKE, LAPSED];
