//! What all hosts of a cluster share.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenure_core::{JobId, QueueName};
use tenure_store::{Chance, Fault, Jobs, ManualClock, Order, PageAsk, Store, Views};

use crate::asks::Ask;
use crate::book::Book;
use crate::clock::SimClock;
use crate::history::{Row, What, Who};
use crate::plan::{Plan, stream};
use crate::wire::Wire;
use crate::witness::{Witness, row};

/// The store, time, the book, and what was asked for.
pub(crate) struct World {
    pub(crate) seed: u64,
    pub(crate) plan: Plan,
    pub(crate) time: ManualClock,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) store_clock: Arc<SimClock>,
    pub(crate) book: Arc<Book>,
    asks: Mutex<Asks>,
    wires: Mutex<BTreeMap<usize, Arc<Wire>>>,
}

/// What was asked for, and by now is known of it.
#[derive(Debug, Default)]
pub(crate) struct Asks {
    made: u64,
    /// Jobs that clients were told of.
    pub(crate) known: Vec<JobId>,
    /// Batches of unknown outcome, to be repeated by whoever comes.
    pub(crate) open: Vec<Vec<Ask>>,
    /// Batches that some client is trying just now.
    pub(crate) trying: usize,
}

impl World {
    pub(crate) fn new(
        seed: u64,
        plan: Plan,
        time: ManualClock,
        store: Arc<dyn Store>,
        store_clock: Arc<SimClock>,
        book: Arc<Book>,
    ) -> Self {
        Self { seed, plan, time, store, store_clock, book, asks: Mutex::default(), wires: Mutex::default() }
    }

    /// A stream of chance of its own.
    pub(crate) fn chance(&self, part: u64) -> Chance {
        Chance::seeded(stream(self.seed, part))
    }

    pub(crate) fn asks(&self) -> MutexGuard<'_, Asks> {
        self.asks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on this is the wire of that host.
    pub(crate) fn connect(&self, number: usize, wire: &Arc<Wire>) {
        self.wires.lock().unwrap_or_else(PoisonError::into_inner).insert(number, Arc::clone(wire));
    }

    pub(crate) fn wires(&self) -> Vec<Arc<Wire>> {
        self.wires.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// The store as the world sees it: no wire between, but a witness.
    pub(crate) fn store_seen(&self) -> Witness {
        Witness::new(Who::World, Arc::clone(&self.store), Arc::clone(&self.book))
    }

    /// Looks at all jobs and counters.
    pub(crate) async fn audit(&self) -> Result<Vec<Row>, Fault> {
        let (mut rows, mut after) = (Vec::new(), None);
        loop {
            let ask = PageAsk { order: Order::OldestFirst, after, at_most: 1_000, ..PageAsk::default() };
            let page = self.store.jobs(ask).await?;
            rows.extend(page.jobs.iter().map(row));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let counts = self.store.counts().await?;
        self.book.note(Who::World, What::Audit { rows: rows.clone(), counts });
        Ok(rows)
    }

    /// Lets every queue hand out jobs again.
    pub(crate) async fn resume_all(&self) -> Result<(), Fault> {
        let store = self.store_seen();
        for queue in &self.plan.queues {
            let Ok(name) = QueueName::new(&queue.name) else { continue };
            store.set_paused(&name, false).await?;
        }
        Ok(())
    }

    /// Tends the store until there is nothing more to do.
    pub(crate) async fn tend(&self) -> Result<(), Fault> {
        let store = self.store_seen();
        while store.tend().await?.more {}
        Ok(())
    }
}

impl Asks {
    /// The number of the next ask, from 1.
    pub(crate) fn next(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    pub(crate) fn made(&self) -> u64 {
        self.made
    }
}
