//! How often looks may go out that nobody is in a hurry for.

use std::time::Duration;

use tenure_store::Moment;

/// A few at once, then one for each span: however many hints come.
#[derive(Debug)]
pub(crate) struct Pace {
    every: Duration,
    at_once: u32,
    /// When as many as may go at once may go again.
    full: Option<Moment>,
}

impl Pace {
    pub(crate) fn new(every: Duration, at_once: u32) -> Self {
        Self { every, at_once, full: None }
    }

    /// When the next may go; now if `None`.
    pub(crate) fn next(&self, now: Moment) -> Option<Moment> {
        let spent = self.full?.since(now);
        let room = self.every * (self.at_once - 1);
        (spent > room).then(|| now.after(spent - room))
    }

    /// What went was worth it: as many as may go at once may go again.
    pub(crate) fn refill(&mut self) {
        self.full = None;
    }

    /// Lets one go, if it may.
    pub(crate) fn take(&mut self, now: Moment) -> bool {
        if self.next(now).is_some() {
            return false;
        }
        let from = self.full.map_or(now, |full| full.max(now));
        self.full = Some(from.after(self.every));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_go_at_once_and_then_one_a_second() {
        let at = |millis| Moment::from_start(Duration::from_millis(millis));
        let mut pace = Pace::new(Duration::from_secs(1), 3);
        let went: Vec<u64> =
            (0..100).map(|tick| tick * 100).filter(|millis| pace.take(at(*millis))).collect();
        assert_eq!(went, [0, 100, 200, 1_000, 2_000, 3_000, 4_000, 5_000, 6_000, 7_000, 8_000, 9_000]);
        assert_eq!(pace.next(at(9_900)), Some(at(10_000)));
        assert_eq!(pace.next(at(30_000)), None);
        pace.refill();
        assert_eq!((0..10).filter(|_| pace.take(at(9_900))).count(), 3);
    }
}
