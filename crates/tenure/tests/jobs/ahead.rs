//! What was reserved ahead runs while the store is asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{LEASE, Plain, settle_down};
use tenure::{Chance, Failed, Faults, FaultyStore, Run, StateName, Tenure, Worker};
use tokio::sync::Semaphore;

/// What the handlers of a test count, and what lets them end.
struct Desk {
    begun: AtomicUsize,
    may_end: Semaphore,
}

async fn sign(run: Run<Arc<Desk>>, job: Plain) -> Result<u64, Failed> {
    run.app().begun.fetch_add(1, Ordering::SeqCst);
    run.app().may_end.acquire().await.unwrap().forget();
    Ok(job.number)
}

struct Office {
    tenure: Tenure,
    store: Arc<FaultyStore>,
    desk: Arc<Desk>,
    run: tokio::task::JoinHandle<Result<tenure::Stopped, tenure::Error>>,
}

impl Office {
    /// A worker that has so many jobs in its hands, and a store that answers nothing any more.
    async fn cut_off(slots: usize, prefetch: usize) -> Self {
        let rig = crate::common::memory();
        let store = Arc::new(FaultyStore::new(Arc::clone(&rig.store), Faults::none(1)));
        let desk = Arc::new(Desk { begun: AtomicUsize::new(0), may_end: Semaphore::new(0) });
        let worker = Worker::new(&Tenure::on(store.clone(), Chance::seeded(1)), Arc::clone(&desk));
        let worker = worker.queue("default", slots).prefetch(prefetch).lease(LEASE).keeper_on_runtime();
        for number in 0..100 {
            rig.tenure.enqueue(Plain { number }).await.unwrap();
        }
        let run = tokio::spawn(worker.job(sign).run(std::future::pending::<()>()));
        let office = Self { tenure: rig.tenure.clone(), store, desk, run };
        for _ in 0..100 {
            settle_down().await;
        }
        assert_eq!(office.running().await, slots + prefetch);
        office.store.silent(true);
        office
    }

    async fn running(&self) -> usize {
        let counts = self.tenure.counts().await.unwrap();
        let running = counts.iter().filter(|count| count.state == StateName::Running);
        usize::try_from(running.map(|count| count.jobs).sum::<u64>()).unwrap()
    }

    /// Lets all handlers end that have begun, and those that begin thereby.
    async fn end_all(&self) {
        self.end(1_000).await;
    }

    async fn end(&self, handlers: usize) {
        self.desk.may_end.add_permits(handlers);
        for _ in 0..100 {
            settle_down().await;
        }
    }
}

impl Drop for Office {
    fn drop(&mut self) {
        self.run.abort();
    }
}

#[tokio::test]
async fn a_slot_that_frees_while_the_store_is_asked_is_filled_from_what_was_reserved_ahead() {
    let office = Office::cut_off(1, 3).await;
    // The end of the first is what the store is told; it never answers.
    office.end(1).await;
    assert_eq!(office.desk.begun.load(Ordering::SeqCst), 2);
    office.end_all().await;
    assert_eq!(office.desk.begun.load(Ordering::SeqCst), 4);
}

/// The store has the next to do while an answer is taken in; a third waits until one of them is answered.
#[tokio::test]
async fn if_much_ends_while_the_store_is_asked_it_is_asked_once_more_and_not_a_third_time() {
    let office = Office::cut_off(4, 4).await;
    let before = office.store.tally().calls;
    office.end_all().await;
    assert_eq!(office.desk.begun.load(Ordering::SeqCst), 8);
    assert_eq!(office.store.tally().calls, before + 2);
}

/// Without reserving ahead there is nothing that would run meanwhile: all goes with one request.
#[tokio::test]
async fn a_worker_that_reserves_nothing_ahead_asks_once_at_a_time() {
    let office = Office::cut_off(4, 0).await;
    let before = office.store.tally().calls;
    office.end_all().await;
    assert_eq!(office.desk.begun.load(Ordering::SeqCst), 4);
    assert_eq!(office.store.tally().calls, before + 1);
}
