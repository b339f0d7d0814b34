//! What the tests of the library share: stores on a clock that is moved by hand, and plain job kinds.

#![allow(dead_code, missing_docs, reason = "each test file uses a part of this")]

pub mod fleet;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use own_postgres::Server;
use serde::{Deserialize, Serialize};
use tenure::{
    Chance, Faults, FaultyStore, Job, JobId, ManualClock, MemoryStore, PostgresOptions, PostgresStore, Store,
    SystemClock, Tenure,
};
use tenure_core::{HostId, Reserved, Timestamp, Verdict};
use tenure_store::{Clock, Kinds, Reserve, Settled, Want};

pub const LEASE: Duration = Duration::from_secs(30);

/// A store under test, on a clock that is moved by hand.
pub struct Rig {
    pub name: &'static str,
    pub tenure: Tenure,
    pub clock: ManualClock,
    pub store: Arc<dyn Store>,
    folder: Option<tempfile::TempDir>,
}

/// The same rig on every kind of store: what the library promises, it promises on all.
pub fn rigs() -> Vec<Rig> {
    rigs_with_one_writer().into_iter().chain([postgres()]).collect()
}

/// The rigs on stores that answer all writes of a program in the order in which they were sent.
pub fn rigs_with_one_writer() -> Vec<Rig> {
    vec![memory(), sqlite()]
}

pub fn memory() -> Rig {
    let clock = ManualClock::new();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
    rig("memory", store, clock, None)
}

pub fn sqlite() -> Rig {
    let clock = ManualClock::new();
    let folder = tempfile::tempdir().unwrap();
    let store = in_file(&folder, &clock);
    rig("sqlite", store, clock, Some(folder))
}

fn in_file(folder: &tempfile::TempDir, clock: &ManualClock) -> Arc<dyn Store> {
    let (path, options) = (folder.path().join("jobs.db"), tenure_sqlite::Options::default());
    tenure_sqlite::SqliteStore::open(path, options, Arc::new(clock.clone())).unwrap()
}

pub fn postgres() -> Rig {
    let clock = ManualClock::new();
    let store: Arc<dyn Store> = on_postgres(postgres_options(), Some(Arc::new(clock.clone())));
    rig("postgres", store, clock, None)
}

/// The server of a test program; it ends with the process.
pub fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start_hasty().unwrap())
}

/// A schema that nobody else uses.
pub fn postgres_options() -> PostgresOptions {
    static MADE: AtomicU64 = AtomicU64::new(0);
    let mut options = PostgresOptions::default();
    options.schema = format!("test_{}", MADE.fetch_add(1, Ordering::Relaxed));
    options.readers = 1;
    // A machine that runs many tests at once may take its time.
    options.patience = Duration::from_secs(120);
    options
}

/// A store on PostgreSQL, opened by a test that need not wait by itself.
pub fn on_postgres(options: PostgresOptions, clock: Option<Arc<dyn Clock>>) -> Arc<PostgresStore> {
    let opening = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(PostgresStore::open(&server().url(), options, clock)).unwrap()
    });
    opening.join().unwrap()
}

fn rig(
    name: &'static str,
    store: Arc<dyn Store>,
    clock: ManualClock,
    folder: Option<tempfile::TempDir>,
) -> Rig {
    Rig { name, tenure: Tenure::on(Arc::clone(&store), Chance::seeded(1)), clock, store, folder }
}

/// A handle on a store in memory by real time, for what is about threads.
pub fn in_real_time() -> Tenure {
    Tenure::on(Arc::new(MemoryStore::new(Arc::new(SystemClock))), Chance::from_system())
}

/// The same on every kind of store, and what keeps the file there.
pub fn all_in_real_time() -> Vec<(Tenure, Option<tempfile::TempDir>)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.db");
    let options = tenure_sqlite::Options::default();
    let store = tenure_sqlite::SqliteStore::open(path, options, Arc::new(SystemClock)).unwrap();
    let postgres = on_postgres(postgres_options(), None);
    vec![
        (in_real_time(), None),
        (Tenure::on(store, Chance::from_system()), Some(folder)),
        (Tenure::on(postgres, Chance::from_system()), None),
    ]
}

