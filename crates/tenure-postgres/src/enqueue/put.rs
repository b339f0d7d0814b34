//! Storing jobs: one statement over arrays, whatever their number. It does not look for doubles; an index does.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{Due, Kind, NewJob, QueueName};
use tenure_store::Fault;

use crate::listening;
use crate::memory::{Memory, Told};
use crate::query::Query;
use crate::value;

// True for a queue that treats new jobs with default terms specially. This program's copy of its settings may be old.
#[cfg(not(mutant = "postgres-enqueue-skips-terms"))]
macro_rules! is_special {
    () => {
        "(fair OR terms IS NOT NULL OR gone)"
    };
}
#[cfg(mutant = "postgres-enqueue-skips-terms")]
macro_rules! is_special {
    () => {
        "(fair OR gone)"
    };
}

/// For jobs of one lane and one priority that are due at once and have default terms. With a hint (`$7`) they are there, and others are
/// told of them, before they [last](LASTS). Whoever else tells something right now, in a commit that takes long, keeps them from being
/// stored so.
const PUT_ALIKE: &str = concat!(
    "WITH n AS MATERIALIZED (SELECT coalesce($3::bigint, micros()) AS now
         WHERE NOT EXISTS (SELECT FROM queue WHERE name = $6 AND ",
    is_special!(),
    ") OR surely(false)),
     t AS (INSERT INTO tally (lane, queued) VALUES ($4, cardinality($1::uuid[]))),
     j AS (INSERT INTO job (id, lane, priority, created, args)
         SELECT u.id, $4, $5, n.now, u.args FROM n CROSS JOIN unnest($1::uuid[], $2::bytea[]) u (id, args)
         RETURNING seq, created),
     r AS (INSERT INTO ready (due, round, seq, lane, priority, begun) SELECT created, 0, seq, $4, $5, false FROM j)
     SELECT set_config('synchronous_commit', 'off', true), set_config('lock_timeout', '10ms', true),
         pg_notify(current_schema()::text || ':tenure', $7)
     WHERE $7::text IS NOT NULL"
);
/// Lasts only when everything does that was committed before it: the log is written from the front. The row counts nothing.
const LASTS: &str = "INSERT INTO tally (lane, queued) VALUES ($1, 0)";
/// For jobs with default terms that are due at once.
const PUT_NOW: &str = concat!(
    "WITH n AS MATERIALIZED (SELECT coalesce($5::bigint, micros()) AS now
         WHERE surely(NOT EXISTS (SELECT FROM queue WHERE name = ANY ($8::text[]) AND ",
    is_special!(),
    "))),
     t AS (INSERT INTO tally (lane, queued) SELECT * FROM unnest($6::int[], $7::int[])),
     j AS (INSERT INTO job (id, lane, priority, created, args)
         SELECT u.id, u.lane, u.priority, n.now, u.args
         FROM n CROSS JOIN unnest($1::uuid[], $2::int[], $3::smallint[], $4::bytea[]) u (id, lane, priority, args)
         RETURNING seq, created, lane, priority)
     INSERT INTO ready (due, round, seq, lane, priority, begun) SELECT created, 0, seq, lane, priority, false FROM j"
);
/// For jobs that are to be given their places by themselves.
const PUT_ALONE: &str = "INSERT INTO job (id, lane, priority, created, due, terms, args)
     SELECT u.id, u.lane, u.priority, $5::bigint, coalesce(u.at, $5::bigint + u.wait), u.terms, u.args
     FROM unnest($1::uuid[], $2::int[], $3::smallint[], $4::bytea[], $6::text[], $7::bigint[], $8::bigint[])
         u (id, lane, priority, args, terms, at, wait)
     RETURNING id, seq";
/// For others, and the only one for queues whose terms were asked (`$10`). `at` is an instant, `wait` how long from now; neither of them means at once.
const PUT: &str = "WITH n AS MATERIALIZED (SELECT coalesce($5::bigint, micros()) AS now
         WHERE surely(NOT EXISTS (SELECT FROM queue WHERE name = ANY ($9::text[])
             AND (fair OR NOT $10::boolean AND (terms IS NOT NULL OR gone))))),
     j AS (INSERT INTO job (id, lane, priority, created, due, terms, args)
         SELECT u.id, u.lane, u.priority, n.now, coalesce(u.at, n.now + u.wait), u.terms, u.args
         FROM n CROSS JOIN unnest($1::uuid[], $2::int[], $3::smallint[], $4::bytea[], $6::text[], $7::bigint[],
             $8::bigint[]) u (id, lane, priority, args, terms, at, wait)
         RETURNING seq, created, coalesce(due, created) AS due, id, lane, priority),
     r AS (INSERT INTO ready (due, round, seq, lane, priority, begun)
         SELECT due, 0, seq, lane, priority, false FROM j WHERE due <= created),
     l AS (INSERT INTO later (due, seq, lane, priority, begun, gated)
         SELECT due, seq, lane, priority, false, false FROM j WHERE due > created),
     t AS (INSERT INTO tally (lane, scheduled, queued)
         SELECT lane, count(*) FILTER (WHERE due > created), count(*) FILTER (WHERE due <= created) FROM j GROUP BY lane)
     SELECT id, seq FROM j";

/// What is sent to store jobs.
pub(super) struct Put {
    /// The first stores them.
    pub queries: Vec<Query>,
    /// Whether others are told by that.
    pub are_told: bool,
    /// With which answer they are there for good. They may be granted before, to nobody who hears of it before they are.
    pub lasts_at: usize,
}

/// Whether it was asked what was agreed about the queues of jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Terms {
    /// It was, and they comply with it.
    Asked,
    /// It was not: nothing is stored in a queue about which anything was agreed that concerns new jobs.
    Unasked,
}

/// Whether these jobs ask nothing of those that are there, as far as is known, and wait in lanes that are known.
pub(super) fn is_plain(memory: &Memory, jobs: &[NewJob]) -> bool {
    let lanes = memory.lanes();
    let may_wait =
        |job: &NewJob| lanes.find(&job.queue, &job.kind).is_some() && !lanes.is_special(&job.queue);
    let mut last: Option<&NewJob> = None;
    jobs.iter().all(|job| {
        let is_known = last.replace(job).is_some_and(|last| are_of_one_lane(last, job));
        asks_nothing(job) && (is_known || may_wait(job))
    })
}

/// The lanes of these jobs that are not known, if that is all that keeps them from being plain.
pub(super) fn new_lanes(memory: &Memory, jobs: &[NewJob]) -> Option<Vec<(QueueName, Kind)>> {
    let lanes = memory.lanes();
    if !jobs.iter().all(|job| asks_nothing(job) && !lanes.is_special(&job.queue)) {
        return None;
    }
    let is_new = |job: &&NewJob| lanes.find(&job.queue, &job.kind).is_none();
    let new: BTreeSet<_> =
        jobs.iter().filter(is_new).map(|job| (job.queue.clone(), job.kind.clone())).collect();
    Some(new.into_iter().collect())
}

fn asks_nothing(job: &NewJob) -> bool {
    job.terms.unique.is_none() && job.terms.tags.is_empty() && !job.terms.are_gated()
}

fn are_of_one_lane(one: &NewJob, other: &NewJob) -> bool {
    one.kind == other.kind && one.queue == other.queue
}

/// The lanes of these jobs, if all are known. Most are of the same lane as the one before.
fn lanes_of(memory: &Memory, jobs: &[&NewJob]) -> Option<Vec<i32>> {
    let known = memory.lanes();
    let mut lanes = Vec::with_capacity(jobs.len());
    let mut last: Option<&NewJob> = None;
    for job in jobs {
        let lane = match (last.replace(job), lanes.last()) {
            (Some(last), Some(lane)) if are_of_one_lane(last, job) => *lane,
            _ => known.find(&job.queue, &job.kind)?,
        };
        lanes.push(lane);
    }
    Some(lanes)
}

/// What stores these jobs, in lanes that are known, and has others told of them if it `speaks` and nobody has just spoken.
pub(super) fn statements(
    memory: &Memory,
    jobs: &[&NewJob],
    now: Option<i64>,
    speaks: bool,
) -> Result<Put, Fault> {
    let lanes = lanes_of(memory, jobs);
    let lanes = lanes.ok_or_else(|| Fault::Unavailable("a lane was removed; retry".to_owned()))?;
    let hint = || if speaks { memory.speak_up(Told::DUE) } else { None };
    if let Some((query, lane)) = alike(jobs, &lanes, now) {
        let hint = hint();
        let last = hint.is_some().then(|| lasts(lane));
        let are_told = last.is_some();
        let queries = std::iter::once(query.with(hint)).chain(last).collect();
        return Ok(Put { queries, are_told, lasts_at: usize::from(are_told) });
    }
    let put = statement(jobs, lanes, now)?;
    let hint = hint().map(listening::tell);
    let are_told = hint.is_some();
    Ok(Put { queries: std::iter::once(put).chain(hint).collect(), are_told, lasts_at: 0 })
}

/// What waits until all lasts that is in this lane now.
pub(super) fn lasts(lane: i32) -> Query {
    Query::new(LASTS).with(lane)
}

/// The statement that stores these jobs in these lanes.
fn statement(jobs: &[&NewJob], lanes: Vec<i32>, now: Option<i64>) -> Result<Query, Fault> {
    if jobs.iter().all(|job| is_ordinary(job)) {
        let mut counts: BTreeMap<i32, i32> = BTreeMap::new();
        lanes.iter().for_each(|lane| *counts.entry(*lane).or_default() += 1);
        let query = columns(PUT_NOW, jobs, lanes, now);
        return Ok(query
            .with(counts.keys().copied().collect::<Vec<_>>())
            .with(counts.into_values().collect::<Vec<_>>())
            .with(queues_of(jobs)));
    }
    put(jobs, lanes, now, Terms::Unasked)
}

/// Whether it is due at once and has default terms.
pub(crate) fn is_ordinary(job: &NewJob) -> bool {
    job.due == Due::Now && job.terms.are_default()
}

/// The statement for ordinary jobs of one lane and one priority, without its hint, and their lane; `None` if they are not.
fn alike(jobs: &[&NewJob], lanes: &[i32], now: Option<i64>) -> Option<(Query, i32)> {
    let (first, lane) = (jobs.first()?, *lanes.first()?);
    let is_alike =
        |(job, of): (&&NewJob, &i32)| is_ordinary(job) && *of == lane && job.priority == first.priority;
    if !jobs.iter().zip(lanes).all(is_alike) {
        return None;
    }
    let query = Query::new(PUT_ALIKE)
        .with(jobs.iter().map(|job| value::of_job(job.id)).collect::<Vec<_>>())
        .with(jobs.iter().map(|job| value::Encoded(job.args.clone())).collect::<Vec<_>>())
        .with(now)
        .with(lane)
        .with(value::of_priority(first.priority))
        .with(first.queue.as_str().to_owned());
    Some((query, lane))
}

/// The statement that stores these jobs in these lanes, and answers the id and the seq of each.
pub(super) fn put(jobs: &[&NewJob], lanes: Vec<i32>, now: Option<i64>, terms: Terms) -> Result<Query, Fault> {
    Ok(columns_of_all(PUT, jobs, lanes, now)?.with(queues_of(jobs)).with(terms == Terms::Asked))
}

/// The statement that stores these jobs in these lanes, gives them no places, and answers the id and the seq of each.
pub(super) fn put_alone(jobs: &[&NewJob], lanes: Vec<i32>, now: i64) -> Result<Query, Fault> {
    columns_of_all(PUT_ALONE, jobs, lanes, Some(now))
}

fn queues_of(jobs: &[&NewJob]) -> Vec<String> {
    let queues: BTreeSet<&str> = jobs.iter().map(|job| job.queue.as_str()).collect();
    queues.into_iter().map(str::to_owned).collect()
}

fn columns_of_all(
    sql: &'static str,
    jobs: &[&NewJob],
    lanes: Vec<i32>,
    now: Option<i64>,
) -> Result<Query, Fault> {
    let terms = jobs.iter().map(|job| {
        let are_default = job.terms.are_default();
        if are_default { Ok(None) } else { value::to_json(&*job.terms).map(Some) }
    });
    let terms = terms.collect::<Result<Vec<_>, _>>()?;
    let (at, wait): (Vec<Option<i64>>, Vec<Option<i64>>) = jobs
        .iter()
        .map(|job| match job.due {
            Due::Now => (None, None),
            Due::At(at) => (Some(at.as_micros()), None),
            Due::In(span) => (None, Some(value::micros(span))),
        })
        .unzip();
    Ok(columns(sql, jobs, lanes, now).with(terms).with(at).with(wait))
}

/// Notes where these jobs stand among those that are claimed.
pub(super) fn join<'j>(memory: &Memory, jobs: impl Iterator<Item = &'j NewJob>) {
    let (lanes, mut marks) = (memory.lanes(), memory.marks());
    if marks.are_none() {
        return;
    }
    for job in jobs {
        let due = match job.due {
            Due::Now | Due::In(_) => None,
            Due::At(at) => Some(at.as_micros()),
        };
        if let Some(lane) = lanes.find(&job.queue, &job.kind) {
            marks.joined(lane, value::of_priority(job.priority), due);
        }
    }
}

fn columns(sql: &'static str, jobs: &[&NewJob], lanes: Vec<i32>, now: Option<i64>) -> Query {
    Query::new(sql)
        .with(jobs.iter().map(|job| value::of_job(job.id)).collect::<Vec<_>>())
        .with(lanes)
        .with(jobs.iter().map(|job| value::of_priority(job.priority)).collect::<Vec<_>>())
        .with(jobs.iter().map(|job| value::Encoded(job.args.clone())).collect::<Vec<_>>())
        .with(now)
}
