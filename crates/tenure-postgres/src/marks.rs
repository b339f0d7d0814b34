//! Where claims begin. While somebody's snapshot is old, what was deleted stays at the head of a line, and each claim that
//! looks at the whole line passes all of it.
//!
//! A lane's mark is the place of what was claimed last. A look at the whole line is the rule; where it takes longer than
//! looks behind the mark do, it comes so seldom that this costs half a percent of the time, and no claim makes it.

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
    /// Lanes that are to be looked at as wholes, aside.
    asked: Vec<i32>,
}

#[derive(Debug, Clone, Copy)]
struct Mark {
    place: Place,
    pace: Pace,
    /// Whether it was put back to something that was found before it. Who begins there passes all that he else would not.
    put_back: bool,
}

impl Marks {
    /// Behind which place a claim of a lane begins now. If the whole line is to be looked at aside, that is
    /// [asked](Self::take_asked) for.
    pub(crate) fn begin(&mut self, lane: i32, now: Moment) -> Place {
        let Some(mark) = self.of.get_mut(&lane).filter(|mark| mark.pace.is_behind(now)) else { return START };
        if mark.pace.asks(now) {
            self.asked.push(lane);
        }
        mark.place
    }

    /// The lanes that are to be looked at as wholes, aside, and their marks.
    pub(crate) fn take_asked(&mut self) -> Vec<(i32, Place)> {
        let place = |lane| self.of.get(&lane).map(|mark| (lane, mark.place));
        std::mem::take(&mut self.asked).into_iter().filter_map(place).collect()
    }

    /// Notes a look aside, at all that comes before the mark: how long it took, and what was found first. Whether that was
    /// anything: claims begin there then.
    pub(crate) fn looked_aside(
        &mut self,
        lane: i32,
        took: Duration,
        found: Option<Place>,
        now: Moment,
    ) -> bool {
        let Some(mark) = self.of.get_mut(&lane) else { return false };
        mark.pace.looked_aside(took, now);
        let before = found.map(|(priority, round, due, seq)| (priority, round, due, seq - 1));
        let Some(before) = before.filter(|before| *before < mark.place) else { return false };
        (mark.place, mark.put_back) = (before, true);
        true
    }

    /// When a lane is looked at as a whole again; `None` if it always is.
    pub(crate) fn whole_in(&self, lane: i32, now: Moment) -> Option<Duration> {
        self.of.get(&lane).and_then(|mark| mark.pace.whole_in(now))
    }

    /// Notes a look that began there, at this lane and maybe at others, took so long, and claimed what lies from the first of these
    /// places to the last.
    pub(crate) fn looked(
        &mut self,
        lane: i32,
        from: Place,
        took: Duration,
        (first, last): (Place, Place),
        now: Moment,
    ) {
        // A mark in one priority would hide what comes before it in another, and one in a round what is served next.
        if first.0 != last.0 || last.1 != 0 {
            self.of.remove(&lane);
            return;
        }
        let Some(mark) = self.of.get_mut(&lane) else { return self.begin_mark(lane, last, took, now) };
        // It was put back while this look was under way: what was found there is still there.
        if from != START && mark.place < from {
            return;
        }
        mark.place = before(last);
        if !std::mem::take(&mut mark.put_back) || from == START {
            mark.pace.looked(from == START, took, now);
        }
    }

    /// Notes a look that began there, at this lane and at others, took so long, and claimed of the others what lies up to this place:
    /// whatever lies before that in this lane would have been claimed first.
    pub(crate) fn looked_beside(&mut self, lane: i32, from: Place, took: Duration, last: Place, now: Moment) {
        if last.1 != 0 {
            return self.looked_in_vain(lane, from, now);
        }
        let Some(mark) = self.of.get_mut(&lane) else { return self.begin_mark(lane, last, took, now) };
        if from != START && mark.put_back {
            return;
        }
        // A mark in another priority would hide what joins this line in that of its own.
        if mark.place.0 == last.0 {
            mark.place = mark.place.max(before(last));
        }
        mark.pace.looked(from == START, took, now);
    }

