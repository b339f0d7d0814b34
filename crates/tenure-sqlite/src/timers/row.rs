//! A timer, between its rows and the domain.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use tenure_core::{JobId, Name, Pause, Skipped, Timer, Timestamp};

use super::{agreed, slots};
use crate::fault::{of_timer, unreadable};
use crate::value;

pub(crate) const BY_NAME: &str =
    "SELECT t.name, t.version, t.revision, t.created, t.changed, t.agreed, t.args,
         s.next, s.decided, s.fired, s.runs, s.open, s.paused, s.reason,
         s.skipped, s.skip, s.skip_by, s.late
     FROM timer t CROSS JOIN timer_standing s ON s.name = t.name WHERE t.name = ?1";
pub(crate) const AGREE: &str = "INSERT INTO timer (name, version, revision, created, changed, agreed, args)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
     ON CONFLICT (name) DO UPDATE SET version = excluded.version, revision = excluded.revision,
         changed = excluded.changed, agreed = excluded.agreed, args = excluded.args";
pub(crate) const STAND: &str =
    "INSERT INTO timer_standing (name, wake, next, decided, fired, runs, open, paused, reason,
         skipped, skip, skip_by, late)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
     ON CONFLICT (name) DO UPDATE SET wake = excluded.wake, next = excluded.next, decided = excluded.decided,
         fired = excluded.fired, runs = excluded.runs, open = excluded.open, paused = excluded.paused,
         reason = excluded.reason, skipped = excluded.skipped, skip = excluded.skip, skip_by = excluded.skip_by,
         late = excluded.late";
pub(crate) const REVISION: &str = "SELECT revision FROM timer WHERE name = ?1";

const ID_BYTES: usize = 16;

/// The timer of this name.
pub(crate) fn find(conn: &Connection, name: &Name) -> Result<Option<Timer>> {
    let found = conn.prepare_cached(BY_NAME)?.query_row([name.as_str()], read).optional();
    found.map_err(|error| of_timer(name, error))
}

/// Reads a row whose columns are those of [`BY_NAME`].
pub(super) fn read(row: &Row<'_>) -> Result<Timer> {
    let name = Name::new("timer", row.get_ref(0)?.as_str()?).map_err(unreadable)?;
    let revision = row.get::<_, i64>(2)?.cast_unsigned();
    let new = agreed::from_json(name, row.get_ref(5)?.as_str()?, row.get_ref(6)?.as_blob()?, revision)?;
    let since = value::maybe_instant(row, 12)?;
    let reason: Option<String> = row.get(13)?;
    Ok(Timer {
        agreed: Arc::new(new),
        version: value::seq(row.get(1)?)?,
        created: value::instant(row, 3)?,
        changed: value::instant(row, 4)?,
        next: value::maybe_instant(row, 7)?,
        decided: value::maybe_instant(row, 8)?,
        fired: value::maybe_instant(row, 9)?,
        lateness: lateness(row)?,
        runs: value::seq(row.get(10)?)?,
        last_skip: last_skip(row)?,
        open: open(row.get_ref(11)?.as_blob_or_null()?.unwrap_or_default())?,
        paused: since.map(|since| Pause { since, reason: reason.unwrap_or_default() }),
    })
}

fn last_skip(row: &Row<'_>) -> Result<Option<(Timestamp, Skipped)>> {
    let Some(slot) = value::maybe_instant(row, 14)? else { return Ok(None) };
    let by = row.get::<_, Option<[u8; ID_BYTES]>>(16)?.map(JobId::from_bytes);
    Ok(Some((slot, slots::skipped(row.get(15)?, by)?)))
}

fn lateness(row: &Row<'_>) -> Result<Option<Duration>> {
    let micros = row.get::<_, Option<i64>>(17)?.map(value::seq).transpose()?;
    Ok(micros.map(Duration::from_micros))
}

fn open(bytes: &[u8]) -> Result<Vec<JobId>> {
    let (ids, rest) = bytes.as_chunks::<ID_BYTES>();
    if rest.is_empty() {
        Ok(ids.iter().copied().map(JobId::from_bytes).collect())
    } else {
        Err(unreadable("its open jobs"))
    }
}

/// Keeps a timer as it was copied.
pub(crate) fn keep_copied(conn: &Connection, timer: &Timer) -> Result<()> {
    agree(conn, timer)?;
    stand(conn, timer)
}

/// Writes what was agreed about a timer, whether it was there or not.
pub(super) fn agree(conn: &Connection, timer: &Timer) -> Result<()> {
    conn.prepare_cached(AGREE)?.execute(params![
        timer.name().as_str(),
        value::signed(timer.version),
        timer.agreed.revision.cast_signed(),
        timer.created.as_micros(),
        timer.changed.as_micros(),
        agreed::to_json(&timer.agreed)?,
        timer.agreed.job.args.as_bytes(),
    ])?;
    Ok(())
}

/// Writes what its slots have changed.
pub(super) fn stand(conn: &Connection, timer: &Timer) -> Result<()> {
    let micros = |at: Option<Timestamp>| at.map(Timestamp::as_micros);
    let open: Vec<u8> = timer.open.iter().flat_map(|id| *id.as_bytes()).collect();
    let skip = timer.last_skip.as_ref().map(|(_, why)| slots::skip_code(why));
    conn.prepare_cached(STAND)?.execute(params![
        timer.name().as_str(),
        micros(timer.wake()),
        micros(timer.next),
        micros(timer.decided),
        micros(timer.fired),
        value::signed(timer.runs),
        (!open.is_empty()).then_some(open),
        timer.paused.as_ref().map(|pause| pause.since.as_micros()),
        timer.paused.as_ref().map(|pause| pause.reason.as_str()),
        micros(timer.last_skip.as_ref().map(|(slot, _)| *slot)),
        skip.map(|(code, _)| code),
        skip.and_then(|(_, by)| by).map(|by| *by.as_bytes()),
        timer.lateness.map(|late| i64::try_from(late.as_micros()).unwrap_or(i64::MAX)),
    ])?;
    Ok(())
}

/// Removes a timer, which need not be readable for that; answers whether it was there.
pub(super) fn remove(conn: &Connection, name: &Name) -> Result<bool> {
    conn.prepare_cached("DELETE FROM timer_standing WHERE name = ?1")?.execute([name.as_str()])?;
    let removed = conn.prepare_cached("DELETE FROM timer WHERE name = ?1")?.execute([name.as_str()])?;
    Ok(removed > 0)
}

/// The version of the program that declared a timer, which tells even where the rest cannot be read.
pub(super) fn revision(conn: &Connection, name: &Name) -> Result<Option<u64>> {
    let read = |row: &Row<'_>| row.get::<_, i64>(0).map(i64::cast_unsigned);
    conn.prepare_cached(REVISION)?.query_row([name.as_str()], read).optional()
}
