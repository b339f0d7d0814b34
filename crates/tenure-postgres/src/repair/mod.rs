//! Taking rows that cannot be read out of the way: they go into quarantine as they are, and a job with such a row is removed
//! with all that it holds. Each job has a transaction of its own.

mod damage;
mod salvage;
mod shared;

use std::sync::Arc;

use tenure_core::{Bucket, Timestamp};
use tenure_store::{Fault, Finding, Quarantined, Repaired};

pub(crate) use self::damage::damages;
use self::damage::{Damage, Damaged};
use crate::Options;
use crate::connection::Connection;
use crate::fault::is_unreadable;
use crate::keyed::LimitRow;
use crate::link::Link;
use crate::operations::{check, database};
use crate::query::Query;
use crate::rows;
use crate::schema;
use crate::transaction::Gate;
use crate::value;
use crate::writing::Writing;

/// Rows or jobs that are taken out at once.
const AT_ONCE: usize = 500;

/// Statements that copy the rows of a job, given its number, its ID, the reason and the instant.
const KEEP_JOB: [&str; 10] = [
    "INSERT INTO quarantine (at, seq, id, source, reason, content)
     SELECT $4::bigint, $1::bigint, $2::text, 'job', $3::text, row_to_json(t)::text FROM job t WHERE t.id = $2::text::uuid",
    "INSERT INTO quarantine (at, seq, id, source, reason, content)
     SELECT $4::bigint, $1::bigint, $2::text, 'standing', $3::text, row_to_json(t)::text FROM standing t WHERE t.seq = $1",
    "INSERT INTO quarantine (at, seq, id, source, reason, content)
     SELECT $4::bigint, $1::bigint, $2::text, 'attempt', $3::text, row_to_json(t)::text FROM attempt t WHERE t.seq = $1",
    "INSERT INTO quarantine (at, seq, id, source, reason, content)
     SELECT $4::bigint, $1::bigint, $2::text, 'log', $3::text, row_to_json(t)::text FROM log t WHERE t.seq = $1",
    "INSERT INTO quarantine (at, seq, id, source, reason, content)
     SELECT $4::bigint, $1::bigint, $2::text, 'tag', $3::text, row_to_json(t)::text FROM tag t WHERE t.seq = $1",
    "INSERT INTO quarantine (at, seq, id, source, reason, content)
     SELECT $4::bigint, $1::bigint, $2::text, 'unique_key', $3::text, row_to_json(t)::text FROM unique_key t WHERE t.seq = $1",
    "INSERT INTO quarantine (at, seq, id, source, reason, content)
     SELECT $4::bigint, $1::bigint, $2::text, 'dependency', $3::text, row_to_json(t)::text FROM dependency t WHERE t.waiter = $1",
    "INSERT INTO quarantine (at, seq, id, source, reason, content)
     SELECT $4::bigint, $1::bigint, $2::text, 'needed_by', $3::text, row_to_json(t)::text FROM needed_by t WHERE t.waiter = $1",
    "INSERT INTO quarantine (at, seq, id, source, reason, content)
     SELECT $4::bigint, $1::bigint, $2::text, 'granted', $3::text, row_to_json(t)::text FROM granted t
     WHERE t.block = $1 >> 8 AND has_bit(t.seqs, $1)",
    "INSERT INTO quarantine (at, seq, id, source, reason, content)
     SELECT $4::bigint, $1::bigint, $2::text, 'receipt', $3::text, row_to_json(t)::text FROM receipt t
     WHERE t.block = $1 >> 8 AND has_bit(t.seqs, $1)",
];
const TAKE_ATTEMPT: &str = "WITH taken AS (DELETE FROM attempt WHERE seq = $1 AND delivery = $5 RETURNING *)
     INSERT INTO quarantine (at, seq, id, source, reason, content)
     SELECT $4::bigint, $1::bigint, $2::text, 'attempt', $3::text, row_to_json(t)::text FROM taken t";
const TAKE_LINE: &str =
    "WITH taken AS (DELETE FROM log WHERE seq = $1 AND delivery = $5 AND number = $6 RETURNING *)
     INSERT INTO quarantine (at, seq, id, source, reason, content)
     SELECT $4::bigint, $1::bigint, $2::text, 'log', $3::text, row_to_json(t)::text FROM taken t";
