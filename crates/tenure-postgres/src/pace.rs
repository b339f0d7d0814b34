//! How often looks are at all there is. While somebody's snapshot is old, what was deleted stays where it was in an index,
//! and each look that begins at the beginning passes all of it.
//!
//! A look at the whole is the rule; where it takes longer than looks behind a mark do, it comes so seldom that this costs
//! half a percent of the time.

use std::time::Duration;

use tenure_store::Moment;

/// How much longer a look may take than usual and count as usual.
const SLACK: Duration = Duration::from_millis(2);
/// What a slow look costs is paid back by so many times as long without another.
const APART: u32 = 200;
/// But what came in before the mark waits no longer than that.
const LONGEST: Duration = Duration::from_secs(5);

/// How long looks take, and until when they begin behind a mark.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// How long looks behind the mark usually take, or the fastest whole one as long as there was none. What whole ones
    /// usually take is no measure: it grows with all that stays where it was, a little with each look.
    usual: Duration,
    /// The next look is at the whole from then on.
    whole_from: Moment,
}

impl Pace {
    /// That of somebody whose first look took so long.
    pub(crate) fn new(took: Duration, now: Moment) -> Self {
        Self { usual: took, whole_from: now }
    }

    /// When the next look is at the whole; `None` if each is.
    pub(crate) fn whole_in(&self, now: Moment) -> Option<Duration> {
        (self.whole_from > now).then(|| self.whole_from.since(now))
    }

    /// Notes how long a look took.
    pub(crate) fn looked(&mut self, whole: bool, took: Duration, now: Moment) {
        if !whole {
            self.usual = (self.usual * 7 + took) / 8;
            return;
        }
        if took > self.usual * 2 + SLACK {
            let more = took.saturating_sub(self.usual);
            self.whole_from = now.after((more * APART).min(LONGEST));
        }
        self.usual = self.usual.min(took);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::from_start(Duration::from_millis(millis))
    }

    fn micros(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    /// Each look at the whole takes a hundredth longer than the one before, as when nothing that is dead can be removed.
    #[test]
    fn looks_that_become_slower_bit_by_bit_are_noticed() {
        let (mut pace, mut took, mut now) = (Pace::new(micros(300), at(0)), micros(300), 0);
        while pace.whole_in(at(now)).is_none() {
            pace.looked(true, took, at(now));
            took = took.mul_f64(1.01);
            now += 50;
            assert!(took < micros(4_000), "a look of {took:?} was taken to be usual");
        }
        pace.looked(false, micros(300), at(now));
        assert!(pace.whole_in(at(now + 1)).is_some());
    }

    #[test]
    fn looks_that_are_slower_wherever_they_begin_are_usual_in_the_end() {
        let (mut pace, mut whole, took) = (Pace::new(micros(300), at(0)), 0, micros(5_000));
        for turn in 0..2_000 {
            let is_whole = pace.whole_in(at(turn * 10)).is_none();
            whole += u32::from(is_whole);
            pace.looked(is_whole, took, at(turn * 10));
        }
        assert!(whole > 1_500, "{whole} of 2000 looks were at the whole");
    }
}
