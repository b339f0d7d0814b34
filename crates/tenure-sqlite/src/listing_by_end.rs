//! Walking the jobs that have ended, by when they did.

use rusqlite::{Connection, OptionalExtension, Result};
use tenure_core::{Timestamp, limits};
use tenure_store::{Cursor, Order, Page, PageAsk};

use crate::rows::{by_seq, stored};
use crate::value;

const CHUNK: i64 = 128;

pub(crate) const FIRST_ENDED: &str = "SELECT ended, seq FROM standing
     WHERE ended IS NOT NULL AND ended >= ?1 AND (ended > ?1 OR seq > ?2) ORDER BY ended, seq LIMIT ?3 + 0";
pub(crate) const LAST_ENDED: &str = "SELECT ended, seq FROM standing
     WHERE ended IS NOT NULL AND ended <= ?1 AND (ended < ?1 OR seq < ?2) ORDER BY ended DESC, seq DESC LIMIT ?3 + 0";

/// Finds a bounded number of the jobs that a filter means, looking at a bounded number of rows.
pub(crate) fn page(conn: &Connection, ask: &PageAsk, at_most: usize, now: Timestamp) -> Result<Page> {
    let sql = match ask.order {
        Order::OldestFirst => FIRST_ENDED,
        Order::NewestFirst => LAST_ENDED,
    };
    let (mut behind, mut jobs, mut looked_at) = (start(ask), Vec::new(), 0);
    let (mut places, mut job) = (conn.prepare_cached(sql)?, by_seq(conn)?);
    while looked_at < limits::PAGE_EXAMINED {
        let read = places.query_map((behind.0, behind.1, CHUNK), |row| Ok((row.get(0)?, row.get(1)?)))?;
        let read: Vec<(i64, i64)> = read.collect::<Result<_>>()?;
        if read.is_empty() {
            return Ok(Page { jobs, next: None });
        }
        for (at, seq) in read {
            let end = value::timestamp(at)?;
            if !is_within(ask, end) {
                return Ok(Page { jobs, next: None });
            }
            if jobs.len() == at_most || looked_at == limits::PAGE_EXAMINED {
                let next = Cursor::behind_end(value::timestamp(behind.0)?, value::seq(behind.1)?);
                return Ok(Page { jobs, next: Some(next) });
            }
            (behind, looked_at) = ((at, seq), looked_at + 1);
            let Some(found) = job.query_row([seq], stored).optional()? else { continue };
            let found = found.seen(conn)?.job;
            // A job that is to be done again has not ended.
            if found.state.ended() == Some(end) && ask.filter.means(&found, now) {
                jobs.push(found);
            }
        }
    }
    let next = Cursor::behind_end(value::timestamp(behind.0)?, value::seq(behind.1)?);
    Ok(Page { jobs, next: Some(next) })
}

/// Behind which place it begins.
fn start(ask: &PageAsk) -> (i64, i64) {
    let behind = ask.after.and_then(|after| Some((after.ended()?.as_micros(), value::signed(after.seq()))));
    let (from, before) = (ask.filter.ended_from, ask.filter.ended_before);
    let bound = match ask.order {
        Order::OldestFirst => (from.map_or(0, Timestamp::as_micros), -1),
        Order::NewestFirst => before.map_or((i64::MAX, i64::MAX), |before| (before.as_micros(), 0)),
    };
    match (ask.order, behind) {
        (_, None) => bound,
        (Order::OldestFirst, Some(behind)) => behind.max(bound),
        (Order::NewestFirst, Some(behind)) => behind.min(bound),
    }
}

/// Whether what comes may be meant.
fn is_within(ask: &PageAsk, end: Timestamp) -> bool {
    match ask.order {
        Order::OldestFirst => ask.filter.ended_before.is_none_or(|before| end < before),
        Order::NewestFirst => ask.filter.ended_from.is_none_or(|from| end >= from),
    }
}
