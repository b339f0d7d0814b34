//! How often looks are at all there is. While somebody's snapshot is old, what was deleted stays where it was in an index,
//! and each look that begins at the beginning passes all of it.
//!
//! A look at the whole is the rule; where it takes longer than looks behind a mark do, it comes so seldom that this costs
//! half a percent of the time, and it is made aside: nobody waits for it.

use std::time::Duration;

use tenure_store::Moment;

/// How much longer a look may take than usual and count as usual.
const SLACK: Duration = Duration::from_millis(2);
/// What a first look may take and count as usual.
const PROMPT: Duration = Duration::from_millis(1);
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
    /// Whether the last one at the whole took longer than usual. Then the next one is made aside.
    slow: bool,
    /// When somebody was asked to make one aside. If he does not, others make it themselves in the end.
    asked: Option<Moment>,
}

impl Pace {
    /// That of somebody whose first look, at the whole, took so long. If that was long, nothing may have been in memory yet, or much
    /// may already have stayed where it was: a look aside, which is asked for at once, tells which.
    pub(crate) fn new(took: Duration, now: Moment) -> Self {
        Self { usual: took.min(PROMPT), whole_from: now, slow: took > PROMPT, asked: None }
    }

    /// When somebody should look again, because the next look is at the whole or what is looked for aside is found by then;
    /// `None` if each look is at the whole.
    pub(crate) fn whole_in(&self, now: Moment) -> Option<Duration> {
        let until = self.behind_until(now);
        let next = if self.whole_from > now { self.whole_from } else { until };
        (until > now).then(|| next.since(now))
    }

    /// Whether looks begin behind the mark.
    pub(crate) fn is_behind(&self, now: Moment) -> bool {
        self.behind_until(now) > now
    }

    fn behind_until(&self, now: Moment) -> Moment {
        match (self.slow, self.asked) {
            (false, _) => self.whole_from,
            (true, None) => now.max(self.whole_from).after(LONGEST),
            (true, Some(asked)) => self.whole_from.max(asked.after(LONGEST)),
        }
    }

    /// Whether somebody is to be asked now to look at the whole, aside. It is said once, until somebody has.
    pub(crate) fn asks(&mut self, now: Moment) -> bool {
        let asks = self.slow && self.whole_from <= now && self.asked.is_none();
        if asks {
            self.asked = Some(now);
        }
        asks
    }

    /// Notes how long a look took.
    pub(crate) fn looked(&mut self, whole: bool, took: Duration, now: Moment) {
        if !whole {
            self.usual = (self.usual * 7 + took) / 8;
            return;
        }
        self.judge(took, now);
        self.usual = self.usual.min(took);
    }

    /// Notes how long a look aside took, at the whole. It locks nothing and is content with one: it says nothing of how long others
    /// usually take.
    pub(crate) fn looked_aside(&mut self, took: Duration, now: Moment) {
        self.judge(took, now);
    }

    /// Whether looks at the whole are slow, and when the next one is.
    fn judge(&mut self, took: Duration, now: Moment) {
        self.asked = None;
        self.slow = took > self.usual * 2 + SLACK;
        if self.slow {
            let more = took.saturating_sub(self.usual);
            self.whole_from = now.after((more * APART).min(LONGEST));
        }
    }

    /// Notes a look at the whole that found nothing, of which nobody knows how long it took.
    pub(crate) fn looked_in_vain(&mut self, now: Moment) {
        if self.slow {
            (self.asked, self.whole_from) = (None, now.after(LONGEST));
        }
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

    /// So many looks, one each hundredth of a second; answers how many of them were at the whole, aside or not.
    fn at_the_whole(mut pace: Pace, looks: u64, whole: Duration, aside: Duration, behind: Duration) -> u32 {
        let mut count = 0;
        for turn in 0..looks {
            let now = at(turn * 10);
            if pace.is_behind(now) {
                if pace.asks(now) {
                    count += 1;
                    pace.looked_aside(aside, now);
                }
                pace.looked(false, behind, now);
            } else {
                count += 1;
                pace.looked(true, whole, now);
            }
        }
        count
    }

    #[test]
    fn looks_that_are_slower_wherever_they_begin_are_usual_in_the_end() {
        for first in [300, 5_000] {
            let (pace, took) = (Pace::new(micros(first), at(0)), micros(5_000));
            let whole = at_the_whole(pace, 2_000, took, micros(200), took);
            assert!(whole > 1_500, "{whole} of 2000 looks were at the whole");
        }
    }

    /// A program that is started while somebody's snapshot is old has never seen a fast look at the whole.
    #[test]
    fn whoever_begins_with_slow_looks_at_the_whole_makes_few_of_them() {
        let pace = Pace::new(micros(100_000), at(0));
        let whole = at_the_whole(pace, 2_000, micros(100_000), micros(100_000), micros(300));
        assert!(whole <= 5, "{whole} of 2000 looks, in 20 seconds, were at the whole");
    }

    #[test]
    fn whoever_begins_with_one_slow_look_makes_the_others_at_the_whole() {
        let pace = Pace::new(micros(30_000), at(0));
        let whole = at_the_whole(pace, 100, micros(300), micros(200), micros(300));
        assert!(whole >= 99, "{whole} of 100 looks were at the whole");
    }
}
