//! Whole jobs, between rows and the domain.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use tenure_core::{Args, Block, End, Fence, Job, JobId, Output, State, Why};
use tenure_store::{Fault, UnreadableJob, Values};
use tokio_postgres::Row;

use crate::fault::{unreadable, what_is_unreadable};
use crate::query::Query;
use crate::{code, value};

/// A job with what only this store knows of it.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub job: Job,
    /// The lane that it is in.
    pub lane: i32,
    /// Whether it has a row in `standing`.
    pub begun: bool,
    /// Where it waits, if it does.
    pub kept: Kept,
    pub ties: Ties,
    /// The values that were read. A job that was read without them keeps its stored result.
    pub values: Values,
}

/// What ties a job to others.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ties {
    /// Its round, if it is in the line of a fair queue and takes a round of its share.
    pub round: Option<i64>,
    /// Whether its queue has fair shares.
    pub fair: bool,
    /// Whether its queue has a limit of how many run at once.
    pub bounded: bool,
    /// Whether another job waits for it, or did.
    pub awaited: bool,
    /// Is true if its arrival is not done yet: no place or counter has the job.
    pub arriving: bool,
}

impl Stored {
    /// Whether where it waits depends on other jobs, or may do.
    pub(crate) fn is_keyed(&self) -> bool {
        self.ties.fair || self.job.terms.are_gated()
    }
}

/// Where a job is kept, besides where it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// A turn finds it.
    InLine,
    /// Its time has to come first. A job that came due stays in the diary until a turn finds it there.
    InDiary,
    /// It is behind a gate, or in line without room.
    Behind,
    /// It runs, and has no standing: what was granted with it tells.
    InGrant,
    /// It has succeeded, and has no standing: what has ended with it tells.
    InReceipt,
    /// It does not wait, and has a standing.
    Nowhere,
}

/// An error names a column by its alias here. One snapshot, so a job has a standing, a grant, a receipt, or none of them.
const BY_IDS: &str = r#"SELECT j.seq AS "job.seq", j.id, l.queue AS "lane.queue", l.kind AS "lane.kind", j.lane, j.priority AS "job.priority",
         coalesce(j.due, j.created) AS "job.due", j.created AS "job.created", j.terms AS "job.terms", j.args,
         CASE WHEN g.fence IS NOT NULL THEN 1::smallint WHEN r.fence IS NOT NULL THEN 2::smallint ELSE s.state END,
         coalesce(s.fence, g.fence, r.fence) AS "standing.fence", coalesce(s.attempt, 1) AS "standing.attempt",
         coalesce(s.delivery, 1) AS "standing.delivery", s.why AS "standing.why", s.due AS "standing.due",
         coalesce(s.until, g.until) AS "standing.until", coalesce(s.started, g.started, r.started) AS "standing.started",
         coalesce(s.ended, r.ended) AS "standing.ended", coalesce(s.expires, r.expires) AS "standing.expires",
         coalesce(s.holder, g.holder, r.holder), s.failure AS "standing.failure", s.output, s.place,
         s.cancel AS "standing.cancel", s.progress AS "standing.progress",
         coalesce(s.state, 0) = 0 AND EXISTS (SELECT FROM ready r WHERE r.lane = j.lane AND r.priority = j.priority
             AND r.round = 0 AND r.due = coalesce(s.due, j.due, j.created) AND r.seq = j.seq),
         k.at, k.round, k.fair_queue IS NOT NULL, coalesce(l.fair, false), coalesce(l.limit_to LIKE '%most%', false),
         coalesce(s.awaited, false), s.seq IS NOT NULL,
         coalesce(s.state, 0) = 0 AND g.fence IS NULL AND r.fence IS NULL AND k.at IS NULL
             AND coalesce((SELECT true FROM arrival a WHERE a.seq = j.seq AND a.what = 0), false),
         true AS has_values
     FROM unnest($1::uuid[]) u (id) CROSS JOIN LATERAL (SELECT * FROM job WHERE id = u.id LIMIT 1) j
     LEFT JOIN LATERAL (SELECT n.queue, n.kind, q.fair, q.limit_to FROM lane n
         LEFT JOIN LATERAL (SELECT fair, limit_to FROM queue WHERE name = n.queue LIMIT 1) q ON true
         WHERE n.id = j.lane LIMIT 1) l ON true
     LEFT JOIN LATERAL (SELECT * FROM standing WHERE seq = j.seq LIMIT 1) s ON true
     LEFT JOIN LATERAL (SELECT at, round, fair_queue FROM keyed WHERE seq = j.seq LIMIT 1) k ON true
     LEFT JOIN LATERAL (SELECT * FROM granted
         WHERE s.seq IS NULL AND lane = j.lane AND block = j.seq >> 8 AND has_bit(seqs, j.seq) LIMIT 1) g ON true
     LEFT JOIN LATERAL (SELECT * FROM receipt WHERE s.seq IS NULL AND g.fence IS NULL
         AND lane = j.lane AND block = j.seq >> 8 AND has_bit(seqs, j.seq) LIMIT 1) r ON true"#;

