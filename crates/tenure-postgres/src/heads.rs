//! Where looks at what comes next begin: at the first grant that may lapse, at the first job that comes due. What had come
//! before those is gone, but while somebody's snapshot is old it stays where it was, and to pass it takes time.

use std::time::Duration;

use tenure_store::Moment;

use crate::pace::Pace;

/// Before this instant of what is held, and that instant of what comes due later, nothing was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub held: i64,
    pub later: i64,
}

/// Before this nothing ever was.
pub(crate) const START: Head = Head { held: i64::MIN, later: i64::MIN };

/// A mark is so much before what was found: transactions commit in another order than they began.
const BEFORE_MICROS: i64 = 100_000;

/// So much sooner than it was said to something is taken to have come due.
const SOONER: Duration = Duration::from_millis(2);

/// Where looks begin.
#[derive(Debug, Default)]
pub(crate) struct Heads {
    mark: Option<(Head, Pace)>,
    /// When the first job that comes due later does so, as far as the last look has seen; never if it has seen none.
    due: Option<Option<Moment>>,
}

impl Heads {
    /// Where a look begins now.
    pub(crate) fn begin(&self, now: Moment) -> Head {
        self.mark.filter(|(_, pace)| pace.whole_in(now).is_some()).map_or(START, |(head, _)| head)
    }

    /// When a look is at the whole again; `None` if each is.
    pub(crate) fn whole_in(&self, now: Moment) -> Option<Duration> {
        self.mark.and_then(|(_, pace)| pace.whole_in(now))
    }

    /// Notes a look that began there, took so long, and found this first.
    pub(crate) fn looked(&mut self, from: Head, took: Duration, found: Head, now: Moment) {
        let before = |at: i64| at.saturating_sub(BEFORE_MICROS);
        let head = Head { held: before(found.held), later: before(found.later) };
        let (mark, pace) = self.mark.get_or_insert((head, Pace::new(took, now)));
        *mark = head;
        pace.looked(from == START, took, now);
    }

    /// Notes a look that set out at this moment: the first job that comes due later does so after this span.
    pub(crate) fn comes_due(&mut self, span: Option<Duration>, sent: Moment) {
        self.due = Some(span.map(|span| sent.after(span)));
    }

    /// Whether a job may have come due that waits among those that do so later. What somebody else has put there since the
    /// last look is seen by the next.
    pub(crate) fn may_be_due(&self, now: Moment) -> bool {
        self.due.is_none_or(|due| due.is_some_and(|due| due <= now.after(SOONER)))
    }

    /// Notes that something is held until then: if looks begin later, the next is at the whole.
    pub(crate) fn holds(&mut self, until: i64) {
        if self.mark.is_some_and(|(head, _)| until <= head.held) {
            self.mark = None;
        }
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

    const FOUND: Head = Head { held: 30_000_000, later: 5_000_000 };

    #[test]
    fn what_is_found_fast_is_looked_for_from_the_start() {
        let mut heads = Heads::default();
        for turn in 0..10 {
            assert_eq!(heads.begin(at(turn)), START);
            heads.looked(START, millis(2), FOUND, at(turn));
        }
    }

    #[test]
    fn what_is_found_slowly_is_looked_for_behind_the_mark_for_a_while() {
        let mut heads = Heads::default();
        heads.looked(START, millis(1), FOUND, at(0));
        heads.looked(START, millis(11), FOUND, at(100));
        assert_eq!(heads.begin(at(101)), Head { held: 29_900_000, later: 4_900_000 });
        assert_eq!(heads.whole_in(at(101)), Some(millis(1_999)));
        assert_eq!(heads.begin(at(2_100)), START, "200 times 10 milliseconds later");
    }

    #[test]
    fn a_mark_follows_what_is_found() {
        let mut heads = Heads::default();
        heads.looked(START, millis(1), FOUND, at(0));
        heads.looked(START, millis(100), FOUND, at(0));
        let next = Head { held: 31_000_000, later: 6_000_000 };
        heads.looked(heads.begin(at(1)), millis(1), next, at(1));
        assert_eq!(heads.begin(at(2)), Head { held: 30_900_000, later: 5_900_000 });
        assert_eq!(heads.begin(at(4_999)).held, 30_900_000);
        assert_eq!(heads.begin(at(5_000)), START, "what others have granted for less waits no longer");
    }

    #[test]
    fn what_comes_due_is_lined_up_when_it_does_and_not_before() {
        let mut heads = Heads::default();
        assert!(heads.may_be_due(at(0)), "nobody has looked");
        heads.comes_due(Some(millis(100)), at(0));
        assert_eq!([0, 97, 98, 100].map(|now| heads.may_be_due(at(now))), [false, false, true, true]);
        heads.comes_due(None, at(0));
        assert!(!heads.may_be_due(at(1_000_000)));
        heads.comes_due(Some(Duration::ZERO), at(0));
        assert!(heads.may_be_due(at(0)), "it is due already");
    }

    #[test]
    fn what_is_held_for_less_is_seen_by_the_next_look() {
        let mut heads = Heads::default();
        heads.looked(START, millis(1), FOUND, at(0));
        heads.looked(START, millis(100), FOUND, at(0));
        heads.holds(40_000_000);
        assert!(heads.begin(at(1)) != START);
        heads.holds(29_000_000);
        assert_eq!(heads.begin(at(1)), START);
    }
}
