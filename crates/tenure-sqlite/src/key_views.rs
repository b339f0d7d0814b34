//! Looking at what jobs wait for besides time and slots.

use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use tenure_core::{Bucket, End, Job, JobId, Key, Limit, Limited, Meter, Noticed, Ordered, Timestamp, limits};
use tenure_store::{LimitInfo, LimitPage};

use crate::fault::unreadable;
use crate::limit_line::START;
use crate::limit_row::LimitRow;
use crate::reserve::Place;
use crate::rows::Stored;
use crate::views::{SURROUNDING, round_of_place};
use crate::{code, limit_keys, value};

pub(crate) const PAGE: &str =
    "SELECT id, key, said, set_to, named, running, bucket, lanes, grows, blocks FROM limit_key
     WHERE key > ?1 ORDER BY key LIMIT ?2 + 0";
/// How many jobs of a limit run that the next turn takes from their holders.
pub(crate) const OVERHELD: &str = "SELECT count(*) FROM (SELECT 1 FROM standing INDEXED BY standing_lapse
     WHERE state = 1 AND lapse <= ?2 AND limit_id = ?1)";
pub(crate) const RUNNING: &str = "SELECT j.id FROM (
         SELECT seq FROM standing INDEXED BY standing_lapse
         WHERE state = 1 AND lapse > ?2 AND limit_id = ?1 ORDER BY seq LIMIT ?3 + 0
     ) s CROSS JOIN job j ON j.seq = s.seq ORDER BY s.seq";
pub(crate) const AHEAD_IN_LIMIT: &str = "SELECT count(*) FROM (SELECT 1 FROM limit_line
     WHERE limit_id = ?1 AND lane = ?2 AND (priority, round, due, seq) < (?3, ?4, ?5, ?6)
         AND (priority, round, due, seq) > (?8, ?9, ?10, ?11) LIMIT ?7 + 0)";
pub(crate) const BLOCKING: &str =
    "SELECT id, key, said, set_to, named, running, bucket, lanes, grows, blocks FROM limit_key
     WHERE blocks = 1 ORDER BY id LIMIT ?1 + 0";
pub(crate) const BLOCKED: &str = "SELECT seq FROM limit_line
     WHERE limit_id = ?1 AND lane = ?2 AND (priority, round, due, seq) > (?3, ?4, ?5, ?6) LIMIT ?7 + 0";
const CHAIN: &str =
    "SELECT c.id, c.turn, j.id, c.passed FROM chain c LEFT JOIN job j ON j.seq = c.turn WHERE c.key = ?1";
pub(crate) const AHEAD_CHAINED: &str =
    "SELECT count(*) FROM (SELECT 1 FROM chained WHERE chain = ?1 AND seq < ?2 AND seq > ?4 LIMIT ?3 + 0)";
pub(crate) const AHEAD_ASIDE: &str =
    "SELECT count(*) FROM (SELECT 1 FROM stepped_aside WHERE chain = ?1 AND seq < ?2 LIMIT ?3 + 0)";
pub(crate) const AWAITED: &str = "SELECT j.id, e.id, e.how, e.seq IS NOT NULL FROM dependency d
     LEFT JOIN job j ON j.seq = d.on_seq LEFT JOIN awaited_end e ON e.seq = d.on_seq
     WHERE d.seq = ?1 ORDER BY d.on_seq";
pub(crate) const OVERHELD_IN_QUEUE: &str = "SELECT count(*) FROM standing s INDEXED BY standing_lapse
     CROSS JOIN lane l ON l.id = s.lane WHERE s.state = 1 AND s.lapse <= ?2 AND l.queue = ?1";

/// The jobs that a job waits for.
#[derive(Debug, Default)]
pub(crate) struct Awaited {
    /// Those that have not ended, as it named them.
    pub after: Vec<JobId>,
    /// The first that ended so that the next turn cancels this one.
    pub spoiled_by: Option<JobId>,
}

/// The limit of a key.
pub(crate) fn limit(conn: &Connection, key: &Key) -> Result<Option<LimitInfo>> {
    let found = conn
        .prepare_cached(limit_keys::FIND)?
        .query_row([key.as_str()], limit_keys::read_limit)
        .optional()?;
    Ok(found.map(|(_, key, limit)| info(key, &limit)))
}