/// Moves the times and priority of a waiting job into the valid range, because Tenure finds the job's places by them.
const NEAREST: [&str; 3] = [
    "UPDATE ready SET due = greatest(0, least(due, $2)), priority = greatest(-100, least(priority, 100)) WHERE seq = $1",
    "UPDATE later SET due = greatest(0, least(due, $2)), priority = greatest(-100, least(priority, 100)) WHERE seq = $1",
    "UPDATE keyed SET due = greatest(0, least(due, $2)), priority = greatest(-100, least(priority, 100)) WHERE seq = $1",
];
/// Deletes every other row of a job. The keys that it shares with other jobs are settled before.
const TRACES: [&str; 10] = [
    "DELETE FROM unique_key WHERE seq = $1",
    "DELETE FROM tag WHERE seq = $1",
    "DELETE FROM ready WHERE seq = $1",
    "DELETE FROM later WHERE seq = $1",
    "DELETE FROM keyed WHERE seq = $1",
    "DELETE FROM dependency WHERE waiter = $1",
    "DELETE FROM needed_by WHERE waiter = $1",
    "DELETE FROM trouble WHERE seq = $1",
    "UPDATE granted SET seqs = seqs & ~bit_of($1::bigint) WHERE block = $1::bigint >> 8 AND has_bit(seqs, $1)",
    "UPDATE receipt SET seqs = seqs & ~bit_of($1::bigint) WHERE block = $1::bigint >> 8 AND has_bit(seqs, $1)",
];

const RECALL: &str = "UPDATE arrival SET again = 0 WHERE again > 0";

/// Treatment of arrivals before a repair moves a row.
enum Arrivals {
    LetIn,
    Left,
}

/// Moves up to a bounded number of unreadable rows, and whole jobs with such rows, into quarantine. With `dry_run`, only
/// lists them.
///
/// # Errors
/// A URL that is not understood, a server that cannot be used, or a schema that is not up to date.
pub async fn repair(url: &str, options: Options, dry_run: bool) -> Result<Repaired, Fault> {
    let database = Arc::new(database(url, options)?);
    let mut link = Link::new(Arc::clone(&database), Arc::default());
    let connection = link.connection().await?;
    schema::demand_current(connection, &database.options.schema).await?;
    let found = damages(connection, AT_ONCE).await?;
    let mut repaired = Repaired { moved: Vec::new(), more: found.len() >= AT_ONCE };
    for damage in &found {
        let rows = if dry_run { Some(0) } else { take(&mut link, damage).await? };
        if let Some(rows) = rows {
            repaired.moved.push(Quarantined { job: damage.job(), what: damage.sentence(), rows });
        }
    }
    if !dry_run {
        recall_arrivals(&mut link).await?;
    }
    if !dry_run && !repaired.moved.is_empty() {
        check::recount(link.connection().await?).await?;
    }
    Ok(repaired)
}

/// Makes all arrivals due, because the reason to postpone them may be gone.
async fn recall_arrivals(link: &mut Link) -> Result<(), Fault> {
    let mut writing = Writing::begin_without_arrivals(link, Gate::Keys).await?;
    writing.write(Query::new(RECALL))?;
    writing.commit().await
}

/// Takes one of them out of the way; answers how many rows were moved, or `None` if it is not there any more.
async fn take(link: &mut Link, damage: &Damage) -> Result<Option<u64>, Fault> {
    let mut tries = 0;
    loop {
        let taken = try_take(link, damage).await;
        if taken.is_ok() || !link.may_try_again(&mut tries).await {
            return taken;
        }
    }
}

async fn try_take(link: &mut Link, damage: &Damage) -> Result<Option<u64>, Fault> {
    let taken = try_take_after(link, Arrivals::LetIn, damage).await;
    match taken {
        // The damage may be the reason why arrivals cannot be processed.
        Err(fault) if is_unreadable(&fault) => try_take_after(link, Arrivals::Left, damage).await,
        taken => taken,
    }
}

