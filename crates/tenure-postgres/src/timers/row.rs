//! A timer, between its rows and the domain.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{JobId, Name, Pause, Skipped, Timer, Timestamp};
use tenure_store::Fault;
use tokio_postgres::Row;
use uuid::Uuid;

use super::{agreed, slots};
use crate::fault::unreadable;
use crate::query::Query;
use crate::value;

/// The names come in order, so that no two who lock some of them wait for each other.
const LOCK: &str = "SELECT FROM timer_standing WHERE name = ANY ($1) ORDER BY name FOR UPDATE";
const FIND: &str = "SELECT t.name, t.version, t.revision, t.created, t.changed, t.agreed, t.args,
         s.next, s.decided, s.fired, s.runs, s.open, s.paused, s.reason, s.skipped, s.skip, s.skip_by, s.late, s.wake
     FROM unnest($1::text[]) u (name)
     CROSS JOIN LATERAL (SELECT * FROM timer WHERE name = u.name LIMIT 1) t
     CROSS JOIN LATERAL (SELECT * FROM timer_standing WHERE name = u.name LIMIT 1) s";
/// The first that are ripe, but for some. Those that another host decides at this moment are left to it.
const RIPE: &str = "SELECT s.name, t.version, t.revision, t.created, t.changed, t.agreed, t.args,
         s.next, s.decided, s.fired, s.runs, s.open, s.paused, s.reason, s.skipped, s.skip, s.skip_by, s.late, s.wake
     FROM (SELECT * FROM timer_standing
         WHERE wake <= $1 AND (name, wake) NOT IN (SELECT * FROM unnest($3::text[], $4::bigint[]))
         ORDER BY wake, name LIMIT $2 FOR UPDATE SKIP LOCKED) s
     LEFT JOIN LATERAL (SELECT * FROM timer WHERE name = s.name LIMIT 1) t ON true
     ORDER BY s.wake, s.name";
const AGREE: &str = "INSERT INTO timer (name, version, revision, created, changed, agreed, args)
     VALUES ($1, $2, $3, $4, $5, $6, $7)";
const AGREE_ANEW: &str =
    "UPDATE timer SET version = $2, revision = $3, created = $4, changed = $5, agreed = $6, args = $7
     WHERE name = $1";
const STAND: &str =
    "INSERT INTO timer_standing (name, wake, next, decided, fired, runs, open, paused, reason, skipped, skip, skip_by, late)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";
const STAND_ANEW: &str =
    "UPDATE timer_standing SET wake = $2, next = $3, decided = $4, fired = $5, runs = $6, open = $7,
         paused = $8, reason = $9, skipped = $10, skip = $11, skip_by = $12, late = $13
     WHERE name = $1";
const PUT_OFF: &str = "UPDATE timer_standing SET wake = $3 WHERE name = $1 AND wake = $2";
const REMOVE_STANDING: &str = "DELETE FROM timer_standing WHERE name = $1";
const REMOVE: &str = "DELETE FROM timer WHERE name = $1";

/// Finds the timers of these names.
pub(super) fn find(names: Vec<String>) -> Query {
    Query::new(FIND).with(names)
}

/// Finds the timers of these names, and keeps others from changing them until the end of the transaction.
pub(super) fn lock_and_find(names: Vec<String>) -> Vec<Query> {
    vec![Query::new(LOCK).with(names.clone()), find(names)]
}

/// Finds the first that are ripe, and keeps them from others.
pub(super) fn ripe(now: Timestamp, at_most: usize, but: Vec<(String, Timestamp)>) -> Query {
    let (names, wakes): (Vec<String>, Vec<i64>) =
        but.into_iter().map(|(name, wake)| (name, wake.as_micros())).unzip();
    Query::new(RIPE).with(now.as_micros()).with(value::bound(at_most)).with(names).with(wakes)
}

/// The name of a timer, which tells even where the rest cannot be read.
pub(super) fn name(row: &Row) -> String {
    row.get(0)
}

/// The version of the program that declared a timer, which does so as well.
pub(super) fn revision(row: &Row) -> u64 {
    row.get::<_, i64>(2).cast_unsigned()
}

/// Since when a timer has been ripe, or when it will be.
pub(super) fn wake(row: &Row) -> Result<Option<Timestamp>, Fault> {
    value::maybe_instant(row, 18)
}

/// Reads a row of a timer.
pub(super) fn read(row: &Row) -> Result<Timer, Fault> {
    read_all(row).map_err(|fault| Fault::Unavailable(format!("timer {}: {fault}", name(row))))
}

