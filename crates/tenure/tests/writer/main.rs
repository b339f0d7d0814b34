//! The single writer: one in a fleet, in order.

#![allow(missing_docs, clippy::unwrap_used, reason = "these are tests")]

#[path = "../common/mod.rs"]
mod common;

mod book;
mod failures;
mod kill;
mod mailbox;
mod order;
mod takeover;
