//! Checking, in a user's own transaction on the store's database, that an ownership is current.
//!
//! A holder that was paused for longer than its lease does not know that it has lost it. What it writes into the same
//! database is safe all the same if the check and the effect commit together:
//!
//! ```no_run
//! # use tenure_core::{Fence, LeaseId, LeaseName};
//! # async fn example(store: &tenure_postgres::PostgresStore, client: &mut tokio_postgres::Client,
//! #     name: LeaseName, id: LeaseId, fence: Fence) -> Result<(), Box<dyn std::error::Error>> {
//! let transaction = client.transaction().await?;
//! store.check_in().lease(&transaction, &name, id, fence).await?;
//! transaction.execute("UPDATE account SET total = total + 1", &[]).await?;
//! transaction.commit().await?;
//! # Ok(()) }
//! ```
//!
//! In any other language it is a statement: `SELECT tenure.check_lease('ledger', '0190f5c2-…', 7)`, and for a job
//! `tenure.check_job(seq, id, fence)`. Each raises the error [`LOST`] if the ownership is over, so that a transaction
//! that does not look at the answer is undone as well.
//!
//! Why that is safe: the check locks the row `FOR KEY SHARE`, and holds that lock until the transaction ends. Whoever
//! raises the fence of a row locks it `FOR UPDATE`, which the other lock keeps off; nobody waits for it meanwhile,
//! and whoever wants a lease is told that it is left to somebody who came before. To renew, to break and to give
//! back is possible all the time, since those leave the fence as it is: a transaction may last longer than a lease,
//! and its holder goes on renewing. A transaction that hangs keeps what it has checked until it ends, so a server
//! should be told to end those that idle. One that names an old fence finds no such row, at every level of isolation:
//! a row whose fence was raised since its snapshot makes it fail.
//!
//! A job shares a row with those that were granted with it. A transaction that keeps to one snapshot (`REPEATABLE READ`,
//! `SERIALIZABLE`) is told that somebody was in the way if one of them has ended since that snapshot: such a one checks in
//! before anything else.

use std::sync::Arc;

use tenure_core::{Fence, LeaseId, LeaseName};
use tenure_store::{Clock, Held};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Transaction};
use uuid::Uuid;

use crate::store::PostgresStore;
use crate::value::{of_job, signed};

/// The SQLSTATE of a refused check: the lease or job is no longer held.
pub const LOST: &str = "TE001";

/// The reason for which nothing may be written under a lease or job.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckInError {
    /// The lease or job is no longer held. Roll back, and stop.
    #[error("the lease or job is no longer held by this owner")]
    Lost,
    /// The database or schema has no store.
    #[error("this is not the database of the store, or its schema is another one")]
    NotTheStore,
    /// Another transaction conflicts, or has changed the row since this transaction's snapshot. Roll back and retry.
    #[error("conflict with another transaction; roll back and retry")]
    Busy,
    /// The server failed.
    #[error("the server failed to check the lease")]
    Failed(#[source] Error),
}

/// Checks for your own transactions on the store's database.
#[derive(Debug, Clone)]
pub struct CheckIn {
    lease: Arc<str>,
    job: Arc<str>,
    /// The clock that the store was given, if it was given one.
    clock: Option<Arc<dyn Clock>>,
}

impl PostgresStore {
    /// Returns the checks for your own transactions on this store's database.
    #[must_use]
    pub fn check_in(&self) -> CheckIn {
        let (schema, clock) = self.place();
        CheckIn {
            lease: format!("SELECT \"{schema}\".check_lease($1, $2, $3, $4)").into(),
            job: format!("SELECT \"{schema}\".check_job($1, $2, $3)").into(),
            clock,
        }
    }
}

impl CheckIn {
    /// Checks, in an open transaction, that a lease is held under this ID and fence. Nobody else is granted the lease
    /// before the transaction ends.
    ///
    /// # Errors
    /// Returns why nothing may be written. Roll back on any error, because the server accepts nothing else.
    pub async fn lease(
        &self,
        transaction: &Transaction<'_>,
        name: &LeaseName,
        id: LeaseId,
        fence: Fence,
    ) -> Result<(), CheckInError> {
        let now = self.clock.as_ref().map(|clock| clock.now().as_micros());
        let id = Uuid::from_bytes(*id.as_bytes());
        check(transaction, &self.lease, &[&name.as_str(), &id, &signed(fence.number()), &now]).await
    }

    /// Checks, in an open transaction, that a job is running under this fence. Nobody else can take the job before
    /// the transaction ends.
    ///
    /// It compares only the fence, as settling does: a job whose lease has expired still counts until another worker
    /// takes it.
    ///
    /// # Errors
    /// Returns why nothing may be written. Roll back on any error, because the server accepts nothing else.
    pub async fn job(&self, transaction: &Transaction<'_>, held: &Held) -> Result<(), CheckInError> {
        check(transaction, &self.job, &[&signed(held.seq), &of_job(held.id), &signed(held.fence.number())])
            .await
    }
}

async fn check(
    transaction: &Transaction<'_>,
    sql: &str,
    values: &[&(dyn ToSql + Sync)],
) -> Result<(), CheckInError> {
    match transaction.query(sql, values).await {
        Ok(_) => Ok(()),
        Err(error) => Err(refused(error)),
    }
}

fn refused(error: Error) -> CheckInError {
    const NOT_THE_STORE: [SqlState; 3] =
        [SqlState::UNDEFINED_FUNCTION, SqlState::INVALID_SCHEMA_NAME, SqlState::UNDEFINED_TABLE];
    const BUSY: [SqlState; 3] =
        [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED, SqlState::LOCK_NOT_AVAILABLE];
    match error.code() {
        Some(code) if code.code() == LOST => CheckInError::Lost,
        Some(code) if NOT_THE_STORE.contains(code) => CheckInError::NotTheStore,
        Some(code) if BUSY.contains(code) => CheckInError::Busy,
        _ => CheckInError::Failed(error),
    }
}
