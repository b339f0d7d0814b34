//! One seed: a cluster lives through its faults, is healed, and has to bring everything to an end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::explain;
use tenure_store::{Chance, Clock, Fault, ManualClock, MemoryStore, Store};

use crate::book::Book;
use crate::checks::Violation;
use crate::clock::SimClock;
use crate::gate::Gate;
use crate::history::{Row, What, Who};
use crate::plan::Plan;
use crate::probes::Probe;
use crate::weather::Cluster;
use crate::world::World;

/// All has to end within this time after the healing.
const PATIENCE: Duration = Duration::from_secs(1_800);
/// So long after the healing timers go on.
const TIMERS_GO_ON: Duration = Duration::from_secs(60);
/// The store is looked over so often.
const BETWEEN_AUDITS: Duration = Duration::from_secs(2);

/// What to simulate.
#[derive(Clone, Copy)]
pub struct Setup {
    /// The seed decides everything.
    pub seed: u64,
    /// Whether the whole trace is kept, not only its end.
    pub whole_trace: bool,
    /// What is done to the store before the cluster uses it: nothing, unless a test plants a bug.
    pub plant: fn(Arc<dyn Store>) -> Arc<dyn Store>,
}

/// What came of a seed.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// The first promise that was broken.
    pub violation: Option<Violation>,
    /// How often each probe was hit.
    pub probes: BTreeMap<Probe, u64>,
    /// The end of the trace, or all of it.
    pub trace: Vec<String>,
    /// A digest of the whole trace.
    pub digest: u64,
    /// Entries in the history.
    pub entries: u64,
    /// How much time was simulated.
    pub simulated: Duration,
}

impl Setup {
    /// The seed as it is, with the end of its trace.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        Self { seed, whole_trace: false, plant: |store| store }
    }

    /// Simulates it, in this thread.
    ///
    /// # Panics
    /// If the machine cannot start a runtime.
    #[must_use]
    pub fn run(self) -> Outcome {
        let time = ManualClock::new();
        let hand = time.clone();
        // Time moves when nothing else can: as far as the first one who sleeps.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .on_thread_park(move || {
                if let Some(span) = hand.until_next_sleeper() {
                    hand.advance(span);
                }
            })
            .build()
            .expect("a runtime of one thread without drivers needs nothing that can be missing");
        let store_clock = Arc::new(SimClock::new(&time, 1.0, Arc::new(Gate::default())));
        let book = Arc::new(Book::new(&time, Arc::clone(&store_clock), self.whole_trace));
        let clock = Arc::clone(&store_clock) as Arc<dyn Clock>;
        let store = (self.plant)(Arc::new(MemoryStore::following(clock)));
        let plan = Plan::draw(self.seed);
        let world = Arc::new(World::new(self.seed, plan, time, store, store_clock, Arc::clone(&book)));
        let lived = runtime.block_on(async {
            tokio::select! {
                biased;
                () = book.until_broken() => Ok(()),
                lived = live(Arc::clone(&world)) => lived,
            }
        });
        let simulated = book.now();
        let closed = book.close();
        drop(runtime);
        let broken = lived.err().map(|fault| Violation {
            rule: "the simulation works",
            how: fault.to_string(),
            entry: "the world".to_owned(),
        });
        Outcome {
            seed: self.seed,
            violation: closed.violation.or(broken),
            probes: closed.probes,
            trace: closed.trace,
            digest: closed.digest,
            entries: closed.entries,
            simulated,
        }
    }
}

async fn live(world: Arc<World>) -> Result<(), Fault> {
    let relays = relay(&world);
    world.set_limits().await?;
    let mut cluster = Cluster::start(&world);
    suffer(&world, &mut cluster).await?;
    if !world.book.is_closed() {
        cluster.heal();
        world.resume_all().await?;
        world.resume_timers().await?;
        world.break_endless(&cluster.alive()).await?;
        recover(&world, &mut cluster).await?;
        serve_all(&world, &mut cluster).await?;
        finish(&world, &mut cluster).await?;
    }
    relays.iter().for_each(tokio::task::JoinHandle::abort);
    Ok(())
}

/// The first phase: faults, and a look at everything now and then.
async fn suffer(world: &World, cluster: &mut Cluster) -> Result<(), Fault> {
    let chance = world.chance(4);
    let mut audited = Duration::ZERO;
    while world.book.now() < world.plan.length && !world.book.is_closed() {
        world.time.sleep(Duration::from_millis(50 + chance.below(900))).await;
        cluster.turn();
        if world.book.now() >= audited + BETWEEN_AUDITS {
            audited = world.book.now();
            world.audit().await?;
        }
    }
    Ok(())
}

