//! Tests of `tenure` from outside, in one program.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
mod holding;
mod jobs;
mod kill;
mod outages;
mod postgres;
mod rotation_killed;
mod services;
mod stopped;
mod timers;
