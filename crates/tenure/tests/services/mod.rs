//! What stands on leases and jobs: reservations and rosters, singletons, the single writer.

#![allow(missing_docs, clippy::unwrap_used, reason = "these are tests")]

mod reservations;
mod singletons;
mod writer;
