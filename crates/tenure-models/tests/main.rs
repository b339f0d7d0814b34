//! Tests of `tenure-models` from outside, in one program.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test fails by panicking")]

mod follow;
mod models;
