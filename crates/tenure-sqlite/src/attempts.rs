//! The record of ended attempts.

use rusqlite::{Connection, Result, Row, params};
use tenure_core::{Attempt, AttemptEnd, End, Failure, Job, State, Timestamp, limits};

use crate::fault::unreadable;
use crate::{code, value};

/// Records how the running attempt of a job ended. One that succeeded is not recorded: its job's
/// standing tells all of it, and most attempts are of that sort.
pub(crate) fn record(
    conn: &Connection,
    job: &Job,
    ended: AttemptEnd,
    failure: Option<&Failure>,
    at: Timestamp,
) -> Result<()> {
    let Some(attempt) = last_of(job, Some((at, ended)), failure.cloned()) else { return Ok(()) };
    let seq = value::signed(job.seq);
    keep(conn, seq, &attempt, at, ended)?;
    let beyond = i64::from(attempt.delivery) - i64::from(limits::ATTEMPTS_KEPT);
    if beyond > 0 {
        for sql in [
            "DELETE FROM attempt WHERE seq = ?1 AND delivery <= ?2",
            "DELETE FROM log WHERE seq = ?1 AND delivery <= ?2",
        ] {
            conn.prepare_cached(sql)?.execute([seq, beyond])?;
        }
    }
    Ok(())
}

/// Keeps an attempt that ended so.
pub(crate) fn keep(
    conn: &Connection,
    seq: i64,
    attempt: &Attempt,
    at: Timestamp,
    ended: AttemptEnd,
) -> Result<()> {
    conn.prepare_cached(
        "INSERT OR REPLACE INTO attempt (seq, delivery, attempt, fence, holder, started, ended, ended_by, failure)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?
    .execute(params![
        seq,
        attempt.delivery,
        attempt.attempt,
        value::signed(attempt.fence.number()),
        attempt.holder.as_bytes(),
        attempt.started.as_micros(),
        at.as_micros(),
        code::of_attempt_end(ended),
        value::maybe_to_json(attempt.failure.as_ref())?,
    ])?;
    Ok(())
}

/// Records the attempt by which a job succeeded, before its standing forgets it.
pub(crate) fn record_success(conn: &Connection, job: &Job) -> Result<()> {
    match job.state {
        State::Finished { end: End::Succeeded, at } => record(conn, job, AttemptEnd::Succeeded, None, at),
        State::Finished { end: End::Failed | End::Cancelled, .. }
        | State::Waiting { .. }
        | State::Blocked { .. }
        | State::Running { .. } => Ok(()),
    }
}

/// All attempts of a job, oldest first.
pub(crate) fn of(conn: &Connection, job: &Job) -> Result<Vec<Attempt>> {
    let mut statement = conn.prepare_cached(
        "SELECT delivery, attempt, fence, holder, started, ended, ended_by, failure FROM attempt
         WHERE seq = ?1 ORDER BY delivery",
    )?;
    let rows = statement.query_map([value::signed(job.seq)], read)?;
    let mut attempts = rows.collect::<Result<Vec<_>>>()?;
    let succeeded = match job.state {
        State::Finished { at, end: End::Succeeded } => last_of(job, Some((at, AttemptEnd::Succeeded)), None),
        State::Finished { end: End::Failed | End::Cancelled, .. }
        | State::Waiting { .. }
        | State::Blocked { .. }
        | State::Running { .. } => None,
    };
    attempts.extend(succeeded);
    let too_many = attempts.len().saturating_sub(limits::ATTEMPTS_KEPT as usize);
    attempts.drain(..too_many);
    if let State::Running { .. } = job.state {
        attempts.extend(last_of(job, None, None));
    }
    Ok(attempts)
}

/// An attempt that has ended.
pub(crate) fn read(row: &Row<'_>) -> Result<Attempt> {
    Ok(Attempt {
        delivery: value::number_at(row, 0)?,
        attempt: value::number_at(row, 1)?,
        fence: value::fence_at(row, 2)?,
        holder: value::host_id(row, 3)?
            .ok_or_else(|| unreadable("column holder: an attempt without a holder"))?,
        started: value::instant(row, 4)?,
        ended: Some((value::instant(row, 5)?, value::coded(row, 6, code::attempt_end)?)),
        failure: value::maybe_json(row, 7)?,
    })
}

/// The last attempt of a job, as the job tells it; `None` if nobody has ever had the job.
fn last_of(
    job: &Job,
    ended: Option<(tenure_core::Timestamp, AttemptEnd)>,
    failure: Option<Failure>,
) -> Option<Attempt> {
    let (Some(holder), Some(started)) = (job.holder, job.started) else { return None };
    let (attempt, delivery, fence) = (job.attempt, job.delivery, job.fence);
    Some(Attempt { attempt, delivery, fence, holder, started, ended, failure })
}
