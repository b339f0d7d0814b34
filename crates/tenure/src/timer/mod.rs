//! Timers: declaring them, firing them, and asking something of them.

mod backfill;
mod calendar;
mod client;
mod coming;
mod declared;
mod draft;
mod explain;
mod heartbeat;
mod hours;
mod ticker;
mod trigger;
pub mod webjobs;
pub mod when;

pub use backfill::{Backfill, BackfillStep};
pub use calendar::{Calendar, CalendarAsk, Past, ZoneChange};
pub use client::Timers;
pub use coming::{Coming, Group, Slots};
pub(crate) use declared::declared;
pub use draft::TimerDraft;
pub(crate) use draft::check_revision;
pub use explain::TimerWhy;
pub(crate) use heartbeat::Heart;
pub use heartbeat::Heartbeat;
pub use hours::{CalendarHours, TimerHours};
pub(crate) use ticker::Ticker;
pub use trigger::Trigger;
