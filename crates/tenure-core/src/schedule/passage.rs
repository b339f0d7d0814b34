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

/// The seconds that the local times of a rule belong to, one after the other.
pub(crate) struct Passage<'a> {
    rule: &'a OfWall<'a>,
    zone: &'a Zone,
    /// The first second that is not passed.
    low: i64,
    /// The one that `low` is in, if it was looked for.
    stretch: Option<Stretch>,
}

impl<'a> Passage<'a> {
    /// Returns those after a second.
    pub(crate) fn after(rule: &'a OfWall<'a>, zone: &'a Zone, after: i64) -> Self {
        Self { rule, zone, low: after.saturating_add(1), stretch: None }
    }
}

impl Iterator for Passage<'_> {
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        let last = Timestamp::LAST.as_micros().div_euclid(1_000_000);
        while self.low <= last {
            let low = self.low;
            let known = self.stretch.filter(|stretch| stretch.until.is_none_or(|until| low < until));
            let stretch = *self.stretch.insert(known.unwrap_or_else(|| self.zone.stretch(low)));
            let shifted = shifted_into(self.rule, stretch, low);
            let wall = own_from(self.rule, stretch, low);
            let own = (self.rule.next)(wall).map(|wall| wall.0 - stretch.offset);
            let first = [shifted, own].into_iter().flatten().min();
            if let Some(first) = first.filter(|first| stretch.until.is_none_or(|until| *first < until)) {
                self.low = first + 1;
                return Some(first);
            }
            let until = stretch.until?;
            // Nothing before the clocks change. When they go back they show again what lies behind `low`, so that the
            // change may only be jumped over from afar.
            let beyond = own.map_or(i64::MAX, |own| own - FAR);
            if own.is_none() && until - low > FAR && shifted.is_none() {
                return None;
            }
            self.low = if until - low > FAR { beyond.max(until) } else { until };
        }
        None
    }
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
