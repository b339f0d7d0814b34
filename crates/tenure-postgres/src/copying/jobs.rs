//! Taking jobs in as they were: their rows, their history, and the places where they belong.

use std::collections::BTreeSet;

use tenure_core::{Block, IfFailed, Job, JobId, LogLine, QueueName, State};
use tenure_store::{CopiedJob, Fault, Item, Values};
use tokio_postgres::Row;

use crate::fault::unreadable;
use crate::query::Query;
use crate::rows::{Kept, Stored, Ties};
use crate::sheet::Ended;
use crate::writing::Writing;
use crate::{code, value};

const FAIR: &str = "SELECT name FROM queue WHERE fair";
const JOBS: &str = "INSERT INTO job (seq, created, due, id, lane, priority, terms, args)
     SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::uuid[], $5::int[], $6::smallint[], $7::text[],
         $8::bytea[])";
const TAGS: &str = "INSERT INTO tag (tag, seq, id)
     SELECT * FROM unnest($1::text[], $2::bigint[], $3::uuid[]) ON CONFLICT DO NOTHING";
const LINES: &str = "INSERT INTO log (seq, delivery, number, at, line)
     SELECT $1, u.* FROM unnest($2::int[], $3::int[], $4::bigint[], $5::text[]) u";

/// Which queues have fair shares by now.
pub(super) fn fair() -> Query {
    Query::new(FAIR)
}

pub(super) fn read_fair(read: &[Vec<Row>]) -> Result<BTreeSet<QueueName>, Fault> {
    read.iter().flatten().map(|row| value::queue(row, 0)).collect()
}

/// Keeps log lines of a job.
pub(super) fn lines(writing: &mut Writing<'_>, seq: u64, lines: &[LogLine]) -> Result<(), Fault> {
    let query = Query::new(LINES)
        .with(value::signed(seq))
        .with(lines.iter().map(|line| value::small(line.delivery)).collect::<Vec<_>>())
        .with(lines.iter().map(|line| value::small(line.number)).collect::<Vec<_>>())
        .with(lines.iter().map(|line| line.at.as_micros()).collect::<Vec<_>>())
        .with(lines.iter().map(|line| line.text.clone()).collect::<Vec<_>>());
    writing.write(query)
}

