//! Holding leases, and what has to be told apart for that.

#![allow(missing_docs, clippy::unwrap_used, reason = "these are tests")]

mod app_ids;
mod faults;
mod held;
mod locked_file;
mod lost;
mod many;
mod own_names;
mod past;
mod waiting;