/// A page of limits, by key.
pub(crate) fn limits(conn: &Connection, behind: Option<&Key>, at_most: usize) -> Result<LimitPage> {
    let at_most = at_most.clamp(1, limits::PAGE_LIMITS);
    let behind = behind.map_or("", |key| key.as_str());
    let mut found = conn
        .prepare_cached(PAGE)?
        .query_map(params![behind, value::bound(at_most + 1)], |row| {
            let (_, key, limit) = limit_keys::read_limit(row)?;
            Ok(info(key, &limit))
        })?
        .collect::<Result<Vec<_>>>()?;
    let is_more = found.len() > at_most;
    found.truncate(at_most);
    let next = found.last().filter(|_| is_more).map(|last| last.key.clone());
    Ok(LimitPage { limits: found, next })
}

fn info(key: Key, limit: &LimitRow) -> LimitInfo {
    let sum = |jobs: &mut dyn Iterator<Item = i64>| u64::try_from(jobs.sum::<i64>()).unwrap_or(0);
    LimitInfo {
        key,
        meter: limit.meter(),
        set: limit.set.is_some(),
        queued: sum(&mut limit.rooms.values().map(|rooms| rooms.queued)),
        blocked: sum(&mut limit.rooms.values().map(|rooms| rooms.blocked)),
    }
}

/// A row of [`CHAIN`].
struct Chain {
    id: i64,
    /// Whose turn it is, by its place in the order of acceptance and by its id.
    turn: Option<i64>,
    of: Option<[u8; 16]>,
    passed: i64,
}

fn read_chain(row: &Row<'_>) -> Result<Chain> {
    Ok(Chain { id: row.get(0)?, turn: row.get(1)?, of: row.get(2)?, passed: row.get(3)? })
}

/// A job's place among the jobs of its ordering key.
pub(crate) fn ordered(conn: &Connection, job: &Job) -> Result<Option<Ordered>> {
    let Some(ordering) = job.terms.ordering.as_ref().filter(|_| !job.state.is_finished()) else {
        return Ok(None);
    };
    let chain = conn.prepare_cached(CHAIN)?.query_row([ordering.key.as_str()], read_chain).optional()?;
    let Some(Chain { id: chain, turn, of, passed }) = chain else {
        return Ok(Some(Ordered { of: None, ahead: 0 }));
    };
    let (seq, most) = (value::signed(job.seq), value::bound(SURROUNDING));
    let number = |row: &Row<'_>| row.get::<_, i64>(0);
    let ahead = i64::from(turn.is_some_and(|turn| turn < seq))
        + conn.prepare_cached(AHEAD_CHAINED)?.query_row([chain, seq, most, passed], number)?
        + conn.prepare_cached(AHEAD_ASIDE)?.query_row([chain, seq, most], number)?;
    Ok(Some(Ordered { of: of.map(JobId::from_bytes), ahead: value::number(ahead.min(most))? }))
}

/// The limit of a job, and how it is used.
pub(crate) fn limited(conn: &Connection, stored: &Stored, now: Timestamp) -> Result<Option<Limited>> {
    let job = &stored.job;
    let Some(named) = job.terms.limit.as_ref().filter(|_| !job.state.is_finished()) else { return Ok(None) };
    let found = conn
        .prepare_cached(limit_keys::FIND)?
        .query_row([named.key.as_str()], limit_keys::read_limit)
        .optional()?;
    let Some((id, _, limit)) = found else { return Ok(None) };
    let overheld: u32 = conn.prepare_cached(OVERHELD)?.query_row([id, now.as_micros()], |row| row.get(0))?;
    let running = conn
        .prepare_cached(RUNNING)?
        .query_map([id, now.as_micros(), value::bound(SURROUNDING)], |row| value::job_id(row, 0))?
        .collect::<Result<_>>()?;
    let meter = Meter { running: limit.running.saturating_sub(overheld), ..limit.meter() };
    let rooms = limit.rooms.get(&stored.lane);
    let last_gone = rooms.and_then(|rooms| rooms.last_gone);
    Ok(Some(Limited { meter, running, ahead: ahead_in_limit(conn, id, last_gone, stored)? }))
}

