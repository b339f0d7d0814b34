//! Reading as much of an unreadable job as is needed to let go of all that it holds.

use rusqlite::types::FromSql;
use rusqlite::{Connection, OptionalExtension, Result, Row};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tenure_core::{
    AfterJobs, Args, End, Fence, Head, HostId, IfFailed, Job, JobId, Key, Kind, LimitKey, OrderingKey,
    Priority, QueueName, State, Terms, Timestamp, Why,
};

use crate::gates::block_of;
use crate::rows::{Stored, by_seq, state};
use crate::{code, value};

/// Where a job waits, as the tables of places say: lane, priority, due, limit.
const PLACE: &str = "SELECT lane, priority, due, limit_id FROM ready WHERE seq = ?1
     UNION ALL SELECT lane, priority, due, limit_id FROM limit_line WHERE seq = ?1
     UNION ALL SELECT lane, priority, due, NULL FROM later WHERE seq = ?1
     UNION ALL SELECT c.lane, c.priority, c.due, NULL FROM chained c JOIN chain k ON k.id = c.chain
         WHERE c.seq = ?1 AND c.seq > k.passed
     LIMIT 1";
const WAITS_FOR_JOBS: &str = "SELECT 1 FROM dependency WHERE seq = ?1";
const ORDERING: &str = "SELECT key FROM chain WHERE turn = ?1
     OR id IN (SELECT chain FROM chained WHERE seq = ?1 UNION ALL SELECT chain FROM stepped_aside WHERE seq = ?1)";
const LIMIT: &str = "SELECT key FROM limit_key WHERE id IN (SELECT limit_id FROM ready WHERE seq = ?1
     UNION ALL SELECT limit_id FROM limit_line WHERE seq = ?1 UNION ALL SELECT limit_id FROM standing WHERE seq = ?1)";
const SHARE: &str =
    "SELECT s.key FROM fair_place f JOIN share s ON s.id = f.share WHERE f.seq = ?1 AND s.key <> ''";

/// Where a job waits.
struct Place {
    lane: i64,
    priority: i64,
    due: i64,
}

/// The job with this number, with usual values where it cannot be read; `None` if it has no number that a job can have.
pub(super) fn salvage(conn: &Connection, seq: i64) -> Result<Option<Stored>> {
    if seq < 1 {
        return Ok(None);
    }
    let place = conn
        .prepare_cached(PLACE)?
        .query_row([seq], |row| Ok(Place { lane: row.get(0)?, priority: row.get(1)?, due: row.get(2)? }))
        .optional()?;
    let stored = by_seq(conn)?.query_row([seq], |row| lenient(conn, row, place.as_ref())).optional()?;
    let Some(stored) = stored else { return Ok(None) };
    if !stored.may_be_blocked() {
        return Ok(Some(stored));
    }
    let block = block_of(conn, &stored.job, stored.lane).unwrap_or(None);
    Ok(Some(stored.blocked(block)))
}

