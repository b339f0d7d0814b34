//! Tenure beside sqlx: what your transaction writes and what Tenure knows commit together, or not at all.
//!
//! On SQLite, a transaction on the file in which Tenure keeps its leases and jobs checks that an ownership is current:
//!
//! ```no_run
//! # #[cfg(feature = "sqlite")]
//! # async fn example(pool: sqlx::SqlitePool, tenure: tenure::Tenure) -> Result<(), Box<dyn std::error::Error>> {
//! let held = tenure.leases().hold("the books").await?;
//! let mut txn = pool.begin_with("BEGIN IMMEDIATE").await?;
//! tenure_sqlx::check_lease(&mut txn, &held.pass(), tenure.now()).await?;
//! sqlx::query("UPDATE account SET total = total + 1").execute(&mut *txn).await?;
//! txn.commit().await?;
//! # Ok(()) }
//! ```
//!
//! Begin with `BEGIN IMMEDIATE`, as above: a transaction that has read before it writes is refused by SQLite if
//! somebody else has written since.
//!
//! On PostgreSQL, a transaction [takes part](take_part): it enqueues jobs, checks in, and ends a job.

#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;

#[cfg(feature = "postgres")]
pub use postgres::{TakesPart, take_part};
#[cfg(feature = "sqlite")]
pub use sqlite::{CheckInError, check_job, check_lease};
