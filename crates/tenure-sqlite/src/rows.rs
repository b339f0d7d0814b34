//! Whole jobs, between rows and the domain.

use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, Connection, Error, OptionalExtension, Result, Row, params};
use tenure_core::{Args, Block, End, Fence, Job, JobId, Output, State, Why};
use tenure_store::{UnreadableJob, Values};

use crate::fault::{is_unreadable, of_job, unreadable, what_is_unreadable};
use crate::gates::block_of;
use crate::{code, value};

/// A job with what only this store knows of it.
#[derive(Debug)]
pub(crate) struct Stored {
    pub job: Job,
    /// The lane that it is in.
    pub lane: i64,
    /// Whether it has a row in `standing`.
    pub begun: bool,
}

/// All jobs, as [`plain`] reads them. An error names a column as it is called here.
pub(crate) const ALL: &str =
    "SELECT j.seq AS 'job.seq', j.id AS 'job.id', l.queue AS 'lane.queue', l.kind AS 'lane.kind', j.lane AS 'job.lane',
        j.priority AS 'job.priority', j.due AS 'job.due', j.created AS 'job.created', j.terms AS 'job.terms',
        j.args AS 'job.args', s.state AS 'standing.state', s.fence AS 'standing.fence',
        s.attempt AS 'standing.attempt', s.delivery AS 'standing.delivery', s.why AS 'standing.why',
        s.due AS 'standing.due', s.until AS 'standing.until', s.started AS 'standing.started',
        s.ended AS 'standing.ended', s.expires AS 'standing.expires', s.holder AS 'standing.holder',
        s.failure AS 'standing.failure', s.output AS 'standing.output', s.place AS 'standing.place',
        s.cancel AS 'standing.cancel', s.progress AS 'standing.progress'
     FROM job j LEFT JOIN lane l ON l.id = j.lane LEFT JOIN standing s ON s.seq = j.seq";

/// Finds a job by its place in the order of acceptance.
pub(crate) fn by_seq(conn: &Connection) -> Result<CachedStatement<'_>> {
    conn.prepare_cached(&format!("{ALL} WHERE j.seq = ?1"))
}

/// Finds a job by its place in the order of acceptance, with these values. SQLite reads no page of a column that is not
/// named.
pub(crate) fn by_seq_with(conn: &Connection, values: Values) -> Result<CachedStatement<'_>> {
    match values {
        Values::Read => by_seq(conn),
        Values::Omitted => conn.prepare_cached(&format!("{} WHERE j.seq = ?1", without_values())),
    }
}

/// Returns [`ALL`] without args and results.
fn without_values() -> String {
    let columns = [("j.args AS", "x'' AS"), ("s.output AS", "NULL AS"), ("s.place AS", "NULL AS")];
    columns.iter().fold(ALL.to_owned(), |sql, (column, empty)| sql.replace(column, empty))
}

/// The job with this place in the order of acceptance, as its own rows tell: whether it is blocked,
/// [`Stored::seen`] tells.
pub(crate) fn row_of(conn: &Connection, seq: i64) -> Result<Option<Stored>> {
    by_seq(conn)?.query_row([seq], stored).optional()
}

/// The outcome of looking at a job.
pub(crate) type Looked = std::result::Result<Stored, UnreadableJob>;

/// The job with this place in the order of acceptance as it is seen, or what is known of it if it cannot be read. The
/// statement is that of [`by_seq`].
pub(crate) fn look(
    conn: &Connection,
    statement: &mut CachedStatement<'_>,
    seq: i64,
) -> Result<Option<Looked>> {
    let stored = match statement.query_row([seq], plain).optional() {
        Err(error) if is_unreadable(&error) => {
            return unreadable_job(conn, seq, &error).map(|odd| Some(Err(odd)));
        }
        found => found?,
    };
    let Some(stored) = stored else { return Ok(None) };
    if !stored.may_be_blocked() {
        return Ok(Some(Ok(stored)));
    }
    let block = match block_of(conn, &stored.job, stored.lane) {
        // A limit that cannot be read lets no job pass.
        Err(error) if is_unreadable(&error) => Some(Block::Limit),
        block => block?,
    };
    Ok(Some(Ok(stored.blocked(block))))
}

