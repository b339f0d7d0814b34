//! Writing what a batch has changed: a few statements, however many leases it is about.

use std::collections::BTreeMap;

use tenure_core::{Fence, Lease, LeaseId, LeaseName, Phase, Timestamp};
use tenure_store::Fault;
use tenure_store::engine::leases::{self, Batch};
use uuid::Uuid;

use super::row::{code, meta, micros};
use crate::ledger;
use crate::query::Query;
use crate::value::{of_host, signed};

/// Renewals: nothing but the end of an ownership.
const PROLONG: &str = "UPDATE lease l SET until = u.until, look = least(l.look, u.until)
     FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) u (number, fence, until)
     WHERE l.number = ANY (ARRAY[u.number]) AND l.fence = u.fence";
const CHANGE: &str = "UPDATE lease l SET fence = u.fence, forgotten = u.forgotten, freed = u.freed, phase = u.phase,
         id = u.id, since = u.since, ttl = CASE WHEN u.phase IS NULL THEN l.ttl ELSE u.ttl END, until = u.until,
         look = CASE WHEN u.phase = 0 AND u.until IS NOT NULL THEN least(l.look, u.until) END,
         host = u.host, who = u.who, meta = u.meta
     FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::boolean[], $5::bigint[], $6::smallint[], $7::uuid[],
         $8::bigint[], $9::bigint[], $10::bigint[], $11::uuid[], $12::text[], $13::text[])
         u (number, before, fence, forgotten, freed, phase, id, since, ttl, until, host, who, meta)
     WHERE l.number = ANY (ARRAY[u.number]) AND l.fence = u.before";
const COPIED: &str =
    "INSERT INTO lease (fence, forgotten, freed, phase, id, since, ttl, until, host, who, meta, name, look)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";
/// Names that were given a row in this very transaction, and were not granted.
const UNUSED: &str = "DELETE FROM lease WHERE number = ANY ($1) AND fence = 0 AND phase IS NULL";
const STAND_UP: &str = "DELETE FROM lease_line WHERE ctid = ANY (ARRAY(SELECT w.ctid
     FROM unnest($1::bigint[], $2::uuid[]) u (lease, id)
     CROSS JOIN LATERAL (SELECT ctid FROM lease_line WHERE lease = u.lease AND id = u.id LIMIT 1) w))";
const SIT: &str = "INSERT INTO lease_line (lease, id, place, until)
     SELECT u.lease, u.id, u.place, u.until
     FROM unnest($1::bigint[], $2::uuid[], $3::bigint[], $4::bigint[]) u (lease, id, place, until)
     ON CONFLICT (lease, id) DO UPDATE SET place = excluded.place, until = excluded.until";
const PAST: &str = "UPDATE ledger SET present = false WHERE ctid = ANY (ARRAY(SELECT e.ctid
     FROM unnest($1::bigint[], $2::bigint[]) u (lease, fence)
     CROSS JOIN LATERAL (SELECT ctid FROM ledger WHERE lease = u.lease AND fence = u.fence AND present OFFSET 0) e))";

type Row = leases::Row<Fault>;

/// Returns the statements that write what a batch has changed. Entries of the history come last: their lock is held for
/// nothing but the commit.
pub(super) fn queries(batch: &Batch<'_, Fault>, numbers: &BTreeMap<LeaseName, i64>) -> Vec<Query> {
    let rows: Vec<(i64, &Row)> =
        batch.rows.iter().filter_map(|(name, row)| Some((*numbers.get(name)?, row))).collect();
    let changed = rows.iter().copied().filter(|(_, row)| row.after.is_some());
    let (prolonged, others): (Vec<_>, Vec<_>) = changed.partition(|(_, row)| is_prolonged(row));
    let is_unused = |(_, row): &&(i64, &Row)| row.after.is_none() && matches!(row.before, Ok(None));
    let unused: Vec<i64> = rows.iter().filter(is_unused).map(|(number, _)| *number).collect();
    let mut queries = Vec::new();
    queries.extend((!prolonged.is_empty()).then(|| prolong(&prolonged)));
    queries.extend((!others.is_empty()).then(|| change(&others)));
    queries.extend((!unused.is_empty()).then(|| Query::new(UNUSED).with(unused)));
    queries.extend(lines(&rows));
    queries.extend(past(&others));
    let notes = batch.notes.iter();
    let notes: Vec<_> =
        notes.filter_map(|note| Some((*numbers.get(&note.name)?, note, batch.lasts(note)))).collect();
    queries.extend(ledger::add(&notes));
    queries
}

