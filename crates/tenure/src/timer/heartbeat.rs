//! When timers were last fired by this program.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tenure_core::Timestamp;
use tenure_store::Fault;

/// It is looked far more often than this: a longer silence has a reason.
const SILENCE: Duration = Duration::from_secs(60);

/// When the workers of this program last fired what was ripe, and what kept them from it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Heartbeat {
    /// When it last worked; `None` if no worker of this program has fired timers yet.
    pub last: Option<Timestamp>,
    /// How often in a row it has not worked since.
    pub faults: u32,
    /// Why it did not work the last time, if it did not.
    pub fault: Option<String>,
    /// The last time for which nothing was fired though a worker ran: from the last success before it until the first
    /// after it. What was ripe meanwhile was decided then.
    pub gap: Option<(Timestamp, Timestamp)>,
}

/// Keeps the heartbeat of a handle.
#[derive(Debug, Default)]
pub(crate) struct Heart {
    beat: Mutex<Heartbeat>,
}

impl Heart {
    pub(crate) fn heartbeat(&self) -> Heartbeat {
        self.with(|beat| beat.clone())
    }

    /// A worker begins to look after timers: until now nobody had to.
    pub(crate) fn begins(&self) {
        self.with(|beat| beat.last = None);
    }

    /// It worked.
    pub(crate) fn beats(&self, now: Timestamp) {
        self.with(|beat| {
            if let Some(last) = beat.last.filter(|last| now.since(*last) > SILENCE) {
                let fault = beat.fault.as_deref().unwrap_or("the host stood still, or its clock was set forward");
                tracing::warn!(from = %last, until = %now, fault, "no timer was fired by this host for a while");
                beat.gap = Some((last, now));
            }
            *beat = Heartbeat { last: Some(now), faults: 0, fault: None, gap: beat.gap };
        });
    }

    /// It did not work.
    pub(crate) fn misses(&self, fault: &Fault) {
        self.with(|beat| {
            beat.faults = beat.faults.saturating_add(1);
            beat.fault = Some(fault.to_string());
        });
    }

    fn with<T>(&self, look: impl FnOnce(&mut Heartbeat) -> T) -> T {
        look(&mut self.beat.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
