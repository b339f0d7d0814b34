//! Tests of `tenure-ui` from outside, in one program.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test fails by panicking")]

mod app_pages;
mod cost;
mod forms;
mod handy;
mod health;
mod memory;
mod people;
mod site;
mod truth;
mod ui;
