//! Storing jobs: one statement over arrays, whatever their number. It does not look for doubles; an index does.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{Due, NewJob};
use tenure_store::Fault;

use crate::memory::Memory;
use crate::query::Query;
use crate::value;

/// For jobs with default terms that are due at once.
const PUT_NOW: &str = "WITH n AS MATERIALIZED (SELECT coalesce($5::bigint, micros()) AS now
         WHERE surely(NOT EXISTS (SELECT FROM queue WHERE name = ANY ($8::text[]) AND fair))),
     t AS (INSERT INTO tally (lane, queued) SELECT * FROM unnest($6::int[], $7::int[])),
     j AS (INSERT INTO job (id, lane, priority, created, args)
         SELECT u.id, u.lane, u.priority, n.now, u.args
         FROM n CROSS JOIN unnest($1::uuid[], $2::int[], $3::smallint[], $4::bytea[]) u (id, lane, priority, args)
         RETURNING seq, created, lane, priority)
     INSERT INTO ready (due, round, seq, lane, priority, begun) SELECT created, 0, seq, lane, priority, false FROM j";
/// For jobs that are to be given their places by themselves.
const PUT_ALONE: &str = "INSERT INTO job (id, lane, priority, created, due, terms, args)
     SELECT u.id, u.lane, u.priority, $5::bigint, coalesce(u.at, $5::bigint + u.wait), u.terms, u.args
     FROM unnest($1::uuid[], $2::int[], $3::smallint[], $4::bytea[], $6::text[], $7::bigint[], $8::bigint[])
         u (id, lane, priority, args, terms, at, wait)
     RETURNING id, seq";
/// For others. `at` is an instant, `wait` how long from now; neither of them means at once.
const PUT: &str = "WITH n AS MATERIALIZED (SELECT coalesce($5::bigint, micros()) AS now
         WHERE surely(NOT EXISTS (SELECT FROM queue WHERE name = ANY ($9::text[]) AND fair))),
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

/// Whether these jobs ask nothing of those that are there, as far as is known, and wait in lanes that are known.
pub(super) fn is_plain(memory: &Memory, jobs: &[NewJob]) -> bool {
    let lanes = memory.lanes();
    jobs.iter().all(|job| {
        job.terms.unique.is_none()
            && job.terms.tags.is_empty()
            && !job.terms.are_gated()
            && lanes.find(&job.queue, &job.kind).is_some()
            && !lanes.is_fair(&job.queue)
    })
}

/// The statement that stores these jobs, in lanes that are known.
pub(super) fn statement(memory: &Memory, jobs: &[&NewJob], now: Option<i64>) -> Result<Query, Fault> {
    let lanes = memory.lanes();
    let of = |job: &&NewJob| lanes.find(&job.queue, &job.kind);
    let lanes = jobs.iter().map(of).collect::<Option<Vec<i32>>>();
    let lanes = lanes.ok_or_else(|| Fault::Unavailable("a lane was forgotten; try again".to_owned()))?;
    if jobs.iter().all(|job| job.due == Due::Now && job.terms.are_default()) {
        let mut counts: BTreeMap<i32, i32> = BTreeMap::new();
        lanes.iter().for_each(|lane| *counts.entry(*lane).or_default() += 1);
        let query = columns(PUT_NOW, jobs, lanes, now);
        return Ok(query
            .with(counts.keys().copied().collect::<Vec<_>>())
            .with(counts.into_values().collect::<Vec<_>>())
            .with(queues_of(jobs)));
    }
    put(jobs, lanes, now)
}

/// The statement that stores these jobs in these lanes, and answers the id and the seq of each.
pub(super) fn put(jobs: &[&NewJob], lanes: Vec<i32>, now: Option<i64>) -> Result<Query, Fault> {
    Ok(columns_of_all(PUT, jobs, lanes, now)?.with(queues_of(jobs)))
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
pub(super) fn join(memory: &Memory, jobs: &[&NewJob]) {
    let (lanes, mut marks) = (memory.lanes(), memory.marks());
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
        .with(jobs.iter().map(|job| job.args.as_bytes().to_vec()).collect::<Vec<_>>())
        .with(now)
}