async fn try_take_after(link: &mut Link, arrivals: Arrivals, damage: &Damage) -> Result<Option<u64>, Fault> {
    let mut writing = match arrivals {
        Arrivals::LetIn => Writing::begin(link, Gate::Keys, Vec::new()).await?.0,
        Arrivals::Left => Writing::begin_without_arrivals(link, Gate::Keys).await?,
    };
    let rows = match &damage.what {
        Damaged::Job => writing.take_job(damage).await?,
        Damaged::Attempt(delivery) => {
            let query = writing.keeping(TAKE_ATTEMPT, damage).with(*delivery);
            writing.count(vec![query]).await?
        }
        Damaged::Line(delivery, number) => {
            let query = writing.keeping(TAKE_LINE, damage).with(*delivery).with(*number);
            writing.count(vec![query]).await?
        }
        Damaged::UniqueKey(key) => writing.take_unique_key(damage, key).await?,
        Damaged::Limit(name) => writing.take_limit(damage, name).await?,
        Damaged::Queue(name) => writing.take_queue(damage, name).await?,
        Damaged::Lane(lane) => writing.take_lane(damage, *lane).await?,
        Damaged::LostQueue(name) => {
            writing.make_queue(name)?;
            0
        }
        Damaged::LostLimit(key) => {
            writing.count_limit_anew(key, LimitRow::anew(None, None, Bucket::FULL)).await?;
            0
        }
    };
    writing.commit().await?;
    // Of what is not there nothing is moved.
    let is_lost = matches!(damage.what, Damaged::LostQueue(_) | Damaged::LostLimit(_));
    Ok((rows > 0 || is_lost).then_some(rows))
}

impl Writing<'_> {
    fn keeping(&self, sql: &'static str, damage: &Damage) -> Query {
        Query::new(sql)
            .with(damage.seq)
            .with(damage.id.map(|id| id.to_string()))
            .with(damage.reason.clone())
            .with(self.now.as_micros())
    }

    async fn count(&mut self, queries: Vec<Query>) -> Result<u64, Fault> {
        Ok(self.run(queries).await?.iter().map(|answered| answered.changed).sum())
    }

    /// Removes a job that cannot be read. Jobs that wait for it go on, as if it had been deleted.
    async fn take_job(&mut self, damage: &Damage) -> Result<u64, Fault> {
        let Some(id) = damage.id else { return Ok(0) };
        let mut reads = rows::lock(&[id]);
        reads.extend([rows::by_ids([id]), salvage::place(damage.seq)]);
        let mut read = self.read(reads).await?;
        let (place, row) = (read.pop().unwrap_or_default(), read.pop().unwrap_or_default());
        let (Some(place), Some(row)) = (place.first(), row.first()) else { return Ok(0) };
        if rows::stored(row).is_ok() {
            return Ok(0);
        }
        let copies = KEEP_JOB.into_iter().map(|sql| self.keeping(sql, damage)).collect();
        let rows = self.count(copies).await?;
        for sql in NEAREST {
            self.write(Query::new(sql).with(damage.seq).with(Timestamp::LAST.as_micros()))?;
        }
        if damage.seq > 0 {
            self.let_go(salvage::salvage(row, place)?).await?;
        }
        for sql in TRACES {
            self.write(Query::new(sql).with(damage.seq))?;
        }
        self.write(Query::new("DELETE FROM job WHERE id = $1").with(value::of_job(id)))?;
        Ok(rows)
    }

    async fn let_go(&mut self, stored: crate::rows::Stored) -> Result<(), Fault> {
        let is_finished = stored.job.state.is_finished();
        if !stored.ties.arriving {
            self.unindex(&stored).await?;
        }
        self.free_key(&stored.job)?;
        if !is_finished {
            self.no_more_waits(&stored, None)?;
        }
        self.remove(std::slice::from_ref(&stored))?;
        if !is_finished {
            self.pass_on(&stored.job.terms).await?;
        }
        Ok(())
    }
}

/// The findings about rows that cannot be read.
pub(crate) async fn findings(connection: &mut Connection, at_most: usize) -> Result<Vec<Finding>, Fault> {
    let found = damages(connection, at_most).await?;
    let finding = |damage: &Damage| Finding { about: damage.about().to_owned(), what: damage.sentence() };
    Ok(found.iter().map(finding).collect())
}

/// A sentence about each of the first so many rows that cannot be read.
pub(crate) async fn sentences(connection: &mut Connection, at_most: usize) -> Result<Vec<String>, Fault> {
    Ok(damages(connection, at_most).await?.iter().map(Damage::sentence).collect())
}
