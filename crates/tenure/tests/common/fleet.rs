//! Several instances of one program on one store, on a clock that is moved by hand.

#![allow(dead_code, missing_docs, reason = "each test file uses a part of this")]

use std::sync::Arc;
use std::time::Duration;

use tenure::{
    Chance, Clock, Error, Faults, FaultyStore, Fence, Holder, LeaseId, LeaseName, ManualClock, MemoryStore,
    Stopped, Store, Tenure, Ttl, Worker,
};
use tenure_core::{LeaseAct, LeaseOutcome};
use tenure_store::LeaseWish;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::settle_down;

pub const STEP: Duration = Duration::from_millis(100);

/// A store, and what its instances have in common.
pub struct Fleet {
    pub clock: ManualClock,
    pub store: Arc<dyn Store>,
}

/// One running program: its handle, its own way to the store, and its worker.
pub struct Instance {
    pub tenure: Tenure,
    /// Its way to the store: what befalls this one befalls nobody else.
    pub way: Arc<FaultyStore>,
    stop: Option<oneshot::Sender<()>>,
    run: JoinHandle<Result<Stopped, Error>>,
    clock: ManualClock,
}

pub fn fleet() -> Fleet {
    let clock = ManualClock::new();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
    Fleet { clock, store }
}

impl Fleet {
    /// A handle of another instance, and its own way to the store.
    pub async fn handle(&self, seed: u64) -> (Tenure, Arc<FaultyStore>) {
        let way = Arc::new(FaultyStore::new(Arc::clone(&self.store), Faults::none(seed)));
        let tenure = Tenure::on(Arc::clone(&way) as _, Chance::seeded(seed)).leases_on_runtime();
        (tenure.as_app("fleet", "program").await.unwrap(), way)
    }

    pub async fn start<App: Send + Sync + 'static>(
        &self,
        seed: u64,
        app: App,
        build: impl FnOnce(Worker<App>) -> Worker<App>,
    ) -> Instance {
        let (tenure, way) = self.handle(seed).await;
        let (stop, stopped) = oneshot::channel();
        let worker = Worker::new(&tenure, app).name(&format!("instance {seed}")).keeper_on_runtime();
        let run = tokio::spawn(build(worker).run(async move { drop(stopped.await) }));
        Instance { tenure, way, stop: Some(stop), run, clock: self.clock.clone() }
    }

    /// Lets time pass in short steps, and all that waits for it go on.
    pub async fn pass(&self, span: Duration) {
        super::pass(&self.clock, span).await;
    }

    /// Lets time pass until something is true, and answers how long that took.
    pub async fn until(&self, what: &str, mut is_so: impl AsyncFnMut() -> bool) -> Duration {
        let began = self.clock.moment();
        for _ in 0..5_000 {
            settle_down().await;
            if is_so().await {
                return self.clock.moment().since(began);
            }
            self.clock.advance(STEP);
        }
        panic!("never came true: {what}");
    }
}

/// A lease that somebody holds who uses the bare store, without end.
pub struct Occupied {
    store: Arc<dyn Store>,
    name: LeaseName,
    id: LeaseId,
    fence: Fence,
}

impl Fleet {
    /// Holds a lease under a name that the library gives to users of its own only.
    pub async fn occupy(&self, name: &str, who: &str) -> Occupied {
        let (name, id) = (LeaseName::new(name).unwrap(), LeaseId::new([7, 7]));
        let act = LeaseAct::Acquire { id, by: Holder::named(who), ttl: Ttl::Endless, wait: None };
        let outcome = self.store.lease(vec![LeaseWish { name: name.clone(), act }]).await.unwrap().remove(0);
        let LeaseOutcome::Granted { fence, .. } = outcome else { panic!("{outcome:?}") };
        Occupied { store: Arc::clone(&self.store), name, id, fence }
    }
}

impl Occupied {
    pub async fn release(self) {
        let act = LeaseAct::Release { id: self.id, fence: self.fence };
        self.store.lease(vec![LeaseWish { name: self.name, act }]).await.unwrap();
    }
}

impl Instance {
    /// Tells it to stop and waits until it has, and answers how long that took.
    pub async fn stop(mut self) -> (Duration, Result<Stopped, Error>) {
        let began = self.clock.moment();
        drop(self.stop.take());
        for _ in 0..5_000 {
            settle_down().await;
            if self.run.is_finished() {
                return (self.clock.moment().since(began), self.run.await.unwrap());
            }
            self.clock.advance(STEP);
        }
        panic!("it did not stop");
    }

    /// It dies: none of its tasks goes on, and nothing of it reaches the store any more.
    pub fn kill(&self) {
        self.way.down(true);
        self.run.abort();
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&self) -> bool {
        self.run.is_finished()
    }
}