fn lenient(conn: &Connection, row: &Row<'_>, place: Option<&Place>) -> Result<Stored> {
    let number = value::seq_at(row, 0)?;
    let seq = value::signed(number);
    let is_begun = raw::<i64>(row, 10).is_some();
    let created = value::instant(row, 7).unwrap_or(Timestamp::EPOCH);
    let priority = value::priority(row, 5).ok();
    let priority = priority.or_else(|| place.and_then(|place| Priority::new(place.priority).ok()));
    let waits = place.is_some() || conn.prepare_cached(WAITS_FOR_JOBS)?.exists([seq])?;
    let due = place.and_then(|place| value::timestamp(place.due).ok());
    let job = Job {
        seq: number,
        id: value::job_id(row, 1).unwrap_or_else(|_| JobId::new(created, number)),
        queue: value::queue(row, 2)
            .or_else(|_| QueueName::new("unreadable").map_err(crate::fault::unreadable))?,
        kind: value::kind(row, 3).or_else(|_| Kind::new("unreadable").map_err(crate::fault::unreadable))?,
        priority: priority.unwrap_or_default(),
        created,
        terms: terms(conn, row, seq)?.into(),
        args: Args::stored(value::blob(row, 9).unwrap_or_default()),
        state: if is_begun {
            state(row).unwrap_or_else(|_| state_by(row, waits, due))
        } else {
            let due = due.or_else(|| value::instant(row, 6).ok()).unwrap_or(created);
            State::Waiting { due, why: Why::Enqueued }
        },
        fence: value::fence_at(row, 11).unwrap_or(Fence::NONE),
        attempt: value::number_at(row, 12).unwrap_or(0),
        delivery: value::number_at(row, 13).unwrap_or(0),
        started: None,
        expires: None,
        holder: value::host_id(row, 20).unwrap_or(None),
        failure: None,
        output: None,
        cancel: None,
        progress: None,
    };
    // Counters follow its place in line, not its own row.
    let lane = place.map(|place| place.lane).or_else(|| raw(row, 4));
    Ok(Stored { job, lane: lane.unwrap_or(0), begun: is_begun })
}

/// The state of a job of whose standing something cannot be read, by the rest and by where it waits.
fn state_by(row: &Row<'_>, waits: bool, due: Option<Timestamp>) -> State {
    let due = due.or_else(|| value::instant(row, 15).ok()).unwrap_or(Timestamp::EPOCH);
    let code = raw::<i64>(row, 10).unwrap_or(-1);
    let is_held = raw::<i64>(row, 16).is_some() && raw::<i64>(row, 18).is_none();
    if code == code::WAITING || waits {
        return State::Waiting { due, why: Why::Enqueued };
    }
    match code::end(code) {
        None if code == code::RUNNING || is_held => State::Running {
            holder: value::host_id(row, 20).ok().flatten().unwrap_or(HostId::from_bytes([0; 16])),
            until: Timestamp::EPOCH,
            due,
        },
        end => State::Finished { at: Timestamp::EPOCH, end: end.unwrap_or(End::Failed) },
    }
}

fn raw<T: FromSql>(row: &Row<'_>, column: usize) -> Option<T> {
    row.get::<_, Option<T>>(column).ok().flatten()
}

/// The terms of a job, or those of them by which it holds something: each that can be read, and what other tables say.
fn terms(conn: &Connection, row: &Row<'_>, seq: i64) -> Result<Terms> {
    if let Ok(terms) = value::terms(row, 8) {
        return Ok(terms.map(|terms| Terms::clone(&terms)).unwrap_or_default());
    }
    let fields: Map<String, Value> =
        raw::<String>(row, 8).and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let key = |sql: &str| -> Result<Option<Key>> {
        let key = conn.prepare_cached(sql)?.query_row([seq], |row| Ok(value::key(row, 0).ok())).optional()?;
        Ok(key.flatten())
    };
    let ordering = key(ORDERING)?.map(|key| OrderingKey { key, head: Head::default() });
    let limit = key(LIMIT)?.map(|key| LimitKey { key, most: None });
    let after = conn.prepare_cached(WAITS_FOR_JOBS)?.exists([seq])?;
    let after = after.then(|| AfterJobs { jobs: Vec::new(), if_failed: IfFailed::Cancel });
    Ok(Terms {
        tags: field(&fields, "tags").unwrap_or_default(),
        unique: field(&fields, "unique"),
        ordering: field(&fields, "ordering").or(ordering),
        limit: field(&fields, "limit").or(limit),
        share: field(&fields, "share").or(key(SHARE)?),
        after: field(&fields, "after").or(after),
        ..Terms::default()
    })
}

fn field<T: DeserializeOwned>(fields: &Map<String, Value>, name: &str) -> Option<T> {
    fields.get(name).and_then(|value| serde_json::from_value(value.clone()).ok())
}