fn read_all(row: &Row) -> Result<Timer, Fault> {
    let name = Name::new("timer", row.get(0)).map_err(unreadable)?;
    let Some(agreed) = row.get::<_, Option<&str>>(5) else {
        return Err(unreadable("its definition"));
    };
    let new = agreed::from_json(name, agreed, row.get(6), revision(row))?;
    let since = value::maybe_instant(row, 12)?;
    let reason = value::maybe_json(row, 13)?.unwrap_or_default();
    Ok(Timer {
        agreed: Arc::new(new),
        version: value::seq(row.get(1))?,
        created: value::instant(row, 3)?,
        changed: value::instant(row, 4)?,
        next: value::maybe_instant(row, 7)?,
        decided: value::maybe_instant(row, 8)?,
        fired: value::maybe_instant(row, 9)?,
        lateness: lateness(row)?,
        runs: value::seq(row.get(10))?,
        last_skip: last_skip(row)?,
        open: row.get::<_, Vec<Uuid>>(11).into_iter().map(|id| JobId::from_bytes(id.into_bytes())).collect(),
        paused: since.map(|since| Pause { since, reason }),
    })
}

fn last_skip(row: &Row) -> Result<Option<(Timestamp, Skipped)>, Fault> {
    let Some(slot) = value::maybe_instant(row, 14)? else { return Ok(None) };
    let code: Option<i16> = row.get(15);
    let by = row.get::<_, Option<Uuid>>(16).map(|id| JobId::from_bytes(id.into_bytes()));
    let why = slots::skipped(code.ok_or_else(|| unreadable("the reason of a skipped run"))?, by)?;
    Ok(Some((slot, why)))
}

fn lateness(row: &Row) -> Result<Option<Duration>, Fault> {
    let micros = row.get::<_, Option<i64>>(17).map(value::seq).transpose()?;
    Ok(micros.map(Duration::from_micros))
}

/// Writes a new timer. If somebody else has just done so, it is decided anew.
pub(crate) fn keep_new(timer: &Timer) -> Result<Vec<Query>, Fault> {
    Ok(vec![agreed_of(AGREE, timer)?, standing_of(STAND, timer)?])
}

/// Writes what was agreed about a timer that is there.
pub(super) fn agree(timer: &Timer) -> Result<Query, Fault> {
    agreed_of(AGREE_ANEW, timer)
}

/// Writes what its slots have changed.
pub(super) fn stand(timer: &Timer) -> Result<Query, Fault> {
    standing_of(STAND_ANEW, timer)
}

fn agreed_of(sql: &'static str, timer: &Timer) -> Result<Query, Fault> {
    Ok(Query::new(sql)
        .with(timer.name().as_str().to_owned())
        .with(value::signed(timer.version))
        .with(timer.agreed.revision.cast_signed())
        .with(timer.created.as_micros())
        .with(timer.changed.as_micros())
        .with(agreed::to_json(&timer.agreed)?)
        .with(timer.agreed.job.args.as_bytes().to_vec()))
}

fn standing_of(sql: &'static str, timer: &Timer) -> Result<Query, Fault> {
    let micros = |at: Option<Timestamp>| at.map(Timestamp::as_micros);
    let skip = timer.last_skip.as_ref().map(|(_, why)| slots::skip_code(why));
    let paused = timer.paused.as_ref();
    Ok(Query::new(sql)
        .with(timer.name().as_str().to_owned())
        .with(micros(timer.wake()))
        .with(micros(timer.next))
        .with(micros(timer.decided))
        .with(micros(timer.fired))
        .with(value::signed(timer.runs))
        .with(timer.open.iter().copied().map(value::of_job).collect::<Vec<_>>())
        .with(paused.map(|pause| pause.since.as_micros()))
        .with(value::maybe_to_json(paused.map(|pause| &pause.reason))?)
        .with(micros(timer.last_skip.as_ref().map(|(slot, _)| *slot)))
        .with(skip.map(|(code, _)| code))
        .with(skip.and_then(|(_, by)| by).map(value::of_job))
        .with(timer.lateness.map(value::micros)))
}

/// Has nobody look at a timer that was ripe then before this instant.
pub(super) fn put_off(name: &str, wake: Timestamp, until: Timestamp) -> Query {
    Query::new(PUT_OFF).with(name.to_owned()).with(wake.as_micros()).with(until.as_micros())
}

/// Removes a timer, which need not be readable for that. What the last of them changes is the timer.
pub(super) fn remove(name: &Name) -> Vec<Query> {
    [REMOVE_STANDING, REMOVE].map(|sql| Query::new(sql).with(name.as_str().to_owned())).into()
}

#[cfg(test)]
pub(super) const STATEMENTS: [&str; 10] =
    [LOCK, FIND, RIPE, AGREE, AGREE_ANEW, STAND, STAND_ANEW, PUT_OFF, REMOVE_STANDING, REMOVE];