/// Lets every task that can go on do so.
pub async fn settle_down() {
    for _ in 0..40 {
        tokio::task::yield_now().await;
    }
}

impl Rig {
    /// Another program on the same file.
    pub fn same_file(&self) -> Tenure {
        let folder = self.folder.as_ref().expect("it is in a file");
        Tenure::on(in_file(folder, &self.clock), Chance::seeded(2))
    }

    pub async fn reserve_all(&self, host: HostId) -> Vec<Reserved> {
        let want = Want { queue: tenure::QueueName::default(), kinds: Kinds::All, at_most: 100 };
        let ask = Reserve { holder: host, ttl: LEASE, wants: vec![want], at_most: 100 };
        self.store.reserve(ask).await.unwrap().jobs
    }

    pub async fn reserve_one(&self, host: HostId) -> Reserved {
        let mut jobs = self.reserve_all(host).await;
        assert_eq!(jobs.len(), 1, "{}", self.name);
        jobs.remove(0)
    }

    pub async fn settle(&self, reserved: Reserved, verdict: Verdict) -> Settled {
        let settlement = reserved.settle(verdict, &tenure::RetryPolicy::default(), 0.5);
        self.store.settle(vec![settlement], None).await.unwrap().settled[0]
    }

    pub async fn state(&self, id: JobId) -> tenure::StateName {
        self.tenure.jobs().get(id).await.unwrap().state.name(self.clock.now())
    }
}

pub fn host(number: u64) -> HostId {
    HostId::new(Timestamp::EPOCH, number)
}

#[derive(Debug, Serialize, Deserialize, PartialEq)]
pub struct Plain {
    pub number: u64,
}

impl Job for Plain {
    const KIND: &'static str = "plain";
    type Output = u64;
}

/// A kind that nobody here handles.
#[derive(Debug, Serialize, Deserialize)]
pub struct Strange {}

impl Job for Strange {
    const KIND: &'static str = "strange";
    type Output = ();
}

/// What another host would be granted now.
pub async fn try_reserve(tenure: &Tenure) -> Vec<Reserved> {
    let want = Want { queue: tenure::QueueName::default(), kinds: Kinds::All, at_most: 10 };
    let ask = Reserve { holder: host(99), ttl: LEASE, wants: vec![want], at_most: 10 };
    tenure.store().reserve(ask).await.unwrap().jobs
}

/// A program that takes leases on a store that can be told to misbehave towards it, on a clock that is moved
/// by hand.
pub struct Leased {
    pub tenure: Tenure,
    pub network: Arc<FaultyStore>,
    /// The store as others have it.
    pub store: Arc<dyn Store>,
    pub clock: ManualClock,
}

pub fn leased() -> Leased {
    let rig = memory();
    let network = Arc::new(FaultyStore::new(Arc::clone(&rig.store), Faults::none(1)));
    let tenure = Tenure::on(Arc::clone(&network) as _, Chance::seeded(1)).leases_on_runtime();
    Leased { tenure, network, store: rig.store, clock: rig.clock }
}

impl Leased {
    /// Another program, whose way to the store is good.
    pub fn another(&self) -> Tenure {
        static SEEDS: AtomicU64 = AtomicU64::new(100);
        let seed = SEEDS.fetch_add(1, Ordering::Relaxed);
        Tenure::on(Arc::clone(&self.store), Chance::seeded(seed)).leases_on_runtime()
    }

    pub async fn pass(&self, span: Duration) {
        pass(&self.clock, span).await;
    }

    /// Calls that the program has made.
    pub fn calls(&self) -> u64 {
        self.network.tally().calls
    }
}

/// Lets time pass in short steps, and all that waits for it go on.
pub async fn pass(clock: &ManualClock, span: Duration) {
    for _ in 0..span.as_millis() / 100 {
        settle_down().await;
        clock.advance(Duration::from_millis(100));
    }
    settle_down().await;
}
