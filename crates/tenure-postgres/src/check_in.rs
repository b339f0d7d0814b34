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

/// The SQLSTATE of a check that was refused: the ownership is over.
pub const LOST: &str = "TE001";

/// Why nothing may be written in the name of an ownership.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckInError {
    /// The ownership is over. Roll back, and stop.
    #[error("it is not held any more by whoever names it")]
    Lost,
    /// There is no store in this database, or not in this schema.
    #[error("this is not the database of the store, or its schema is another one")]
    NotTheStore,
    /// Somebody else was in the way, or has changed the row since this transaction's snapshot. Roll back and begin
    /// again.
    #[error("somebody else was in the way; roll back and begin again")]
    Busy,
    /// The server could not tell.
    #[error("the server could not tell")]
    Failed(#[source] Error),
}

/// The checks that can be made in transactions on the database of a store.
#[derive(Debug, Clone)]
pub struct CheckIn {
    lease: Arc<str>,
    job: Arc<str>,
    /// The clock that the store was given, if it was given one.
    clock: Option<Arc<dyn Clock>>,
}

impl PostgresStore {
    /// The checks that can be made in a user's own transactions on this store's database.
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
    /// Verifies in an open transaction that a lease is held under this id and fence. Nobody is granted it before
    /// the transaction ends.
    ///
    /// # Errors
    /// Says why nothing may be written. Roll back, whatever it is: the server lets nothing else be done.
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

    /// Verifies in an open transaction that a job is running under this fence. Nobody takes it before the
    /// transaction ends.
    ///
    /// It asks for the fence alone, as settling does: a reservation that has lapsed counts as long as nobody has
    /// noticed.
    ///
    /// # Errors
    /// Says why nothing may be written. Roll back, whatever it is: the server lets nothing else be done.
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
