//! The memory store: the contract in its plainest form, for development and as the reference that
//! other stores are compared with.
//!
//! One lock over ordered tables, so that the same calls give the same answers in the same order. No
//! thread, no task, no clock but the injected one: every answer is ready when it is first asked for.
//! What a call does is done in one go under the lock; nothing of it can be seen half-way.

mod calls;
mod change;
mod copying;
mod enqueue;
mod gates;
mod hosts;
mod keys;
mod leases;
mod limits;
mod lines;
mod news;
mod orders;
mod queues;
mod records;
mod reserve;
mod rewriting;
mod rows;
mod settle;
mod shares;
mod standing;
mod step;
mod tend;
#[cfg(test)]
mod tests;
mod timers;
mod txn;
mod views;
mod waits;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use tenure_core::Timestamp;

use crate::{About, Answer, Bulletin, Clock, Extras, Fault, Hints, Reply, Request, Store};
use rows::Rows;

/// A store that lives as long as the program.
///
/// ```
/// use std::sync::Arc;
/// use tenure_store::{ManualClock, MemoryStore, Views};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let store = MemoryStore::new(Arc::new(ManualClock::new()));
/// assert_eq!(store.counts().await, Ok(vec![]));
/// # }
/// ```
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    bulletin: Arc<Bulletin>,
    /// `None` once it is closed.
    rows: Arc<Mutex<Option<Rows>>>,
}

impl MemoryStore {
    /// An empty store that goes by this clock.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, bulletin: Arc::default(), rows: Arc::new(Mutex::new(Some(Rows::default()))) }
    }

    /// A store that follows its clock wherever it goes, so that whoever checks it needs to know no more than
    /// what the clock shows. For simulations, whose clocks run at other rates than their moments.
    #[must_use]
    pub fn following(clock: Arc<dyn Clock>) -> Self {
        let mut rows = Rows::default();
        rows.leases.follow_the_clock();
        Self { rows: Arc::new(Mutex::new(Some(rows))), ..Self::new(clock) }
    }

    #[cfg(test)]
    pub(crate) fn bulletin(&self) -> &Bulletin {
        &self.bulletin
    }

    /// Does one call under the lock, then pins up what there is to tell of it.
    fn answer<'a, T>(&'a self, call: impl FnOnce(&mut Rows, Timestamp) -> T + Send + 'a) -> Answer<'a, T> {
        // Like any other future it does nothing before it is polled; it never waits.
        Box::pin(async move { under_lock(&self.rows, &self.bulletin, &*self.clock, call) })
    }
}

fn under_lock<T>(
    rows: &Mutex<Option<Rows>>,
    bulletin: &Bulletin,
    clock: &dyn Clock,
    call: impl FnOnce(&mut Rows, Timestamp) -> T,
) -> Result<T, Fault> {
    let mut open = rows.lock().unwrap_or_else(PoisonError::into_inner);
    let rows = open.as_mut().ok_or(Fault::Closed)?;
    rows.news.heard = bulletin.is_heard();
    let answer = call(rows, clock.now());
    // Still under the lock: events are told in the order in which they happened.
    rows.news.tell_events(bulletin);
    let hints = rows.news.take_hints();
    drop(open);
    // Without the lock: a notification sends parked claims, which take it.
    hints.publish(bulletin);
    Ok(answer)
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryStore")
    }
}

impl Store for MemoryStore {
    fn call(&self, request: Request) -> Answer<'_, Reply> {
        Box::pin(async move {
            request.check()?;
            self.answer(move |rows, now| rows.perform(request, now, &*self.clock)).await
        })
    }

    fn hints(&self) -> &dyn Hints {
        &*self.bulletin
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    fn about(&self) -> About {
        let place = "memory; everything is lost when the program ends".to_owned();
        About { place, engine: "memory", cautions: Vec::new() }
    }

    fn extras(&self) -> Extras<'_> {
        Extras::default()
    }

    fn close(&self) -> Answer<'_, ()> {
        Box::pin(async move {
            let mut open = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
            open.take().map(drop).ok_or(Fault::Closed)
        })
    }
}
