//! Jobs, as a user of the library sees them: from enqueueing to what is known of them.

#![allow(missing_docs, clippy::unwrap_used, reason = "these are tests")]

mod ahead;
mod apps;
mod bulk;
mod check_in;
mod enqueue;
mod explaining;
mod failures;
mod keys;
mod knots;
mod knowing;
mod origins;
mod outage;
mod outcomes;
mod regressions;
mod rotation;
mod sealed;
mod spans;
mod stats;
mod told;
mod worker;
