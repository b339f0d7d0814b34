//! Taking in all that is not a job.

use tenure_core::{LedgerEntry, Limit, Timestamp};
use tenure_store::{CopiedQueue, Fault, KeyHold};

use crate::query::Query;
use crate::writing::Writing;
use crate::{ledger, value};

const QUEUE: &str = "INSERT INTO queue (name, paused, limit_to, bucket, terms, max_depth) VALUES ($1, $2, $3, $4, $5, $6)
     ON CONFLICT (name) DO UPDATE SET paused = excluded.paused, limit_to = excluded.limit_to, bucket = excluded.bucket,
         terms = excluded.terms, max_depth = excluded.max_depth";
const KEY: &str = "INSERT INTO unique_key (key, seq, id, until) VALUES ($1, $2, $3, $4)";
/// A name of which only the ledger tells any more.
const FORGOTTEN: &str = "INSERT INTO lease (name, fence, forgotten, freed) VALUES ($1, $2, true, $3)
     ON CONFLICT (name) DO UPDATE SET fence = greatest(lease.fence, excluded.fence) WHERE lease.forgotten";

pub(super) fn queue(writing: &mut Writing<'_>, queue: &CopiedQueue) -> Result<(), Fault> {
    let CopiedQueue { name, paused, limit, bucket, terms } = queue;
    let limit = if *limit == Limit::default() { None } else { Some(value::to_json(limit)?) };
    let query = Query::new(QUEUE).with(name.as_str().to_owned()).with(*paused).with(limit);
    let text = if terms.are_default() { None } else { Some(value::to_json(terms)?) };
    let depth = terms.max_depth.map(value::signed);
    writing.write(query.with(bucket.0.as_micros()).with(text).with(depth))
}

pub(super) fn key(writing: &mut Writing<'_>, hold: &KeyHold) -> Result<(), Fault> {
    let query = Query::new(KEY).with(hold.key.0.to_vec()).with(value::signed(hold.seq));
    writing.write(query.with(value::of_job(hold.job)).with(hold.until.map(Timestamp::as_micros)))
}

pub(super) fn entry(writing: &mut Writing<'_>, entry: &LedgerEntry) -> Result<(), Fault> {
    let note = &entry.note;
    let forgotten = Query::new(FORGOTTEN)
        .with(note.name.as_str().to_owned())
        .with(value::signed(note.fence.number()))
        .with(note.at.as_micros());
    writing.write(forgotten)?;
    writing.write(ledger::copied(entry))
}
