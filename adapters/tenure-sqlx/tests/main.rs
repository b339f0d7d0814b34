//! Tests of `tenure-sqlx` from outside, in one program.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test fails by panicking")]

mod beside_sqlx;
mod in_postgres;
