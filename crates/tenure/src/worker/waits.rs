//! Handlers that wait for other jobs. If they occupy all slots that could run these jobs, none of them can continue. Such a
//! deadlock is called a knot here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tenure_core::{HostId, Job, JobId, Kind, QueueName, Serves, State, Timestamp};
use tenure_store::{Moment, Store};

use super::control::Control;

tokio::task_local! {
    static CURRENT: Waiter;
}

/// A handler's wait for a job whose own terms allow it to run now.
#[derive(Debug, Clone)]
pub(super) struct Wait {
    pub(super) since: Moment,
    /// The queue of the handler's own job, whose slot it keeps.
    slot_of: QueueName,
    queue: QueueName,
    kind: Kind,
    holder: Option<HostId>,
}

/// The waits of each waiting attempt. The outer key is the attempt's job, the inner key the awaited job.
pub(super) type Waiters = BTreeMap<JobId, BTreeMap<JobId, Wait>>;

/// The attempt to which the current task belongs.
#[derive(Clone)]
pub(crate) struct Waiter {
    control: Arc<Control>,
    job: Arc<Job>,
    store: Arc<dyn Store>,
}

impl Waiter {
    pub(crate) fn new(control: Arc<Control>, job: Arc<Job>, store: Arc<dyn Store>) -> Self {
        Self { control, job, store }
    }

    pub(super) fn current() -> Option<Self> {
        CURRENT.try_with(Clone::clone).ok()
    }

    /// Runs a handler as that of the attempt. Waits in tasks that it spawns do not count.
    pub(super) async fn scope<F: Future>(self, handler: F) -> F::Output {
        CURRENT.scope(self, handler).await
    }

    pub(super) fn sync_scope<T>(self, handler: impl FnOnce() -> T) -> T {
        CURRENT.sync_scope(self, handler)
    }
}

/// A wait for a job, perhaps by a handler. Ends when dropped.
pub(crate) struct Waiting {
    id: JobId,
    waiter: Option<Waiter>,
}

impl Waiting {
    pub(crate) fn new(store: &Arc<dyn Store>, id: JobId) -> Self {
        // The slots of this worker have nothing to do with jobs of another store.
        Self { id, waiter: Waiter::current().filter(|waiter| Arc::ptr_eq(&waiter.store, store)) }
    }

    /// Records the current state of the awaited job. A job that is scheduled for later or blocked does not wait for a slot.
    pub(crate) fn note(&self, awaited: &Job, now: Timestamp) {
        let Some(Waiter { control, job, .. }) = &self.waiter else { return };
        let holder = match awaited.state {
            State::Waiting { due, .. } if due > now => return control.waits_no_more_for(self.id),
            State::Blocked { .. } => return control.waits_no_more_for(self.id),
            State::Running { holder, .. } => Some(holder),
            State::Waiting { .. } | State::Finished { .. } => None,
        };
        control.waits_for(self.id, |since| Wait {
            since,
            slot_of: job.queue.clone(),
            queue: awaited.queue.clone(),
            kind: awaited.kind.clone(),
            holder,
        });
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(waiter) = &self.waiter {
            waiter.control.waits_no_more_for(self.id);
        }
    }
}

/// The slots of a worker, in all and of each queue.
#[derive(Debug)]
pub(super) struct Slots {
    pub(super) host: HostId,
    pub(super) all: u32,
    pub(super) serves: Vec<Serves>,
}

/// A queue whose slots are all occupied by handlers that wait for each other's slots.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Knot {
    /// The number of slots of the queue, or of the whole worker if handlers of other queues occupy some of them.
    pub(super) slots: u32,
    /// A job of the queue for which one of the handlers waits.
    pub(super) awaited: Option<JobId>,
}

impl Slots {
    /// The queues of the worker that are knotted.
    pub(super) fn knots(&self, mut waiters: Waiters) -> BTreeMap<QueueName, Knot> {
        // A handler whose wait may end frees its slot for others, whose waits may then end as well.
        let full = loop {
            let full = self.full(&waiters);
            let is_stuck = |(awaited, wait): (&JobId, &Wait)| {
                let is_elsewhere = wait.holder.is_some_and(|holder| holder != self.host);
                // A job that this host holds without a slot was prefetched.
                let has_no_slot = full.contains_key(&wait.queue) && self.serves(wait);
                !is_elsewhere && (has_no_slot || waiters.contains_key(awaited))
            };
            let stuck = waiters.iter().filter(|(_, waits)| waits.iter().all(is_stuck)).map(|(id, _)| *id);
            let stuck: BTreeSet<JobId> = stuck.collect();
            if stuck.len() == waiters.len() {
                break full;
            }
            waiters.retain(|id, _| stuck.contains(id));
        };
        let awaited = |queue: &QueueName| {
            let mut waits = waiters.values().flatten();
            waits.find(|(_, wait)| wait.queue == *queue && self.serves(wait)).map(|(id, _)| *id)
        };
        full.into_iter()
            .map(|(queue, slots)| {
                let knot = Knot { slots, awaited: awaited(&queue) };
                (queue, knot)
            })
            .collect()
    }

    /// Returns the queues whose slots these handlers all occupy, with the number of slots.
    fn full(&self, waiters: &Waiters) -> BTreeMap<QueueName, u32> {
        let mut taken = BTreeMap::<&QueueName, usize>::new();
        for wait in waiters.values().filter_map(|waits| waits.values().next()) {
            *taken.entry(&wait.slot_of).or_default() += 1;
        }
        let is_full = |taken: usize, slots: u32| slots > 0 && taken >= slots as usize;
        let all = is_full(waiters.len(), self.all).then_some(self.all);
        let of_queue = |serves: &Serves| {
            let taken = taken.get(&serves.queue).copied().unwrap_or_default();
            let slots = if is_full(taken, serves.slots) { Some(serves.slots) } else { all };
            slots.map(|slots| (serves.queue.clone(), slots))
        };
        self.serves.iter().filter_map(of_queue).collect()
    }

    /// Returns `true` if the worker could run the awaited job.
    fn serves(&self, wait: &Wait) -> bool {
        self.serves.iter().any(|serves| serves.covers(&wait.queue, &wait.kind))
    }
}
