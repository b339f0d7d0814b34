//! Tests of `tenure-sim` from outside, in one program.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test fails by panicking")]

mod determinism;
mod planted;
mod seeds;