/// The second phase: nothing stands in the way any more, so everything has to end.
async fn recover(world: &World, cluster: &mut Cluster) -> Result<(), Fault> {
    let healed = world.book.now();
    let mut interferes = world.chance(9).below(2) == 0;
    loop {
        world.time.sleep(BETWEEN_AUDITS).await;
        cluster.turn_calmly();
        let fires = world.plan.timers.is_some() && world.book.now() < healed + TIMERS_GO_ON;
        if !fires {
            // As long as timers fire there is always more to do.
            world.pause_timers().await?;
        }
        let rows = world.audit().await?;
        let unfinished: Vec<&Row> = rows.iter().filter(|row| row.end().is_none()).collect();
        let is_quiet = {
            let asks = world.asks();
            asks.made() >= world.plan.jobs && asks.open.is_empty() && asks.trying == 0
        };
        if world.book.is_closed() || (unfinished.is_empty() && is_quiet && !fires) {
            return Ok(());
        }
        if is_quiet && std::mem::take(&mut interferes) {
            world.delete_heads().await?;
        }
        if world.book.now() > healed + PATIENCE {
            let unfinished = reasons(world, &unfinished).await?;
            world.book.note(Who::World, What::Over { unfinished, waited: Vec::new(), held: Vec::new() });
            return Ok(());
        }
    }
}

/// Whoever waits for a lease gets it, now that nobody begins to.
async fn serve_all(world: &World, cluster: &mut Cluster) -> Result<(), Fault> {
    let begun = world.book.now();
    world.note_enough();
    while !world.waited().is_empty() && !world.book.is_closed() {
        world.time.sleep(BETWEEN_AUDITS).await;
        cluster.turn_calmly();
        world.pause_timers().await?;
        world.audit().await?;
        if world.book.now() > begun + PATIENCE {
            let waited = world.waited();
            world.book.note(Who::World, What::Over { unfinished: Vec::new(), waited, held: Vec::new() });
        }
    }
    Ok(())
}

/// The reason that the library gives for each job that has not ended.
async fn reasons(world: &World, rows: &[&Row]) -> Result<Vec<(u64, String)>, Fault> {
    let mut reasons = Vec::new();
    for row in rows {
        let standing = world.store.standing(row.id).await?;
        let now = world.store_clock.now();
        let why = standing.map_or_else(String::new, |standing| explain(&standing, now).to_string());
        reasons.push((row.seq, why));
    }
    Ok(reasons)
}

/// The end: every worker stops in time, and what the store has is in order.
async fn finish(world: &World, cluster: &mut Cluster) -> Result<(), Fault> {
    let stopped = world.store_clock.now();
    cluster.stop_all();
    let alive = cluster.alive();
    while !cluster.have_all_stopped() && !world.book.is_closed() {
        world.time.sleep(BETWEEN_AUDITS).await;
        // Something happens, so that whoever should have ended by now is noticed.
        world.audit().await?;
    }
    world.tend().await?;
    world.audit().await?;
    let held = world.held(&alive, stopped).await?;
    world.book.note(Who::World, What::Over { unfinished: Vec::new(), waited: Vec::new(), held });
    Ok(())
}

/// Hints of the store go to every host in turn, unless they are lost. Each host has a board of its
/// own: tokio wakes those who wait at one board in an order that no seed decides.
fn relay(world: &Arc<World>) -> [tokio::task::JoinHandle<()>; 3] {
    let (mut due, mut asked, mut freed) = (world.store.due(), world.store.asked(), world.store.freed());
    let (for_due, for_asked, for_freed) = (Arc::clone(world), Arc::clone(world), Arc::clone(world));
    let is_lost = |world: &World, chance: &Chance| world.plan.weather.hints_lost && chance.below(2) == 0;
    let relay_due = async move {
        let chance = for_due.chance(5);
        while due.changed().await.is_ok() {
            for wire in for_due.wires() {
                if !is_lost(&for_due, &chance) {
                    wire.hint_due();
                }
            }
        }
    };
    let relay_asked = async move {
        let chance = for_asked.chance(6);
        while asked.changed().await.is_ok() {
            for wire in for_asked.wires() {
                if !is_lost(&for_asked, &chance) {
                    wire.hint_asked();
                }
            }
        }
    };
    let relay_freed = async move {
        let chance = for_freed.chance(8);
        while freed.changed().await.is_ok() {
            for wire in for_freed.wires() {
                if !is_lost(&for_freed, &chance) {
                    wire.hint_freed();
                }
            }
        }
    };
    [tokio::spawn(relay_due), tokio::spawn(relay_asked), tokio::spawn(relay_freed)]
}
