//! Ripe timers that this program cannot read: it passes them by for a while.
//!
//! That is kept in memory and not in the database, where they stay ripe: a newer program that shares it fires them at
//! their time, however many older ones there are.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tenure_core::Timestamp;

/// How long such a timer is passed by when it is met first; every further time it is twice as long.
pub(super) const FIRST_SPAN: Duration = Duration::from_secs(1);
/// How long it is passed by at last.
const LONGEST_SPAN: Duration = Duration::from_secs(60);
/// Most timers that are kept in mind.
pub(super) const MOST: usize = 1_000;

/// The timers that are passed by.
#[derive(Debug, Default)]
pub(crate) struct Aside {
    timers: Mutex<BTreeMap<String, PassedBy>>,
}

#[derive(Debug, Clone, Copy)]
struct PassedBy {
    /// Since when it has been ripe. Once that is another instant somebody has been able to read it.
    wake: Timestamp,
    until: Timestamp,
    span: Duration,
}

impl Aside {
    /// How many there may be.
    pub(super) fn len(&self) -> usize {
        self.with(|timers| timers.len())
    }

    /// Those that are passed by now, and since when each has been ripe.
    pub(super) fn all(&self, now: Timestamp) -> Vec<(String, Timestamp)> {
        let known = self.with(|timers| timers.clone());
        let wakes = known.into_iter().map(|(name, one)| (name, one.wake));
        wakes.filter(|(name, wake)| self.until(name, *wake, now).is_some()).collect()
    }

    /// Until when this timer is passed by; `None` if it is not.
    pub(super) fn until(&self, name: &str, wake: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let passed_by = self.with(|timers| timers.get(name).copied()).filter(|one| one.wake == wake)?;
        // A clock that was put back does not make it longer.
        let is_over = passed_by.until <= now || passed_by.until > now.after(passed_by.span);
        (!is_over).then_some(passed_by.until)
    }

    /// Passes a timer by from now on. Answers for how long, or `None` if there are too many of them.
    pub(super) fn put(&self, name: &str, wake: Timestamp, now: Timestamp) -> Option<Duration> {
        self.with(|timers| {
            if timers.len() >= MOST && !timers.contains_key(name) {
                timers.retain(|_, one| one.until > now);
                if timers.len() >= MOST {
                    return None;
                }
            }
            let before = timers.get(name).filter(|before| before.wake == wake);
            let span = before.map_or(FIRST_SPAN, |before| (before.span * 2).min(LONGEST_SPAN));
            timers.insert(name.to_owned(), PassedBy { wake, until: now.after(span), span });
            Some(span)
        })
    }

    /// It could be read.
    pub(super) fn forget(&self, name: &str) {
        self.with(|timers| _ = timers.remove(name));
    }

    fn with<T>(&self, look: impl FnOnce(&mut BTreeMap<String, PassedBy>) -> T) -> T {
        look(&mut self.timers.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Timestamp {
        Timestamp::EPOCH.after(Duration::from_secs(secs))
    }

    #[test]
    fn a_timer_is_passed_by_for_longer_each_time_and_anew_once_somebody_has_fired_it() {
        let aside = Aside::default();
        let spans: Vec<u64> = (0..8).map(|_| aside.put("a", at(5), at(10)).unwrap().as_secs()).collect();
        assert_eq!(spans, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(aside.until("a", at(5), at(69)), Some(at(70)));
        assert_eq!((aside.until("a", at(5), at(70)), aside.until("a", at(5), at(9))), (None, None));
        assert_eq!((aside.until("a", at(6), at(20)), aside.until("b", at(5), at(20))), (None, None));
        assert_eq!((aside.all(at(69)), aside.all(at(70))), (vec![("a".to_owned(), at(5))], Vec::new()));
        assert_eq!(aside.put("a", at(6), at(20)), Some(FIRST_SPAN));
        aside.forget("a");
        assert_eq!(aside.len(), 0);
    }

    #[test]
    fn what_is_kept_in_mind_is_bounded() {
        let aside = Aside::default();
        for number in 0..MOST {
            assert!(aside.put(&number.to_string(), at(0), at(0)).is_some());
        }
        assert_eq!(aside.put("one more", at(0), at(0)), None);
        assert!(aside.put("7", at(0), at(0)).is_some(), "one that is there already");
        assert!(aside.put("one more", at(9), at(9)).is_some(), "their time is over");
        assert_eq!(aside.len(), 1);
    }
}
