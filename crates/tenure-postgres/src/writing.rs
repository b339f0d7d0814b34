//! A transaction that is being written row by row: what was decided goes onto a sheet, and the sheet along with the
//! commit.

use std::sync::Arc;

use tenure_core::{Attempt, AttemptEnd, Failure, Job, Kind, QueueName, StateName, Timestamp, limits};
use tenure_store::{Fault, Happening};
use tokio_postgres::Row;

use crate::arrivals;
use crate::connection::Connection;
use crate::fault::is_unreadable;
use crate::keyed::Keys;
use crate::lanes::{self, Lane};
use crate::link::Link;
use crate::memory::Memory;
use crate::news::News;
use crate::query::{Answered, Query};
use crate::rows::{self, Stored};
use crate::sheet::{Ended, Sheet};
use crate::transaction::{Gate, Transaction};
use crate::{code, value};

/// A transaction that is being written.
pub(crate) struct Writing<'c> {
    txn: Transaction<'c>,
    memory: Arc<Memory>,
    pub now: Timestamp,
    pub gate: Gate,
    pub sheet: Sheet,
    pub keys: Keys,
    pub news: News,
    /// Lanes that this transaction has made or met: they are known to others once it is durable.
    new_lanes: Vec<Lane>,
}

impl<'c> Writing<'c> {
    /// Begins a transaction, and reads in the same round trip.
    pub(crate) async fn begin(
        link: &'c mut Link,
        gate: Gate,
        reads: Vec<Query>,
    ) -> Result<(Self, Vec<Vec<Row>>), Fault> {
        let arrived = arrivals::read_under(gate, link.database.time.told());
        Self::begin_behind(link, gate, arrived, reads).await
    }

    /// Begins a transaction like [`begin`](Self::begin), but leaves arrivals to others. A repair must begin even if
    /// arrivals cannot be processed.
    pub(crate) async fn begin_without_arrivals(link: &'c mut Link, gate: Gate) -> Result<Self, Fault> {
        Self::begin_behind(link, gate, Vec::new(), Vec::new()).await.map(|(writing, _)| writing)
    }

    async fn begin_behind(
        link: &'c mut Link,
        gate: Gate,
        mut sent: Vec<Query>,
        reads: Vec<Query>,
    ) -> Result<(Self, Vec<Vec<Row>>), Fault> {
        let (memory, database) = (Arc::clone(&link.memory), Arc::clone(&link.database));
        let connection: &mut Connection = link.connection().await?;
        let of_arrivals = sent.len();
        sent.extend(reads.iter().cloned());
        let (txn, mut read) = Transaction::begin(connection, gate, &database.time, sent).await?;
        let (now, news) = (txn.now, News::for_whom(&memory.bulletin));
        let (sheet, keys, new_lanes) = (Sheet::default(), Keys::default(), Vec::new());
        let mut writing = Self { txn, memory, now, gate, sheet, keys, news, new_lanes };
        let arrived: Vec<Row> = read.drain(..of_arrivals).flatten().collect();
        if !arrived.is_empty() {
            Box::pin(writing.let_in(arrived)).await?;
            read = writing.read(reads).await?;
        }
        Ok((writing, read))
    }

    /// Reads, after what was written before. One round trip.
    pub(crate) async fn read(&mut self, reads: Vec<Query>) -> Result<Vec<Vec<Row>>, Fault> {
        self.send_sheet()?;
        self.txn.read(reads).await
    }

    /// Runs statements, after what was written before. One round trip.
    pub(crate) async fn run(&mut self, queries: Vec<Query>) -> Result<Vec<Answered>, Fault> {
        self.send_sheet()?;
        self.txn.run(queries).await
    }

    /// Writes something that has no place on the sheet, after what is there.
    pub(crate) fn write(&mut self, query: Query) -> Result<(), Fault> {
        self.send_sheet()?;
        self.txn.write(query);
        Ok(())
    }

    fn send_sheet(&mut self) -> Result<(), Fault> {
        self.sheet.statements()?.into_iter().for_each(|query| self.txn.write(query));
        self.keys.statements().into_iter().for_each(|query| self.txn.write(query));
        Ok(())
    }

    /// Makes it durable, then tells what there is to tell.
    pub(crate) async fn commit(mut self) -> Result<(), Fault> {
        self.flush_limits()?;
        self.send_sheet()?;
        if cfg!(mutant = "postgres-news-before-commit") {
            self.memory.publish(std::mem::take(&mut self.news));
        }
        if cfg!(mutant = "postgres-lanes-before-commit") {
            self.memory.lanes().meet(std::mem::take(&mut self.new_lanes));
        }
        self.txn.commit().await?;
        self.memory.lanes().meet(self.new_lanes);
        self.memory.publish(self.news);
        Ok(())
    }

    /// Undoes it because somebody has changed meanwhile what was decided on: it is a fault after which it is tried anew.
    pub(crate) async fn begin_anew(&mut self) -> Result<(), Fault> {
        self.txn.run(vec![Query::new("SELECT surely(false)")]).await.map(drop)
    }

