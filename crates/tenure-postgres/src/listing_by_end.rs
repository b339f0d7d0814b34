//! Walking the jobs that have ended, by when they did.
//!
//! Of most of them a receipt tells, with up to 256 of their neighbours; of the others their own standing. Both are read in the
//! order of their ends, and merged. Which lanes are meant is known before: the jobs of others are passed, and not read.

use tenure_core::{Job, JobId, StateName, Timestamp, limits};
use tenure_store::{Cursor, Examined, Fault, Order, Page, PageAsk};
use tokio_postgres::Row;

use crate::link::Link;
use crate::portions::Portions;
use crate::query::Query;
use crate::rows;
use crate::{listing, value};

/// Jobs that are read at once.
const CHUNK: usize = 256;
/// Receipts, and as many standings, among which the next are sought: at first, and at most.
const FEW: usize = 16;
const MANY: usize = 256;

/// The end up to which so many receipts and so many standings reach; NULL if fewer are left.
const FIRST_EDGE: &str = "SELECT least(
         (SELECT ended FROM receipt WHERE $3 AND ended > $1 ORDER BY ended OFFSET $2 LIMIT 1),
         (SELECT ended FROM standing WHERE ended IS NOT NULL AND ended > $1 ORDER BY ended OFFSET $2 LIMIT 1))";
const LAST_EDGE: &str = "SELECT greatest(
         (SELECT ended FROM receipt WHERE $3 AND ended < $1 ORDER BY ended DESC OFFSET $2 LIMIT 1),
         (SELECT ended FROM standing WHERE ended IS NOT NULL AND ended < $1 ORDER BY ended DESC OFFSET $2 LIMIT 1))";
/// What ended up to there in lanes that are meant. Receipts of one instant are read whole, as many as there are: one
/// transaction writes them. They are sought by their ends alone, and only those that are meant are taken apart.
const FIRST_ENDED: &str = "WITH near AS MATERIALIZED (SELECT ended, lane, block, seqs FROM receipt WHERE $6 AND ended >= $1 AND ended <= $5),
     told AS MATERIALIZED (SELECT * FROM near WHERE lane = ANY ($4::int[])),
     found AS (
         SELECT t.ended, u.seq, t.lane FROM told t CROSS JOIN LATERAL each_seq(t.block, t.seqs) u (seq)
         WHERE (t.ended, u.seq) > ($1, $2)
         UNION ALL
         SELECT * FROM (SELECT ended, seq, lane FROM standing WHERE ended IS NOT NULL AND (ended, seq) > ($1, $2)
             AND ended <= $5 AND lane = ANY ($4::int[]) ORDER BY ended, seq LIMIT $3) s)
     SELECT j.id, f.seq, f.ended FROM (SELECT * FROM found ORDER BY ended, seq LIMIT $3) f
     LEFT JOIN LATERAL (SELECT id FROM job WHERE lane = f.lane AND seq = f.seq LIMIT 1) j ON true
     ORDER BY f.ended, f.seq";
const LAST_ENDED: &str = "WITH near AS MATERIALIZED (SELECT ended, lane, block, seqs FROM receipt WHERE $6 AND ended <= $1 AND ended >= $5),
     told AS MATERIALIZED (SELECT * FROM near WHERE lane = ANY ($4::int[])),
     found AS (
         SELECT t.ended, u.seq, t.lane FROM told t CROSS JOIN LATERAL each_seq(t.block, t.seqs) u (seq)
         WHERE (t.ended, u.seq) < ($1, $2)
         UNION ALL
         SELECT * FROM (SELECT ended, seq, lane FROM standing WHERE ended IS NOT NULL AND (ended, seq) < ($1, $2)
             AND ended >= $5 AND lane = ANY ($4::int[]) ORDER BY ended DESC, seq DESC LIMIT $3) s)
     SELECT j.id, f.seq, f.ended FROM (SELECT * FROM found ORDER BY ended DESC, seq DESC LIMIT $3) f
     LEFT JOIN LATERAL (SELECT id FROM job WHERE lane = f.lane AND seq = f.seq LIMIT 1) j ON true
     ORDER BY f.ended DESC, f.seq DESC";