/// How many jobs of a limit stand before this one in its line; 0 if it is not there.
fn ahead_in_limit(conn: &Connection, id: i64, last_gone: Option<Place>, stored: &Stored) -> Result<u32> {
    let Some((priority, round, due, seq)) = round_of_place(conn, stored)? else { return Ok(0) };
    let (p, r, d, s) = last_gone.unwrap_or(START);
    let before = [id, stored.lane, priority, round, due, seq, value::bound(SURROUNDING), p, r, d, s];
    let ahead = conn.prepare_cached(AHEAD_IN_LIMIT)?.query_row(before, |row| row.get::<_, i64>(0))?;
    value::number(ahead)
}

/// Jobs that their limits block; so many at most.
pub(crate) fn blocked_by_limits(conn: &Connection, most: i64) -> Result<Vec<i64>> {
    let mut seqs = Vec::new();
    let mut blocking = conn.prepare_cached(BLOCKING)?;
    let mut blocked = conn.prepare_cached(BLOCKED)?;
    let mut rows = blocking.query([most])?;
    while let Some(row) = rows.next()? {
        let (id, _, limit) = limit_keys::read_limit(row)?;
        for rooms in limit.rooms.values().filter(|rooms| rooms.blocked > 0) {
            let (priority, round, due, seq) = rooms.end_of_queued().unwrap_or(START);
            let behind = [id, rooms.lane, priority, round, due, seq, rooms.blocked];
            let found = blocked.query_map(behind, |row| row.get(0))?;
            seqs.extend(found.collect::<Result<Vec<i64>>>()?);
        }
    }
    Ok(seqs)
}

/// The jobs that a job waits for.
pub(crate) fn awaited(conn: &Connection, job: &Job, now: Timestamp) -> Result<Awaited> {
    let Some(after) = &job.terms.after else { return Ok(Awaited::default()) };
    let (mut unended, mut spoiled_by) = (Vec::new(), None);
    let mut statement = conn.prepare_cached(AWAITED)?;
    let mut rows = statement.query([value::signed(job.seq)])?;
    while let Some(row) = rows.next()? {
        let Some(ended) = ended(row)? else {
            unended.push(value::job_id(row, 0)?);
            continue;
        };
        if after.noticed(ended.0, ended.1, now) != Noticed::Ended {
            spoiled_by = spoiled_by.or(Some(ended.0));
        }
    }
    let mut named = Vec::new();
    for id in &after.jobs {
        if unended.contains(id) && !named.contains(id) {
            named.push(*id);
        }
    }
    Ok(Awaited { after: named, spoiled_by })
}

/// Who has ended in a row of [`AWAITED`], and how; `None` if it has not.
fn ended(row: &Row<'_>) -> Result<Option<(JobId, Option<End>)>> {
    if !row.get::<_, bool>(3)? {
        return Ok(None);
    }
    let how = row.get::<_, Option<i64>>(2)?;
    Ok(Some((value::job_id(row, 1)?, how.and_then(code::end))))
}

/// The limit of a queue, and what the next turn would find it to be used for.
pub(crate) fn queue_meter(conn: &Connection, queue: &str, now: Timestamp) -> Result<Meter> {
    let (limit, bucket) = conn
        .prepare_cached("SELECT limit_to, bucket FROM queue WHERE name = ?1")?
        .query_row([queue], |row| {
            Ok((value::maybe_json::<Limit>(row, 0)?.unwrap_or_default(), Bucket(value::instant(row, 1)?)))
        })
        .optional()?
        .ok_or_else(|| unreadable(format_args!("queue {queue}, which does not exist")))?;
    let number = |sql: &str, params: &[&dyn rusqlite::ToSql]| {
        conn.prepare_cached(sql)?.query_row(params, |row| row.get::<_, u32>(0))
    };
    let running = number("SELECT ifnull(sum(running), 0) FROM lane WHERE queue = ?1", params![queue])?;
    let overheld = number(OVERHELD_IN_QUEUE, params![queue, now.as_micros()])?;
    Ok(Meter { limit, running: running.saturating_sub(overheld), bucket })
}
