//! The recorder: as long as somebody wants to know, what happens is written down.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure::{Moment, Tenure, Timestamp};
use tokio::sync::watch;

use super::hearing::Hearing;
use crate::audit::caught;
use crate::hide::Hiding;

/// Who follows looks only so often by himself: many who follow cost no more than few.
const FOLLOWER_LOOKS: Duration = Duration::from_secs(60);
/// When nobody wants to know any more, it goes on for so long: he may come back.
pub(super) const IDLE: Duration = Duration::from_secs(15 * 60);

/// Pause before a new recorder takes the place of one that panicked.
const AFTER_PANIC: Duration = Duration::from_secs(1);

/// Writes down what happens as long as somebody follows.
#[derive(Clone)]
pub(crate) struct Recorder {
    shared: Arc<Shared>,
    /// What is told to nobody.
    hiding: Hiding,
}

/// What those who follow and the recorder at work have in common.
pub(super) struct Shared {
    following: Mutex<Following>,
    /// Changes when something was appended here.
    pub appended: watch::Sender<u64>,
    /// Since when nothing was left out, once that is known.
    pub began: watch::Sender<Option<Timestamp>>,
}

#[derive(Default)]
struct Following {
    count: usize,
    /// Since when nobody follows.
    none_since: Option<Moment>,
    runs: bool,
}

/// Somebody who wants to know. When he goes, this is dropped.
pub(crate) struct Follow {
    tenure: Tenure,
    shared: Arc<Shared>,
    appended: watch::Receiver<u64>,
}

impl Recorder {
    pub(crate) fn new(hiding: Hiding) -> Self {
        Self { shared: Arc::new(Shared::new()), hiding }
    }

    /// Begins to follow; what happens from now on is written down.
    pub(crate) fn follow(&self, tenure: &Tenure) -> Follow {
        let mut following = self.shared.lock();
        following.count += 1;
        following.none_since = None;
        if !following.runs {
            following.runs = true;
            self.shared.began.send_replace(None);
            // It listens before this returns, and so before anything is looked at.
            let hearing = self.hearing(tenure);
            tokio::spawn(self.clone().keep_recording(tenure.clone(), hearing));
        }
        Follow {
            tenure: tenure.clone(),
            shared: Arc::clone(&self.shared),
            appended: self.shared.appended.subscribe(),
        }
    }

    fn hearing(&self, tenure: &Tenure) -> Hearing {
        Hearing::new(tenure, Arc::clone(&self.shared), self.hiding.clone())
    }

    /// Records until no follower is left. A recorder that panics is replaced: events and webhooks of all jobs depend on it.
    async fn keep_recording(self, tenure: Tenure, mut hearing: Hearing) {
        // The panic hook logs the panic.
        while caught(hearing.run()).await.is_none() {
            tenure.store().clock().sleep(AFTER_PANIC).await;
            hearing = self.hearing(&tenure);
        }
    }

    /// Whether somebody in this program wants to know.
    pub(crate) fn is_on(&self) -> bool {
        self.shared.lock().runs
    }

    /// Says that something was appended by somebody else in this program.
    pub(crate) fn call(&self) {
        self.shared.appended.send_modify(|count| *count += 1);
    }
}

impl Follow {
    /// Since when all that happens is written down.
    pub(crate) async fn began(&self) -> Timestamp {
        let mut began = self.shared.began.subscribe();
        let known = began.wait_for(Option::is_some).await.ok().and_then(|known| *known);
        // Whoever says it is there for as long as this is.
        known.unwrap_or(Timestamp::EPOCH)
    }

    /// Ends when there may be more in the journal; now and then it ends although there is not.
    pub(crate) async fn more(&mut self) {
        let clock = self.tenure.store().clock();
        tokio::select! {
            biased;
            Ok(()) = self.appended.changed() => {}
            () = clock.sleep(FOLLOWER_LOOKS) => {}
        }
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        let mut following = self.shared.lock();
        following.count -= 1;
        if following.count == 0 {
            following.none_since = Some(self.tenure.store().clock().moment());
        }
    }
}

impl Shared {
    pub(super) fn new() -> Self {
        let (appended, began) = (watch::Sender::new(0), watch::Sender::new(None));
        Self { following: Mutex::default(), appended, began }
    }

    fn lock(&self) -> MutexGuard<'_, Following> {
        self.following.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nobody has followed for a while; then it ends.
    pub(super) fn is_over(&self, now: Moment) -> bool {
        let mut following = self.lock();
        let over = following.none_since.is_some_and(|since| now.since(since) >= IDLE);
        if over {
            following.runs = false;
        }
        over
    }
}