/// Whoever has checked in under an attempt keeps nobody from renewing or settling it: this is not `FOR UPDATE`.
const GRANTS: &str = "SELECT FROM granted WHERE fence = ANY (ARRAY(SELECT g.fence
         FROM unnest($1::uuid[]) u (id) CROSS JOIN LATERAL (SELECT seq, lane FROM job WHERE id = u.id LIMIT 1) j
         CROSS JOIN LATERAL (SELECT fence FROM granted
             WHERE lane = j.lane AND block = j.seq >> 8 AND has_bit(seqs, j.seq) LIMIT 1) g))
     ORDER BY fence FOR NO KEY UPDATE";
const STANDINGS: &str = "SELECT FROM standing WHERE seq = ANY (ARRAY(SELECT j.seq
         FROM unnest($1::uuid[]) u (id) CROSS JOIN LATERAL (SELECT seq FROM job WHERE id = u.id LIMIT 1) j))
     ORDER BY seq FOR NO KEY UPDATE";

/// [`BY_IDS`] without args and results, so that PostgreSQL neither reads nor sends their bytes.
static BY_IDS_WITHOUT_VALUES: LazyLock<String> = LazyLock::new(|| {
    let sql =
        BY_IDS.replace(" j.args,", " ''::bytea,").replace("s.output, s.place,", "NULL::bytea, NULL::text,");
    sql.replace("true AS has_values", "false AS has_values")
});

/// The jobs with these ids, with these values.
pub(crate) fn by_ids_with(values: Values, ids: impl IntoIterator<Item = JobId>) -> Query {
    let sql = match values {
        Values::Read => BY_IDS,
        Values::Omitted => BY_IDS_WITHOUT_VALUES.as_str(),
    };
    Query::new(sql).with(ids.into_iter().map(value::of_job).collect::<Vec<_>>())
}

/// The jobs with these ids, with args and results: for a job, or for a few.
pub(crate) fn by_ids(ids: impl IntoIterator<Item = JobId>) -> Query {
    by_ids_with(Values::Read, ids)
}

/// Keeps others from changing these jobs until the end of the transaction. Whoever changes a job that waits has it
/// locked first, then its place, then its grant, then its standing; claims and settlements lock the last three in passing.
pub(crate) fn lock(ids: &[JobId]) -> Vec<Query> {
    const JOBS: &str = "SELECT FROM job WHERE id = ANY ($1) ORDER BY id FOR UPDATE";
    const LATER: &str = "SELECT FROM later WHERE ctid = ANY (ARRAY(SELECT d.ctid
             FROM unnest($1::uuid[]) u (id) CROSS JOIN LATERAL (SELECT * FROM job WHERE id = u.id LIMIT 1) j
             LEFT JOIN LATERAL (SELECT due FROM standing WHERE seq = j.seq LIMIT 1) s ON true
             CROSS JOIN LATERAL (SELECT ctid FROM later
                 WHERE due = coalesce(s.due, j.due, j.created) AND seq = j.seq LIMIT 1) d)) FOR UPDATE";
    const READY: &str = "SELECT FROM ready WHERE ctid = ANY (ARRAY(SELECT r.ctid
             FROM unnest($1::uuid[]) u (id) CROSS JOIN LATERAL (SELECT * FROM job WHERE id = u.id LIMIT 1) j
             LEFT JOIN LATERAL (SELECT due FROM standing WHERE seq = j.seq LIMIT 1) s ON true
             CROSS JOIN LATERAL (SELECT ctid FROM ready WHERE lane = j.lane AND priority = j.priority
                 AND round = coalesce((SELECT round FROM keyed WHERE seq = j.seq), 0) AND due = coalesce(s.due, j.due, j.created) AND seq = j.seq LIMIT 1) r)) FOR UPDATE";
    let ids: Vec<_> = ids.iter().copied().map(value::of_job).collect();
    [JOBS, LATER, READY, GRANTS, STANDINGS].into_iter().map(|sql| Query::new(sql).with(ids.clone())).collect()
}

/// Keeps others from changing how these jobs run until the end of the transaction. A job goes from its grant to a
/// standing and never back, so who looks in this order misses none.
pub(crate) fn lock_running(ids: &[JobId]) -> Vec<Query> {
    let ids: Vec<_> = ids.iter().copied().map(value::of_job).collect();
    [GRANTS, STANDINGS].into_iter().map(|sql| Query::new(sql).with(ids.clone())).collect()
}

/// Reads a row of a job.
pub(crate) fn stored(row: &Row) -> Result<Stored, Fault> {
    let id = value::job_id(row, 1);
    read(row, id).map_err(|fault| Fault::Unavailable(format!("job {id}: {fault}")))
}

/// The outcome of looking at a job.
pub(crate) type Looked = Result<Job, UnreadableJob>;

/// Returns rows of jobs by their ids. Each is decoded when its turn comes, since a page may end before it.
pub(crate) fn by_id(rows: Vec<Row>) -> BTreeMap<JobId, Row> {
    rows.into_iter().map(|row| (value::job_id(&row, 1), row)).collect()
}

