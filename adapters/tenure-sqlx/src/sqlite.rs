//! Checks in a transaction of sqlx on the file in which Tenure keeps its leases and jobs.

use sqlx::SqliteConnection;
use tenure::{Pass, Run, Timestamp};
use tenure_sqlite::{CHECK_JOB_SQL, CHECK_LEASE_SQL};

/// Why nothing may be written in the name of an ownership. Roll back, whatever it is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckInError {
    /// The ownership is over. Stop.
    #[error("the lease or job is no longer held by this owner")]
    Lost,
    /// The database could not tell. Perhaps the file is not the store's, or somebody else is writing to it.
    #[error("the database could not tell: {0}")]
    Failed(#[from] sqlx::Error),
}

/// Verifies, in an open transaction on the store's file, that a lease is held under this pass. Nobody can take
/// it before the transaction ends. `now` is the present instant by the store's clock.
///
/// # Errors
/// Says why nothing may be written.
pub async fn check_lease(
    txn: &mut SqliteConnection,
    pass: &Pass,
    now: Timestamp,
) -> Result<(), CheckInError> {
    let checked = sqlx::query(CHECK_LEASE_SQL)
        .bind(pass.name().as_str())
        .bind(&pass.id().as_bytes()[..])
        .bind(signed(pass.fence().number()))
        .bind(now.as_micros())
        .execute(txn)
        .await?;
    told(checked.rows_affected())
}

/// Verifies, in an open transaction on the store's file, that a job is running under this attempt. Nobody can
/// take it before the transaction ends.
///
/// # Errors
/// Says why nothing may be written.
pub async fn check_job<App>(txn: &mut SqliteConnection, run: &Run<App>) -> Result<(), CheckInError> {
    let job = run.job();
    let checked = sqlx::query(CHECK_JOB_SQL)
        .bind(signed(job.seq))
        .bind(&job.id.as_bytes()[..])
        .bind(signed(job.fence.number()))
        .execute(txn)
        .await?;
    told(checked.rows_affected())
}

fn told(rows: u64) -> Result<(), CheckInError> {
    if rows == 1 { Ok(()) } else { Err(CheckInError::Lost) }
}

/// As the store keeps numbers: a number too great for SQLite is in no row.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
