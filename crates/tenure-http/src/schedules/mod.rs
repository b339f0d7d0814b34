//! Schedules: the timers of the library, set, watched and asked something of over HTTP.

pub(crate) mod act;
pub(crate) mod backfill;
pub(crate) mod bad;
pub(crate) mod calendar;
pub(crate) mod cursor;
pub(crate) mod look;
pub(crate) mod preview;
mod search;
pub(crate) mod set;
mod shape;
