//! When timers were last fired by this program.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tenure_core::Timestamp;
use tenure_store::Fault;

/// It is looked far more often than this: a longer silence has a reason.
const SILENCE: Duration = Duration::from_secs(60);

/// When workers of this process last checked for due schedules, and the error if they could not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Heartbeat {
    /// Time of the last success; `None` if no worker of this process has run schedules yet.
    pub last: Option<Timestamp>,
    /// Number of consecutive failures since then.
    pub faults: u32,
    /// The last error, if the last try failed.
    pub fault: Option<String>,
    /// The last period without success although a worker was running. Runs due in it were decided at its end.
    pub gap: Option<(Timestamp, Timestamp)>,
}

/// Keeps the heartbeat of a handle.
#[derive(Debug, Clone, Default)]
pub(crate) struct Heart {
    beat: Arc<Mutex<Beat>>,
}

#[derive(Debug, Default)]
struct Beat {
    told: Heartbeat,
    /// How many workers look after timers.
    workers: usize,
}

/// A worker looks after timers for as long as it has this.
#[derive(Debug)]
#[must_use]
pub(crate) struct Beating {
    heart: Heart,
}

impl Drop for Beating {
    fn drop(&mut self) {
        self.heart.with(|beat| beat.workers = beat.workers.saturating_sub(1));
    }
}

impl Heart {
    pub(crate) fn heartbeat(&self) -> Heartbeat {
        self.with(|beat| beat.told.clone())
    }

    /// A worker begins to look after timers. If it is the only one of this handle, nobody had to until now.
    pub(crate) fn begins(&self) -> Beating {
        self.with(|beat| {
            if beat.workers == 0 {
                beat.told.last = None;
            }
            beat.workers += 1;
        });
        Beating { heart: self.clone() }
    }

    /// It worked.
    pub(crate) fn beats(&self, now: Timestamp) {
        self.with(|Beat { told, .. }| {
            if let Some(last) = told.last.filter(|last| now.since(*last) > SILENCE) {
                let fault = told.fault.as_deref().unwrap_or("the host was suspended, or its clock was set forward");
                tracing::warn!(from = %last, until = %now, fault, "this host did not run schedules for a while");
                told.gap = Some((last, now));
            }
            *told = Heartbeat { last: Some(now), faults: 0, fault: None, gap: told.gap };
        });
    }

    /// It did not work.
    pub(crate) fn misses(&self, fault: &Fault) {
        self.with(|Beat { told, .. }| {
            told.faults = told.faults.saturating_add(1);
            told.fault = Some(fault.to_string());
        });
    }

    fn with<T>(&self, look: impl FnOnce(&mut Beat) -> T) -> T {
        look(&mut self.beat.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(secs: u64) -> Timestamp {
        Timestamp::EPOCH.after(Duration::from_secs(secs))
    }

    #[test]
    fn a_worker_that_begins_hides_no_gap_of_another_on_the_same_handle() {
        let heart = Heart::default();
        let first = heart.begins();
        heart.beats(second(10));
        let another = heart.begins();
        heart.beats(second(100));
        assert_eq!(heart.heartbeat().gap, Some((second(10), second(100))));
        drop((first, another));
        // While none ran there was nothing to be missed.
        let _third = heart.begins();
        heart.beats(second(500));
        assert_eq!(heart.heartbeat().gap, Some((second(10), second(100))));
    }
}