/// Where a job that has ended stands: at an instant, with a number.
type Place = (i64, i64);

/// What is walked.
struct Walk {
    order: Order,
    lanes: Vec<i32>,
    /// Whether jobs are meant of which receipts tell: those that have succeeded.
    receipts: bool,
}

/// Places in order, and what lies behind them.
struct Found {
    /// With the ids of jobs that are still there.
    places: Vec<(Option<JobId>, i64, i64)>,
    /// Behind which place there may be more; `None` at the end.
    goes_on: Option<Place>,
}

/// A page in the making.
struct Making {
    page: Page,
    examined: Examined,
    portions: Portions,
    turn: listing::Turn,
}

/// Finds a bounded number of the jobs that a filter means, looking at a bounded number of rows and bytes.
pub(crate) async fn page(
    link: &mut Link,
    ask: &PageAsk,
    at_most: usize,
    now: Timestamp,
) -> Result<Page, Fault> {
    let mut making = Making {
        page: Page { jobs: Vec::new(), unreadable: Vec::new(), next: None, examined: 0 },
        examined: Examined::new(&ask.filter),
        portions: Portions::new(&ask.filter, ask.values),
        turn: listing::Turn::default(),
    };
    let next = making.find(link, ask, at_most, now).await?;
    let Making { mut page, examined, portions, .. } = making;
    let still_matches =
        |bare: &Job, job: &Job| job.state.ended() == bare.state.ended() && ask.filter.means(job, now);
    portions.fill(link, &mut page.jobs, &mut page.unreadable, still_matches).await?;
    (page.next, page.examined) = (next, examined.rows());
    Ok(page)
}

impl Making {
    /// Finds the jobs of the page, and returns where the next page begins.
    async fn find(
        &mut self,
        link: &mut Link,
        ask: &PageAsk,
        at_most: usize,
        now: Timestamp,
    ) -> Result<Option<Cursor>, Fault> {
        let lanes = listing::lanes_of(link, &ask.filter).await?;
        let walk = Walk {
            order: ask.order,
            lanes,
            receipts: ask.filter.states.is_empty() || ask.filter.states.contains(&StateName::Succeeded),
        };
        let (mut behind, mut among) = (start(ask), FEW);
        while !self.examined.is_spent() {
            let Found { places, goes_on } = places(link, &walk, behind, among).await?;
            self.examined.add_rows(among);
            if places.len() < CHUNK / 2 {
                among = (among * 4).min(MANY);
            }
            let mut places = places.as_slice();
            while let Some(first) = places.first() {
                if let Some(next) = self.end(ask, at_most, behind, first.2) {
                    return Ok(next);
                }
                let room = at_most - self.page.jobs.len();
                let (portion, rest) = places.split_at(self.portions.next_size(room, CHUNK).min(places.len()));
                places = rest;
                let ids = portion.iter().filter_map(|(id, ..)| *id).collect();
                let mut found = self.portions.read(link, ids).await?;
                for (id, seq, at) in portion {
                    if let Some(next) = self.end(ask, at_most, behind, *at) {
                        return Ok(next);
                    }
                    behind = (*at, *seq);
                    let row = id.and_then(|id| found.remove(&id));
                    self.look(ask, now, value::timestamp(*at).ok(), row.as_ref()).await;
                }
            }
            match goes_on {
                Some(next) if value::timestamp(next.0).map_or(true, |end| is_within(ask, end)) => {
                    behind = next;
                }
                Some(_) | None => return Ok(None),
            }
        }
        Ok(cursor(behind, ask.order))
    }

