//! The SQLite store of Tenure, a durable job queue, scheduler and lock service.
//!
//! A [`SqliteStore`] sends all writes through one thread, which combines the calls of many callers into one
//! transaction and answers when that is durable (group commit). Reads use separate connections. Several processes
//! can use the same file at the same time.
//!
//! ```
//! use std::sync::Arc;
//! use tenure_sqlite::{Options, SqliteStore};
//! use tenure_store::{Store, SystemClock, Views};
//!
//! # let directory = tempfile::tempdir().unwrap();
//! # let file = directory.path().join("tenure.db");
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let store = SqliteStore::open(file, Options::default(), Arc::new(SystemClock))?;
//! assert!(store.counts().await?.is_empty());
//! store.close().await
//! # }).unwrap();
//! ```

mod apps;
mod aside;
mod attempts;
mod backup;
mod calls;
mod chains;
mod change;
mod check_in;
mod code;
mod command;
mod connection;
mod copying;
mod dependencies;
mod enqueue;
mod epoch;
mod executor;
mod fault;
mod front;
mod gates;
mod grants;
mod hosts;
mod identity;
mod inline;
mod inspect;
mod key_views;
mod keyed;
mod keys;
mod lanes;
mod leases;
mod ledger;
mod limit_keys;
mod limit_line;
#[cfg(test)]
mod limit_moves;
mod limit_row;
mod listing;
mod listing_by_end;
mod lock_holder;
mod look;
mod looking;
mod merge;
mod needs;
mod open;
mod operations;
mod options;
mod pause;
mod place;
#[cfg(test)]
mod plans;
mod prefix;
mod private;
mod queue_limits;
mod queue_terms;
mod readers;
mod records;
mod remembered;
mod renew;
mod repair;
mod report;
mod reserve;
mod rewriting;
mod rows;
mod schema;
mod set_back;
mod settle;
mod shares;
mod sizes;
mod store;
mod sweep;
mod taken;
mod tend;
mod threads;
mod timers;
mod together;
mod transition;
mod value;
mod views;
#[cfg(test)]
mod waits_read;
mod watch;
mod writer;
mod writing;

pub use check_in::{CHECK_JOB_SQL, CHECK_LEASE_SQL, CheckInError, check_job, check_lease};
pub use operations::{backup, check, migrate, migration, status, vacuum};
pub use options::{Durability, Options};
pub use repair::repair;
/// The driver as this store uses it, for transactions of one's own on its file.
pub use rusqlite;
pub use store::SqliteStore;
