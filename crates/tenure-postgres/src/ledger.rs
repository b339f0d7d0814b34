//! The ledger: adding to it, reading it by page, and pruning it.

use std::cmp::Reverse;

use tenure_core::{LeaseName, LedgerEntry, LedgerNote, Timestamp, What, limits};
use tenure_store::{Fault, LedgerAsk, LedgerPage, Order, Pruned};
use tokio_postgres::Row;

use crate::connection::Connection;
use crate::fault::{Effect, unreadable};
use crate::leases::{holder, meta};
use crate::query::Query;
use crate::value::{self, bound, of_host, signed};

/// Numbers are given in the order of commits. Whoever has this lock waits for nobody any more.
const LOCK: &str = "SELECT pg_advisory_xact_lock(1413827149, hashtext(current_schema()::text))";
const ADD: &str = "INSERT INTO ledger (lease, fence, what, at, present, host, who, meta, since, until, note)
     SELECT u.lease, u.fence, u.what, u.at, u.present, u.host, u.who, u.meta, u.since, u.until, u.note
     FROM unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::bigint[], $5::boolean[], $6::uuid[], $7::text[],
         $8::text[], $9::bigint[], $10::bigint[], $11::text[])
         u (lease, fence, what, at, present, host, who, meta, since, until, note)";
const COPIED: &str =
    "INSERT INTO ledger (number, lease, fence, what, at, present, host, who, meta, since, until, note)
     OVERRIDING SYSTEM VALUE
     VALUES ($1, (SELECT number FROM lease WHERE name = $2), $3, $4, $5, false, $6, $7, $8, $9, $10, $11)";

const OLD: &str = "SELECT number FROM ledger WHERE NOT present AND at < $1 ORDER BY at, number LIMIT $2";
const PRUNE: &str = "DELETE FROM ledger WHERE number = ANY ($1)";

const ENTRIES: &str =
    "SELECT e.number, e.fence, e.what, e.at, e.host, e.who, e.meta, e.since, e.until, e.note, l.name
     FROM unnest($1::bigint[]) u (number)
     CROSS JOIN LATERAL (SELECT * FROM ledger WHERE ledger.number = u.number LIMIT 1) e
     CROSS JOIN LATERAL (SELECT name FROM lease WHERE lease.number = e.lease LIMIT 1) l ORDER BY e.number";
const AFTER: &str = "SELECT number, what, at FROM ledger WHERE number > $1 ORDER BY number LIMIT $2";
const BEFORE: &str = "SELECT number, what, at FROM ledger WHERE number < $1 ORDER BY number DESC LIMIT $2";
const OF_LEASE_AFTER: &str = "SELECT number, what, at FROM ledger
     WHERE lease = (SELECT number FROM lease WHERE name = $3) AND number > $1 ORDER BY number LIMIT $2";
const OF_LEASE_BEFORE: &str = "SELECT number, what, at FROM ledger
     WHERE lease = (SELECT number FROM lease WHERE name = $3) AND number < $1 ORDER BY number DESC LIMIT $2";
/// Names both values of `present`, because the index on times begins with them.
const BY_TIME: &str = "SELECT number, what, at FROM ledger
     WHERE present IN (false, true) AND at >= $1 AND at < $2 LIMIT $3";

