//! The kinds of rules that a schedule can have.

use super::at::At;
use super::cron::Cron;
use super::every::{Delay, Every};
use super::rrule::Rrule;
use super::times::Times;
use super::wall::Wall;

/// The rule of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rule {
    /// A cron expression.
    Cron(Cron),
    /// Times of day, every day or on weekdays.
    Times(Times),
    /// A fixed interval.
    Every(Every),
    /// A delay after each run.
    Delay(Delay),
    /// An iCalendar recurrence rule.
    Rrule(Box<Rrule>),
    /// Single times.
    At(At),
}

/// How often a rule means a local time that clocks show twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeats {
    /// It names points of the day: once, when they are shown first.
    Once,
    /// It names an interval, and an hour that comes twice has twice as many of them.
    Twice,
}

/// A rule that speaks of local times.
pub(crate) struct OfWall<'a> {
    pub repeats: Repeats,
    /// The first local time at the given one or after it.
    pub next: &'a dyn Fn(Wall) -> Option<Wall>,
}
