//! From local times to instants, through the days on which clocks change.
//!
//! The rule, for every rule that speaks of local times:
//!
//! * A local time that the clocks jump over is shifted forward by as much as they jump, so that 02:30 becomes 03:30.
//!   None is lost; one that meets another by that becomes one with it.
//! * A local time that the clocks show twice means the first of both for a rule that names points of the day, and
//!   both for a rule that names an interval.

use super::rule::{OfWall, Repeats};
use super::wall::{DAY, Wall};
use super::zone::{Instants, Stretch, Zone};
use crate::Timestamp;

/// Further apart than any two offsets that any zone ever had.
const FAR: i64 = 2 * DAY;

/// How a slot came to its instant where a clock changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClockChange {
    /// The clocks jumped over its local time: it is shifted forward.
    Shifted,
    /// The clocks show its local time twice, and this is the first.
    First,
    /// The clocks show its local time twice, and this is the second.
    Second,
}

/// The first second after `after` that a local time of the rule belongs to.
pub(crate) fn next(rule: &OfWall<'_>, zone: &Zone, after: i64) -> Option<i64> {
    let mut low = after.checked_add(1)?;
    let last = Timestamp::LAST.as_micros().div_euclid(1_000_000);
    while low <= last {
        let stretch = zone.stretch(low);
        let shifted = shifted_into(rule, stretch, low);
        let wall = own_from(rule, stretch, low);
        let own = (rule.next)(wall).map(|wall| wall.0 - stretch.offset);
        let first = [shifted, own].into_iter().flatten().min();
        let Some(until) = stretch.until else {
            return first;
        };
        if first.is_some_and(|first| first < until) {
            return first;
        }
        // Nothing before the clocks change. When they go back they show again what lies behind `low`, so that the
        // change may only be jumped over from afar.
        let beyond = own.map_or(i64::MAX, |own| own - FAR);
        if own.is_none() && until - low > FAR && shifted.is_none() {
            return None;
        }
        low = if until - low > FAR { beyond.max(until) } else { until };
    }
    None
}

/// From where on the rule is asked for what is shown in this stretch and at or after `low`.
fn own_from(rule: &OfWall<'_>, stretch: Stretch, low: i64) -> Wall {
    let from = low + stretch.offset;
    match (rule.repeats, stretch.since) {
        // What was shown before the clocks went back has had its slot.
        (Repeats::Once, Some((began, before))) => Wall(from.max(began + before)),
        _ => Wall(from),
    }
}

/// The first of those that the clocks jumped over where this stretch began, shifted into it.
fn shifted_into(rule: &OfWall<'_>, stretch: Stretch, low: i64) -> Option<i64> {
    let (began, before) = stretch.since?;
    let end = began + stretch.offset;
    // Shifted, they lie between the change and as long after it as the clocks jumped.
    if low + before >= end {
        return None;
    }
    let wall = (rule.next)(Wall(low + before))?;
    (wall.0 < end).then_some(wall.0 - before)
}

/// What the clocks did with a slot.
pub(crate) fn change_at(zone: &Zone, second: i64, is_match: &dyn Fn(Wall) -> bool) -> Option<ClockChange> {
    let wall = zone.wall(second);
    match zone.instants(wall) {
        Instants::Fold { first, .. } if first == second => Some(ClockChange::First),
        Instants::Fold { .. } => Some(ClockChange::Second),
        Instants::One(_) | Instants::Gap { .. } => (!is_match(wall)).then_some(ClockChange::Shifted),
    }
}
