//! What there is to see of keys.

use tenure_core::{
    Bucket, Job, JobId, Key, Limited, Meter, Noticed, Ordered, State, Timestamp, limits as bounds,
};
use tenure_store::{Fault, LimitInfo, LimitPage};
use tokio_postgres::Row;

use super::limits::{self, LimitRow};
use super::needs::needed_by;
use super::queues::running;
use crate::fault::unreadable;
use crate::link::Link;
use crate::query::Query;
use crate::rows::{Kept, Stored};
use crate::transition::place_of;
use crate::{code, value};

const LIMITS: &str = "SELECT key, kept FROM limit_key WHERE key > $1 ORDER BY key LIMIT $2";
const LIMIT: &str = "SELECT kept FROM limit_key WHERE key = $1";
const RUNNING: &str = "SELECT j.id, s.lapse > $2 FROM keyed k
     CROSS JOIN LATERAL (SELECT id FROM job WHERE lane = k.lane AND seq = k.seq LIMIT 1) j
     CROSS JOIN LATERAL (SELECT lapse FROM standing WHERE seq = k.seq AND lapse IS NOT NULL LIMIT 1) s
     WHERE k.limit_key = $1 AND k.at = 5 ORDER BY k.seq";
const TURN: &str =
    "SELECT (SELECT k.id FROM turn t CROSS JOIN LATERAL (SELECT id FROM keyed WHERE seq = t.seq LIMIT 1) k
         WHERE t.key = $1),
     (SELECT count(*) FROM (SELECT FROM keyed WHERE ordering = $1 AND seq < $2 LIMIT $3) a)";
const AWAITED: &str = "SELECT d.other, e.seq IS NOT NULL, e.id, e.state, j.id FROM dependency d
     LEFT JOIN LATERAL (SELECT seq, id, state FROM ending WHERE seq = d.other LIMIT 1) e ON true
     LEFT JOIN LATERAL (SELECT lane FROM standing WHERE seq = d.other LIMIT 1) s ON true
     LEFT JOIN LATERAL (SELECT id FROM job WHERE lane = s.lane AND seq = d.other LIMIT 1) j ON true
     WHERE d.waiter = $1 ORDER BY d.other";
const QUEUE: &str = "SELECT bucket FROM queue WHERE name = $1";
const PRESENT: &str = "SELECT round FROM present_round WHERE queue = $1 AND priority = $2";

/// The limit of a key.
pub(crate) async fn limit(link: &mut Link, key: Key) -> Result<Option<LimitInfo>, Fault> {
    let look = Query::new(LIMIT).with(key.as_str().to_owned());
    let rows = link.connection().await?.read(look).await?;
    rows.first().map(|row| LimitRow::read(row.get(0)).map(|row| row.info(key))).transpose()
}

/// A page of limits.
pub(crate) async fn limits(link: &mut Link, behind: Option<Key>, at_most: usize) -> Result<LimitPage, Fault> {
    let at_most = at_most.clamp(1, bounds::PAGE_LIMITS);
    let behind = behind.map_or_else(String::new, |key| key.as_str().to_owned());
    let page = Query::new(LIMITS).with(behind).with(value::bound(at_most + 1));
    let rows = link.connection().await?.read(page).await?;
    let mut limits = rows.iter().map(info).collect::<Result<Vec<_>, _>>()?;
    let goes_on = limits.len() > at_most;
    limits.truncate(at_most);
    let next = limits.last().filter(|_| goes_on).map(|info| info.key.clone());
    Ok(LimitPage { limits, next })
}

fn info(row: &Row) -> Result<LimitInfo, Fault> {
    let key = Key::new("limit", row.get(0)).map_err(unreadable)?;
    Ok(LimitRow::read(row.get(1))?.info(key))
}

/// What keys tell of the surroundings of a job.
pub(crate) struct Surroundings {
    pub after: Vec<JobId>,
    pub spoiled_by: Option<JobId>,
    pub needed_by: Vec<JobId>,
    pub turn: Option<Ordered>,
    pub limit: Option<Limited>,
    /// What is left of the rate of its queue.
    pub bucket: Bucket,
    /// The round in which it counts as being served.
    pub round: i64,
}

