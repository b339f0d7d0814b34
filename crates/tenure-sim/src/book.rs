//! The book in which everybody who is not the system under test writes down what happens.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure_store::{Clock, ManualClock};
use tokio::sync::Notify;

use crate::checks::{Checks, Violation};
use crate::clock::{SimClock, since_start};
use crate::companions::Companions;
use crate::history::{Entry, What, Who};
use crate::probes::{Probe, Probes};
use crate::records::Records;
use crate::trace::Trace;

/// Writes down, checks at once, and stops writing at the first broken promise.
pub(crate) struct Book {
    time: ManualClock,
    store_clock: Arc<SimClock>,
    pages: Mutex<Pages>,
    companions: Mutex<Companions>,
    records: Mutex<Records>,
    broken: Notify,
}

struct Pages {
    checks: Checks,
    probes: Probes,
    trace: Trace,
    entries: u64,
    /// The last entry of the ledger that was looked at.
    ledger: u64,
    violation: Option<Violation>,
    closed: bool,
}

impl Book {
    pub(crate) fn new(time: &ManualClock, store_clock: Arc<SimClock>, whole_trace: bool) -> Self {
        let pages = Pages {
            checks: Checks::new(),
            probes: Probes::default(),
            trace: Trace::new(whole_trace),
            entries: 0,
            ledger: 0,
            violation: None,
            closed: false,
        };
        let (companions, records) = (Mutex::default(), Mutex::default());
        let (time, pages) = (time.clone(), Mutex::new(pages));
        Self { time, store_clock, pages, companions, records, broken: Notify::new() }
    }

    /// Writes down what happens now.
    pub(crate) fn note(&self, who: Who, what: What) {
        let entry = Entry { at: self.now(), store_now: self.store_clock.now(), who, what };
        let mut pages = self.pages();
        if pages.closed {
            return;
        }
        pages.entries += 1;
        if entry.what.is_worth_a_line() {
            pages.trace.push(entry.to_string());
        }
        pages.probes.see(&entry);
        pages.violation = pages.checks.see(&entry);
        pages.closed = pages.violation.is_some();
        if pages.closed {
            self.broken.notify_one();
        }
    }

    /// Resolves when a promise was broken: there is nothing more to see, and time may have come to a stop.
    pub(crate) async fn until_broken(&self) {
        self.broken.notified().await;
    }

    pub(crate) fn hit(&self, probe: Probe) {
        self.pages().probes.hit(probe);
    }

    /// Which jobs have to be looked at together.
    pub(crate) fn companions(&self) -> MutexGuard<'_, Companions> {
        self.companions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The records of slots that have been read.
    pub(crate) fn records(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Up to which number the ledger has been looked at.
    pub(crate) fn ledger_read(&self) -> u64 {
        self.pages().ledger
    }

    pub(crate) fn note_ledger_read(&self, number: u64) {
        self.pages().ledger = number;
    }

    /// How much time has passed.
    pub(crate) fn now(&self) -> Duration {
        since_start(&self.time)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.pages().closed
    }

    /// Ends the history: what falls apart afterwards is not part of it.
    pub(crate) fn close(&self) -> Closed {
        let mut pages = self.pages();
        pages.closed = true;
        Closed {
            violation: pages.violation.clone(),
            probes: std::mem::take(&mut pages.probes.hits.0),
            digest: pages.trace.digest(),
            trace: pages.trace.take(),
            entries: pages.entries,
        }
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Book {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Book")
    }
}

/// A closed book.
pub(crate) struct Closed {
    pub(crate) violation: Option<Violation>,
    pub(crate) probes: std::collections::BTreeMap<Probe, u64>,
    pub(crate) trace: Vec<String>,
    pub(crate) digest: u64,
    pub(crate) entries: u64,
}
