//! The PostgreSQL store of Tenure, a durable job queue, scheduler and lock service.
//!
//! A [`PostgresStore`] runs its connections on a separate thread, so that a blocked runtime does not stop it from
//! renewing leases. Several tasks on that thread have a connection each, and send waiting calls to the server in
//! batches. Any number of programs can use the same database at the same time.

/// Whether keys have to be asked about what is wanted of these queues and lanes. Statements that end in a claim ask this
/// of the same snapshot.
macro_rules! are_keys_asked {
    ($queues:literal, $lanes:literal) => {
        concat!(
            "(EXISTS (SELECT FROM ending WHERE again <= (SELECT now FROM n)) OR EXISTS (SELECT FROM arrival WHERE again <= (SELECT now FROM n))
             OR EXISTS (SELECT FROM later WHERE gated AND due <= (SELECT now FROM n))
             OR EXISTS (SELECT FROM limit_key WHERE grows_at <= (SELECT now FROM n))
             OR EXISTS (SELECT FROM meta WHERE name = 'looked' AND value > (SELECT now FROM n))
             OR EXISTS (SELECT FROM queue WHERE name = ANY (",
            $queues,
            ") AND (fair OR limit_to IS NOT NULL))
             OR EXISTS (SELECT FROM lane WHERE id = ANY (",
            $lanes,
            ") AND limited))"
        )
    };
}

mod agreed;
mod arrivals;
mod aside;
mod batches;
mod bits;
mod calls;
mod change;
mod check_in;
mod closely;
mod code;
mod command;
mod connection;
mod connector;
mod copying;
mod creators;
mod database;
mod enqueue;
mod epoch;
mod fault;
mod followed;
mod grants;
mod heads;
mod hints;
mod hosts;
mod in_transaction;
mod inbox;
mod joint;
mod keyed;
mod lanes;
mod leases;
mod ledger;
mod link;
mod listening;
mod listing;
mod listing_by_end;
mod marks;
mod memory;
mod news;
mod operations;
mod options;
mod pace;
mod patience;
#[cfg(test)]
mod plans;
mod pooled;
mod portions;
mod prefix;
mod query;
mod queues;
mod records;
mod repair;
mod rewriting;
mod rows;
mod schema;
mod sheet;
mod shortage;
mod sizes;
mod store;
mod sweep;
mod tasks;
mod tend;
mod time;
mod timers;
mod tls;
mod transaction;
mod transition;
mod upkeep;
mod url;
mod vain;
mod value;
mod views;
mod work;
mod writing;

pub use check_in::{CheckIn, CheckInError, LOST};
pub use in_transaction::{Asking, InTransaction, NotDone};
pub use operations::{check, grants, migrate, migration, status};
pub use options::Options;
pub use repair::repair;
pub use store::PostgresStore;
pub use url::{WrongUrl, check_url};