    fn begin_mark(&mut self, lane: i32, last: Place, took: Duration, now: Moment) {
        if self.of.len() < LANES {
            self.of.insert(lane, Mark { place: before(last), pace: Pace::new(took, now), put_back: false });
        }
    }

    /// Notes a look that began there and claimed nothing.
    pub(crate) fn looked_in_vain(&mut self, lane: i32, from: Place, now: Moment) {
        let whole = self.of.get_mut(&lane).filter(|_| from == START);
        whole.into_iter().for_each(|mark| mark.pace.looked_in_vain(now));
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

/// Where claims begin that come after one that claimed this last.
fn before((priority, _, due, _): Place) -> Place {
    (priority, 0, due.saturating_sub(BEFORE_MICROS), 0)
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

    const FIRST: Place = (0, 0, 5_000_000, 7);
    const LAST: Place = (0, 0, 6_000_000, 8);
    const PLACES: (Place, Place) = (FIRST, LAST);

    #[test]
    fn a_line_that_is_read_fast_is_read_whole() {
        let mut marks = Marks::default();
        for turn in 0..10 {
            assert_eq!(marks.begin(1, at(turn)), START);
            marks.looked(1, START, millis(1), PLACES, at(turn));
        }
    }

    #[test]
    fn a_line_that_is_read_slowly_is_read_behind_its_mark_for_a_while() {
        let mut marks = Marks::default();
        marks.looked(1, START, millis(1), PLACES, at(0));
        marks.looked(1, START, millis(21), PLACES, at(100));
        let begun = marks.begin(1, at(101));
        assert!(begun > START && begun < LAST, "{begun:?}");
        assert_eq!(marks.begin(2, at(101)), START, "another lane");
        assert!(marks.begin(1, at(4_099)) > START && marks.whole_in(1, at(4_099)) == Some(millis(1)));
        assert!(marks.take_asked().is_empty());
        assert_eq!(marks.begin(1, at(4_100)), begun, "200 times 20 milliseconds later somebody else looks");
        assert_eq!(marks.begin(1, at(4_101)), begun);
        assert_eq!(marks.take_asked(), [(1, begun)]);
        assert!(!marks.looked_aside(1, millis(23), None, at(4_123)));
        assert_eq!(marks.begin(1, at(4_124)), begun);
        assert!(marks.take_asked().is_empty() && marks.whole_in(1, at(4_124)).is_some());
    }

    #[test]
    fn what_a_look_aside_has_found_is_not_passed_by_a_claim_that_was_under_way() {
        let mut marks = Marks::default();
        marks.looked(1, START, millis(1), PLACES, at(0));
        marks.looked(1, START, millis(100), PLACES, at(0));
        let mark = marks.begin(1, at(5_000));
        let late = (0, 0, 1_000_000, 9);
        assert!(marks.looked_aside(1, millis(100), Some(late), at(5_100)));
        marks.looked(1, mark, millis(1), PLACES, at(5_101));
        let put_back = marks.begin(1, at(5_102));
        assert!(put_back < late);
        // Who takes it passes much, which is not usual.
        marks.looked(1, put_back, millis(90), (late, LAST), at(5_190));
        assert!(marks.begin(1, at(5_191)) > late);
        marks.begin(1, at(10_100));
        assert!(!marks.looked_aside(1, millis(100), None, at(10_200)));
        assert!(marks.whole_in(1, at(10_201)).is_some(), "and a look at the whole is still a slow one");
    }

    #[test]
    fn what_a_look_aside_has_found_is_claimed_next() {
        let mut marks = Marks::default();
        marks.looked(1, START, millis(1), PLACES, at(0));
        marks.looked(1, START, millis(100), PLACES, at(0));
        let mark = marks.begin(1, at(5_000));
        assert_eq!(marks.take_asked(), [(1, mark)]);
        let late = (0, 0, 1_000_000, 9);
        assert!(marks.looked_aside(1, millis(100), Some(late), at(5_100)));
        assert!(marks.begin(1, at(5_101)) < late);
    }

    #[test]
    fn a_line_at_which_nobody_looks_aside_is_looked_at_by_a_claim_in_the_end() {
        let mut marks = Marks::default();
        marks.looked(1, START, millis(1), PLACES, at(0));
        marks.looked(1, START, millis(100), PLACES, at(0));
        assert!(marks.begin(1, at(60_000)) > START, "nobody was asked before");
        assert_eq!(marks.take_asked().len(), 1);
        assert_eq!(
            marks.whole_in(1, at(60_001)),
            Some(millis(4_999)),
            "so long it may take until something is found"
        );
        assert!(marks.begin(1, at(64_999)) > START);
        assert_eq!(marks.begin(1, at(65_000)), START);
        marks.looked_in_vain(1, START, at(65_000));
        assert!(marks.begin(1, at(65_001)) > START, "it has found nothing");
    }

    #[test]
    fn a_line_that_is_fast_again_is_read_whole() {
        let mut marks = Marks::default();
        marks.looked(1, START, millis(1), PLACES, at(0));
        marks.looked(1, START, millis(100), PLACES, at(0));
        marks.begin(1, at(5_000));
        marks.looked_aside(1, millis(1), None, at(5_001));
        assert_eq!(marks.begin(1, at(5_002)), START);
    }

    #[test]
    fn nothing_that_came_in_before_the_mark_waits_for_long() {
        let mut marks = Marks::default();
        marks.looked(1, START, millis(1), PLACES, at(0));
        marks.looked(1, START, millis(5_000), PLACES, at(0));
        assert!(marks.take_asked().is_empty() && marks.begin(1, at(4_999)) > START);
        assert!(marks.begin(1, at(5_000)) > START && marks.take_asked().len() == 1);
        marks.looked_aside(1, millis(5_000), None, at(5_000));
        marks.joined(1, 0, None);
        assert!(marks.begin(1, at(5_001)) > START);
        marks.joined(1, 0, Some(1));
        assert_eq!(marks.begin(1, at(5_001)), START);
    }

    #[test]
    fn a_line_of_several_priorities_or_rounds_has_no_mark() {
        let mut marks = Marks::default();
        for last in [(1, 0, 1, 2), (0, 4, 1, 2)] {
            marks.looked(1, START, millis(1), PLACES, at(0));
            marks.looked(1, START, millis(99), PLACES, at(0));
            marks.looked(1, START, millis(99), ((0, 0, 1, 1), last), at(1));
            assert_eq!(marks.begin(1, at(2)), START);
        }
    }

    #[test]
    fn a_line_of_which_nothing_was_claimed_beside_others_is_passed_as_far_as_they_are() {
        let mut marks = Marks::default();
        marks.looked_beside(1, START, millis(99), LAST, at(0));
        let begun = marks.begin(1, at(1));
        assert!(begun > START && begun < LAST && marks.take_asked() == [(1, begun)]);
        let further = (0, 0, 7_000_000, 9);
        marks.looked_beside(1, begun, millis(1), further, at(2));
        let mark = marks.begin(1, at(3));
        assert!(mark > begun && mark < further);
        marks.looked_beside(1, mark, millis(1), (5, 0, 8_000_000, 10), at(4));
        assert_eq!(marks.begin(1, at(5)), mark, "what joins this line in its priority is seen");
        marks.looked_beside(1, mark, millis(1), LAST, at(6));
        assert_eq!(marks.begin(1, at(7)), mark);
        // What somebody finds before it is not passed, though others go on.
        let late = (0, 0, 1_000_000, 3);
        assert!(marks.looked_aside(1, millis(99), Some(late), at(8)));
        let put_back = marks.begin(1, at(9));
        marks.looked_beside(1, put_back, millis(1), further, at(10));
        assert!(marks.begin(1, at(11)) < late);
    }

    #[test]
    fn a_line_that_is_short_itself_is_read_whole_beside_a_long_one() {
        let mut marks = Marks::default();
        marks.looked_beside(1, START, millis(99), LAST, at(0));
        marks.begin(1, at(1));
        assert!(!marks.looked_aside(1, millis(1), None, at(2)));
        assert_eq!(marks.begin(1, at(3)), START);
        marks.looked_beside(2, START, millis(99), (0, 4, 1, 2), at(4));
        assert_eq!(marks.begin(2, at(5)), START, "nothing is known of one that is served by rounds");
    }
}
