//! Tenure on PostgreSQL: any number of hosts, a few connections each, everything in batches.
//!
//! A [`PostgresStore`] has a thread of its own for its connections, so that whatever blocks the program's runtime
//! does not keep it from renewing what it holds. Several tasks on that thread each have a connection: what waits for
//! one of them goes to the server together. Other programs may use the same database at the same time.
//!
//! **It is being built**: timers and jobs with keys answer a fault for now.

mod change;
mod check_in;
mod code;
mod command;
mod connection;
mod connector;
mod database;
mod enqueue;
mod epoch;
mod fault;
mod grants;
mod hosts;
mod inbox;
mod lanes;
mod leases;
mod ledger;
mod link;
mod listening;
mod listing;
mod marks;
mod memory;
mod news;
mod options;
mod patience;
mod query;
mod rows;
mod schema;
mod sheet;
mod store;
mod sweep;
mod tasks;
mod tend;
mod time;
mod timers;
mod transaction;
mod transition;
mod value;
mod views;
mod work;
mod writing;

pub use check_in::{CheckIn, CheckInError, LOST};
pub use options::Options;
pub use store::PostgresStore;
