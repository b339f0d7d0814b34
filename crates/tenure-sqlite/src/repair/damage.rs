//! Finding the rows of jobs that cannot be read. All of them are looked at.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension, Result, Row};
use tenure_core::Key;

use super::{limits, shared};
use crate::fault::{is_unreadable, what_is_unreadable};
use crate::rows::{ALL, plain};
use crate::{attempts, value, views};

/// Something that cannot be read.
#[derive(Debug)]
pub(crate) struct Damage {
    /// Of which job.
    pub seq: i64,
    pub what: Damaged,
    pub reason: String,
}

/// The part that cannot be read, or that names what is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Damaged {
    /// Its own row, or its standing.
    Job,
    /// An attempt of the job, by delivery.
    Attempt(i64),
    /// A log line of the job, by delivery and number.
    Line(i64, i64),
    /// A unique key that the job holds.
    UniqueKey(Vec<u8>),
    /// A lane, by its number. Its jobs cannot be read either.
    Lane(i64),
    /// A queue, by the bytes of its name.
    Queue(Vec<u8>),
    /// A queue that a lane names and that is not there.
    LostQueue(String),
    /// A limit, by its number.
    Limit(i64),
    /// A limit that jobs name and that is not there, or not where they look for it.
    LostLimit(Key),
}

const ATTEMPTS: &str =
    "SELECT delivery, attempt, fence, holder, started, ended, ended_by, failure, seq FROM attempt
     ORDER BY seq, delivery";
const LINES: &str = "SELECT delivery, number, at, text, seq FROM log ORDER BY seq, delivery, number";

/// The first so many parts of jobs that cannot be read. The attempts and log lines of an unreadable job are not told apart
/// from it.
pub(crate) fn damages(conn: &Connection, at_most: usize) -> Result<Vec<Damage>> {
    let mut found = Vec::new();
    let of_job = |row: &Row<'_>| Ok((row.get(0)?, Damaged::Job));
    scan(conn, &format!("{ALL} ORDER BY j.seq"), at_most, |row| plain(row).map(drop), of_job, &mut found)?;
    let jobs: BTreeSet<i64> = found.iter().map(|damage| damage.seq).collect();
    let of_attempt = |row: &Row<'_>| Ok((row.get(8)?, Damaged::Attempt(row.get(0)?)));
    scan(conn, ATTEMPTS, at_most, |row| attempts::read(row).map(drop), of_attempt, &mut found)?;
    let of_line = |row: &Row<'_>| Ok((row.get(4)?, Damaged::Line(row.get(0)?, row.get(1)?)));
    scan(conn, LINES, at_most, |row| views::line(row).map(drop), of_line, &mut found)?;
    shared::damages(conn, at_most, &mut found)?;
    limits::damages(conn, at_most, &mut found)?;
    found.retain(|damage| damage.what == Damaged::Job || !jobs.contains(&damage.seq));
    Ok(found)
}

/// Notes the rows that cannot be read.
pub(super) fn scan(
    conn: &Connection,
    sql: &str,
    at_most: usize,
    read: impl Fn(&Row<'_>) -> Result<()>,
    of: impl Fn(&Row<'_>) -> Result<(i64, Damaged)>,
    found: &mut Vec<Damage>,
) -> Result<()> {
    let mut statement = conn.prepare(sql)?;
    let mut rows = statement.query([])?;
    while found.len() < at_most {
        let Some(row) = rows.next()? else { return Ok(()) };
        match read(row) {
            Ok(()) => {}
            Err(error) if is_unreadable(&error) => {
                let (seq, what) = of(row)?;
                found.push(Damage { seq, what, reason: what_is_unreadable(&error) });
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl Damage {
    /// The subject of a finding about it.
    pub(crate) fn about(&self) -> &'static str {
        match &self.what {
            Damaged::Job | Damaged::Attempt(_) | Damaged::Line(..) => "unreadable",
            Damaged::UniqueKey(_) => "unique key",
            Damaged::Limit(_) | Damaged::LostLimit(_) => "limits",
            Damaged::Lane(_) | Damaged::Queue(_) | Damaged::LostQueue(_) => "queues",
        }
    }

    /// A sentence about it.
    pub(crate) fn sentence(&self, conn: &Connection) -> Result<String> {
        let (job, reason) = (name(conn, self.seq)?, &self.reason);
        Ok(match &self.what {
            Damaged::Job => format!("job {job} cannot be read: {reason}"),
            Damaged::Attempt(delivery) => {
                format!("attempt {delivery} of job {job} cannot be read: {reason}")
            }
            Damaged::Line(delivery, number) => {
                format!("log line {number} of attempt {delivery} of job {job} cannot be read: {reason}")
            }
            Damaged::UniqueKey(_) => format!("the unique key of job {job} cannot be used: {reason}"),
            Damaged::Lane(number) => format!("lane {number} cannot be read: {reason}"),
            Damaged::Queue(name) => {
                let name = String::from_utf8_lossy(name);
                format!(
                    "queue {name:?} cannot be read: {reason}; a repair pauses it, because its settings are lost"
                )
            }
            Damaged::LostQueue(name) => {
                format!("queue {name:?} is not there: {reason}; a repair makes it, paused")
            }
            Damaged::Limit(number) => format!("limit {number} cannot be read: {reason}"),
            Damaged::LostLimit(key) => format!("limit {:?} has to be counted again: {reason}", key.as_str()),
        })
    }
}

/// The ID of a job, or its number if it has none that can be read.
pub(crate) fn name(conn: &Connection, seq: i64) -> Result<String> {
    let id = conn
        .prepare_cached("SELECT id FROM job WHERE seq = ?1")?
        .query_row([seq], |row| Ok(value::job_id(row, 0).ok()))
        .optional()?;
    Ok(id.flatten().map_or_else(|| format!("number {seq}"), |id| id.to_string()))
}
