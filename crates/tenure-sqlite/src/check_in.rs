//! Checking, in a user's own transaction on the store's file, that an ownership is current.
//!
//! A holder that was paused for longer than its lease does not know that it has lost it. What it writes
//! into the store's file is safe all the same if the check and the effect commit together:
//!
//! ```
//! # use std::sync::Arc;
//! # use tenure_core::{Holder, LeaseAct, LeaseId, LeaseName, LeaseOutcome, Ttl};
//! # use tenure_sqlite::{Options, SqliteStore, check_lease};
//! # use tenure_store::{LeaseWish, Leases, Store, SystemClock};
//! # let directory = tempfile::tempdir().unwrap();
//! # let file = directory.path().join("tenure.db");
//! # let store = SqliteStore::open(&file, Options::default(), Arc::new(SystemClock)).unwrap();
//! # let (name, id) = (LeaseName::new("ledger").unwrap(), LeaseId::new([1, 2]));
//! # let ttl = Ttl::of_seconds(30.0).unwrap();
//! # let act = LeaseAct::Acquire { id, by: Holder::named("doc"), ttl, wait: None };
//! # let wish = LeaseWish { name: name.clone(), act };
//! # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
//! # let granted = runtime.block_on(store.lease(vec![wish])).unwrap().remove(0);
//! # let LeaseOutcome::Granted { fence, .. } = granted else { panic!("{granted:?}") };
//! use rusqlite::{Connection, TransactionBehavior};
//!
//! let mut conn = Connection::open(&file)?;
//! # conn.execute("CREATE TABLE account (total INTEGER)", [])?;
//! let txn = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
//! check_lease(&txn, &name, id, fence, store.clock().now())?;
//! txn.execute("UPDATE account SET total = total + 1", [])?;
//! txn.commit()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Why that is safe: SQLite lets one connection write at a time, and the check is a write, so that from the
//! check to the commit nobody else can be granted the lease. A look alone would not do. A transaction that
//! only reads sees the file as it was when it began, however long ago; somebody may have taken the lease
//! since, and with luck such a transaction is refused when it comes to write. The check therefore writes the
//! fence over itself, if it is the one that was named and is current: one statement that takes the lock,
//! looks at the newest state, and tells by the number of rows that it changed.

use rusqlite::{Connection, Error, ErrorCode, Params, ffi};
use tenure_core::{Fence, LeaseId, LeaseName, Timestamp};
use tenure_store::Held;

use crate::value;

/// Checks a lease in an open transaction on the store's file, for users of another driver. If it changes one row, the
/// lease is held. If it changes none, roll back the transaction.
///
/// Bind `?1` to the lease name as text, `?2` to [`LeaseId::as_bytes`], `?3` to [`Fence::number`] and `?4` to
/// [`Timestamp::as_micros`] of the current time by the store's clock. With sqlx:
///
/// ```ignore
/// let mut txn = pool.begin_with("BEGIN IMMEDIATE").await?;
/// let checked = sqlx::query(CHECK_LEASE_SQL)
///     .bind(name.as_str())
///     .bind(&id.as_bytes()[..])
///     .bind(i64::try_from(fence.number())?)
///     .bind(clock.now().as_micros())
///     .execute(&mut *txn)
///     .await?;
/// if checked.rows_affected() != 1 {
///     return Err(lost());
/// }
/// ```
pub const CHECK_LEASE_SQL: &str = "UPDATE main.lease SET fence = fence
     WHERE name = ?1 AND id = ?2 AND fence = ?3
         AND (phase = 0 AND (until IS NULL OR until > ?4) OR phase = 1 AND until > ?4)";

/// Checks a running job in an open transaction on the store's file, like [`CHECK_LEASE_SQL`] for a lease.
///
/// Bind `?1` to the job's seq, `?2` to [`JobId::as_bytes`](tenure_core::JobId::as_bytes) and `?3` to
/// [`Fence::number`].
pub const CHECK_JOB_SQL: &str = "UPDATE main.standing SET fence = fence
     WHERE seq = ?1 AND fence = ?3 AND state = 1
         AND EXISTS (SELECT 1 FROM main.job WHERE seq = ?1 AND id = ?2)";

/// The reason for which nothing may be written under a lease or job.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckInError {
    /// The lease or job is no longer held. Roll back, and stop.
    #[error("the lease or job is no longer held by this owner")]
    Lost,
    /// No transaction is open, so later writes would not commit together with the check.
    #[error("no transaction is open; begin one, so that the check and your writes commit together")]
    NotInTransaction,
    /// The main file of this connection is not a Tenure store.
    #[error("the main file of this connection is not a Tenure store; open the file of the store")]
    NotTheStore,
    /// Another connection is writing to the file, or has written since this transaction first read. Roll back and
    /// retry. A transaction that begins with `BEGIN IMMEDIATE` waits instead.
    #[error("another connection is writing to the file; roll back and retry with BEGIN IMMEDIATE")]
    Busy,
    /// SQLite failed.
    #[error("SQLite failed to check the lease")]
    Failed(#[source] Error),
}

/// Checks, in the open transaction of a connection to the store's file, that a lease is held under this ID and fence.
/// Nobody else can acquire the lease before the transaction ends.
///
/// `now` is the current time by the store's clock. Call it before any other read or write.
///
/// # Errors
/// Returns why nothing may be written. Roll back on any error.
pub fn check_lease(
    conn: &Connection,
    name: &LeaseName,
    id: LeaseId,
    fence: Fence,
    now: Timestamp,
) -> Result<(), CheckInError> {
    let fence = value::signed(fence.number());
    check(conn, CHECK_LEASE_SQL, (name.as_str(), id.as_bytes(), fence, now.as_micros()))
}

/// Checks, in the open transaction of a connection to the store's file, that a job is running under this fence.
/// Nobody else can take the job before the transaction ends.
///
/// It compares only the fence, as settling does: a job whose lease has expired still counts until another worker
/// takes it.
///
/// # Errors
/// Returns why nothing may be written. Roll back on any error.
pub fn check_job(conn: &Connection, held: &Held) -> Result<(), CheckInError> {
    let (seq, fence) = (value::signed(held.seq), value::signed(held.fence.number()));
    check(conn, CHECK_JOB_SQL, (seq, held.id.as_bytes(), fence))
}

fn check(conn: &Connection, sql: &str, key: impl Params) -> Result<(), CheckInError> {
    if conn.is_autocommit() {
        return Err(CheckInError::NotInTransaction);
    }
    // The text is ours: if SQLite does not understand it, the tables are not.
    let not_understood =
        |error| if is_about_text(&error) { CheckInError::NotTheStore } else { failed(error) };
    let mut statement = conn.prepare_cached(sql).map_err(not_understood)?;
    match statement.execute(key) {
        Ok(0) => Err(CheckInError::Lost),
        Ok(_) => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

fn failed(error: Error) -> CheckInError {
    let busy = [ErrorCode::DatabaseBusy, ErrorCode::DatabaseLocked];
    if error.sqlite_error_code().is_some_and(|code| busy.contains(&code)) {
        return CheckInError::Busy;
    }
    CheckInError::Failed(error)
}

/// Whether SQLite did not understand a statement, for instance because there is no such table.
fn is_about_text(error: &Error) -> bool {
    if let Error::SqliteFailure(error, _) | Error::SqlInputError { error, .. } = error {
        error.extended_code == ffi::SQLITE_ERROR
    } else {
        false
    }
}
