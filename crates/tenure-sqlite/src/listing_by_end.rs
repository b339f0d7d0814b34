//! Walking the jobs that have ended, by when they did.

use rusqlite::{Connection, Result};
use tenure_core::{Job, Timestamp, limits};
use tenure_store::{Cursor, Order, Page, PageAsk};

use crate::looking::Looking;
use crate::rows::Stored;
use crate::value;

const CHUNK: i64 = 128;

pub(crate) const FIRST_ENDED: &str = "SELECT ended, seq FROM standing
     WHERE ended IS NOT NULL AND ended >= ?1 AND (ended > ?1 OR seq > ?2) ORDER BY ended, seq LIMIT ?3 + 0";
pub(crate) const LAST_ENDED: &str = "SELECT ended, seq FROM standing
     WHERE ended IS NOT NULL AND ended <= ?1 AND (ended < ?1 OR seq < ?2) ORDER BY ended DESC, seq DESC LIMIT ?3 + 0";

/// Finds a bounded number of the jobs that a filter means, looking at a bounded number of rows and bytes.
pub(crate) fn page(conn: &Connection, ask: &PageAsk, at_most: usize, now: Timestamp) -> Result<Page> {
    let mut looking = Looking::new(conn, &ask.filter, ask.values)?;
    let page = find(conn, ask, at_most, now, &mut looking)?;
    Ok(Page { examined: looking.examined.rows(), ..page })
}

fn find(
    conn: &Connection,
    ask: &PageAsk,
    at_most: usize,
    now: Timestamp,
    looking: &mut Looking<'_>,
) -> Result<Page> {
    let sql = match ask.order {
        Order::OldestFirst => FIRST_ENDED,
        Order::NewestFirst => LAST_ENDED,
    };
    let mut behind = start(ask);
    let mut page = Page { jobs: Vec::new(), unreadable: Vec::new(), next: None, examined: 0 };
    let mut places = conn.prepare_cached(sql)?;
    while !looking.examined.is_spent() {
        let read = places.query_map((behind.0, behind.1, CHUNK), |row| Ok((row.get(0)?, row.get(1)?)))?;
        let read: Vec<(i64, i64)> = read.collect::<Result<_>>()?;
        if read.is_empty() {
            return Ok(page);
        }
        for (at, seq) in read {
            let end = value::timestamp(at).ok();
            if end.is_some_and(|end| !is_within(ask, end)) {
                return Ok(page);
            }
            let is_full = page.jobs.len() == at_most || page.unreadable.len() == limits::PAGE_UNREADABLE;
            if is_full || looking.examined.is_spent() {
                page.next = cursor(behind, ask.order);
                return Ok(page);
            }
            behind = (at, seq);
            // A job that is to be done again has not ended.
            let matches = |job: &Job| job.state.ended() == end && end.is_some() && ask.filter.means(job, now);
            match looking.at(seq, matches)? {
                Some(Ok(Stored { job, .. })) => page.jobs.push(job),
                Some(Err(odd)) => page.unreadable.extend(Some(odd).filter(|odd| ask.filter.may_mean(odd))),
                None => {}
            }
        }
    }
    page.next = cursor(behind, ask.order);
    Ok(page)
}

/// Where a page goes on that ends behind this place. Ends that cannot be read lie at the ends of the listing, where no
/// cursor can name a place among them: behind the latest there are all others, and behind the earliest there is nothing.
fn cursor((at, seq): (i64, i64), order: Order) -> Option<Cursor> {
    match (value::timestamp(at), order) {
        (Ok(end), _) => Some(Cursor::behind_end(end, u64::try_from(seq).unwrap_or(0))),
        (Err(_), Order::NewestFirst) if at > 0 => Some(Cursor::behind_end(Timestamp::LAST, u64::MAX)),
        (Err(_), Order::NewestFirst | Order::OldestFirst) => None,
    }
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