/// Reads a row of a job, or what is known of one that cannot be read.
pub(crate) fn look(row: &Row) -> (JobId, Looked) {
    let id = value::job_id(row, 1);
    let looked = read(row, id).map(|stored| stored.job).map_err(|fault| UnreadableJob {
        seq: value::seq_at(row, 0).unwrap_or(0),
        id: Some(id),
        queue: value::queue(row, 2).ok(),
        kind: value::kind(row, 3).ok(),
        reason: what_is_unreadable(&fault),
    });
    (id, looked)
}

fn read(row: &Row, id: JobId) -> Result<Stored, Fault> {
    let (state_code, begun): (Option<i16>, bool) = (row.get(10), row.get(33));
    let was_granted = state_code.is_some();
    let job = Job {
        seq: value::seq_at(row, 0)?,
        id,
        queue: value::queue(row, 2)?,
        kind: value::kind(row, 3)?,
        priority: value::priority(row, 5)?,
        created: value::instant(row, 7)?,
        terms: value::maybe_json(row, 8)?.map(std::sync::Arc::new).unwrap_or_default(),
        args: Args::stored(row.get(9)),
        state: match state_code {
            Some(code) => state(row, code)?,
            None => waiting(row, value::instant(row, 6)?, Why::Enqueued),
        },
        fence: if was_granted { value::fence_at(row, 11)? } else { Fence::NONE },
        attempt: if was_granted { value::number_at(row, 12)? } else { 0 },
        delivery: if was_granted { value::number_at(row, 13)? } else { 0 },
        started: value::maybe_instant(row, 17)?,
        expires: value::maybe_instant(row, 19)?,
        holder: value::host_id(row, 20),
        failure: value::maybe_json(row, 21)?,
        output: output(row),
        cancel: value::maybe_json(row, 24)?,
        progress: value::maybe_json(row, 25)?,
    };
    let at: Option<i16> = row.get(27);
    let kept = match job.state {
        State::Blocked { .. } => Kept::Behind,
        State::Waiting { .. } if at == Some(code::AT_LINE) || (at.is_none() && row.get(26)) => Kept::InLine,
        State::Waiting { .. } => Kept::InDiary,
        State::Running { .. } if !begun => Kept::InGrant,
        State::Finished { .. } if !begun => Kept::InReceipt,
        State::Running { .. } | State::Finished { .. } => Kept::Nowhere,
    };
    let takes_round = kept == Kept::InLine || at == Some(code::AT_LIMIT);
    let round: Option<i64> = if takes_round && row.get(29) { row.get(28) } else { None };
    let (awaited, arriving) = (row.get(32), row.get(34));
    let ties = Ties { round, fair: row.get(30), bounded: row.get(31), awaited, arriving };
    let values = if row.get(35) { Values::Read } else { Values::Omitted };
    Ok(Stored { job, lane: row.get(4), begun, kept, ties, values })
}

fn waiting(row: &Row, due: tenure_core::Timestamp, why: Why) -> State {
    let blocked = |on| State::Blocked { on, due, why };
    match row.get::<_, Option<i16>>(27) {
        Some(code::AT_JOBS) => blocked(Block::Jobs),
        Some(code::AT_ORDER) => blocked(Block::Order),
        Some(code::AT_LIMIT) => blocked(Block::Limit),
        Some(_) | None => State::Waiting { due, why },
    }
}

/// The state of a job that is not told of by its own row alone.
pub(crate) fn state(row: &Row, code: i16) -> Result<State, Fault> {
    let finished = |end: End| Ok(State::Finished { at: value::instant(row, 18)?, end });
    // A job that waits as it was created has no due of its own.
    let due = || value::maybe_instant(row, 15)?.map_or_else(|| value::instant(row, 6), Ok);
    match code {
        code::WAITING => {
            Ok(waiting(row, due()?, value::maybe_coded(row, 14, code::why)?.unwrap_or(Why::Enqueued)))
        }
        code::RUNNING => Ok(State::Running {
            holder: value::host_id(row, 20)
                .ok_or_else(|| unreadable("column standing.holder: a running job without a holder"))?,
            until: value::maybe_instant(row, 16)?
                .ok_or_else(|| unreadable("column standing.until: a running job without an end"))?,
            due: due()?,
        }),
        code::SUCCEEDED => finished(End::Succeeded),
        code::FAILED => finished(End::Failed),
        code::CANCELLED => finished(End::Cancelled),
        other => Err(unreadable(format_args!("column standing.state: unknown state {other}"))),
    }
}

fn output(row: &Row) -> Option<Output> {
    let value: Option<Vec<u8>> = row.get(22);
    value.map(|value| Output { value, place: row.get(23) })
}

#[cfg(test)]
pub(crate) const STATEMENTS: [&str; 3] = [BY_IDS, GRANTS, STANDINGS];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_without_values_is_read_without_their_columns() {
        let sql = &*BY_IDS_WITHOUT_VALUES;
        assert!(!sql.contains("j.args") && !sql.contains("s.output") && !sql.contains("s.place"), "{sql}");
        assert!(sql.contains("false AS has_values"), "{sql}");
    }
}
