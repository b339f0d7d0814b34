//! Hints and events: what a store calls out. Nothing is correct because of it.

use std::sync::{Arc, Weak};

use serde::Serialize;
use tenure_core::{JobId, Kind, QueueName, StateName, Timestamp};
use tokio::sync::{broadcast, watch};

use crate::Store;
use crate::parked::{Parked, Place};

/// Events that a slow listener may fall behind by before it misses some.
const EVENTS_KEPT: usize = 4096;

/// Something that happened to a job.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Event {
    /// When.
    pub at: Timestamp,
    /// To which job.
    pub id: JobId,
    /// Of which kind.
    pub kind: Kind,
    /// In which queue.
    pub queue: QueueName,
    /// What.
    pub what: Happening,
}

/// What happened to a job.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Happening {
    /// It was stored. Whoever enqueued it may be answered a moment later, once it is there for good.
    Enqueued,
    /// An attempt began.
    Started {
        /// Its number.
        attempt: u32,
    },
    /// It told how far it has come.
    Progressed {
        /// From 0 to 1.
        fraction: f64,
        /// What it is doing.
        message: String,
    },
    /// It left a state for this one: an attempt ended, or somebody changed it.
    Became {
        /// The state.
        state: StateName,
        /// What went wrong, if anything did.
        failure: Option<String>,
    },
    /// Its holder was asked to stop.
    AskedToStop,
    /// It was removed.
    Deleted,
}

/// A signal to look at the store. Each has a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Something may have become due.
    Due,
    /// A holder may have been asked to stop.
    Asked,
    /// A lease became free, or will be free sooner than its last answer said. A lease that lapses gives no signal.
    Freed,
}

/// What a store lets others listen to. All of it may be lost, late or early.
pub trait Hints {
    /// Returns the counter of a signal.
    fn signal(&self, signal: Signal) -> watch::Receiver<u64>;

    /// What happens, as far as this program can see it. A listener that falls behind misses some.
    fn events(&self) -> broadcast::Receiver<Arc<Event>>;

    /// Something whenever another program has written: what happened there is not among the events.
    fn others(&self) -> broadcast::Receiver<()>;

    /// Sends a parked claim with the next notification that something may be due; see [`park`](crate::park).
    fn park(&self, place: Weak<Place>);

    /// Returns the counter of [`Signal::Due`].
    fn due(&self) -> watch::Receiver<u64> {
        self.signal(Signal::Due)
    }

    /// Returns the counter of [`Signal::Asked`].
    fn asked(&self) -> watch::Receiver<u64> {
        self.signal(Signal::Asked)
    }

    /// Returns the counter of [`Signal::Freed`].
    fn freed(&self) -> watch::Receiver<u64> {
        self.signal(Signal::Freed)
    }
}

/// The board on which a store pins its hints; stores share it.
#[derive(Debug)]
pub struct Bulletin {
    due: watch::Sender<u64>,
    parked: Parked,
    asked: watch::Sender<u64>,
    freed: watch::Sender<u64>,
    events: broadcast::Sender<Arc<Event>>,
    // Not a watch: those who listen are woken in the order in which they came.
    others: broadcast::Sender<()>,
}

impl Default for Bulletin {
    fn default() -> Self {
        Self {
            due: watch::Sender::new(0),
            parked: Parked::default(),
            asked: watch::Sender::new(0),
            freed: watch::Sender::new(0),
            events: broadcast::Sender::new(EVENTS_KEPT),
            others: broadcast::Sender::new(1),
        }
    }
}

impl Bulletin {
    /// Notifies that something may be due, and sends the parked claims.
    pub fn call_due(&self) {
        self.due.send_modify(|version| *version += 1);
        self.parked.send(|| self.calls());
    }

    /// How often it was said that something may be due.
    #[must_use]
    pub fn calls(&self) -> u64 {
        *self.due.borrow()
    }

    /// Says that a holder may have been asked to stop.
    pub fn call_asked(&self) {
        self.asked.send_modify(|version| *version += 1);
    }

    /// Says that a lease may have become free.
    pub fn call_freed(&self) {
        self.freed.send_modify(|version| *version += 1);
    }

    /// Says that another program has written.
    pub fn call_others(&self) {
        // Nobody listening is not an error.
        let _ = self.others.send(());
    }

    /// Whether anybody listens to events; if not, none need be made.
    #[must_use]
    pub fn is_heard(&self) -> bool {
        self.events.receiver_count() > 0
    }

    /// Tells what happened to whoever listens.
    pub fn tell(&self, event: Event) {
        // Nobody listening is not an error.
        let _ = self.events.send(Arc::new(event));
    }
}

impl<S: Store> Hints for S {
    fn signal(&self, signal: Signal) -> watch::Receiver<u64> {
        self.hints().signal(signal)
    }

    fn events(&self) -> broadcast::Receiver<Arc<Event>> {
        self.hints().events()
    }

    fn others(&self) -> broadcast::Receiver<()> {
        self.hints().others()
    }

    fn park(&self, place: Weak<Place>) {
        self.hints().park(place);
    }
}

impl Hints for Bulletin {
    fn signal(&self, signal: Signal) -> watch::Receiver<u64> {
        match signal {
            Signal::Due => self.due.subscribe(),
            Signal::Asked => self.asked.subscribe(),
            Signal::Freed => self.freed.subscribe(),
        }
    }

    fn events(&self) -> broadcast::Receiver<Arc<Event>> {
        self.events.subscribe()
    }

    fn others(&self) -> broadcast::Receiver<()> {
        self.others.subscribe()
    }

    fn park(&self, place: Weak<Place>) {
        self.parked.add(place);
    }
}
