//! What is kept of jobs with keys, and what a transaction has found out about keys.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{Block, Head, Key, QueueName, State};
use tokio_postgres::Row;
use uuid::Uuid;

use super::limits::LimitRow;
use crate::query::Query;
use crate::rows::{Kept, Stored};
use crate::sheet::Place;
use crate::{code, value};

/// How a job stands among those of its ordering key: those behind it go on without it …
const ASIDE: i16 = 0;
/// … or wait for it, though it has no use for the turn yet …
const IN_THE_WAY: i16 = 1;
/// … or it has the turn, or wants it.
pub(super) const READY: i16 = 2;

/// What a transaction has found out about keys, and what it will write of them.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    rows: BTreeMap<i64, Option<KeyedRow>>,
    /// Limits that were looked at: `None` if nobody has need of one any more.
    pub(super) limits: BTreeMap<Key, Option<LimitRow>>,
    /// Queues that have become fair.
    pub(super) fair: BTreeSet<QueueName>,
    /// Lanes that are known to have had jobs with limit keys.
    pub(super) limited: BTreeSet<i32>,
    /// Whether any job has come into line that was not there before.
    pub(super) has_newcomers: bool,
    /// Number of blocked jobs that limits have let into line.
    pub(super) let_in: u32,
    /// The jobs that had to leave their line.
    pub(super) shut: BTreeSet<i64>,
}

/// What is kept of a job with keys while it is unfinished.
#[derive(Debug, Clone)]
pub(super) struct KeyedRow {
    pub seq: i64,
    pub id: Uuid,
    pub lane: i32,
    pub at: i16,
    pub priority: i16,
    pub round: i64,
    pub due: i64,
    pub begun: bool,
    pub ordering: Option<String>,
    pub stand: Option<i16>,
    pub limit: Option<String>,
    pub fair_queue: Option<String>,
    pub share: String,
}

const KEEP: &str = "INSERT INTO keyed (seq, id, lane, at, priority, round, due, begun, ordering, stand, limit_key,
         fair_queue, share)
     SELECT * FROM unnest($1::bigint[], $2::uuid[], $3::int[], $4::smallint[], $5::smallint[], $6::bigint[],
         $7::bigint[], $8::boolean[], $9::text[], $10::smallint[], $11::text[], $12::text[], $13::text[])
     ON CONFLICT (seq) DO UPDATE SET
         lane = excluded.lane, at = excluded.at, priority = excluded.priority, round = excluded.round,
         due = excluded.due, begun = excluded.begun, stand = excluded.stand, fair_queue = excluded.fair_queue";
const DROP: &str = "DELETE FROM keyed WHERE seq = ANY ($1)";

impl Keys {
    pub(super) fn keep(&mut self, row: KeyedRow) {
        self.rows.insert(row.seq, Some(row));
    }

    pub(super) fn drop_row(&mut self, seq: i64) {
        self.rows.insert(seq, None);
    }

    /// The statements that write what is known of jobs; nothing of it is left.
    pub(crate) fn statements(&mut self) -> Vec<Query> {
        let rows = std::mem::take(&mut self.rows);
        let gone: Vec<i64> = rows.iter().filter(|(_, row)| row.is_none()).map(|(seq, _)| *seq).collect();
        let kept: Vec<KeyedRow> = rows.into_values().flatten().collect();
        let drop = (!gone.is_empty()).then(|| Query::new(DROP).with(gone));
        let keep = (!kept.is_empty()).then(|| columns(&kept));
        drop.into_iter().chain(keep).collect()
    }
}

