//! The reins of one attempt: whether it is held, and whether it shall stop.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tenure_core::JobId;
use tenure_store::{Clock, Held, Moment};
use tokio_util::sync::CancellationToken;

use super::waits::Wait;
use crate::Stopping;

/// Shared by the attempt, the keeper that renews it, and the engine that settles it.
#[derive(Debug)]
pub(crate) struct Control {
    held: Held,
    clock: Arc<dyn Clock>,
    trust: Mutex<Trust>,
    stop: CancellationToken,
    why: OnceLock<Stopping>,
    grace: OnceLock<Duration>,
    lost: AtomicBool,
    completed: AtomicBool,
    place: Mutex<Option<String>>,
    lines: AtomicU32,
    naps: AtomicU32,
    waits: Mutex<BTreeMap<JobId, Wait>>,
}

/// How long this host may believe that it holds the job, on its own clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trust {
    /// When the last good request for it was sent.
    pub(crate) sent: Moment,
    /// Until when.
    pub(crate) deadline: Moment,
}

impl Control {
    pub(crate) fn new(held: Held, clock: Arc<dyn Clock>, trust: Trust) -> Self {
        Self {
            held,
            clock,
            trust: Mutex::new(trust),
            stop: CancellationToken::new(),
            why: OnceLock::new(),
            grace: OnceLock::new(),
            lost: AtomicBool::new(false),
            completed: AtomicBool::new(false),
            place: Mutex::new(None),
            lines: AtomicU32::new(0),
            naps: AtomicU32::new(0),
            waits: Mutex::default(),
        }
    }

    pub(crate) fn held(&self) -> Held {
        self.held
    }

    pub(crate) fn trust(&self) -> Trust {
        *lock(&self.trust)
    }

    /// It is held for longer, unless its deadline has passed: somebody may have looked meanwhile, and what
    /// was lost does not come back.
    pub(crate) fn renewed(&self, trust: Trust) {
        let mut present = lock(&self.trust);
        let is_held = !self.is_lost() && self.clock.moment() < present.deadline;
        if is_held || cfg!(mutant = "lost-comes-back") {
            *present = trust;
        }
    }

    pub(crate) fn is_held(&self) -> bool {
        !self.is_lost() && self.clock.moment() < self.trust().deadline
    }

    /// Whether it is known to be lost, whatever the attempt was told first.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// Tells the attempt that it was cancelled and has so long to stop: by the store's clock, which this
    /// host's need not agree with.
    pub(crate) fn cancel(&self, why: Stopping, grace: Duration) {
        let _ = self.grace.set(grace);
        self.stop(why);
    }

    /// How long a cancelled attempt has to stop.
    pub(crate) fn grace(&self) -> Duration {
        self.grace.get().copied().unwrap_or_default()
    }

    /// The attempt has completed the job in a transaction of its own, which may or may not commit. From then on a job that
    /// is not held any more is not taken to be lost: most likely it has ended.
    #[cfg(feature = "postgres")]
    pub(crate) fn was_completed(&self) {
        self.completed.store(true, Ordering::Relaxed);
    }

    /// Whether the attempt has completed the job in a transaction of its own.
    pub(crate) fn is_completed(&self) -> bool {
        self.completed.load(Ordering::Relaxed)
    }

    /// Tells the attempt to stop. The first reason stands.
    pub(crate) fn stop(&self, why: Stopping) {
        if why == Stopping::Lost && self.is_completed() {
            return;
        }
        if why == Stopping::Lost {
            self.lost.store(true, Ordering::Relaxed);
        }
        if self.why.set(why).is_ok() {
            self.stop.cancel();
        }
    }

    pub(crate) fn stopping(&self) -> Option<Stopping> {
        self.why.get().cloned()
    }

    pub(crate) async fn stopped(&self) -> Stopping {
        self.stop.cancelled().await;
        // The token is cancelled only after the reason is set.
        self.stopping().unwrap_or(Stopping::Lost)
    }

    pub(crate) fn set_place(&self, path: &str) {
        *lock(&self.place) = Some(path.to_owned());
    }

    pub(crate) fn take_place(&self) -> Option<String> {
        lock(&self.place).take()
    }

    /// Waits by the injected clock, and lets it be seen that the handler does nothing else.
    pub(crate) async fn nap(&self, span: Duration) {
        let _napping = Napping::start(&self.naps);
        self.clock.sleep(span).await;
    }

    /// Whether the handler is waiting by the injected clock.
    pub(crate) fn naps(&self) -> bool {
        self.naps.load(Ordering::Relaxed) > 0
    }

    /// The handler waits for this job. A wait that goes on keeps its start.
    pub(super) fn waits_for(&self, job: JobId, wait: impl FnOnce(Moment) -> Wait) {
        let mut waits = lock(&self.waits);
        let since = waits.get(&job).map_or_else(|| self.clock.moment(), |wait| wait.since);
        waits.insert(job, wait(since));
    }

    pub(super) fn waits_no_more_for(&self, job: JobId) {
        lock(&self.waits).remove(&job);
    }

    /// The jobs for which the handler waits now.
    pub(super) fn waits(&self) -> BTreeMap<JobId, Wait> {
        lock(&self.waits).clone()
    }

    /// The number of the next log line of this attempt, from 1.
    pub(crate) fn next_line(&self) -> u32 {
        self.lines.fetch_add(1, Ordering::Relaxed).saturating_add(1)
    }
}

struct Napping<'a>(&'a AtomicU32);

impl<'a> Napping<'a> {
    fn start(naps: &'a AtomicU32) -> Self {
        naps.fetch_add(1, Ordering::Relaxed);
        Self(naps)
    }
}

impl Drop for Napping<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
