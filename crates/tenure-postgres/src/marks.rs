//! Where claims begin. While somebody's snapshot is old, what was deleted stays at the head of a line, and each claim that
//! looks at the whole line passes all of it.
//!
//! A lane's mark is the place of what was claimed last. A look at the whole line is the rule; where it takes longer than
//! looks behind the mark do, it comes so seldom that this costs half a percent of the time.

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_store::Moment;

use crate::pace::Pace;

/// A place in line: priority, round, due, seq.
pub(crate) type Place = (i16, i64, i64, i64);

/// Behind this lies the whole line.
pub(crate) const START: Place = (i16::MIN, 0, i64::MIN, 0);

/// Marks are set so much before the last place: transactions commit in another order than they began.
const BEFORE_MICROS: i64 = 100_000;
/// Lanes that have marks at most.
const LANES: usize = 10_000;

/// The marks of lanes.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    of: BTreeMap<i32, Mark>,
}

#[derive(Debug, Clone, Copy)]
struct Mark {
    place: Place,
    pace: Pace,
}

impl Marks {
    /// Behind which place a claim of a lane begins now.
    pub(crate) fn begin(&self, lane: i32, now: Moment) -> Place {
        let mark = self.of.get(&lane).filter(|mark| mark.pace.whole_in(now).is_some());
        mark.map_or(START, |mark| mark.place)
    }

    /// When a lane is looked at as a whole again; `None` if it always is.
    pub(crate) fn whole_in(&self, lane: i32, now: Moment) -> Option<Duration> {
        self.of.get(&lane).and_then(|mark| mark.pace.whole_in(now))
    }

    /// Notes a look that began there, took so long, and claimed these places, in order.
    pub(crate) fn looked(&mut self, lane: i32, from: Place, took: Duration, claimed: &[Place], now: Moment) {
        let (Some(first), Some(last)) = (claimed.first(), claimed.last()) else { return };
        // A mark in one priority would hide what comes before it in another, and one in a round what is served next.
        if first.0 != last.0 || last.1 != 0 {
            self.of.remove(&lane);
            return;
        }
        if self.of.len() >= LANES && !self.of.contains_key(&lane) {
            return;
        }
        let place = (last.0, 0, last.2.saturating_sub(BEFORE_MICROS), 0);
        let mark = self.of.entry(lane).or_insert(Mark { place, pace: Pace::new(took, now) });
        mark.place = place;
        mark.pace.looked(from == START, took, now);
    }

    /// Whether every look is one at a whole line.
    pub(crate) fn are_none(&self) -> bool {
        self.of.is_empty()
    }

    /// Notes a job that came into line: one that stands before the mark makes the next look one at the whole line.
    pub(crate) fn joined(&mut self, lane: i32, priority: i16, due: Option<i64>) {
        let Some(mark) = self.of.get(&lane) else { return };
        // One that is due at once stands behind all others of its priority.
        if priority < mark.place.0 || due.is_some_and(|due| (priority, 0, due, 0) <= mark.place) {
            self.forget(lane);
        }
    }

    /// Has the next claim of a lane look at its whole line: something came in before its mark.
    fn forget(&mut self, lane: i32) {
        self.of.remove(&lane);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::from_start(Duration::from_millis(millis))
    }

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    const PLACES: [Place; 2] = [(0, 0, 5_000_000, 7), (0, 0, 6_000_000, 8)];

    #[test]
    fn a_line_that_is_read_fast_is_read_whole() {
        let mut marks = Marks::default();
        for turn in 0..10 {
            assert_eq!(marks.begin(1, at(turn)), START);
            marks.looked(1, START, millis(3), &PLACES, at(turn));
        }
    }

    #[test]
    fn a_line_that_is_read_slowly_is_read_behind_its_mark_for_a_while() {
        let mut marks = Marks::default();
        marks.looked(1, START, millis(3), &PLACES, at(0));
        marks.looked(1, START, millis(23), &PLACES, at(100));
        let begun = marks.begin(1, at(101));
        assert!(begun > START && begun < PLACES[0].max(PLACES[1]), "{begun:?}");
        assert_eq!(marks.begin(2, at(101)), START, "another lane");
        assert!(marks.begin(1, at(4_099)) > START && marks.whole_in(1, at(4_099)) == Some(millis(1)));
        assert_eq!(marks.begin(1, at(4_100)), START, "200 times 20 milliseconds later");
    }

    #[test]
    fn nothing_that_came_in_before_the_mark_waits_for_long() {
        let mut marks = Marks::default();
        marks.looked(1, START, millis(1), &PLACES, at(0));
        marks.looked(1, START, millis(5_000), &PLACES, at(0));
        assert!(marks.begin(1, at(4_999)) > START);
        assert_eq!(marks.begin(1, at(5_000)), START);
        marks.looked(1, START, millis(5_000), &PLACES, at(5_000));
        marks.joined(1, 0, None);
        assert!(marks.begin(1, at(5_001)) > START);
        marks.joined(1, 0, Some(1));
        assert_eq!(marks.begin(1, at(5_001)), START);
    }

    #[test]
    fn a_line_of_several_priorities_or_rounds_has_no_mark() {
        let mut marks = Marks::default();
        for others in [[(0, 0, 1, 1), (1, 0, 1, 2)], [(0, 0, 1, 1), (0, 4, 1, 2)]] {
            marks.looked(1, START, millis(1), &PLACES, at(0));
            marks.looked(1, START, millis(99), &PLACES, at(0));
            marks.looked(1, START, millis(99), &others, at(1));
            assert_eq!(marks.begin(1, at(2)), START);
        }
    }
}