fn columns(rows: &[KeyedRow]) -> Query {
    fn column<T>(rows: &[KeyedRow], of: impl Fn(&KeyedRow) -> T) -> Vec<T> {
        rows.iter().map(of).collect()
    }
    Query::new(KEEP)
        .with(column(rows, |row| row.seq))
        .with(column(rows, |row| row.id))
        .with(column(rows, |row| row.lane))
        .with(column(rows, |row| row.at))
        .with(column(rows, |row| row.priority))
        .with(column(rows, |row| row.round))
        .with(column(rows, |row| row.due))
        .with(column(rows, |row| row.begun))
        .with(column(rows, |row| row.ordering.clone()))
        .with(column(rows, |row| row.stand))
        .with(column(rows, |row| row.limit.clone()))
        .with(column(rows, |row| row.fair_queue.clone()))
        .with(column(rows, |row| row.share.clone()))
}

impl KeyedRow {
    /// Reads `keyed.*`.
    pub(super) fn read(row: &Row) -> Self {
        Self {
            seq: row.get("seq"),
            id: row.get("id"),
            lane: row.get("lane"),
            at: row.get("at"),
            priority: row.get("priority"),
            round: row.get("round"),
            due: row.get("due"),
            begun: row.get("begun"),
            ordering: row.get("ordering"),
            stand: row.get("stand"),
            limit: row.get("limit_key"),
            fair_queue: row.get("fair_queue"),
            share: row.get("share"),
        }
    }

    /// What is kept of an unfinished job.
    pub(super) fn of(stored: &Stored) -> Self {
        let Stored { job, lane, begun, kept, ties, .. } = stored;
        let terms = &job.terms;
        let due = match job.state {
            State::Waiting { due, .. } | State::Blocked { due, .. } | State::Running { due, .. } => due,
            State::Finished { at, .. } => at,
        };
        let ordering = terms.ordering.as_ref();
        Self {
            seq: value::signed(job.seq),
            id: value::of_job(job.id),
            lane: *lane,
            at: at(&job.state, *kept),
            priority: value::of_priority(job.priority),
            round: ties.round.unwrap_or(0),
            due: due.as_micros(),
            begun: *begun,
            ordering: ordering.map(|ordering| ordering.key.as_str().to_owned()),
            stand: ordering.map(|ordering| stand(&job.state, *kept, ordering.head)),
            limit: terms.limit.as_ref().map(|limit| limit.key.as_str().to_owned()),
            fair_queue: ties.round.map(|_| job.queue.as_str().to_owned()),
            share: share_of(stored),
        }
    }

    /// Its place in line.
    pub(super) fn place(&self) -> Place {
        Place {
            lane: self.lane,
            priority: self.priority,
            due: self.due,
            seq: self.seq,
            begun: self.begun,
            round: self.round,
            limited: self.limit.is_some(),
            gated: true,
        }
    }
}

/// The share of a job: empty if it has none.
pub(super) fn share_of(stored: &Stored) -> String {
    stored.job.terms.share.as_ref().map_or_else(String::new, |key| key.as_str().to_owned())
}

fn at(state: &State, kept: Kept) -> i16 {
    match (state, kept) {
        (State::Running { .. } | State::Finished { .. }, _) => code::AT_WORK,
        (State::Blocked { on: Block::Jobs, .. }, _) => code::AT_JOBS,
        (State::Blocked { on: Block::Order, .. }, _) => code::AT_ORDER,
        (State::Blocked { on: Block::Limit, .. }, _) => code::AT_LIMIT,
        (State::Waiting { .. }, Kept::InLine) => code::AT_LINE,
        (State::Waiting { .. }, _) => code::AT_DIARY,
    }
}

fn stand(state: &State, kept: Kept, head: Head) -> i16 {
    match (state, head) {
        (State::Blocked { on: Block::Jobs, .. }, Head::Block) => IN_THE_WAY,
        (State::Blocked { on: Block::Jobs, .. }, Head::StepAside) => ASIDE,
        (State::Waiting { .. }, Head::StepAside) if kept == Kept::InDiary => ASIDE,
        (
            State::Waiting { .. } | State::Blocked { .. } | State::Running { .. } | State::Finished { .. },
            _,
        ) => READY,
    }
}