fn unreadable_job(conn: &Connection, seq: i64, error: &Error) -> Result<UnreadableJob> {
    let mut known = conn.prepare_cached(
        "SELECT j.id, l.queue, l.kind FROM job j LEFT JOIN lane l ON l.id = j.lane WHERE j.seq = ?1",
    )?;
    known.query_row([seq], |row| {
        Ok(UnreadableJob {
            seq: u64::try_from(seq).unwrap_or(0),
            id: value::job_id(row, 0).ok(),
            queue: value::queue(row, 1).ok(),
            kind: value::kind(row, 2).ok(),
            reason: what_is_unreadable(error),
        })
    })
}

/// The job with this id.
pub(crate) fn find(conn: &Connection, id: JobId) -> Result<Option<Stored>> {
    match seq_of(conn, id)? {
        Some(seq) => row_of(conn, seq)?.map(|stored| stored.seen(conn)).transpose(),
        None => Ok(None),
    }
}

/// Where the job with this id is.
pub(crate) fn seq_of(conn: &Connection, id: JobId) -> Result<Option<i64>> {
    conn.prepare_cached("SELECT seq FROM job WHERE id = ?1")?
        .query_row([id.as_bytes()], |row| row.get(0))
        .optional()
}

impl Stored {
    /// The job as it is seen: what blocks it is told by other tables than its own.
    pub(crate) fn seen(self, conn: &Connection) -> Result<Self> {
        if !self.may_be_blocked() {
            return Ok(self);
        }
        let block = block_of(conn, &self.job, self.lane)?;
        Ok(self.blocked(block))
    }

    /// Whether its own rows leave open whether it is blocked.
    pub(crate) fn may_be_blocked(&self) -> bool {
        matches!(self.job.state, State::Waiting { .. }) && self.job.terms.are_gated()
    }

    /// The same job, if it waits for this.
    pub(crate) fn blocked(mut self, on: Option<Block>) -> Self {
        if let (State::Waiting { due, why }, Some(on)) = (self.job.state, on) {
            self.job.state = State::Blocked { on, due, why };
        }
        self
    }
}

/// Reads a row of [`ALL`]; [`Stored::seen`] tells the rest.
fn stored(row: &Row<'_>) -> Result<Stored> {
    let id = value::job_id(row, 1)?;
    read(row, id).map_err(|error| of_job(id, error))
}

/// Reads a row as [`stored`] does. An error does not name the job.
pub(crate) fn plain(row: &Row<'_>) -> Result<Stored> {
    read(row, value::job_id(row, 1)?)
}

fn read(row: &Row<'_>, id: JobId) -> Result<Stored> {
    let begun = row.get_ref(10)? != ValueRef::Null;
    let job = Job {
        seq: value::seq_at(row, 0)?,
        id,
        queue: value::queue(row, 2)?,
        kind: value::kind(row, 3)?,
        priority: value::priority(row, 5)?,
        created: value::instant(row, 7)?,
        terms: value::terms(row, 8)?.unwrap_or_default(),
        args: Args::stored(value::blob(row, 9)?),
        state: if begun {
            state(row)?
        } else {
            State::Waiting { due: value::instant(row, 6)?, why: Why::Enqueued }
        },
        fence: if begun { value::fence_at(row, 11)? } else { Fence::NONE },
        attempt: if begun { value::number_at(row, 12)? } else { 0 },
        delivery: if begun { value::number_at(row, 13)? } else { 0 },
        started: value::maybe_instant(row, 17)?,
        expires: value::maybe_instant(row, 19)?,
        holder: value::host_id(row, 20)?,
        failure: value::maybe_json(row, 21)?,
        output: output(row)?,
        cancel: value::maybe_json(row, 24)?,
        progress: value::maybe_json(row, 25)?,
    };
    Ok(Stored { job, lane: value::get(row, 4)?, begun })
}

