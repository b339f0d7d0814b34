//! Who waits for a change of which job: one task hears for all.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure::{Event, JobId, Tenure};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

/// Whoever waits looks so often, whatever is heard: events are hints.
const LOOK: Duration = Duration::from_secs(60);
/// What other programs write is looked for at most so often,
const APART: Duration = Duration::from_millis(50);
/// and no more often than this for each that waits, so that many who wait cost no more than few.
const APART_EACH: Duration = Duration::from_micros(100);

/// Those who wait for changes of jobs.
pub(crate) struct Watchers {
    tenure: Tenure,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    of: BTreeMap<JobId, (watch::Sender<()>, usize)>,
    /// Whether somebody hears for them.
    heard: bool,
}

/// Somebody who waits for a change of a job; a change after this was made is never missed.
pub(crate) struct Watcher {
    id: JobId,
    tenure: Tenure,
    changed: watch::Receiver<()>,
    shared: Arc<Shared>,
}

impl Watchers {
    pub(crate) fn new(tenure: &Tenure) -> Self {
        Self { tenure: tenure.clone(), shared: Arc::default() }
    }

    /// How many jobs somebody waits for.
    pub(crate) fn count(&self) -> usize {
        self.shared.count()
    }

    /// Begins to wait for changes of a job. To be called before the job is looked at.
    pub(crate) fn watch(&self, id: JobId) -> Watcher {
        let mut waiting = self.shared.lock();
        let (changed, count) = waiting.of.entry(id).or_default();
        *count += 1;
        let changed = changed.subscribe();
        if !waiting.heard {
            waiting.heard = true;
            // It listens before the lock is given back, and so before anything is looked at.
            let (events, others) = (self.tenure.events(), self.tenure.store().others());
            tokio::spawn(hear(self.tenure.clone(), Arc::clone(&self.shared), events, others));
        }
        Watcher { id, tenure: self.tenure.clone(), changed, shared: Arc::clone(&self.shared) }
    }
}

impl Watcher {
    /// Ends when the job may have changed; now and then it ends although it has not.
    pub(crate) async fn changed(&mut self) {
        let clock = self.tenure.store().clock();
        tokio::select! {
            biased;
            // The sender is there for as long as somebody waits.
            _ = self.changed.changed() => {}
            () = clock.sleep(LOOK) => {}
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let mut waiting = self.shared.lock();
        let Some((_, count)) = waiting.of.get_mut(&self.id) else { return };
        *count -= 1;
        if *count == 0 {
            waiting.of.remove(&self.id);
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, id: JobId) {
        if let Some((changed, _)) = self.lock().of.get(&id) {
            changed.send_replace(());
        }
    }

    fn tell_all(&self) {
        self.lock().of.values().for_each(|(changed, _)| {
            changed.send_replace(());
        });
    }

    /// Whether nobody waits; then nobody needs to hear any more.
    fn are_none(&self) -> bool {
        let mut waiting = self.lock();
        waiting.heard = !waiting.of.is_empty();
        waiting.of.is_empty()
    }

    fn count(&self) -> usize {
        self.lock().of.len()
    }
}

/// Hears for all who wait, until nobody does.
async fn hear(
    tenure: Tenure,
    shared: Arc<Shared>,
    mut events: broadcast::Receiver<Arc<Event>>,
    mut others: broadcast::Receiver<()>,
) {
    let clock = tenure.store().clock();
    let mut look = clock.sleep(LOOK);
    loop {
        tokio::select! {
            biased;
            event = events.recv() => match event {
                Ok(event) => shared.tell(event.id),
                Err(RecvError::Lagged(_)) => shared.tell_all(),
                Err(RecvError::Closed) => return,
            },
            wrote = others.recv() => {
                if matches!(wrote, Err(RecvError::Closed)) {
                    return;
                }
                shared.tell_all();
                let each = APART_EACH.saturating_mul(u32::try_from(shared.count()).unwrap_or(u32::MAX));
                clock.sleep(APART.max(each)).await;
            }
            () = &mut look => {
                if shared.are_none() {
                    return;
                }
                look = clock.sleep(LOOK);
            }
        }
    }
}
