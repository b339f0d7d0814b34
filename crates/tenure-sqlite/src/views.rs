//! Looking, on a connection of its own.

use rusqlite::{Connection, OptionalExtension, Result, params};
use tenure_core::{
    AtWork, Attempt, Block, Job, JobId, LogLine, Serving, Standing, State, StateName, Timestamp, limits,
};
use tenure_store::{Count, ListedBy, Page, PageAsk, QueueInfo};

use crate::fault::unreadable;
use crate::key_views::{self, Awaited};
use crate::listing::{self, Walk, WalkAsk, walk};
use crate::place::place_of;
use crate::reserve::Place;
use crate::rows::{Stored, find, seq_of};
use crate::{attempts, hosts, listing_by_end, needs, value};

pub(crate) const NEXT_ROUND: &str = "SELECT priority, round, due, seq FROM ready
     WHERE lane = ?1 AND (priority, round) > (?2, ?3) ORDER BY priority, round, due, seq LIMIT 1";
const IS_IN_DIARY: &str = "SELECT 1 FROM later WHERE due = ?1 AND seq = ?2";
pub(crate) const AHEAD_IN_LINE: &str = "SELECT count(*) FROM (SELECT 1 FROM ready
     WHERE lane = ?1 AND (priority, round, due, seq) < (?2, ?3, ?4, ?5) AND due <= ?6 LIMIT ?7 + 0)";
/// Due, but not in line yet: those count with the round that is served now (?8).
pub(crate) const AHEAD_IN_DIARY: &str = "SELECT count(*) FROM (SELECT lane, priority, due, seq FROM later
     WHERE due <= ?6 ORDER BY due LIMIT ?7 + 0) WHERE lane = ?1 AND (priority, ?8, due, seq) < (?2, ?3, ?4, ?5)";
/// How many jobs each holder runs, of this queue and of others.
pub(crate) const BUSY: &str = "SELECT s.holder, l.queue <> ?1, count(*)
     FROM standing s INDEXED BY standing_lapse CROSS JOIN lane l ON l.id = s.lane
     WHERE s.state = 1 AND s.until > ?2 GROUP BY 1, 2";
/// What these holders run: of this queue, then of others. The holders are a JSON array of their ids in hex.
pub(crate) const AT_WORK: &str = "SELECT j.id, w.holder, w.elsewhere FROM (
         SELECT s.seq, s.holder, l.queue <> ?1 AS elsewhere
         FROM standing s INDEXED BY standing_lapse CROSS JOIN lane l ON l.id = s.lane
         WHERE s.state = 1 AND s.until > ?2 AND s.holder IN (SELECT unhex(value) FROM json_each(?3))
         ORDER BY elsewhere, s.seq LIMIT ?4 + 0
     ) w CROSS JOIN job j ON j.seq = w.seq ORDER BY w.elsewhere, w.seq";

/// Most jobs that are counted or named around another.
pub(crate) const SURROUNDING: usize = 1000;

pub(crate) fn job(conn: &Connection, id: JobId) -> Result<Option<Job>> {
    Ok(find(conn, id)?.map(|stored| stored.job))
}

pub(crate) fn page(conn: &Connection, ask: &PageAsk, now: Timestamp) -> Result<Page> {
    let at_most = ask.at_most.clamp(1, limits::PAGE_JOBS);
    if ask.by == ListedBy::End {
        return Ok(listing_by_end::page(conn, ask, at_most, now)?.with(ask.values));
    }
    let (order, after, values) = (ask.order, ask.after, ask.values);
    let walk = walk(conn, &WalkAsk { filter: &ask.filter, order, after, at_most, now, values })?;
    let Walk { found, unreadable, next, examined } = walk;
    Ok(Page { jobs: listing::jobs(found), unreadable, next, examined }.with(ask.values))
}

pub(crate) fn attempts(conn: &Connection, id: JobId) -> Result<Vec<Attempt>> {
    find(conn, id)?.map_or(Ok(Vec::new()), |stored| attempts::of(conn, &stored.job))
}

pub(crate) fn logs(conn: &Connection, id: JobId, behind: (u32, u32), at_most: usize) -> Result<Vec<LogLine>> {
    let Some(seq) = seq_of(conn, id)? else { return Ok(Vec::new()) };
    let mut statement = conn.prepare_cached(
        "SELECT delivery, number, at, text FROM log
         WHERE seq = ?1 AND (delivery, number) > (?2, ?3) ORDER BY delivery, number LIMIT ?4 + 0",
    )?;
    let of = params![seq, behind.0, behind.1, value::bound(at_most)];
    statement.query_map(of, line)?.collect()
}

