//! What was agreed about queues.

use tenure_core::{Bucket, Limit, Meter, QueueAgreed, QueueName};
use tenure_store::{Fault, QueueEdit, QueueEdited, QueueRemoved, QueueSeen};
use tokio_postgres::Row;

use crate::keyed::LIMIT;
use crate::link::Link;
use crate::query::Query;
use crate::transaction::Gate;
use crate::value;
use crate::writing::Writing;

/// Locked, so that who pauses it meanwhile waits. What runs is counted as for a claim.
pub(crate) const READ: &str =
    "SELECT q.paused, q.limit_to, q.terms, q.gone, q.bucket FROM queue q WHERE q.name = $1 FOR UPDATE";
/// Of one that was not there it fails if it is now: then it is looked at anew.
const MAKE: &str =
    "INSERT INTO queue (name, paused, limit_to, bucket, terms, max_depth) VALUES ($1, $2, $3, $4, $5, $6)";
const SET: &str =
    "UPDATE queue SET paused = $2, limit_to = $3, bucket = $4, terms = $5, max_depth = $6, gone = false
     WHERE name = $1";
pub(crate) const JOBS: &str = "SELECT coalesce(sum(coalesce(scheduled, 0) + coalesce(queued, 0) + coalesce(blocked, 0)
         + coalesce(running, 0) + coalesce(succeeded, 0) + coalesce(failed, 0) + coalesce(cancelled, 0)), 0) > 0
     FROM tally WHERE lane = ANY (ARRAY(SELECT id FROM lane WHERE queue = $1))";
const REMOVE: &str = "UPDATE queue SET paused = false, limit_to = NULL, bucket = 0, terms = NULL, max_depth = NULL, gone = true
     WHERE name = $1";

/// A queue as its row tells of it.
struct There {
    agreed: Option<QueueAgreed>,
    bucket: Bucket,
    has_row: bool,
}

/// Changes what was agreed about a queue, if it is as it was seen.
pub(crate) async fn edit(link: &mut Link, name: &QueueName, edit: &QueueEdit) -> Result<QueueEdited, Fault> {
    let (mut writing, rows) = Writing::begin(link, Gate::Keys, looks(name)).await?;
    let there = there(rows.last().and_then(|rows| rows.first()))?;
    if !edit.seen.is(there.agreed.as_ref()) {
        writing.roll_back().await?;
        return Ok(QueueEdited::Otherwise(there.agreed));
    }
    let before = there.agreed.clone().unwrap_or_default();
    let QueueAgreed { paused, limit, terms } = edit.after(before.clone());
    let meter = Meter { bucket: there.bucket, ..Meter::new(before.limit) };
    let bucket = meter.limited(limit, writing.now).bucket;
    let limit_to = if limit == Limit::default() { None } else { Some(value::to_json(&limit)?) };
    let text = if terms.are_default() { None } else { Some(value::to_json(&terms)?) };
    let set = Query::new(if there.has_row { SET } else { MAKE })
        .with(name.as_str().to_owned())
        .with(paused)
        .with(limit_to)
        .with(bucket.0.as_micros())
        .with(text)
        .with(terms.max_depth.map(value::signed));
    writing.write(set)?;
    writing.news.due |= before.limit != limit || (before.paused && !paused);
    writing.memory().lanes().meet_terms(name, !terms.are_default());
    writing.commit().await?;
    Ok(QueueEdited::Done { before: there.agreed })
}

/// Removes a queue in which no job is, if it is as it was seen.
pub(crate) async fn remove(
    link: &mut Link,
    name: &QueueName,
    seen: &QueueSeen,
) -> Result<QueueRemoved, Fault> {
    let (mut writing, rows) = Writing::begin(link, Gate::Keys, looks(name)).await?;
    let there = there(rows.last().and_then(|rows| rows.first()))?;
    if there.agreed.is_none() || !seen.is(there.agreed.as_ref()) {
        writing.roll_back().await?;
        return Ok(QueueRemoved::Otherwise(there.agreed));
    }
    let jobs = writing.read(vec![Query::new(JOBS).with(name.as_str().to_owned())]).await?;
    if jobs.iter().flatten().any(|row| row.get(0)) {
        writing.roll_back().await?;
        return Ok(QueueRemoved::NotEmpty);
    }
    writing.write(Query::new(REMOVE).with(name.as_str().to_owned()))?;
    writing.commit().await?;
    Ok(QueueRemoved::Done)
}

/// Whoever claims after the lock knows the limit.
fn looks(name: &QueueName) -> Vec<Query> {
    [LIMIT, READ].map(|sql| Query::new(sql).with(name.as_str().to_owned())).to_vec()
}

fn there(row: Option<&Row>) -> Result<There, Fault> {
    let Some(row) = row else { return Ok(There { agreed: None, bucket: Bucket::FULL, has_row: false }) };
    let agreed = QueueAgreed {
        paused: row.get(0),
        limit: value::maybe_json(row, 1)?.unwrap_or_default(),
        terms: value::maybe_json(row, 2)?.unwrap_or_default(),
    };
    let is_gone: bool = row.get(3);
    let bucket = Bucket(value::instant(row, 4)?);
    Ok(There { agreed: (!is_gone).then_some(agreed), bucket, has_row: true })
}
