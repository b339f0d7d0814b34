//! Walking the jobs that have ended, by when they did.
//!
//! Of most of them a receipt tells, with up to 256 of their neighbours; of the others their own standing. Both are read in the
//! order of their ends, and merged. Which lanes are meant is known before: the jobs of others are passed, and not read.

use std::collections::BTreeMap;

use tenure_core::{Job, JobId, Timestamp, limits};
use tenure_store::{Cursor, Fault, Order, Page, PageAsk};

use crate::link::Link;
use crate::query::Query;
use crate::{listing, rows, value};

const CHUNK: usize = 256;

/// Receipts of one instant are read whole, as many as there are: one transaction writes them.
const FIRST_ENDED: &str = "WITH told AS (
         SELECT ended, lane, block, seqs FROM receipt WHERE ended = $1
         UNION ALL
         SELECT ended, lane, block, seqs FROM receipt WHERE ended > $1
             AND ended <= (SELECT max(ended) FROM (SELECT ended FROM receipt WHERE ended > $1 ORDER BY ended LIMIT $3) n)),
     found AS (
         SELECT t.ended, u.seq, t.lane FROM told t CROSS JOIN LATERAL each_seq(t.block, t.seqs) u (seq)
         WHERE (t.ended, u.seq) > ($1, $2)
         UNION ALL
         SELECT * FROM (SELECT ended, seq, lane FROM standing WHERE ended IS NOT NULL AND (ended, seq) > ($1, $2)
             ORDER BY ended, seq LIMIT $3) s)
     SELECT j.id, f.seq, f.ended FROM (SELECT * FROM found ORDER BY ended, seq LIMIT $3) f
     LEFT JOIN LATERAL (SELECT id FROM job WHERE lane = f.lane AND seq = f.seq AND f.lane = ANY ($4::int[]) LIMIT 1) j
         ON true ORDER BY f.ended, f.seq";
const LAST_ENDED: &str = "WITH told AS (
         SELECT ended, lane, block, seqs FROM receipt WHERE ended = $1
         UNION ALL
         SELECT ended, lane, block, seqs FROM receipt WHERE ended < $1
             AND ended >= (SELECT min(ended) FROM (SELECT ended FROM receipt WHERE ended < $1 ORDER BY ended DESC LIMIT $3) n)),
     found AS (
         SELECT t.ended, u.seq, t.lane FROM told t CROSS JOIN LATERAL each_seq(t.block, t.seqs) u (seq)
         WHERE (t.ended, u.seq) < ($1, $2)
         UNION ALL
         SELECT * FROM (SELECT ended, seq, lane FROM standing WHERE ended IS NOT NULL AND (ended, seq) < ($1, $2)
             ORDER BY ended DESC, seq DESC LIMIT $3) s)
     SELECT j.id, f.seq, f.ended FROM (SELECT * FROM found ORDER BY ended DESC, seq DESC LIMIT $3) f
     LEFT JOIN LATERAL (SELECT id FROM job WHERE lane = f.lane AND seq = f.seq AND f.lane = ANY ($4::int[]) LIMIT 1) j
         ON true ORDER BY f.ended DESC, f.seq DESC";

/// Finds a bounded number of the jobs that a filter means, looking at a bounded number of rows.
pub(crate) async fn page(
    link: &mut Link,
    ask: &PageAsk,
    at_most: usize,
    now: Timestamp,
) -> Result<Page, Fault> {
    let lanes = listing::lanes_of(link, &ask.filter).await?;
    let (mut behind, mut jobs, mut looked_at) = (start(ask), Vec::new(), 0);
    while looked_at < limits::PAGE_EXAMINED {
        let places = places(link, ask.order, behind, &lanes).await?;
        if places.is_empty() {
            return Ok(Page { jobs, next: None });
        }
        let mut found = read(link, places.iter().filter_map(|(id, ..)| *id).collect()).await?;
        for (id, seq, at) in places {
            let end = value::timestamp(at)?;
            if !is_within(ask, end) {
                return Ok(Page { jobs, next: None });
            }
            if jobs.len() == at_most || looked_at == limits::PAGE_EXAMINED {
                return Ok(Page { jobs, next: Some(cursor(behind)?) });
            }
            (behind, looked_at) = ((at, seq), looked_at + 1);
            // A job that is to be done again has not ended.
            let found = id.and_then(|id| found.remove(&id)).filter(|job| job.state.ended() == Some(end));
            jobs.extend(found.filter(|job| ask.filter.means(job, now)));
        }
    }
    Ok(Page { jobs, next: Some(cursor(behind)?) })
}

/// The jobs that are still there of these.
async fn read(link: &mut Link, ids: Vec<JobId>) -> Result<BTreeMap<JobId, Job>, Fault> {
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let rows = link.connection().await?.read(rows::by_ids(ids)).await?;
    let jobs = rows.iter().map(|row| rows::stored(row).map(|stored| (stored.job.id, stored.job)));
    jobs.collect()
}

/// The next places, with the ids of those in lanes that are meant.
async fn places(
    link: &mut Link,
    order: Order,
    behind: (i64, i64),
    lanes: &[i32],
) -> Result<Vec<(Option<JobId>, i64, i64)>, Fault> {
    let sql = match order {
        Order::OldestFirst => FIRST_ENDED,
        Order::NewestFirst => LAST_ENDED,
    };
    let query = Query::new(sql).with(behind.0).with(behind.1).with(value::bound(CHUNK)).with(lanes.to_vec());
    let read = link.connection().await?.read(query).await?;
    Ok(read.iter().map(|row| (value::maybe_job_id(row, 0), row.get(1), row.get(2))).collect())
}

fn cursor((at, seq): (i64, i64)) -> Result<Cursor, Fault> {
    Ok(Cursor::behind_end(value::timestamp(at)?, value::seq(seq)?))
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

#[cfg(test)]
mod tests {
    use own_postgres::Server;

    use super::*;
    use crate::plans::{assert_found_by_an_index, fresh};

    #[tokio::test]
    async fn what_has_ended_is_found_by_an_index() {
        let server = Server::start_hasty().unwrap();
        let mut link = fresh(&server).await;
        assert_found_by_an_index(&mut link, [FIRST_ENDED, LAST_ENDED].into_iter()).await;
    }
}