/// A log line.
pub(crate) fn line(row: &rusqlite::Row<'_>) -> Result<LogLine> {
    let (delivery, number) = (value::number_at(row, 0)?, value::number_at(row, 1)?);
    Ok(LogLine { delivery, number, at: value::instant(row, 2)?, text: value::get(row, 3)? })
}

pub(crate) fn counts(conn: &Connection) -> Result<Vec<Count>> {
    let mut statement = conn.prepare_cached(
        "SELECT queue, kind, scheduled, queued, blocked, running, succeeded, failed, cancelled
         FROM lane ORDER BY queue, kind",
    )?;
    let mut rows = statement.query([])?;
    let mut counts = Vec::new();
    while let Some(row) = rows.next()? {
        let (queue, kind) = (value::queue(row, 0)?, value::kind(row, 1)?);
        for (column, state) in (2..).zip(StateName::ALL) {
            let jobs = value::seq(row.get(column)?)?;
            if jobs > 0 {
                counts.push(Count { queue: queue.clone(), kind: kind.clone(), state, jobs });
            }
        }
    }
    Ok(counts)
}

pub(crate) fn queues(conn: &Connection, now: Timestamp) -> Result<Vec<QueueInfo>> {
    let mut statement =
        conn.prepare_cached("SELECT name, paused, limit_to, terms FROM queue WHERE gone = 0 ORDER BY name")?;
    let mut rows = statement.query([])?;
    let mut queues = Vec::new();
    while let Some(row) = rows.next()? {
        let name = value::queue(row, 0)?;
        let mut oldest = None;
        for lane in lanes_of(conn, name.as_str())? {
            oldest = oldest_in(conn, lane)?.into_iter().chain(oldest).min();
        }
        let oldest_due = match oldest {
            Some((due, seq)) => due_here(conn, due, seq, now)?,
            None => None,
        };
        let limit = value::maybe_json(row, 2)?.unwrap_or_default();
        let terms = value::maybe_json(row, 3)?.unwrap_or_default();
        queues.push(QueueInfo { name, paused: row.get(1)?, oldest_due, limit, terms });
    }
    Ok(queues)
}

/// Since when a job of which this is the due has been due, and here.
fn due_here(conn: &Connection, due: Timestamp, seq: i64, now: Timestamp) -> Result<Option<Timestamp>> {
    let mut statement = conn.prepare_cached("SELECT created FROM job WHERE seq = ?1")?;
    let created = statement.query_row([seq], |row| value::instant(row, 0)).optional()?.unwrap_or(due);
    Ok((due <= now).then(|| due.max(created).min(now)))
}

pub(crate) fn standing(conn: &Connection, id: JobId, now: Timestamp) -> Result<Option<Standing>> {
    let Some(stored) = find(conn, id)? else { return Ok(None) };
    let queue = stored.job.queue.as_str();
    let paused = conn
        .prepare_cached("SELECT paused FROM queue WHERE name = ?1")?
        .query_row([queue], |row| row.get(0))
        .optional()?;
    let alive = hosts::alive(conn, now)?;
    let mut serving: Vec<Serving> = alive.iter().filter_map(|host| host.serving(&stored.job.queue)).collect();
    count_busy(conn, &stored.job, &mut serving, now)?;
    let running = at_work(conn, &stored.job, &serving, now)?;
    let ahead = ahead_of(conn, &stored, now)?;
    let Awaited { after, spoiled_by } = key_views::awaited(conn, &stored.job, now)?;
    let needed_by = needs::needed_by(conn, &stored.job)?;
    let turn = key_views::ordered(conn, &stored.job)?;
    let limit = key_views::limited(conn, &stored, now)?;
    let meter = key_views::queue_meter(conn, queue, now)?;
    Ok(Some(Standing {
        paused: paused.unwrap_or(false),
        serving,
        running,
        ahead,
        job: stored.job,
        after,
        spoiled_by,
        needed_by,
        turn,
        limit,
        queue: meter,
    }))
}

/// Counts what these hosts run.
fn count_busy(conn: &Connection, job: &Job, serving: &mut [Serving], now: Timestamp) -> Result<()> {
    if serving.is_empty() {
        return Ok(());
    }
    let mut statement = conn.prepare_cached(BUSY)?;
    let mut rows = statement.query(params![job.queue.as_str(), now.as_micros()])?;
    while let Some(row) = rows.next()? {
        let holder = value::host_id(row, 0)?;
        let Some(host) = serving.iter_mut().find(|host| Some(host.host) == holder) else { continue };
        *if row.get(1)? { &mut host.elsewhere } else { &mut host.running } = row.get(2)?;
    }
    Ok(())
}

