//! Steps of a store's clock: what they do not take from whoever holds a lease.

use std::time::Duration;

use tenure_core::{Lease, Ownership, Phase, Timestamp, Ttl};

use crate::{Clock, Moment};

/// What the two clocks may differ by without a step: reading them takes a while.
const LEAST: Duration = Duration::from_millis(50);
/// And for each part of the time since they were compared, because time servers turn a clock slowly.
const SLEWED: u32 = 1_000;

/// Compares the time of day, by which leases are kept, with the clock that never steps.
///
/// A holder believes in its lease for as long as the latter says. If the former steps ahead, a lease looks
/// lapsed that its holder still believes in: for as long as it could, it is treated as held. A store looks
/// at the clock before each call about leases, and shows each lease that it reads to [`Steps::steady`].
#[derive(Debug, Clone, Default)]
pub struct Steps {
    /// What it showed, when, and how long that took to read.
    last: Option<(Timestamp, Moment, Duration)>,
    ahead: Option<Ahead>,
    blind: bool,
}

/// A step ahead.
#[derive(Debug, Clone, Copy)]
struct Ahead {
    by: Duration,
    /// What the clock would have shown when the step was noticed.
    old: Timestamp,
    /// What it showed.
    new: Timestamp,
}

impl Steps {
    /// Sees no steps: the clock is followed wherever it goes.
    #[must_use]
    pub fn blind() -> Self {
        Self { blind: true, ..Self::default() }
    }

    /// Reads the clock; answers what it shows.
    pub fn look(&mut self, clock: &dyn Clock) -> Timestamp {
        let (before, now, moment) = (clock.moment(), clock.now(), clock.moment());
        self.compare(before, now, moment);
        now
    }

    /// Compares what a clock has shown between two moments. Somebody else's may take a while to answer: the longer
    /// it took, the greater a step has to be to be seen.
    pub fn compare(&mut self, before: Moment, now: Timestamp, moment: Moment) {
        if self.blind {
            return;
        }
        // What was read before is no news.
        if self.last.is_some_and(|(_, last, _)| moment < last) {
            return;
        }
        let took = moment.since(before);
        let Some((last, last_moment, last_took)) = self.last.replace((now, moment, took)) else { return };
        let passed = moment.since(last_moment);
        let margin = LEAST + took + last_took + passed / SLEWED;
        let expected = last.after(passed);
        let (ahead, back) = (now.since(expected), expected.since(now));
        if ahead > margin {
            // Of what it may have been, the most: no lease that was renewed before the step goes by the new time.
            let by = ahead + took + self.ahead.map_or(Duration::ZERO, |before| before.by);
            self.ahead = Some(Ahead { by, old: expected.after(last_took), new: now });
        } else if back > margin {
            self.ahead = self.ahead.filter(|step| step.by > back).map(|step| Ahead {
                by: step.by - back,
                new: step.new.before(back),
                ..step
            });
        }
    }

