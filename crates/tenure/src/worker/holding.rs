//! All that a worker holds now.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure_core::JobId;
use tenure_store::Moment;

use super::control::Control;
use super::waits::Waiters;
use crate::Stopping;

/// The attempts of a worker, as its keeper sees them.
#[derive(Debug, Default)]
pub(crate) struct Holding {
    // Ordered: who is told first does not depend on a hash.
    controls: Mutex<BTreeMap<JobId, Arc<Control>>>,
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

    /// Those that are not lost and whose last good request was sent at least `age` ago, in a stable
    /// order. What is lost is not asked for again: nothing comes back from there.
    pub(crate) fn older_than(&self, age: Duration, now: Moment) -> Vec<Arc<Control>> {
        let held = self.lock();
        let is_old = |control: &&Arc<Control>| !control.is_lost() && now.since(control.trust().sent) >= age;
        let mut old: Vec<_> = held.values().filter(is_old).cloned().collect();
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
        held.values().filter(|control| !control.is_lost()).map(|control| control.trust().deadline).min()
    }

    /// When the one whose last good request is the oldest sent it, of those that are not lost.
    pub(crate) fn oldest_sent(&self) -> Option<Moment> {
        self.lock().values().filter(|control| !control.is_lost()).map(|control| control.trust().sent).min()
    }

    /// The attempts that have waited for other jobs for at least `span`.
    pub(super) fn waiters(&self, span: Duration, now: Moment) -> Waiters {
        let waits = self.lock().iter().map(|(id, control)| (*id, control.waits())).collect::<Waiters>();
        let is_long = |since| now.since(since) >= span;
        waits
            .into_iter()
            .filter(|(_, waits)| !waits.is_empty() && waits.values().all(|wait| is_long(wait.since)))
            .collect()
    }

    pub(crate) fn stop_all(&self, why: &Stopping) {
        self.lock().values().for_each(|control| control.stop(why.clone()));
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<JobId, Arc<Control>>> {
        self.controls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::{Fence, Timestamp};
    use tenure_store::{Held, ManualClock};

    use super::super::control::Trust;
    use super::*;

    /// A deaf handler goes on for a while after it was told; nobody shall ask for its job meanwhile.
    #[test]
    fn what_is_lost_is_not_renewed_again_even_if_it_was_told_to_stop_before() {
        let start = Moment::from_start(Duration::ZERO);
        let held = Held { id: JobId::new(Timestamp::EPOCH, 7), seq: 1, fence: Fence::from_number(1) };
        let trust = Trust { sent: start, deadline: start.after(Duration::from_secs(10)) };
        let control = Arc::new(Control::new(held, Arc::new(ManualClock::new()), trust));
        let holding = Holding::default();
        holding.add([Arc::clone(&control)]);
        control.stop(Stopping::HostStops);
        assert_eq!(holding.older_than(Duration::ZERO, start).len(), 1);

        holding.expire(start.after(Duration::from_secs(10)));
        assert_eq!(control.stopping(), Some(Stopping::HostStops));
        assert!(!control.is_held());
        assert!(holding.older_than(Duration::ZERO, start).is_empty());
        assert_eq!((holding.first_deadline(), holding.oldest_sent()), (None, None));
    }

    /// The keeper looks at deadlines now and then, and an answer may come in between: a handler that has seen
    /// that it lost its job must not see it come back.
    #[test]
    fn an_answer_after_the_deadline_brings_nothing_back() {
        let (clock, start) = (ManualClock::new(), Moment::from_start(Duration::ZERO));
        let held = Held { id: JobId::new(Timestamp::EPOCH, 7), seq: 1, fence: Fence::from_number(1) };
        let trust = |secs| Trust { sent: start, deadline: start.after(Duration::from_secs(secs)) };
        let control = Control::new(held, Arc::new(clock.clone()), trust(10));
        clock.advance(Duration::from_secs(9));
        control.renewed(trust(15));
        assert!(control.is_held());
        clock.advance(Duration::from_secs(6));
        assert!(!control.is_held());
        control.renewed(trust(30));
        assert!(!control.is_held());
    }
}
