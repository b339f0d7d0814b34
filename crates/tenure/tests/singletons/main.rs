//! Singletons: one in a fleet.

#![allow(missing_docs, clippy::unwrap_used, reason = "these are tests")]

#[path = "../common/mod.rs"]
mod common;

mod functions;
mod listeners;
mod locks;
