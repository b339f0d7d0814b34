//! Schedules: what they mean, what they refuse, and what happens when the clocks change.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod agreement;
mod clocks;
mod dice;
mod forms;
mod given;
mod ncrontab;
mod oracle;
mod refused;
mod rrule;
mod rrule_agreement;
mod several;
mod unix;
mod vectors;
mod wishes;
mod words;
