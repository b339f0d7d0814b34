//! Finding the rows of jobs that cannot be read. All of them are looked at, a bounded number with each statement.

use std::collections::BTreeSet;

use tenure_core::{JobId, Key};
use tenure_store::Fault;
use tokio_postgres::Row;
use uuid::Uuid;

use super::shared;
use crate::connection::Connection;
use crate::fault::what_is_unreadable;
use crate::query::Query;
use crate::{rows, value, views};

/// Rows that one statement reads.
const AT_ONCE: usize = 1000;

/// Something that cannot be read.
#[derive(Debug)]
pub(crate) struct Damage {
    /// Of which job.
    pub seq: i64,
    /// Its ID, if it is known.
    pub id: Option<JobId>,
    pub what: Damaged,
    pub reason: String,
}

/// The part that cannot be read, or that names what is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Damaged {
    /// Its own row, or what tells of its state.
    Job,
    /// An attempt of the job, by delivery.
    Attempt(i32),
    /// A log line of the job, by delivery and number.
    Line(i32, i32),
    /// A unique key that the job holds.
    UniqueKey(Vec<u8>),
    /// A limit, by its key.
    Limit(String),
    /// A limit that jobs name and that is not there.
    LostLimit(Key),
    /// A queue, by its name.
    Queue(String),
    /// A queue that a lane names and that is not there.
    LostQueue(String),
    /// A lane, by its number. Its jobs cannot be read either.
    Lane(i32),
}

const JOBS: &str = "SELECT id FROM job WHERE id > $1 ORDER BY id LIMIT $2";
const ATTEMPTS: &str =
    "SELECT a.delivery, a.attempt, a.fence, a.holder, a.started, a.ended, a.ended_by, a.failure, a.seq, j.id
     FROM (SELECT * FROM attempt WHERE (seq, delivery) > ($1, $2) ORDER BY seq, delivery LIMIT $3) a
     LEFT JOIN LATERAL (SELECT lane FROM standing WHERE seq = a.seq LIMIT 1) s ON true
     LEFT JOIN LATERAL (SELECT id FROM job WHERE lane = s.lane AND seq = a.seq LIMIT 1) j ON true
     ORDER BY a.seq, a.delivery";
const LINES: &str = "SELECT l.delivery, l.number, l.at, l.line, l.seq, j.id
     FROM (SELECT * FROM log WHERE (seq, delivery, number) > ($1, $2, $4) ORDER BY seq, delivery, number LIMIT $3) l
     LEFT JOIN LATERAL (SELECT lane FROM standing WHERE seq = l.seq LIMIT 1) s ON true
     LEFT JOIN LATERAL (SELECT id FROM job WHERE lane = s.lane AND seq = l.seq LIMIT 1) j ON true
     ORDER BY l.seq, l.delivery, l.number";

/// The first so many parts that cannot be read, in the order in which a repair takes them out. The attempts and log lines of an unreadable job are not told apart
/// from it.
pub(crate) async fn damages(connection: &mut Connection, at_most: usize) -> Result<Vec<Damage>, Fault> {
    let mut found = shared::limits(connection).await?;
    let of_jobs = of_jobs(connection, at_most).await?;
    let jobs: BTreeSet<i64> = of_jobs.iter().map(|damage| damage.seq).collect();
    found.extend(of_jobs);
    let mut parts = of_attempts(connection, at_most).await?;
    parts.extend(of_lines(connection, at_most).await?);
    parts.extend(shared::unique_keys(connection, at_most).await?);
    found.extend(parts.into_iter().filter(|damage| !jobs.contains(&damage.seq)));
    found.extend(shared::queues_and_lanes(connection).await?);
    found.truncate(at_most);
    Ok(found)
}

async fn of_jobs(connection: &mut Connection, at_most: usize) -> Result<Vec<Damage>, Fault> {
    let (mut found, mut behind) = (Vec::new(), Uuid::nil());
    while found.len() < at_most {
        let read = connection.read(Query::new(JOBS).with(behind).with(value::bound(AT_ONCE))).await?;
        let Some(last) = read.last() else { break };
        behind = last.get(0);
        let ids = read.iter().map(|row| value::job_id(row, 0));
        for row in &connection.read(rows::by_ids(ids)).await? {
            if let (id, Err(odd)) = rows::look(row) {
                found.push(Damage { seq: row.get(0), id: Some(id), what: Damaged::Job, reason: odd.reason });
            }
        }
    }
    Ok(found)
}

async fn of_attempts(connection: &mut Connection, at_most: usize) -> Result<Vec<Damage>, Fault> {
    let (mut found, mut behind) = (Vec::new(), (i64::MIN, i32::MIN));
    while found.len() < at_most {
        let query = Query::new(ATTEMPTS).with(behind.0).with(behind.1).with(value::bound(AT_ONCE));
        let read = connection.read(query).await?;
        let Some(last) = read.last() else { break };
        behind = (last.get(8), last.get(0));
        let odd = |row: &Row| {
            let reason = what_is_unreadable(&views::attempt(row).err()?);
            let what = Damaged::Attempt(row.get(0));
            Some(Damage { seq: row.get(8), id: value::maybe_job_id(row, 9), what, reason })
        };
        found.extend(read.iter().filter_map(odd));
    }
    Ok(found)
}

async fn of_lines(connection: &mut Connection, at_most: usize) -> Result<Vec<Damage>, Fault> {
    let (mut found, mut behind) = (Vec::new(), (i64::MIN, i32::MIN, i32::MIN));
    while found.len() < at_most {
        let query = Query::new(LINES).with(behind.0).with(behind.1).with(value::bound(AT_ONCE));
        let read = connection.read(query.with(behind.2)).await?;
        let Some(last) = read.last() else { break };
        behind = (last.get(4), last.get(0), last.get(1));
        let odd = |row: &Row| {
            let reason = what_is_unreadable(&views::line(row).err()?);
            let what = Damaged::Line(row.get(0), row.get(1));
            Some(Damage { seq: row.get(4), id: value::maybe_job_id(row, 5), what, reason })
        };
        found.extend(read.iter().filter_map(odd));
    }
    Ok(found)
}

impl Damage {
    /// The ID of the job, or its number; of a row that jobs share, no job's.
    pub(crate) fn job(&self) -> String {
        self.id.map_or_else(|| format!("number {}", self.seq), |id| id.to_string())
    }

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
    pub(crate) fn sentence(&self) -> String {
        let (job, reason) = (self.job(), &self.reason);
        match &self.what {
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
                format!(
                    "queue {name:?} cannot be read: {reason}; a repair pauses it, because its settings are lost"
                )
            }
            Damaged::LostQueue(name) => {
                format!("queue {name:?} is not there: {reason}; a repair makes it, paused")
            }
            Damaged::Limit(key) => format!("limit {key:?} cannot be read: {reason}"),
            Damaged::LostLimit(key) => format!("limit {:?} has to be counted again: {reason}", key.as_str()),
        }
    }
}