/// The state of a job that has a standing.
pub(crate) fn state(row: &Row<'_>) -> Result<State> {
    let finished = |end: End| Ok(State::Finished { at: value::instant(row, 18)?, end });
    match value::get(row, 10)? {
        code::WAITING => {
            Ok(State::Waiting { due: value::instant(row, 15)?, why: value::coded(row, 14, code::why)? })
        }
        code::RUNNING => Ok(State::Running {
            holder: value::host_id(row, 20)?
                .ok_or_else(|| unreadable("column standing.holder: a running job without a holder"))?,
            until: value::instant(row, 16)?,
            due: value::instant(row, 15)?,
        }),
        code::SUCCEEDED => finished(End::Succeeded),
        code::FAILED => finished(End::Failed),
        code::CANCELLED => finished(End::Cancelled),
        other => Err(unreadable(format_args!("column standing.state: unknown state {other}"))),
    }
}

fn output(row: &Row<'_>) -> Result<Option<Output>> {
    let value: Option<Vec<u8>> = value::get(row, 22)?;
    let place = value::get(row, 23)?;
    Ok(value.map(|value| Output { value, place }))
}

/// Writes the standing of a job, whatever it was before.
pub(crate) fn write_standing(conn: &Connection, Stored { job, lane, .. }: &Stored) -> Result<()> {
    let mut statement = conn.prepare_cached(
        "INSERT INTO standing (seq, lane, state, fence, attempt, delivery, why, due, until, lapse, started, ended,
             expires, holder, failure, output, place, cancel, progress)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)
         ON CONFLICT (seq) DO UPDATE SET
             lane = excluded.lane, state = excluded.state, fence = excluded.fence, attempt = excluded.attempt,
             delivery = excluded.delivery, why = excluded.why, due = excluded.due, until = excluded.until,
             lapse = excluded.lapse, started = excluded.started, ended = excluded.ended,
             expires = excluded.expires, holder = excluded.holder, failure = excluded.failure,
             output = excluded.output, place = excluded.place, cancel = excluded.cancel,
             progress = excluded.progress
         WHERE standing.fence <= excluded.fence",
    )?;
    let (why, until, ended) = match job.state {
        State::Waiting { why, .. } | State::Blocked { why, .. } => (Some(code::of_why(why)), None, None),
        State::Running { until, .. } => (None, Some(until), None),
        State::Finished { at, .. } => (None, None, Some(at)),
    };
    let deadline = job.cancel.as_ref().map(|request| request.deadline);
    let lapse = until.map(|until| deadline.map_or(until, |deadline| until.min(deadline)));
    let output = job.output.as_ref().filter(|_| !cfg!(mutant = "sqlite-output-place-lost"));
    statement.execute(params![
        value::signed(job.seq),
        lane,
        code::of_state(&job.state),
        value::signed(job.fence.number()),
        job.attempt,
        job.delivery,
        why,
        job.state.due().map(|at| at.as_micros()),
        until.map(|at| at.as_micros()),
        lapse.map(|at| at.as_micros()),
        job.started.map(|at| at.as_micros()),
        ended.map(|at| at.as_micros()),
        job.expires.map(|at| at.as_micros()),
        job.holder.map(|host| *host.as_bytes()),
        value::maybe_to_json(job.failure.as_ref())?,
        job.output.as_ref().map(|output| output.value.as_slice()),
        output.and_then(|output| output.place.as_deref()),
        value::maybe_to_json(job.cancel.as_ref())?,
        value::maybe_to_json(job.progress.as_ref())?,
    ])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_without_values_is_read_without_their_columns() {
        let sql = without_values();
        assert!(!sql.contains("j.args") && !sql.contains("s.output") && !sql.contains("s.place"), "{sql}");
    }
}
