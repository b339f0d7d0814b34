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
    /// How long looks behind the mark, or whole ones that were as fast, usually take.
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
        let is_usual = took <= self.usual * 2 + SLACK;
        if whole && !is_usual {
            let more = took.saturating_sub(self.usual);
            self.whole_from = now.after((more * APART).min(LONGEST));
            return;
        }
        self.usual = (self.usual * 7 + took) / 8;
    }
}
