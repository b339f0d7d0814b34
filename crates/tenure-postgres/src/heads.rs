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

/// So much sooner than it was said to something is taken to have come due: what two looks say of an instant differs by less,
/// most of the time.
const SOONER: Duration = Duration::from_millis(2);

/// Where looks begin.
#[derive(Debug, Default)]
pub(crate) struct Heads {
    mark: Option<(Head, Pace)>,
    /// Whether it was put back to something that was found before it. Who begins there passes all that he else would not.
    put_back: bool,
    /// When the first job that comes due later does so, as far as the last look has seen; never if it has seen none.
    due: Option<Option<Moment>>,
    /// When somebody should look again, as the last look has seen it; never if there was nothing to wait for.
    next: Option<Option<Moment>>,
}

impl Heads {
    /// Where a look begins now.
    pub(crate) fn begin(&self, now: Moment) -> Head {
        self.mark.filter(|(_, pace)| pace.is_behind(now)).map_or(START, |(head, _)| head)
    }

    /// Whether somebody is to look at the whole, aside. It is said once, until he [has](Self::looked_aside).
    pub(crate) fn is_asked(&mut self, now: Moment) -> bool {
        self.mark.as_mut().is_some_and(|(_, pace)| pace.asks(now))
    }

    /// Notes a look aside, at the whole: how long it took, and what it found first. Whether something of it comes before the
    /// mark: looks begin there then.
    pub(crate) fn looked_aside(&mut self, took: Duration, found: Head, now: Moment) -> bool {
        let Some((head, pace)) = &mut self.mark else { return false };
        pace.looked_aside(took, now);
        let is_before = found.held < head.held || found.later < head.later;
        if is_before {
            *head =
                Head { held: head.held.min(before(found.held)), later: head.later.min(before(found.later)) };
            self.put_back = true;
        }
        is_before
    }

    /// When a look is at the whole again; `None` if each is.
    pub(crate) fn whole_in(&self, now: Moment) -> Option<Duration> {
        self.mark.and_then(|(_, pace)| pace.whole_in(now))
    }

    /// Notes a look that began there, took so long, and found this first.
    pub(crate) fn looked(&mut self, from: Head, took: Duration, found: Head, now: Moment) {
        let head = Head { held: before(found.held), later: before(found.later) };
        let Some((mark, pace)) = &mut self.mark else {
            self.mark = Some((head, Pace::new(took, now)));
            return;
        };
        // What was put back while this look was under way is still to be looked at from there.
        let ahead = |mark: i64, from: i64, head: i64| if mark < from { mark } else { head };
        *mark = match from {
            START => head,
            _ => Head {
                held: ahead(mark.held, from.held, head.held),
                later: ahead(mark.later, from.later, head.later),
            },
        };
        if !std::mem::take(&mut self.put_back) || from == START {
            pace.looked(from == START, took, now);
        }
    }

    /// Notes a look that set out at this moment: the first job that comes due later does so after this span.
    pub(crate) fn comes_due(&mut self, span: Option<Duration>, sent: Moment) {
        self.due = Some(span.map(|span| sent.after(span)));
    }

    /// Notes a look that set out at this moment: somebody should look again after this span.
    pub(crate) fn comes_next(&mut self, span: Option<Duration>, sent: Moment) {
        self.next = Some(span.map(|span| sent.after(span)));
    }

    /// Notes a look that has seen that more has to be asked than it knows.
    pub(crate) fn is_unclear(&mut self) {
        self.next = None;
    }

    /// In how long somebody should look again who does so after this span at the latest; `None` if nobody knows.
    pub(crate) fn next_in(&self, latest: Duration, now: Moment) -> Option<Duration> {
        let next = self.next?;
        Some(next.map_or(latest, |next| next.since(now).min(latest)))
    }

    /// Whether this is sooner than what somebody was told, by more than two looks say of the same.
    pub(crate) fn is_sooner(seen: Moment, told: Moment) -> bool {
        seen.after(SOONER) < told
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

fn before(at: i64) -> i64 {
    at.saturating_sub(BEFORE_MICROS)
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
            heads.looked(START, millis(1), FOUND, at(turn));
        }
    }

    #[test]
    fn what_is_found_slowly_is_looked_for_behind_the_mark_for_a_while() {
        let mut heads = Heads::default();
        heads.looked(START, millis(1), FOUND, at(0));
        heads.looked(START, millis(11), FOUND, at(100));
        assert_eq!(heads.begin(at(101)), Head { held: 29_900_000, later: 4_900_000 });
        assert_eq!(heads.whole_in(at(101)), Some(millis(1_999)));
        assert!(!heads.is_asked(at(2_099)));
        assert!(
            heads.begin(at(2_100)) != START && heads.is_asked(at(2_100)),
            "200 times 10 milliseconds later"
        );
        assert!(!heads.is_asked(at(2_101)), "somebody looks already");
        assert!(!heads.looked_aside(millis(11), FOUND, at(2_111)), "nothing else was there");
        assert!(heads.begin(at(2_112)) != START && !heads.is_asked(at(2_112)));
        assert!(heads.is_asked(at(4_111)));
        assert!(heads.looked_aside(millis(11), Head { later: 1_000_000, ..FOUND }, at(4_122)));
        let put_back = Head { held: 29_900_000, later: 900_000 };
        assert_eq!(heads.begin(at(4_123)), put_back);
        heads.looked(Head { held: 29_900_000, later: 4_900_000 }, millis(1), FOUND, at(4_124));
        assert_eq!(heads.begin(at(4_125)), put_back, "a look that was under way has not passed it");
        assert!(heads.is_asked(at(6_122)), "and if nobody looks, the next look is at the whole");
        assert_eq!(heads.begin(at(6_122 + 5_000)), START);
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
        assert!(heads.is_asked(at(5_000)), "what others have granted for less waits no longer");
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
    fn what_two_looks_say_of_the_same_instant_is_not_sooner() {
        let mut heads = Heads::default();
        assert_eq!(heads.next_in(millis(30_000), at(0)), None, "nobody has looked");
        heads.comes_next(Some(millis(10_000)), at(0));
        let told = at(500).after(heads.next_in(millis(30_000), at(500)).unwrap());
        assert_eq!(told, at(10_000));
        let seen = |in_millis: u64, at_millis: u64| at(at_millis).after(millis(in_millis));
        assert!(!Heads::is_sooner(seen(9_449, 550), told), "a commit that took 50 ms lies between");
        assert!(Heads::is_sooner(seen(9_440, 550), told));
        heads.comes_next(None, at(600));
        assert_eq!(heads.next_in(millis(30_000), at(600)), Some(millis(30_000)));
        heads.is_unclear();
        assert_eq!(heads.next_in(millis(30_000), at(600)), None);
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