    /// Whether what is decided about this job may concern others, and others may decide about it now: then it has to be
    /// decided under the lock of the gates.
    pub(crate) fn needs_gate(&self, stored: &Stored) -> bool {
        self.gate != Gate::Keys && (stored.is_keyed() || stored.ties.awaited || stored.ties.arriving)
    }

    /// Whether what is decided about any of these jobs, which were just read, has to be decided under that lock.
    pub(crate) fn need_gate(&self, read: &[Vec<Row>]) -> Result<bool, Fault> {
        for row in read.iter().flatten() {
            match rows::stored(row) {
                Ok(stored) if self.needs_gate(&stored) => return Ok(true),
                Ok(_) => {}
                // The next read reports it. Its ties to other jobs are unknown.
                Err(fault) if is_unreadable(&fault) => {}
                Err(fault) => return Err(fault),
            }
        }
        Ok(false)
    }

    /// Undoes it.
    pub(crate) async fn roll_back(self) -> Result<(), Fault> {
        self.txn.roll_back().await
    }

    pub(crate) fn memory(&self) -> Arc<Memory> {
        Arc::clone(&self.memory)
    }

    /// Notes lanes that were read in this transaction.
    pub(crate) fn meet(&mut self, lanes: Vec<Lane>) {
        self.new_lanes.extend(lanes);
    }

    /// Makes lanes if they are not there, and meets all that are.
    pub(crate) async fn make_lanes(&mut self, names: Vec<(QueueName, Kind)>) -> Result<(), Fault> {
        if names.is_empty() {
            return Ok(());
        }
        let mut queries = lanes::make(&names);
        queries.push(lanes::behind(self.memory.lanes().last()));
        let read = self.read(queries).await?;
        self.new_lanes = lanes::read(read.last().map_or(&[], Vec::as_slice));
        Ok(())
    }

    /// The lane of this kind in this queue, if it was met.
    pub(crate) fn lane(&self, queue: &QueueName, kind: &Kind) -> Option<i32> {
        let new = self.new_lanes.iter().find(|lane| lane.queue == *queue && lane.kind == *kind);
        new.map(|lane| lane.id).or_else(|| self.memory.lanes().find(queue, kind))
    }

    /// Tells what happened to a job.
    pub(crate) fn tell(&mut self, job: &Job, what: impl FnOnce() -> Happening) {
        self.news.note(self.now, job.id, (&job.queue, &job.kind), what);
    }

    /// Tells that a job left its state for another one.
    pub(crate) fn tell_became(&mut self, job: &Job, state: StateName, failure: Option<&Failure>) {
        let failure = failure.filter(|_| self.news.is_heard()).map(ToString::to_string);
        self.tell(job, || Happening::Became { state, failure });
    }

    /// Records how the running attempt of a job ended. One that succeeded is not recorded while its job's standing tells
    /// of it.
    pub(crate) fn record(
        &mut self,
        job: &Job,
        by: AttemptEnd,
        failure: Option<&Failure>,
        at: Timestamp,
    ) -> Result<(), Fault> {
        let Some(attempt) = last_of(job, Some((at, by)), failure.cloned()) else { return Ok(()) };
        let (seq, delivery) = (value::signed(job.seq), value::small(attempt.delivery));
        self.sheet.attempt(Ended { seq, attempt, at: at.as_micros(), by: code::of_attempt_end(by) });
        let beyond = delivery - value::small(limits::ATTEMPTS_KEPT);
        if beyond > 0 {
            for sql in [
                "DELETE FROM attempt WHERE seq = $1 AND delivery <= $2",
                "DELETE FROM log WHERE seq = $1 AND delivery <= $2",
            ] {
                self.write(Query::new(sql).with(seq).with(beyond))?;
            }
        }
        Ok(())
    }
}

/// The last attempt of a job, as the job tells it; `None` if nobody has ever had the job.
pub(crate) fn last_of(
    job: &Job,
    ended: Option<(Timestamp, AttemptEnd)>,
    failure: Option<Failure>,
) -> Option<Attempt> {
    let (Some(holder), Some(started)) = (job.holder, job.started) else { return None };
    let (attempt, delivery, fence) = (job.attempt, job.delivery, job.fence);
    Some(Attempt { attempt, delivery, fence, holder, started, ended, failure })
}

#[cfg(test)]
mod tests {
    use own_postgres::Server;

    use super::*;
    use crate::plans::fresh;

    #[tokio::test]
    async fn a_commit_that_fails_publishes_nothing_and_leaves_no_lane_in_memory() {
        let server = Server::start_hasty().unwrap();
        let mut link = fresh(&server).await;
        let memory = Arc::clone(&link.memory);
        let (queue, kind) = (QueueName::default(), Kind::new("echo").unwrap());
        let lanes = vec![(queue.clone(), kind.clone())];
        let (mut writing, _) = Writing::begin(&mut link, Gate::Open, Vec::new()).await.unwrap();
        writing.make_lanes(lanes).await.unwrap();
        assert!(writing.lane(&queue, &kind).is_some());
        writing.news.due = true;
        // It is sent along with the commit, and fails it.
        writing.write(Query::new("SELECT surely(false)")).unwrap();
        writing.commit().await.unwrap_err();
        assert_eq!((memory.bulletin.calls(), memory.lanes().find(&queue, &kind)), (0, None));
    }
}