/// Returns true if nothing but the end of a lease has changed.
fn is_prolonged(row: &Row) -> bool {
    let (Ok(Some(before)), Some(after)) = (&row.before, &row.after) else { return false };
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

/// Keeps a lease as it was copied. Nobody knows its row yet.
pub(crate) fn copied(lease: &Lease) -> Query {
    let held = lease.held.as_ref();
    let until = lease.until().map(Timestamp::as_micros);
    let ticks = held.is_some_and(|held| matches!(held.phase, Phase::Held { .. }));
    Query::new(COPIED)
        .with(signed(lease.fence.number()))
        .with(lease.forgotten)
        .with(lease.freed.as_micros())
        .with(held.map(|held| code(held.phase)))
        .with(held.map(|held| uuid(held.id)))
        .with(held.map(|held| held.since.as_micros()))
        .with(held.and_then(|held| micros(held.ttl)))
        .with(until)
        .with(held.and_then(|held| held.by.host).map(of_host))
        .with(held.map(|held| held.by.who.clone()))
        .with(held.and_then(|held| meta(&held.by)))
        .with(lease.name.as_str().to_owned())
        .with(until.filter(|_| ticks))
}

fn prolong(rows: &[(i64, &Row)]) -> Query {
    let until =
        |row: &Row| row.after.as_ref().and_then(|lease| lease.until()).map_or(0, Timestamp::as_micros);
    Query::new(PROLONG)
        .with(rows.iter().map(|(number, _)| *number).collect::<Vec<_>>())
        .with(rows.iter().map(|(_, row)| signed(row.fence_before().number())).collect::<Vec<_>>())
        .with(rows.iter().map(|(_, row)| until(row)).collect::<Vec<_>>())
}

fn change(rows: &[(i64, &Row)]) -> Query {
    let leases = || rows.iter().filter_map(|(_, row)| row.after.as_ref());
    let held = || leases().map(|lease| lease.held.as_ref());
    Query::new(CHANGE)
        .with(rows.iter().map(|(number, _)| *number).collect::<Vec<_>>())
        .with(rows.iter().map(|(_, row)| signed(row.fence_before().number())).collect::<Vec<_>>())
        .with(leases().map(|lease| signed(lease.fence.number())).collect::<Vec<_>>())
        .with(leases().map(|lease| lease.forgotten).collect::<Vec<_>>())
        .with(leases().map(|lease| lease.freed.as_micros()).collect::<Vec<_>>())
        .with(held().map(|held| held.map(|held| code(held.phase))).collect::<Vec<_>>())
        .with(held().map(|held| held.map(|held| uuid(held.id))).collect::<Vec<_>>())
        .with(held().map(|held| held.map(|held| held.since.as_micros())).collect::<Vec<_>>())
        .with(held().map(|held| held.and_then(|held| micros(held.ttl))).collect::<Vec<_>>())
        .with(leases().map(|lease| lease.until().map(Timestamp::as_micros)).collect::<Vec<_>>())
        .with(held().map(|held| held.and_then(|held| held.by.host).map(of_host)).collect::<Vec<_>>())
        .with(held().map(|held| held.map(|held| held.by.who.clone())).collect::<Vec<_>>())
        .with(held().map(|held| held.and_then(|held| meta(&held.by))).collect::<Vec<_>>())
}

fn lines(rows: &[(i64, &Row)]) -> Vec<Query> {
    let gone: Vec<(i64, LeaseId)> =
        rows.iter().flat_map(|(number, row)| row.line.gone().map(|id| (*number, id))).collect();
    let kept: Vec<_> = rows
        .iter()
        .flat_map(|(number, row)| row.line.kept().map(|(id, place)| (*number, id, place)))
        .collect();
    let mut queries = Vec::new();
    if !gone.is_empty() {
        let stand_up = Query::new(STAND_UP)
            .with(gone.iter().map(|(number, _)| *number).collect::<Vec<_>>())
            .with(gone.iter().map(|(_, id)| uuid(*id)).collect::<Vec<_>>());
        queries.push(stand_up);
    }
    if !kept.is_empty() {
        let sit = Query::new(SIT)
            .with(kept.iter().map(|(number, ..)| *number).collect::<Vec<_>>())
            .with(kept.iter().map(|(_, id, _)| uuid(*id)).collect::<Vec<_>>())
            .with(kept.iter().map(|(.., place)| place.number).collect::<Vec<_>>())
            .with(kept.iter().map(|(.., place)| place.until.as_micros()).collect::<Vec<_>>());
        queries.push(sit);
    }
    queries
}

/// Marks ownerships that are over: the notes with which they began may be pruned when they are old.
fn past(changed: &[(i64, &Row)]) -> Option<Query> {
    let is_over = |(number, row): &(i64, &Row)| -> Option<(i64, Fence)> {
        let before = row.before.as_ref().ok()?.as_ref().filter(|lease| lease.held.is_some())?;
        let after = row.after.as_ref()?;
        (after.held.is_none() || after.fence != before.fence).then_some((*number, before.fence))
    };
    let over: Vec<(i64, Fence)> = changed.iter().filter_map(is_over).collect();
    (!over.is_empty()).then(|| {
        Query::new(PAST)
            .with(over.iter().map(|(number, _)| *number).collect::<Vec<_>>())
            .with(over.iter().map(|(_, fence)| signed(fence.number())).collect::<Vec<_>>())
    })
}

pub(super) fn uuid(id: LeaseId) -> Uuid {
    Uuid::from_bytes(*id.as_bytes())
}

#[cfg(test)]
pub(super) const STATEMENTS: [&str; 6] = [PROLONG, CHANGE, UNUSED, STAND_UP, SIT, PAST];
