//! A transaction of several round trips: what is read is awaited, what is written goes along with the next trip.

use tenure_core::Timestamp;
use tenure_store::Fault;
use tokio_postgres::Row;

use crate::connection::Connection;
use crate::fault::{Effect, unreadable};
use crate::query::{Answered, Query};
use crate::time::Time;

/// Who else may be in a transaction at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gate {
    /// Anybody: rows keep them apart.
    Open,
    /// Nobody who touches keys. No two who take this lock are in at the same time.
    Keys,
}

const TAKE_GATE: &str = "SELECT pg_advisory_xact_lock($1, hashtext(current_schema()::text))";
const NOW: &str = "SELECT coalesce($1::bigint, micros())";

impl Gate {
    /// The first part of its lock's number; the second is the schema.
    fn number(self) -> Option<i32> {
        match self {
            Self::Open => None,
            Self::Keys if cfg!(mutant = "postgres-gate-not-taken") => None,
            Self::Keys => Some(1_413_827_148),
        }
    }
}

/// A transaction. One that is dropped before its commit is undone before anything else is done on its connection.
pub(crate) struct Transaction<'c> {
    connection: &'c mut Connection,
    /// The instant of this transaction: what it writes happens at it.
    pub now: Timestamp,
    writes: Vec<Query>,
}

impl<'c> Transaction<'c> {
    /// Begins one, and reads in the same round trip.
    pub(crate) async fn begin(
        connection: &'c mut Connection,
        gate: Gate,
        time: &Time,
        reads: Vec<Query>,
    ) -> Result<(Self, Vec<Vec<Row>>), Fault> {
        let mut queries = vec![Query::new("BEGIN")];
        queries.extend(gate.number().map(|number| Query::new(TAKE_GATE).with(number)));
        queries.push(Query::new(NOW).with(time.told()));
        let before = queries.len();
        queries.extend(reads);
        connection.in_transaction = true;
        let mut answered = connection.run(&queries, Effect::None).await?;
        let read = answered.split_off(before).into_iter().map(|answered| answered.rows).collect();
        let now = answered.last().and_then(|answered| answered.rows.first()).map(|row| row.get::<_, i64>(0));
        let now = Timestamp::from_micros(now.unwrap_or_default()).map_err(unreadable)?;
        time.heard(now);
        Ok((Self { connection, now, writes: Vec::new() }, read))
    }

    /// Reads, after what was written before. One round trip.
    pub(crate) async fn read(&mut self, reads: Vec<Query>) -> Result<Vec<Vec<Row>>, Fault> {
        if reads.is_empty() {
            return Ok(Vec::new());
        }
        let answered = self.run(reads).await?;
        Ok(answered.into_iter().map(|answered| answered.rows).collect())
    }

    /// Runs statements, after what was written before, and answers what each of them did. One round trip.
    pub(crate) async fn run(&mut self, queries: Vec<Query>) -> Result<Vec<Answered>, Fault> {
        let mut sent = std::mem::take(&mut self.writes);
        let before = sent.len();
        sent.extend(queries);
        let mut answered = self.connection.run(&sent, Effect::None).await?;
        Ok(answered.split_off(before))
    }

    /// Writes; it is sent with the next round trip.
    pub(crate) fn write(&mut self, query: Query) {
        self.writes.push(query);
    }

    /// Makes all of it durable. One round trip.
    pub(crate) async fn commit(mut self) -> Result<(), Fault> {
        let mut sent = std::mem::take(&mut self.writes);
        sent.push(Query::new("COMMIT"));
        self.connection.run(&sent, Effect::Commits).await?;
        self.connection.in_transaction = false;
        Ok(())
    }

    /// Undoes all of it.
    pub(crate) async fn roll_back(self) -> Result<(), Fault> {
        self.connection.run(&[Query::new("ROLLBACK")], Effect::None).await?;
        self.connection.in_transaction = false;
        Ok(())
    }
}