/// What adds notes: each with its lease, and whether the ownership lasts that began with it.
pub(crate) fn add(notes: &[(i64, &LedgerNote, bool)]) -> Vec<Query> {
    if notes.is_empty() {
        return Vec::new();
    }
    let told = || notes.iter().map(|(_, note, _)| *note);
    let micros = |at: Option<Timestamp>| at.map(Timestamp::as_micros);
    let add = Query::new(ADD)
        .with(notes.iter().map(|(lease, ..)| *lease).collect::<Vec<_>>())
        .with(told().map(|note| signed(note.fence.number())).collect::<Vec<_>>())
        .with(told().map(|note| code(note.what)).collect::<Vec<_>>())
        .with(told().map(|note| note.at.as_micros()).collect::<Vec<_>>())
        .with(notes.iter().map(|(.., lasts)| *lasts).collect::<Vec<_>>())
        .with(told().map(|note| note.by.host.map(of_host)).collect::<Vec<_>>())
        .with(told().map(|note| note.by.who.clone()).collect::<Vec<_>>())
        .with(told().map(|note| meta(&note.by)).collect::<Vec<_>>())
        .with(told().map(|note| micros(note.since)).collect::<Vec<_>>())
        .with(told().map(|note| micros(note.until)).collect::<Vec<_>>())
        .with(told().map(|note| note.note.clone()).collect::<Vec<_>>());
    vec![Query::new(LOCK), add]
}

/// Keeps an entry as it was copied. Nobody holds anything under a fence that it names.
pub(crate) fn copied(entry: &LedgerEntry) -> Query {
    let note = &entry.note;
    let micros = |at: Option<Timestamp>| at.map(Timestamp::as_micros);
    Query::new(COPIED)
        .with(signed(entry.number))
        .with(note.name.as_str().to_owned())
        .with(signed(note.fence.number()))
        .with(code(note.what))
        .with(note.at.as_micros())
        .with(note.by.host.map(of_host))
        .with(note.by.who.clone())
        .with(meta(&note.by))
        .with(micros(note.since))
        .with(micros(note.until))
        .with(note.note.clone())
}

/// Removes old entries, except those with which a present ownership began.
pub(crate) async fn prune(connection: &mut Connection, before: Timestamp) -> Result<Pruned, Fault> {
    let most = bound(limits::PRUNE_LEDGER + 1);
    let old = connection.read(Query::new(OLD).with(before.as_micros()).with(most)).await?;
    let old: Vec<i64> = old.iter().map(|row| row.get(0)).collect();
    let more = old.len() > limits::PRUNE_LEDGER;
    let numbers: Vec<i64> = old.into_iter().take(limits::PRUNE_LEDGER).collect();
    if numbers.is_empty() {
        return Ok(Pruned::default());
    }
    let pruned = connection.run(&[Query::new(PRUNE).with(numbers)], Effect::Commits).await?;
    let removed = pruned.first().map_or(0, |pruned| usize::try_from(pruned.changed).unwrap_or(0));
    Ok(Pruned { removed, more })
}

/// An entry before all of it is read.
struct Glimpse {
    number: i64,
    what: Option<What>,
    at: Option<Timestamp>,
}

/// A page of the ledger. An entry that cannot be read is left out.
pub(crate) async fn page(connection: &mut Connection, ask: &LedgerAsk) -> Result<LedgerPage, Fault> {
    let at_most = ask.at_most.clamp(1, limits::PAGE_LEDGER);
    let candidates = candidates(connection, ask, at_most).await?;
    let (mut next, mut wanted) = (None, Vec::new());
    let mut left = candidates.iter();
    for glimpse in left.by_ref().take(limits::PAGE_EXAMINED) {
        next = u64::try_from(glimpse.number).ok();
        if glimpse.is_meant(ask) {
            wanted.push(glimpse.number);
        }
        if wanted.len() == at_most {
            break;
        }
    }
    if left.next().is_none() {
        next = None;
    }
    let mut entries = Vec::with_capacity(wanted.len());
    if !wanted.is_empty() {
        for row in connection.read(Query::new(ENTRIES).with(wanted)).await? {
            match read(&row) {
                Ok(entry) => entries.push(entry),
                Err(fault) => {
                    let number: i64 = row.get(0);
                    tracing::error!(number, %fault, "skipping an unreadable lease history entry; update this program");
                }
            }
        }
    }
    if ask.order == Order::NewestFirst {
        entries.reverse();
    }
    Ok(LedgerPage { entries, next })
}

