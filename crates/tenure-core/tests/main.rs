//! Tests of `tenure-core` from outside, in one program.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
mod fuzz;
mod job;
mod lease;
mod schedule;
