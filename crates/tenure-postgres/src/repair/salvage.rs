//! Reading as much of an unreadable job as is needed to let go of all that it holds.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tenure_core::{
    AfterJobs, Args, Block, End, Fence, Head, HostId, IfFailed, Job, Key, Kind, LimitKey, OrderingKey,
    QueueName, State, Terms, Timestamp, Why,
};
use tenure_store::{Fault, Values};
use tokio_postgres::Row;

use crate::fault::unreadable;
use crate::query::Query;
use crate::rows::{Kept, Stored, Ties, state};
use crate::{code, value};

/// The record of a job in other tables: its ordering key, limit key and share key, its priority and due, whether it is in line
/// and in the diary, where its keys keep it, whether it waits for jobs, its lane, and its round.
const PLACE: &str =
    "SELECT k.ordering, k.limit_key, nullif(k.share, ''), coalesce(r.priority, d.priority, k.priority),
         coalesce(r.due, d.due, k.due), r.seq IS NOT NULL, d.seq IS NOT NULL, k.at,
         EXISTS (SELECT FROM dependency WHERE waiter = $1), coalesce(r.lane, d.lane, k.lane, s.lane), r.round,
         EXISTS (SELECT FROM dependency WHERE other = $1)
     FROM (SELECT $1::bigint AS seq) j LEFT JOIN keyed k ON k.seq = j.seq LEFT JOIN ready r ON r.seq = j.seq
         LEFT JOIN later d ON d.seq = j.seq LEFT JOIN standing s ON s.seq = j.seq LIMIT 1";

/// The statement that reads what [`salvage`] needs besides the row of the job.
pub(super) fn place(seq: i64) -> Query {
    Query::new(PLACE).with(seq)
}

/// A job from a row of [`by_ids`](crate::rows::by_ids) and one of [`place`], with usual values where it cannot be read.
pub(super) fn salvage(row: &Row, place: &Row) -> Result<Stored, Fault> {
    let (in_line, in_diary): (bool, bool) = (place.get(5), place.get(6));
    let at: Option<i16> = place.get(7);
    let blocked = at.and_then(block_at);
    let due = place.get::<_, Option<i64>>(4).map(value::nearest);
    let state_code: Option<i16> = row.get(10);
    let begun: bool = row.get(33);
    let priority = value::priority(row, 5).ok();
    let priority =
        priority.or_else(|| place.get::<_, Option<i16>>(3).map(value::nearest_priority)).unwrap_or_default();
    let created = value::instant(row, 7).unwrap_or(Timestamp::EPOCH);
    let waits = in_line || in_diary || blocked.is_some();
    let waiting = |due: Timestamp| match blocked {
        Some(on) => State::Blocked { on, due, why: Why::Enqueued },
        None => State::Waiting { due, why: Why::Enqueued },
    };
    let usual_due = due.or_else(|| value::instant(row, 6).ok()).unwrap_or(created);
    let told = match state_code {
        Some(code) => state(row, code).ok(),
        None => Some(waiting(usual_due)),
    };
    let state = told.unwrap_or_else(|| match state_code {
        _ if waits => waiting(usual_due),
        Some(code::WAITING) => waiting(usual_due),
        code => ended_or_held(row, code, usual_due),
    });
    let kept = match state {
        State::Blocked { .. } => Kept::Behind,
        State::Waiting { .. } if in_line => Kept::InLine,
        State::Waiting { .. } => Kept::InDiary,
        // A grant or a receipt is not sought by its fence, which may be what cannot be read.
        State::Running { .. } | State::Finished { .. } => Kept::Nowhere,
    };
    let job = Job {
        seq: value::seq_at(row, 0)?,
        id: value::job_id(row, 1),
        queue: value::queue(row, 2).or_else(|_| QueueName::new("unreadable").map_err(unreadable))?,
        kind: value::kind(row, 3).or_else(|_| Kind::new("unreadable").map_err(unreadable))?,
        priority,
        created,
        terms: terms(row, place).into(),
        args: Args::stored(&[]),
        state,
        fence: value::fence_at(row, 11).unwrap_or(Fence::NONE),
        attempt: 0,
        delivery: 0,
        started: None,
        expires: None,
        holder: value::host_id(row, 20),
        failure: None,
        output: None,
        cancel: None,
        progress: None,
    };
    let round = if in_line { place.get::<_, Option<i64>>(10).filter(|round| *round > 0) } else { None };
    let (awaited, arriving) = (place.get(11), row.get(34));
    let ties = Ties { round, fair: row.get(30), bounded: row.get(31), awaited, arriving };
    let lane: i32 = row.get(4);
    Ok(Stored {
        job,
        lane: place.get::<_, Option<i32>>(9).unwrap_or(lane),
        begun,
        kept,
        ties,
        values: Values::Read,
    })
}

fn block_at(at: i16) -> Option<Block> {
    match at {
        code::AT_JOBS => Some(Block::Jobs),
        code::AT_ORDER => Some(Block::Order),
        code::AT_LIMIT => Some(Block::Limit),
        _ => None,
    }
}

/// The state of a job of whose standing something cannot be read and that does not wait.
fn ended_or_held(row: &Row, code: Option<i16>, due: Timestamp) -> State {
    let is_held = row.get::<_, Option<i64>>(16).is_some() && row.get::<_, Option<i64>>(18).is_none();
    let end = match code {
        Some(code::SUCCEEDED) => Some(End::Succeeded),
        Some(code::FAILED) => Some(End::Failed),
        Some(code::CANCELLED) => Some(End::Cancelled),
        _ => None,
    };
    match end {
        None if code == Some(code::RUNNING) || is_held => State::Running {
            holder: value::host_id(row, 20).unwrap_or(HostId::from_bytes([0; 16])),
            until: Timestamp::EPOCH,
            due,
        },
        end => State::Finished { at: Timestamp::EPOCH, end: end.unwrap_or(End::Failed) },
    }
}

/// The terms of a job, or those of them by which it holds something: each that can be read, and what other tables say.
fn terms(row: &Row, place: &Row) -> Terms {
    if let Ok(terms) = value::maybe_json(row, 8) {
        return terms.unwrap_or_default();
    }
    let fields: Map<String, Value> =
        row.get::<_, Option<&str>>(8).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let key = |column: usize| Key::new("key", place.get::<_, Option<&str>>(column)?).ok();
    let after = place.get::<_, bool>(8).then(|| AfterJobs { jobs: Vec::new(), if_failed: IfFailed::Cancel });
    Terms {
        tags: field(&fields, "tags").unwrap_or_default(),
        unique: field(&fields, "unique"),
        ordering: key(0).map(|key| OrderingKey { key, head: Head::default() }).or(field(&fields, "ordering")),
        limit: key(1).map(|key| LimitKey { key, most: None }).or(field(&fields, "limit")),
        share: key(2).or(field(&fields, "share")),
        after: field(&fields, "after").or(after),
        ..Terms::default()
    }
}

fn field<T: DeserializeOwned>(fields: &Map<String, Value>, name: &str) -> Option<T> {
    fields.get(name).and_then(|value| serde_json::from_value(value.clone()).ok())
}