/// Looks around a job.
pub(crate) async fn surroundings(
    link: &mut Link,
    stored: &Stored,
    now: Timestamp,
) -> Result<Surroundings, Fault> {
    let (after, spoiled_by) = awaited(link, &stored.job, now).await?;
    let queue = stored.job.queue.as_str().to_owned();
    let bucket = link.connection().await?.read(Query::new(QUEUE).with(queue.clone())).await?;
    let bucket = bucket.first().map(|row| value::instant(row, 0)).transpose()?.map_or(Bucket::FULL, Bucket);
    let round = match stored.ties.round {
        Some(round) => round,
        None if stored.kept == Kept::InDiary => {
            let present = Query::new(PRESENT).with(queue).with(value::of_priority(stored.job.priority));
            let read = link.connection().await?.read(present).await?;
            read.first().map_or(0, |row| row.get(0))
        }
        None => 0,
    };
    Ok(Surroundings {
        after,
        spoiled_by,
        needed_by: needed_by(link, &stored.job).await?,
        turn: ordered(link, &stored.job).await?,
        limit: limited(link, stored, now).await?,
        bucket,
        round,
    })
}

async fn awaited(link: &mut Link, job: &Job, now: Timestamp) -> Result<(Vec<JobId>, Option<JobId>), Fault> {
    let Some(after) = &job.terms.after else { return Ok((Vec::new(), None)) };
    let look = Query::new(AWAITED).with(value::signed(job.seq));
    let (mut unfinished, mut spoiled_by) = (Vec::new(), None);
    for row in &link.connection().await?.read(look).await? {
        if row.get(1) {
            let (id, end) = (value::job_id(row, 2), code::end(row.get(3))?);
            let spoils = after.noticed(id, end, now) != Noticed::Ended;
            spoiled_by = spoiled_by.or(spoils.then_some(id));
        } else if row.get::<_, Option<uuid::Uuid>>(4).is_some() {
            unfinished.push(value::job_id(row, 4));
        }
    }
    let mut named = Vec::new();
    for id in &after.jobs {
        if unfinished.contains(id) && !named.contains(id) {
            named.push(*id);
        }
    }
    Ok((named, spoiled_by))
}

async fn ordered(link: &mut Link, job: &Job) -> Result<Option<Ordered>, Fault> {
    let Some(ordering) = job.terms.ordering.as_ref().filter(|_| !job.state.is_finished()) else {
        return Ok(None);
    };
    let look = Query::new(TURN)
        .with(ordering.key.as_str().to_owned())
        .with(value::signed(job.seq))
        .with(value::bound(bounds::PAGE_JOBS));
    let read = link.connection().await?.read(look).await?;
    let Some(row) = read.first() else { return Ok(None) };
    let of = row.get::<_, Option<uuid::Uuid>>(0).map(|id| JobId::from_bytes(id.into_bytes()));
    Ok(Some(Ordered { of, ahead: running(row, 1) }))
}

async fn limited(link: &mut Link, stored: &Stored, now: Timestamp) -> Result<Option<Limited>, Fault> {
    let job = &stored.job;
    let Some(limit) = job.terms.limit.as_ref().filter(|_| !job.state.is_finished()) else {
        return Ok(None);
    };
    let key = limit.key.as_str().to_owned();
    let connection = link.connection().await?;
    let read = connection.read(Query::new(LIMIT).with(key.clone())).await?;
    let Some(row) = read.first() else { return Ok(None) };
    let of_key = LimitRow::read(row.get(0))?;
    let at_work = connection.read(Query::new(RUNNING).with(key).with(now.as_micros())).await?;
    let at_work: Vec<JobId> =
        at_work.iter().filter(|row| row.get(1)).map(|row| value::job_id(row, 0)).collect();
    let in_line = matches!(job.state, State::Blocked { on: tenure_core::Block::Limit, .. })
        || stored.kept == Kept::InLine;
    let ahead = match job.state.due().filter(|_| in_line) {
        None => 0,
        Some(due) => {
            let place = place_of(stored, due);
            let look = limits::ahead(&limit.key, &place, value::bound(bounds::PAGE_JOBS));
            connection.read(look).await?.first().map_or(0, |row| running(row, 0))
        }
    };
    let count = u32::try_from(at_work.len()).unwrap_or(u32::MAX);
    let meter = Meter { running: count, ..of_key.meter() };
    let most = u32::try_from(bounds::PAGE_JOBS).unwrap_or(u32::MAX);
    Ok(Some(Limited {
        meter,
        running: at_work.into_iter().take(bounds::PAGE_JOBS).collect(),
        ahead: ahead.min(most),
    }))
}
