//! All that a worker holds now.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure_core::JobId;
use tenure_store::Moment;

use super::control::Control;
use crate::Stopping;

/// The attempts of a worker, as its keeper sees them.
#[derive(Debug, Default)]
pub(crate) struct Holding {
    controls: Mutex<HashMap<JobId, Arc<Control>>>,
}

impl Holding {
    pub(crate) fn add(&self, controls: impl IntoIterator<Item = Arc<Control>>) {
        self.lock().extend(controls.into_iter().map(|control| (control.held().id, control)));
    }

    /// Forgets these, each only if it is still the same ownership: the job may have come back.
    pub(crate) fn remove<'a>(&self, controls: impl IntoIterator<Item = &'a Arc<Control>>) {
        let mut held = self.lock();
        for control in controls {
            let id = control.held().id;
            if held.get(&id).is_some_and(|now| now.held().fence == control.held().fence) {
                held.remove(&id);
            }
        }
    }

    /// Those whose last good request was sent at least `age` ago, in a stable order.
    pub(crate) fn older_than(&self, age: Duration, now: Moment) -> Vec<Arc<Control>> {
        let held = self.lock();
        let mut old: Vec<_> =
            held.values().filter(|control| now.since(control.trust().sent) >= age).cloned().collect();
        old.sort_by_key(|control| control.held().seq);
        old
    }

    /// Tells those whose deadline has passed that they are lost.
    pub(crate) fn expire(&self, now: Moment) {
        for control in self.lock().values().filter(|control| control.trust().deadline <= now) {
            control.stop(Stopping::Lost);
        }
    }

    /// The earliest deadline among those that are still believed in.
    pub(crate) fn first_deadline(&self) -> Option<Moment> {
        let held = self.lock();
        held.values()
            .filter(|control| control.stopping() != Some(Stopping::Lost))
            .map(|control| control.trust().deadline)
            .min()
    }

    /// When the one whose last good request is the oldest sent it.
    pub(crate) fn oldest_sent(&self) -> Option<Moment> {
        self.lock().values().map(|control| control.trust().sent).min()
    }

    pub(crate) fn stop_all(&self, why: &Stopping) {
        self.lock().values().for_each(|control| control.stop(why.clone()));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<JobId, Arc<Control>>> {
        self.controls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