    /// Returns where the next page begins, if this one ends before a job that ended at this time.
    fn end(&self, ask: &PageAsk, at_most: usize, behind: Place, at: i64) -> Option<Option<Cursor>> {
        if value::timestamp(at).is_ok_and(|end| !is_within(ask, end)) {
            return Some(None);
        }
        let Page { jobs, unreadable, .. } = &self.page;
        let is_full = jobs.len() == at_most || unreadable.len() == limits::PAGE_UNREADABLE;
        (is_full || self.examined.is_spent()).then(|| cursor(behind, ask.order))
    }

    /// Looks at a job that ended at this time.
    async fn look(&mut self, ask: &PageAsk, now: Timestamp, end: Option<Timestamp>, row: Option<&Row>) {
        match row.map(|row| rows::look(row).1) {
            Some(Ok(job)) => {
                // A job that is to be done again has not ended.
                let is_meant = end.is_some() && job.state.ended() == end && ask.filter.means(&job, now);
                self.turn.spend(self.examined.add(&job, is_meant)).await;
                if is_meant {
                    self.portions.found(&job);
                    self.page.jobs.push(job);
                }
            }
            Some(Err(odd)) => {
                self.examined.add_row();
                self.page.unreadable.extend(Some(odd).filter(|odd| ask.filter.may_mean(odd)));
            }
            None => self.examined.add_row(),
        }
    }
}

/// The next places in lanes that are meant, as far as so many receipts and standings reach.
async fn places(link: &mut Link, walk: &Walk, behind: Place, among: usize) -> Result<Found, Fault> {
    let (edge, ended, all, last_seq) = match walk.order {
        Order::OldestFirst => (FIRST_EDGE, FIRST_ENDED, i64::MAX, i64::MAX),
        Order::NewestFirst => (LAST_EDGE, LAST_ENDED, i64::MIN, 0),
    };
    let connection = link.connection().await?;
    let reach = Query::new(edge).with(behind.0).with(value::bound(among - 1)).with(walk.receipts);
    let reaches = connection.read(reach).await?;
    let edge: Option<i64> = reaches.first().and_then(|row| row.get(0));
    let query = Query::new(ended).with(behind.0).with(behind.1).with(value::bound(CHUNK));
    let read =
        connection.read(query.with(walk.lanes.clone()).with(edge.unwrap_or(all)).with(walk.receipts)).await?;
    let places: Vec<_> =
        read.iter().map(|row| (value::maybe_job_id(row, 0), row.get(1), row.get(2))).collect();
    let goes_on = match places.last() {
        Some((_, seq, at)) if places.len() == CHUNK => Some((*at, *seq)),
        _ => edge.map(|edge| (edge, last_seq)),
    };
    Ok(Found { places, goes_on })
}

/// Where a page goes on that ends behind this place. Ends that cannot be read lie at the ends of the listing, where no
/// cursor can name a place among them: behind the latest there are all others, and behind the earliest there is nothing.
fn cursor((at, seq): Place, order: Order) -> Option<Cursor> {
    match (value::timestamp(at), order) {
        (Ok(end), _) => Some(Cursor::behind_end(end, u64::try_from(seq).unwrap_or(0))),
        (Err(_), Order::NewestFirst) if at > 0 => Some(Cursor::behind_end(Timestamp::LAST, u64::MAX)),
        (Err(_), Order::NewestFirst | Order::OldestFirst) => None,
    }
}

/// Behind which place it begins.
fn start(ask: &PageAsk) -> Place {
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
    use crate::plans::{assert_found_by_an_index, fresh, vacuumed};

    #[tokio::test]
    async fn what_has_ended_is_found_by_an_index() {
        let server = Server::start_hasty().unwrap();
        let statements = [FIRST_EDGE, LAST_EDGE, FIRST_ENDED, LAST_ENDED];
        assert_found_by_an_index(&mut fresh(&server).await, statements.into_iter()).await;
        assert_found_by_an_index(&mut vacuumed(&server).await, statements.into_iter()).await;
    }
}
