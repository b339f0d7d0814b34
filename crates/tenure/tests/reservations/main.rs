//! Reserving jobs by name, and the roster on top.

#![allow(missing_docs, clippy::unwrap_used, reason = "these are tests")]

#[path = "../common/mod.rs"]
mod common;

mod reserving;
mod roster;