/// What those of the hosts run that serve the job.
fn at_work(conn: &Connection, job: &Job, serving: &[Serving], now: Timestamp) -> Result<Vec<AtWork>> {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let covering = serving.iter().filter(|host| host.covers(job));
    let holders: Vec<String> = covering.map(|host| hex(host.host.as_bytes())).collect();
    if holders.is_empty() {
        return Ok(Vec::new());
    }
    let of =
        params![job.queue.as_str(), now.as_micros(), value::to_json(&holders)?, value::bound(SURROUNDING)];
    let mut statement = conn.prepare_cached(AT_WORK)?;
    let at_work = statement.query_map(of, |row| {
        let holder = value::host_id(row, 1)?.ok_or_else(|| unreadable("a running job without a holder"))?;
        Ok(AtWork { id: value::job_id(row, 0)?, holder, elsewhere: row.get(2)? })
    })?;
    at_work.collect()
}

fn lanes_of(conn: &Connection, queue: &str) -> Result<Vec<i64>> {
    conn.prepare_cached("SELECT id FROM lane WHERE queue = ?1")?
        .query_map([queue], |row| row.get(0))?
        .collect()
}

/// The smallest due of a lane's line, and whose it is: its jobs lie by priority and round first, so it hops from one to the
/// next. The rounds of a fair queue are looked through up to a bound.
fn oldest_in(conn: &Connection, lane: i64) -> Result<Option<(Timestamp, i64)>> {
    let mut statement = conn.prepare_cached(NEXT_ROUND)?;
    let (mut place, mut oldest) = ((i64::MIN, 0), None);
    for _ in 0..limits::PAGE_EXAMINED {
        let found = statement
            .query_row([lane, place.0, place.1], |row| {
                Ok(((row.get(0)?, row.get(1)?), (value::instant(row, 2)?, row.get(3)?)))
            })
            .optional()?;
        let Some((next, first)) = found else { break };
        oldest = Some(oldest.map_or(first, |oldest: (Timestamp, i64)| oldest.min(first)));
        place = next;
    }
    Ok(oldest)
}

/// The place of a job that stands in line, queued or blocked by its limit; `None` if it does not.
pub(crate) fn round_of_place(conn: &Connection, stored: &Stored) -> Result<Option<Place>> {
    let job = &stored.job;
    let (State::Waiting { due, .. } | State::Blocked { due, on: Block::Limit, .. }) = job.state else {
        return Ok(None);
    };
    let seq = value::signed(job.seq);
    let is_in_diary = || conn.prepare_cached(IS_IN_DIARY)?.exists([due.as_micros(), seq]);
    if matches!(job.state, State::Waiting { .. }) && is_in_diary()? {
        return Ok(None);
    }
    let round = conn
        .prepare_cached("SELECT round FROM fair_place WHERE seq = ?1")?
        .query_row([seq], |row| row.get(0))
        .optional()?;
    Ok(Some(place_of(stored, due, round.unwrap_or(0))))
}

/// The round that is served now among the jobs of this one's priority.
fn present_round(conn: &Connection, job: &Job) -> Result<i64> {
    let round = conn
        .prepare_cached("SELECT round FROM present_round WHERE queue = ?1 AND priority = ?2")?
        .query_row(params![job.queue.as_str(), job.priority.number()], |row| row.get(0))
        .optional()?;
    Ok(round.unwrap_or(0))
}

fn ahead_of(conn: &Connection, stored: &Stored, now: Timestamp) -> Result<u32> {
    let State::Waiting { due, .. } = stored.job.state else { return Ok(0) };
    if due > now {
        return Ok(0);
    }
    let present = present_round(conn, &stored.job)?;
    let place = round_of_place(conn, stored)?.unwrap_or_else(|| place_of(stored, due, present));
    let (priority, round, due, seq) = place;
    let most = value::bound(SURROUNDING);
    let mut ahead = 0_i64;
    for lane in lanes_of(conn, stored.job.queue.as_str())? {
        let number = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
        let before = [lane, priority, round, due, seq, now.as_micros(), most];
        ahead += conn.prepare_cached(AHEAD_IN_LINE)?.query_row(before, number)?;
        let before = [lane, priority, round, due, seq, now.as_micros(), most, present];
        ahead += conn.prepare_cached(AHEAD_IN_DIARY)?.query_row(before, number)?;
    }
    value::number(ahead.min(most))
}
