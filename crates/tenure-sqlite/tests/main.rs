//! Tests of `tenure-sqlite` from outside, in one program.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test fails by panicking")]

mod file;
mod given;
mod in_memory;
mod measured;
mod threads;
mod twice;