impl Glimpse {
    fn is_meant(&self, ask: &LedgerAsk) -> bool {
        // What cannot be read is nothing that anybody means.
        let (Some(what), Some(at)) = (self.what, self.at) else { return false };
        (ask.what.is_empty() || ask.what.contains(&what))
            && ask.from.is_none_or(|from| at >= from)
            && ask.before.is_none_or(|before| at < before)
    }
}

/// Entries among which are all that are wanted, in order; one more than a page may look at, if there are so many.
async fn candidates(
    connection: &mut Connection,
    ask: &LedgerAsk,
    at_most: usize,
) -> Result<Vec<Glimpse>, Fault> {
    let is_plain = ask.what.is_empty() && ask.from.is_none() && ask.before.is_none();
    let most = bound(if is_plain { at_most + 1 } else { limits::PAGE_EXAMINED + 1 });
    let newest = ask.order == Order::NewestFirst;
    let behind = ask.behind.map_or(if newest { i64::MAX } else { 0 }, signed);
    if let Some(name) = &ask.name {
        let sql = if newest { OF_LEASE_BEFORE } else { OF_LEASE_AFTER };
        let name = name.as_str().to_owned();
        return glimpses(connection, Query::new(sql).with(behind).with(most).with(name)).await;
    }
    if ask.from.is_some() || ask.before.is_some() {
        let from = ask.from.map_or(i64::MIN, Timestamp::as_micros);
        let before = ask.before.map_or(i64::MAX, Timestamp::as_micros);
        let within = Query::new(BY_TIME).with(from).with(before).with(most);
        let mut within = glimpses(connection, within).await?;
        // Numbers and times do not go in step: a lapse is noticed later than it happens. So the entries of
        // a time can be put in order only if they are few.
        if within.len() <= limits::PAGE_EXAMINED {
            if newest {
                within.sort_unstable_by_key(|glimpse| Reverse(glimpse.number));
            } else {
                within.sort_unstable_by_key(|glimpse| glimpse.number);
            }
            let is_behind = |number| if newest { number < behind } else { number > behind };
            within.retain(|glimpse| is_behind(glimpse.number));
            return Ok(within);
        }
    }
    let sql = if newest { BEFORE } else { AFTER };
    glimpses(connection, Query::new(sql).with(behind).with(most)).await
}

async fn glimpses(connection: &mut Connection, query: Query) -> Result<Vec<Glimpse>, Fault> {
    let glimpse = |row: &Row| Glimpse {
        number: row.get(0),
        what: what(row.get(1)).ok(),
        at: Timestamp::from_micros(row.get(2)).ok(),
    };
    Ok(connection.read(query).await?.iter().map(glimpse).collect())
}

fn read(row: &Row) -> Result<LedgerEntry, Fault> {
    let note = LedgerNote {
        fence: value::fence(row.get(1))?,
        what: what(row.get(2))?,
        at: value::instant(row, 3)?,
        by: holder(row, 4)?,
        since: value::maybe_instant(row, 7)?,
        until: value::maybe_instant(row, 8)?,
        note: row.get(9),
        name: LeaseName::new(row.get(10)).map_err(unreadable)?,
    };
    Ok(LedgerEntry { number: value::seq(row.get(0))?, note })
}

fn code(what: What) -> i16 {
    match what {
        What::Acquired => 0,
        What::TookOver => 1,
        What::RenewedLate => 2,
        What::Changed => 3,
        What::Refused => 4,
        What::Broke => 5,
        What::Lapsed => 6,
        What::Released => 7,
        What::Forgotten => 8,
    }
}

fn what(number: i16) -> Result<What, Fault> {
    let known = What::ALL.into_iter().find(|what| code(*what) == number);
    known.ok_or_else(|| unreadable(format_args!("what {number} happened")))
}

#[cfg(test)]
pub(crate) const STATEMENTS: [&str; 9] =
    [ADD, OLD, PRUNE, ENTRIES, AFTER, BEFORE, OF_LEASE_AFTER, OF_LEASE_BEFORE, BY_TIME];