    /// The lease, as it would stand if the clock had not stepped ahead since it was renewed last.
    #[must_use]
    pub fn steady(&self, lease: Lease) -> Lease {
        let Some(step) = self.ahead else { return lease };
        let Some(Ownership { ttl: Ttl::For(ttl), phase: Phase::Held { until: Some(until) }, .. }) =
            lease.held
        else {
            return lease;
        };
        // Whoever renewed it after the step has the new time already; nobody believes for longer than its span.
        if until.before(ttl) > step.old {
            return lease;
        }
        let until = until.after(step.by).min(step.new.after(ttl)).max(until);
        let held = lease.held.map(|held| Ownership { phase: Phase::Held { until: Some(until) }, ..held });
        Lease { held, ..lease }
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::{Fence, Holder, LeaseId, LeaseName, LeaseState};

    use super::*;
    use crate::ManualClock;

    const TTL: Duration = Duration::from_secs(15);
    const HOUR: Duration = Duration::from_secs(3_600);

    fn secs(secs: f64) -> Duration {
        Duration::from_secs_f64(secs)
    }

    fn renewed(at: Timestamp) -> Lease {
        let (id, until) = (LeaseId::new([1, 2]), Some(at.after(TTL)));
        let phase = Phase::Held { until };
        let held = Ownership { id, by: Holder::default(), since: at, ttl: Ttl::For(TTL), phase };
        let name = LeaseName::new("x").unwrap();
        Lease { name, fence: Fence::from_number(1), held: Some(held), freed: at, forgotten: false }
    }

    /// For how long it is held from now on, in tenths of a second, while time goes on without another step.
    fn held_for(steps: &mut Steps, clock: &ManualClock, lease: &Lease) -> u32 {
        let mut tenths = 0;
        loop {
            let now = steps.look(clock);
            if steps.steady(lease.clone()).state(now) != LeaseState::Held {
                return tenths;
            }
            clock.advance(secs(0.1));
            tenths += 1;
        }
    }

    #[test]
    fn a_lease_lasts_as_long_as_it_would_have_whatever_the_clock_shows() {
        for step in [secs(0.2), secs(14.0), HOUR] {
            let (clock, mut steps) = (ManualClock::new(), Steps::default());
            let lease = renewed(steps.look(&clock));
            clock.advance(secs(5.0));
            clock.step_to(clock.now().after(step));
            assert_eq!(held_for(&mut steps, &clock, &lease), 100, "{step:?}");
            let later = renewed(steps.look(&clock));
            assert_eq!(held_for(&mut steps, &clock, &later), 150, "what is renewed since goes by the clock");
        }
    }

    #[test]
    fn what_was_read_before_is_no_step_back() {
        let (clock, mut steps) = (ManualClock::new(), Steps::default());
        let lease = renewed(steps.look(&clock));
        let (before, moment) = (clock.now(), clock.moment());
        clock.advance(secs(5.0));
        clock.step_to(clock.now().after(HOUR));
        steps.look(&clock);
        steps.compare(moment, before, moment);
        assert_eq!(held_for(&mut steps, &clock, &lease), 100);
    }

    #[test]
    fn two_steps_ahead_count_both_and_one_back_undoes_one() {
        let (clock, mut steps) = (ManualClock::new(), Steps::default());
        let lease = renewed(steps.look(&clock));
        for _ in 0..2 {
            clock.advance(secs(2.0));
            clock.step_to(clock.now().after(HOUR));
            steps.look(&clock);
        }
        assert_eq!(steps.steady(lease.clone()).until(), Some(lease.until().unwrap().after(2 * HOUR)));
        clock.step_to(clock.now().before(2 * HOUR));
        assert_eq!(held_for(&mut steps, &clock, &lease), 110);
    }

    #[test]
    fn what_had_lapsed_before_the_step_and_what_has_no_end_stay_as_they_are() {
        let (clock, mut steps) = (ManualClock::new(), Steps::default());
        let lease = renewed(steps.look(&clock));
        clock.advance(TTL + TTL);
        clock.step_to(clock.now().after(HOUR));
        assert_eq!(held_for(&mut steps, &clock, &lease), 0);
        let endless = Lease {
            held: lease.held.map(|held| Ownership {
                ttl: Ttl::Endless,
                phase: Phase::Held { until: None },
                ..held
            }),
            ..renewed(clock.now())
        };
        assert_eq!(steps.steady(endless.clone()), endless);
    }

    /// A clock elsewhere showed its time at some moment between the question and the answer.
    #[test]
    fn an_answer_that_took_long_is_no_step_and_hides_none_that_is_greater() {
        let (clock, mut steps) = (ManualClock::new(), Steps::default());
        let mut ask = |before: Duration, after: Duration| {
            let asked = clock.moment();
            clock.advance(before);
            let shown = clock.now();
            clock.advance(after);
            steps.compare(asked, shown, clock.moment());
            steps.steady(renewed(shown)) != renewed(shown)
        };
        let slow = [(0.0, 0.0), (0.0, 5.0), (5.0, 0.0), (0.0, 0.0), (3.0, 3.0), (0.0, 5.0)];
        for (before, after) in slow {
            assert!(!ask(secs(before), secs(after)), "{before} and {after}");
        }
        let lease = renewed(clock.now());
        clock.step_to(clock.now().after(secs(14.0)));
        ask(secs(0.0), secs(0.0));
        assert!(steps.steady(lease.clone()).until() > lease.until(), "a step of more than it took to answer");
    }

    #[test]
    fn a_clock_that_is_turned_slowly_has_not_stepped() {
        let (clock, mut steps) = (ManualClock::new(), Steps::default());
        for _ in 0..1_000 {
            steps.look(&clock);
            clock.advance(HOUR);
            clock.step_to(clock.now().after(HOUR / 2_000));
        }
        assert!(steps.ahead.is_none());
    }
}
