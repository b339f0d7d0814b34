//! Time in a model: a few ticks from now, instead of instants that go on for ever.
//!
//! A model that counted time from a beginning would never end. All that a protocol asks of time is how much is left,
//! so a state keeps that, and each step happens at the same instant [`now`]. One tick is a second.

use std::time::Duration;

use tenure_core::Timestamp;

/// The instant at which every step happens.
#[must_use]
pub fn now() -> Timestamp {
    Timestamp::EPOCH.after(Duration::from_secs(1_000_000))
}

/// So many ticks.
#[must_use]
pub fn span(ticks: u8) -> Duration {
    Duration::from_secs(u64::from(ticks))
}

/// The instant that comes in so many ticks.
#[must_use]
pub fn at(ticks: u8) -> Timestamp {
    now().after(span(ticks))
}

/// How many ticks are left until an instant; none if it has passed.
#[must_use]
pub fn left(until: Timestamp) -> u8 {
    u8::try_from(until.since(now()).as_secs()).unwrap_or(u8::MAX)
}
