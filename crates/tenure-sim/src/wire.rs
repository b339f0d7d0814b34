//! The wire between a host and the store: all that a host knows of the store comes through it.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tenure_store::{
    About, Answer, Bulletin, Clock, Event, Extras, Fault, Hints, ParkingPlace, Reply, Request, Signal, Store,
};
use tokio::sync::{broadcast, watch};

use crate::book::Book;
use crate::clock::SimClock;
use crate::gate::Gate;
use crate::history::{What, Who};

/// A request that takes longer is trouble: what it may have brought is not known to the host.
const SLOW: Duration = Duration::from_millis(100);
/// How often a request that vanished is looked after.
const AGAIN: Duration = Duration::from_millis(50);

/// What a host has for a store. A request that is on its way arrives even if its host dies meanwhile;
/// a frozen host sends nothing and hears nothing.
pub(crate) struct Wire {
    who: Who,
    store: Arc<dyn Store>,
    clock: Arc<SimClock>,
    gate: Arc<Gate>,
    cut: AtomicBool,
    book: Arc<Book>,
    heard: Heard,
    // Hints that came while the host was frozen.
    missed: Mutex<Missed>,
}

/// The notifications that reach the host.
struct Heard {
    bulletin: Bulletin,
    store: Arc<dyn Store>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Missed {
    due: bool,
    asked: bool,
    freed: bool,
}

impl Wire {
    pub(crate) fn new(
        who: Who,
        store: Arc<dyn Store>,
        clock: Arc<SimClock>,
        gate: Arc<Gate>,
        book: Arc<Book>,
    ) -> Self {
        let heard = Heard { bulletin: Bulletin::default(), store: Arc::clone(&store) };
        let (cut, missed) = (AtomicBool::new(false), Mutex::default());
        Self { who, store, clock, gate, cut, book, heard, missed }
    }

    /// Nothing comes through any more, and nobody is told; or it does again.
    pub(crate) fn cut(&self, cut: bool) {
        self.cut.store(cut, Ordering::Relaxed);
    }

    /// A hint of the store reaches the host, if it can hear.
    pub(crate) fn hint_due(&self) {
        match self.hears() {
            true => self.heard.bulletin.call_due(),
            false => self.with_missed(|missed| missed.due = true),
        }
    }

    /// The same for the other hint.
    pub(crate) fn hint_asked(&self) {
        match self.hears() {
            true => self.heard.bulletin.call_asked(),
            false => self.with_missed(|missed| missed.asked = true),
        }
    }

    /// The same for the third.
    pub(crate) fn hint_freed(&self) {
        match self.hears() {
            true => self.heard.bulletin.call_freed(),
            false => self.with_missed(|missed| missed.freed = true),
        }
    }

    /// The host has been thawed: it hears what it missed.
    pub(crate) fn catch_up(&self) {
        let mut missed = Missed::default();
        self.with_missed(|kept| std::mem::swap(&mut missed, kept));
        if missed.due {
            self.heard.bulletin.call_due();
        }
        if missed.asked {
            self.heard.bulletin.call_asked();
        }
        if missed.freed {
            self.heard.bulletin.call_freed();
        }
    }

    fn hears(&self) -> bool {
        self.gate.is_open()
    }

    fn with_missed(&self, change: impl FnOnce(&mut Missed)) {
        change(&mut self.missed.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Sends a request and waits for its answer.
    async fn send(&self, request: Request) -> Result<Reply, Fault> {
        let call = request.operation().name();
        self.gate.pass().await?;
        self.book.note(self.who, What::Called(call));
        let mut waiting = Waiting { wire: self, call, answered: false };
        let mut carried = std::pin::pin!(self.carry(request));
        let answer = tokio::select! {
            biased;
            answer = &mut carried => answer,
            () = self.clock.sleep(SLOW) => {
                self.book.note(self.who, What::Faulted(call));
                let answer = carried.await;
                self.book.note(self.who, What::Faulted(call));
                answer
            }
        };
        self.gate.pass().await?;
        waiting.answered = answer.is_ok();
        answer
    }

    async fn carry(&self, request: Request) -> Result<Reply, Fault> {
        if self.cut.load(Ordering::Relaxed) {
            self.until_mended().await;
            return Err(Fault::Unknown("the connection was lost".into()));
        }
        // Once it is sent, it is on its way, even if its sender dies.
        let store = Arc::clone(&self.store);
        let answer = tokio::spawn(async move { store.call(request).await }).await;
        if self.cut.load(Ordering::Relaxed) {
            self.until_mended().await;
            return Err(Fault::Unknown("the connection was lost".into()));
        }
        answer.unwrap_or_else(|_| Err(Fault::Unknown("the network is gone".into())))
    }

    async fn until_mended(&self) {
        while self.cut.load(Ordering::Relaxed) && !self.gate.is_gone() {
            self.clock.sleep(AGAIN).await;
        }
    }
}

/// A request under way. That it went wrong is written down even if nobody waits for it any more.
struct Waiting<'a> {
    wire: &'a Wire,
    call: &'static str,
    answered: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.answered {
            self.wire.book.note(self.wire.who, What::Faulted(self.call));
        }
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Wire({})", self.who)
    }
}

impl Hints for Heard {
    fn signal(&self, signal: Signal) -> watch::Receiver<u64> {
        self.bulletin.signal(signal)
    }

    fn events(&self) -> broadcast::Receiver<Arc<Event>> {
        self.store.events()
    }

    fn others(&self) -> broadcast::Receiver<()> {
        self.store.others()
    }

    fn park(&self, place: Weak<ParkingPlace>) {
        self.bulletin.park(place);
    }
}

impl Store for Wire {
    fn call(&self, request: Request) -> Answer<'_, Reply> {
        Box::pin(self.send(request))
    }

    fn hints(&self) -> &dyn Hints {
        &self.heard
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock) as Arc<dyn Clock>
    }

    fn about(&self) -> About {
        let place = format!("the store as {} sees it", self.who);
        About { place, engine: "simulated", cautions: Vec::new() }
    }

    fn extras(&self) -> Extras<'_> {
        Extras::default()
    }

    fn close(&self) -> Answer<'_, ()> {
        // The store is shared: no host may end it.
        Box::pin(async { Ok(()) })
    }
}
