//! What a turn reads, in one round trip with the locks that it takes.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{Fence, Lease, LeaseId, LeaseName};
use tenure_store::Fault;
use tenure_store::engine::leases::{self, Place, Reads, Refused};
use tokio_postgres::Row;
use uuid::Uuid;

use super::row;
use crate::fault::unreadable;
use crate::query::Query;
use crate::value;

/// Gives names their rows that have none: in their order, as locks are taken, so that no two wait for each other.
const ROOM: &str = "INSERT INTO lease (name, fence, forgotten, freed)
     SELECT u.name, 0, false, 0 FROM unnest($1::text[]) u (name)
     WHERE NOT EXISTS (SELECT FROM lease l WHERE l.name = u.name OFFSET 0)
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
const LINES: &str = "SELECT u.name, w.id, w.place, w.until
     FROM unnest($1::text[]) u (name)
     CROSS JOIN LATERAL (SELECT number FROM lease WHERE lease.name = u.name LIMIT 1) l
     CROSS JOIN LATERAL (SELECT id, place, until FROM lease_line WHERE lease_line.lease = l.number OFFSET 0) w";
/// Finds the holders that want a lease and have a refusal on record.
const REFUSED: &str = "SELECT u.name, l.fence, u.who, u.host
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
     ORDER BY name || '' FOR NO KEY UPDATE SKIP LOCKED";

/// What to do about a row that somebody else has locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Locked {
    /// Wait for it: whoever has it is about to commit.
    Wait,
    /// Leave it out: whoever has it takes too long.
    LeaveOut,
}

/// Returns the statements that lock and read these rows.
pub(super) fn queries(reads: &Reads<'_>, locked: Locked) -> Vec<Query> {
    let mut queries = Vec::new();
    if !reads.wanted.is_empty() {
        queries.push(Query::new(ROOM).with(texts(&reads.wanted)));
    }
    match locked {
        Locked::Wait => queries.push(Query::new(LOCK).with(texts(&reads.names))),
        Locked::LeaveOut => {
            queries.push(Query::new(THERE).with(texts(&reads.names)));
            queries.push(Query::new(LOCK_FREE).with(texts(&reads.names)));
        }
    }
    if !reads.lines.is_empty() {
        queries.push(Query::new(LINES).with(texts(&reads.lines)));
    }
    if !reads.wanting.is_empty() {
        let names: Vec<String> = reads.wanting.iter().map(|(name, _)| name.as_str().to_owned()).collect();
        let holders: Vec<String> = reads.wanting.iter().map(|(_, by)| by.who.clone()).collect();
        let hosts: Vec<Option<Uuid>> =
            reads.wanting.iter().map(|(_, by)| by.host.map(value::of_host)).collect();
        queries.push(Query::new(REFUSED).with(names).with(holders).with(hosts));
    }
    queries
}

/// Reads the answers to the statements of [`queries`].
pub(super) fn read(reads: &Reads<'_>, answers: Vec<Vec<Row>>, locked: Locked) -> Result<Read, Fault> {
    let mut answers = answers.into_iter().skip(usize::from(!reads.wanted.is_empty()));
    let mut left_out = BTreeSet::new();
    if locked == Locked::LeaveOut {
        for row in answers.next().unwrap_or_default() {
            left_out.insert(LeaseName::new(row.get(0)).map_err(unreadable)?);
        }
    }
    let mut leases = Leases::read(&answers.next().unwrap_or_default());
    left_out.retain(|name| !leases.rows.contains_key(name));
    if !reads.lines.is_empty() {
        for row in answers.next().unwrap_or_default() {
            let place = Place { number: row.get(2), until: value::instant(&row, 3)? };
            let name = LeaseName::new(row.get(0)).map_err(unreadable)?;
            if let Some(lease) = leases.rows.get_mut(&name) {
                lease.line.read(LeaseId::from(row.get::<_, Uuid>(1)), place);
            }
        }
    }
    let mut refused = BTreeSet::new();
    for row in answers.next().unwrap_or_default() {
        let name = LeaseName::new(row.get(0)).map_err(unreadable)?;
        refused.insert((name, value::fence(row.get(1))?, value::host_id(&row, 3), row.get(2)));
    }
    Ok(Read { leases, refused, left_out })
}

/// The rows that were read.
#[derive(Debug)]
pub(super) struct Read {
    pub leases: Leases,
    pub refused: BTreeSet<Refused>,
    /// Leases that another transaction keeps locked.
    pub left_out: BTreeSet<LeaseName>,
}

/// Leases as they were read, and the numbers of their rows.
#[derive(Debug, Default)]
pub(super) struct Leases {
    pub rows: BTreeMap<LeaseName, leases::Row<Fault>>,
    pub numbers: BTreeMap<LeaseName, i64>,
}

impl Leases {
    pub(super) fn read(rows: &[Row]) -> Self {
        let mut leases = Self::default();
        for row in rows {
            let (number, name) = match row::key(row) {
                Ok(key) => key,
                // No request can name it.
                Err(fault) => {
                    tracing::error!(%fault, "unreadable lease name; update this program");
                    continue;
                }
            };
            let lease = row::read(row).map_err(|fault| super::of_lease(&name, fault));
            // A row without a fence was made in this very transaction.
            let was_held = |lease: &Lease| lease.fence != Fence::NONE || lease.held.is_some();
            let lease = leases::Row::new(lease.map(|lease| Some(lease).filter(was_held)));
            leases.rows.insert(name.clone(), lease);
            leases.numbers.insert(name, number);
        }
        leases
    }
}

fn texts(names: &BTreeSet<&LeaseName>) -> Vec<String> {
    names.iter().map(|name| name.as_str().to_owned()).collect()
}

#[cfg(test)]
pub(super) const STATEMENTS: [&str; 8] = [ROOM, LOCK, LOCK_FREE, THERE, LINES, REFUSED, TAKE, LAPSED];
