//! Limits of queues: they bound what a turn grants.

use std::collections::BTreeMap;

use tenure_core::{Bucket, Limit, Meter, QueueName, Timestamp};
use tenure_store::Fault;
use tokio_postgres::Row;

use crate::query::Query;
use crate::value;

/// What is running in a queue with a limit is counted, for nobody keeps it.
const READ: &str = "SELECT q.name, q.paused, q.limit_to, q.bucket, CASE WHEN q.limit_to IS NULL THEN 0 ELSE (
         SELECT coalesce(sum(running), 0) FROM tally
         WHERE lane = ANY (ARRAY(SELECT id FROM lane WHERE queue = q.name))) END
     FROM queue q WHERE q.name = ANY ($1)";
const KEEP: &str = "UPDATE queue SET bucket = $2 WHERE name = $1 AND bucket <> $2";
/// Plain claims from a queue share this lock, see the function `are_free`. Who sets a limit has it alone: whoever claims after
/// that knows the limit.
pub(crate) const LIMIT: &str =
    "SELECT pg_advisory_xact_lock(1413827147, hashtext(current_schema() || $1::text))";

/// A queue from which something is wanted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub paused: bool,
    pub meter: Meter,
    before: Bucket,
}

pub(super) fn read(names: &[QueueName]) -> Query {
    Query::new(READ).with(names.iter().map(|name| name.as_str().to_owned()).collect::<Vec<_>>())
}

pub(super) fn wanted(rows: &[Row]) -> Result<BTreeMap<QueueName, Wanted>, Fault> {
    let mut queues = BTreeMap::new();
    for row in rows {
        let limit: Limit = value::maybe_json(row, 2)?.unwrap_or_default();
        let bucket = Bucket(value::instant(row, 3)?);
        let meter = Meter { limit, running: running(row, 4), bucket };
        queues.insert(value::queue(row, 0)?, Wanted { paused: row.get(1), meter, before: bucket });
    }
    Ok(queues)
}

/// How many run, as counters tell.
pub(crate) fn running(row: &Row, column: usize) -> u32 {
    u32::try_from(row.get::<_, i64>(column).max(0)).unwrap_or(u32::MAX)
}

impl Wanted {
    pub(super) fn started(&mut self, now: Timestamp) {
        self.meter = self.meter.started(1, now);
    }

    pub(super) fn seen(&mut self, now: Timestamp) {
        self.meter = self.meter.seen(now);
    }

    /// What is to be kept of it, if anything.
    pub(super) fn keep(&self, name: &QueueName) -> Option<Query> {
        let keep = Query::new(KEEP).with(name.as_str().to_owned());
        (self.meter.bucket != self.before).then(|| keep.with(self.meter.bucket.0.as_micros()))
    }
}
