//! What all hosts of a cluster share.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure_core::{Holder, JobId, LeaseAct, LeaseName, QueueName, StateName, Timer, Timestamp, Ttl};
use tenure_store::{
    Chance, Clock, Fault, Filter, Jobs, LeaseWish, Leases, LeasesAsk, ManualClock, Order, PageAsk, Store,
    TimerAct, Timers, TimersAsk, Views,
};

use crate::asks::Ask;
use crate::book::Book;
use crate::clock::SimClock;
use crate::history::{Row, What, Who};
use crate::plan::{LimitPlan, Plan, stream};
use crate::services;
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
    healed: AtomicBool,
    enough: AtomicBool,
    wanted: Mutex<BTreeMap<u64, LeaseName>>,
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
        let (healed, enough) = (AtomicBool::new(false), AtomicBool::new(false));
        let (wanted, asks, wires) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self { seed, plan, time, store, store_clock, book, healed, enough, wanted, asks, wires }
    }

    pub(crate) fn note_healed(&self) {
        self.healed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_healed(&self) -> bool {
        self.healed.load(Ordering::Relaxed)
    }

    /// From now on nobody begins to wait for a lease.
    pub(crate) fn note_enough(&self) {
        self.enough.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_enough(&self) -> bool {
        self.enough.load(Ordering::Relaxed)
    }

    /// Somebody waits for a lease as long as this is there, and will not be put off.
    pub(crate) fn wants(self: &Arc<Self>, name: &LeaseName) -> Want {
        let mut wanted = self.wanted();
        let number = wanted.last_key_value().map_or(0, |(number, _)| number + 1);
        wanted.insert(number, name.clone());
        Want { world: Arc::clone(self), number }
    }

    /// Leases that somebody waits for and will not be put off.
    pub(crate) fn waited(&self) -> Vec<LeaseName> {
        self.wanted().values().cloned().collect()
    }

    fn wanted(&self) -> MutexGuard<'_, BTreeMap<u64, LeaseName>> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leases that a host which is there took by the library, which gives back what it takes, and that are
    /// held since all were told to stop or longer. What a host took that crashed lapses, or has to be broken; and
    /// what one lost while the store's clock was ahead lasts until that clock has come there again. What is granted
    /// later to a request that its sender was told had failed, and that was on its way all the same, lapses, too.
    pub(crate) async fn held(&self, alive: &[Who], stopped: Timestamp) -> Result<Vec<LeaseName>, Fault> {
        let leases = self.store.leases(LeasesAsk::default()).await?.leases;
        let held = leases.into_iter().filter(|info| info.state.is_locked());
        let steps = self.plan.weather.store_clock_steps;
        let is_left = |owner: &tenure_core::Ownership| {
            is_of(&owner.by, alive) && owner.since <= stopped && (owner.ttl == Ttl::Endless || !steps)
        };
        let held = held.filter(|info| info.lease.held.as_ref().is_some_and(is_left));
        Ok(held.map(|info| info.lease.name).collect())
    }

    /// The messages to the single writer that came before this one, have their place in line, and have not
    /// ended.
    pub(crate) async fn letters_before(&self, first: u64) -> Result<Vec<u64>, Fault> {
        let states = vec![StateName::Queued, StateName::Blocked, StateName::Running];
        let queue = QueueName::new(&services::mailbox()).expect("it is short and plain");
        let filter = Filter { states, queues: vec![queue], ..Filter::default() };
        let (mut before, mut after) = (Vec::new(), None);
        loop {
            let (filter, order) = (filter.clone(), Order::OldestFirst);
            let page =
                self.store.jobs(PageAsk { filter, order, after, at_most: 200, ..PageAsk::default() }).await?;
            let in_line = page.jobs.iter().filter(|job| job.state.due() == Some(Timestamp::EPOCH));
            before.extend(in_line.map(|job| job.seq).filter(|seq| *seq < first));
            after = page.next;
            if after.is_none() {
                return Ok(before);
            }
        }
    }

    /// What the store's clock shows.
    pub(crate) fn store_clock_now(&self) -> Timestamp {
        self.store_clock.now()
    }

    /// One of the names that there are to hold.
    pub(crate) fn draw_name(&self, chance: &Chance) -> LeaseName {
        let name = format!("name-{}", chance.below(self.plan.leases.names));
        LeaseName::new(&name).expect("it is short and plain")
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
        let limits = self.store.limits(None, 1_000).await?.limits;
        self.book.note(Who::World, What::Audit { rows: rows.clone(), counts, limits });
        if self.plan.timers.is_some() {
            self.store_seen().look_at_timers().await?;
        }
        Ok(rows)
    }

    /// Sets the limits that no job says itself.
    pub(crate) async fn set_limits(&self) -> Result<(), Fault> {
        let store = self.store_seen();
        for LimitPlan { key, limit, said } in &self.plan.keys.limits {
            if !said {
                store.set_limit(key, Some(*limit)).await?;
            }
        }
        for (queue, limit) in &self.plan.keys.queue_limits {
            let Ok(name) = QueueName::new(queue) else { continue };
            store.set_queue_limit(&name, *limit).await?;
        }
        Ok(())
    }

    /// Breaks what somebody took for ever and may not be there any more to give back.
    pub(crate) async fn break_endless(&self, alive: &[Who]) -> Result<(), Fault> {
        let held = self.store.leases(LeasesAsk::default()).await?.leases;
        // What somebody took by the library and is there, it gives back itself.
        let is_endless =
            |owner: &tenure_core::Ownership| owner.ttl == Ttl::Endless && !is_of(&owner.by, alive);
        let endless = held.into_iter().filter(|info| info.lease.held.as_ref().is_some_and(is_endless));
        let by = Holder::named("the world");
        let (within, reason) = (Some(Duration::ZERO), "nobody waits for ever".to_owned());
        let act = LeaseAct::Break { within, by, reason };
        let wishes = endless.map(|info| LeaseWish { name: info.lease.name, act: act.clone() });
        self.store_seen().lease(wishes.collect()).await?;
        Ok(())
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

    /// Lets every timer fire again.
    pub(crate) async fn resume_timers(&self) -> Result<(), Fault> {
        self.change_timers(|timer| timer.paused.is_some().then_some(TimerAct::Resume)).await
    }

    /// Lets no timer fire any more, so that everything can come to an end.
    pub(crate) async fn pause_timers(&self) -> Result<(), Fault> {
        let reason = "it has to end".to_owned();
        self.change_timers(|timer| timer.paused.is_none().then(|| TimerAct::Pause { reason: reason.clone() }))
            .await
    }

    async fn change_timers(&self, act: impl Fn(&Timer) -> Option<TimerAct>) -> Result<(), Fault> {
        if self.plan.timers.is_none() {
            return Ok(());
        }
        let store = self.store_seen();
        for timer in store.timers(TimersAsk::default()).await?.timers {
            if let Some(act) = act(&timer) {
                store.change_timer(timer.name(), act).await?;
            }
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

/// Whether one of these hosts took it by the library.
fn is_of(by: &Holder, hosts: &[Who]) -> bool {
    let first = by.who.split(' ').next().unwrap_or_default();
    by.host.is_some() && hosts.iter().any(|who| who.to_string() == first)
}

/// Somebody waits.
pub(crate) struct Want {
    world: Arc<World>,
    number: u64,
}

impl Drop for Want {
    fn drop(&mut self) {
        self.world.wanted().remove(&self.number);
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