impl Writing<'_> {
    /// Writes the rows of the jobs among these, and what makes them findable.
    pub(super) async fn insert_copied(&mut self, items: &[Item]) -> Result<(), Fault> {
        let jobs: Vec<&Job> = items.iter().filter_map(job_of).collect();
        if jobs.is_empty() {
            return Ok(());
        }
        let unknown: BTreeSet<_> = jobs
            .iter()
            .filter(|job| self.lane(&job.queue, &job.kind).is_none())
            .map(|job| (job.queue.clone(), job.kind.clone()))
            .collect();
        self.make_lanes(unknown.into_iter().collect()).await?;
        let lanes = jobs.iter().map(|job| self.lane_of_copied(job)).collect::<Result<Vec<_>, _>>()?;
        let terms = jobs.iter().map(|job| match job.terms.are_default() {
            true => Ok(None),
            false => value::to_json(&*job.terms).map(Some),
        });
        let query = Query::new(JOBS)
            .with(jobs.iter().map(|job| value::signed(job.seq)).collect::<Vec<_>>())
            .with(jobs.iter().map(|job| job.created.as_micros()).collect::<Vec<_>>())
            .with(jobs.iter().map(|job| first_due(job)).collect::<Vec<_>>())
            .with(jobs.iter().map(|job| value::of_job(job.id)).collect::<Vec<_>>())
            .with(lanes)
            .with(jobs.iter().map(|job| value::of_priority(job.priority)).collect::<Vec<_>>())
            .with(terms.collect::<Result<Vec<_>, _>>()?)
            .with(jobs.iter().map(|job| job.args.as_bytes().to_vec()).collect::<Vec<_>>());
        self.write(query)?;
        self.insert_tags(&jobs)
    }

    fn insert_tags(&mut self, jobs: &[&Job]) -> Result<(), Fault> {
        let tags = || jobs.iter().flat_map(|job| job.terms.tags.iter().map(move |tag| (*job, tag)));
        if tags().next().is_none() {
            return Ok(());
        }
        let query = Query::new(TAGS)
            .with(tags().map(|(_, tag)| tag.as_str().to_owned()).collect::<Vec<_>>())
            .with(tags().map(|(job, _)| value::signed(job.seq)).collect::<Vec<_>>())
            .with(tags().map(|(job, _)| value::of_job(job.id)).collect::<Vec<_>>());
        self.write(query)
    }

    fn lane_of_copied(&self, job: &Job) -> Result<i32, Fault> {
        let lane = self.lane(&job.queue, &job.kind);
        lane.ok_or_else(|| Fault::Unavailable("a lane was removed during the copy; retry".to_owned()))
    }

    /// Lets a job, whose row is written, stand where it belongs.
    pub(super) async fn take_job_in(
        &mut self,
        copied: CopiedJob,
        fair: &BTreeSet<QueueName>,
    ) -> Result<(), Fault> {
        let begun = copied.has_begun();
        let CopiedJob { job, attempts, waits } = copied;
        let lane = self.lane_of_copied(&job)?;
        let seq = value::signed(job.seq);
        // Who had it is told by the record of its last attempt, whatever came of that: nothing was granted here.
        for attempt in attempts {
            let (at, by) = attempt.ended.ok_or_else(|| unreadable("a copied attempt that has not ended"))?;
            let (at, by) = (at.as_micros(), code::of_attempt_end(by));
            self.sheet.attempt(Ended { seq, attempt, at, by });
        }
        let ties = Ties { fair: fair.contains(&job.queue), ..Ties::default() };
        let (kept, values) = (Kept::Nowhere, Values::Read);
        let mut stored = Stored { job, lane, begun, kept, ties, values };
        match stored.job.state {
            State::Running { .. } => return Err(unreadable("a copied job that runs")),
            State::Finished { end, .. } => {
                self.count_end(&stored, end);
                self.sheet.standing(&stored);
                return Ok(());
            }
            State::Waiting { .. } | State::Blocked { .. } => {}
        }
        if let Some(limit) = &stored.job.terms.limit {
            let (key, most) = (limit.key.clone(), limit.most);
            self.load_limits(std::slice::from_ref(&key)).await?;
            self.limit(&key).hear(most);
        }
        self.keep_for(&stored.job)?;
        if let State::Blocked { on: Block::Jobs, .. } = stored.job.state {
            let if_failed =
                stored.job.terms.after.as_ref().map_or_else(IfFailed::default, |after| after.if_failed);
            self.wait_as_copied(seq, if_failed, &waits).await?;
        }
        self.stand(&mut stored).await?;
        if begun {
            self.sheet.standing(&stored);
        }
        self.pass_on(&stored.job.terms).await
    }

    async fn wait_as_copied(&mut self, seq: i64, if_failed: IfFailed, others: &[JobId]) -> Result<(), Fault> {
        for ids in self.batches(others.to_vec()).await? {
            for row in &self.read_batch(&ids).await? {
                let other = crate::rows::stored(row)?;
                self.wait_for(seq, if_failed, &other)?;
            }
        }
        Ok(())
    }
}

fn job_of(item: &Item) -> Option<&Job> {
    match item {
        Item::Job(copied) => Some(&copied.job),
        Item::Queue(_)
        | Item::Lines(..)
        | Item::Key(_)
        | Item::Limit(_)
        | Item::Lease(_)
        | Item::Entry(_)
        | Item::Timer(_)
        | Item::Slot(_)
        | Item::Record(_)
        | Item::JournalEntry(_)
        | Item::App(_) => None,
    }
}

/// When it is due, if that is not when it was accepted.
fn first_due(job: &Job) -> Option<i64> {
    job.state.due().filter(|due| *due != job.created).map(|due| due.as_micros())
}
