//! Timers: declared, fired, and asked about.

#![allow(missing_docs, clippy::unwrap_used, reason = "these are tests")]

mod asked;
mod calendar;
mod declared;
mod fired;
mod killed;
mod late;
mod once;
mod seen;
