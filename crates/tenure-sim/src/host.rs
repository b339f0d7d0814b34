//! A host: a program with a worker, clients and perhaps an operator, in one of its lives.

use std::sync::Arc;
use std::time::Duration;

use tenure::{QueueOrder, Tenure, Worker};
use tenure_core::QueueName;
use tenure_store::{Chance, Clock, FaultyStore, Store};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};

use crate::client::Client;
use crate::clock::SimClock;
use crate::gate::Gate;
use crate::handlers::{App, chore, sole, work};
use crate::history::{What, Who, Why};
use crate::holders::Holder;
use crate::operator::Operator;
use crate::plan::{QueuePlan, Weather};
use crate::rival::Rival;
use crate::services::{APP, with_services};
use crate::timekeeper::Timekeeper;
use crate::timers::{TimerApp, with_timers};
use crate::wire::Wire;
use crate::witness::Witness;
use crate::world::World;

/// A running host.
pub(crate) struct Host {
    pub(crate) who: Who,
    world: Arc<World>,
    gate: Arc<Gate>,
    clock: Arc<SimClock>,
    network: Arc<FaultyStore>,
    wire: Arc<Wire>,
    worker: JoinHandle<()>,
    shutdown: Option<oneshot::Sender<()>>,
    people: JoinSet<()>,
    stop_within: Duration,
}

impl Host {
    /// Starts a host in its `life`th life. A new life has a new host id and the old clock.
    pub(crate) fn start(world: &Arc<World>, number: usize, life: u32, ahead_us: i64, calm: bool) -> Self {
        let who = Who::Host { number, life };
        let part = 1_000 + 100 * u64::from(life) + 10 * number as u64;
        let chance = world.chance(part);
        let weather = &world.plan.weather;
        let gate = Arc::new(Gate::default());
        let rate = if weather.drift { 0.97 + 0.06 * chance.fraction() } else { 1.0 };
        let clock = Arc::new(SimClock::new(&world.time, rate, Arc::clone(&gate)));
        clock.step(ahead_us);
        let witness = Witness::new(who, Arc::clone(&world.store), Arc::clone(&world.book));
        let mut faults = weather.network.unwrap_or(tenure_store::Faults::none(0));
        faults.seed ^= chance.bits();
        let network = Arc::new(FaultyStore::new(Arc::new(witness), faults));
        if calm {
            network.heal();
        }
        let store = Arc::clone(&network) as Arc<dyn Store>;
        let wire =
            Arc::new(Wire::new(who, store, Arc::clone(&clock), Arc::clone(&gate), Arc::clone(&world.book)));
        world.connect(number, &wire);
        let tenure = Tenure::on(Arc::clone(&wire) as Arc<dyn Store>, Chance::seeded(chance.bits()));
        let tenure = tenure.leases_on_runtime();
        let app = App {
            who,
            world: Arc::clone(world),
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            gate: Arc::clone(&gate),
            chance: Chance::seeded(chance.bits()),
            slots: served(world, number).map(|queue| (name(&queue), queue.slots)).collect(),
            all_slots: world.plan.all_slots,
        };
        let (shutdown, told) = oneshot::channel();
        let worker = tokio::spawn(run_worker(tenure.clone(), app, number, told));
        let stop_within = world.plan.finish_within + world.plan.stop_grace + Duration::from_secs(4);
        let mut host = Self {
            who,
            world: Arc::clone(world),
            gate,
            clock,
            network,
            wire,
            worker,
            shutdown: Some(shutdown),
            people: JoinSet::new(),
            stop_within: stop_within.mul_f64(1.05),
        };
        host.invite(&tenure, &chance, weather);
        host
    }

    fn invite(&mut self, tenure: &Tenure, chance: &Chance, weather: &Weather) {
        let clock = || Arc::clone(&self.clock) as Arc<dyn Clock>;
        for _ in 0..self.world.plan.clients {
            let (world, tenure) = (Arc::clone(&self.world), tenure.clone());
            let chance = Chance::seeded(chance.bits());
            let client = Client { who: self.who, world, tenure, clock: clock(), chance };
            self.people.spawn(client.run());
        }
        if weather.operators {
            let (world, tenure) = (Arc::clone(&self.world), tenure.clone());
            let chance = Chance::seeded(chance.bits());
            self.people.spawn(Operator { world, tenure, clock: clock(), chance }.run());
        }
        for _ in 0..self.world.plan.leases.holders {
            let (world, tenure) = (Arc::clone(&self.world), tenure.clone());
            let (gate, chance) = (Arc::clone(&self.gate), Arc::new(Chance::seeded(chance.bits())));
            let holder = Holder { who: self.who, world, tenure, clock: clock(), gate, chance };
            self.people.spawn(holder.run());
        }
        if self.world.plan.leases.rivals {
            let (world, store) = (Arc::clone(&self.world), Arc::clone(&self.wire) as Arc<dyn Store>);
            let chance = Chance::seeded(chance.bits());
            let rival = Rival { who: self.who, world, store, clock: clock(), chance, past: Vec::new() };
            self.people.spawn(rival.run());
        }
        if self.world.plan.timers.as_ref().is_some_and(|timers| timers.people) {
            let (world, tenure) = (Arc::clone(&self.world), tenure.clone());
            let chance = Chance::seeded(chance.bits());
            self.people.spawn(Timekeeper { who: self.who, world, tenure, clock: clock(), chance }.run());
        }
        if !weather.untended {
            let (tenure, clock) = (tenure.clone(), clock());
            self.people.spawn(async move {
                loop {
                    clock.sleep(Duration::from_secs(3)).await;
                    // What one host could not do another will.
                    let _ = tenure.store().tend().await;
                }
            });
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.shutdown.is_some() && self.gate.is_open()
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.shutdown.is_none()
    }

    pub(crate) fn has_stopped(&self) -> bool {
        self.worker.is_finished()
    }

    pub(crate) fn ahead_us(&self) -> i64 {
        self.clock.ahead_us()
    }

    pub(crate) fn step_clock(&self, by_us: i64) {
        self.clock.step(by_us);
    }

    pub(crate) fn freeze(&self) {
        self.trouble(Why::Frozen, true);
        self.gate.freeze();
    }

    pub(crate) fn thaw(&self, chance: &Chance) {
        self.trouble(Why::Frozen, false);
        self.gate.thaw(chance);
        self.wire.catch_up();
    }

    pub(crate) fn cut(&self, cut: bool) {
        self.trouble(Why::CutOff, cut);
        self.wire.cut(cut);
    }

    pub(crate) fn down(&self, down: bool) {
        self.trouble(Why::CutOff, down);
        self.network.down(down);
    }

    /// Tells the worker to stop, and sends the people away.
    pub(crate) fn stop(&mut self) {
        let Some(shutdown) = self.shutdown.take() else { return };
        self.world.book.note(self.who, What::StopAsked { within: self.stop_within });
        self.people.abort_all();
        let _ = shutdown.send(());
    }

    /// The host is gone from one instant to the next.
    pub(crate) fn crash(mut self) {
        self.trouble(Why::Crashed, true);
        self.gate.kill();
        self.worker.abort();
        self.people.abort_all();
    }

    /// No more faults between this host and the store.
    pub(crate) fn heal(&self, chance: &Chance) {
        self.network.heal();
        self.network.down(false);
        self.wire.cut(false);
        if !self.gate.is_open() {
            self.thaw(chance);
        }
        for why in [Why::CutOff, Why::Frozen] {
            self.trouble(why, false);
        }
    }

    fn trouble(&self, why: Why, begins: bool) {
        self.world.book.note(self.who, What::Trouble { why, begins });
    }
}

/// The first host serves every queue and knows every kind; the others leave some out by chance.
fn served(world: &World, number: usize) -> impl Iterator<Item = QueuePlan> {
    let chance = world.chance(500 + number as u64);
    let own = number % world.plan.queues.len();
    let queues = world.plan.queues.clone().into_iter().enumerate();
    queues
        .filter(move |(index, _)| number == 0 || *index == own || chance.below(3) > 0)
        .map(|(_, queue)| queue)
}

fn worker(tenure: &Tenure, app: App, number: usize) -> Worker<App> {
    let world = Arc::clone(&app.world);
    let (plan, who) = (&world.plan, app.who);
    let app_life = match who {
        Who::Host { life, .. } => life,
        Who::World => 0,
    };
    let order = if plan.strict { QueueOrder::Strict } else { QueueOrder::Weighted };
    let mut worker = Worker::new(tenure, app)
        .keeper_on_runtime()
        .name(&who.to_string())
        .order(order)
        .slots(plan.all_slots)
        .prefetch(plan.prefetch)
        .lease(plan.ttl)
        .poll(plan.poll)
        .finish_within(plan.finish_within)
        .stop_grace(plan.stop_grace);
    for queue in served(&world, number) {
        worker = worker.queue_weighted(&queue.name, queue.slots, queue.weight);
    }
    let worker = with_services(worker.job(work), plan);
    let worker = if plan.services.sole { worker.job(sole) } else { worker };
    let version = plan.timers.as_ref().map_or(0, |timers| timers.version(number, app_life));
    let worker = with_timers(worker, &TimerApp { seed: world.seed, plan, version });
    if number == 0 || world.chance(600 + number as u64).below(3) > 0 { worker.job(chore) } else { worker }
}

async fn run_worker(tenure: Tenure, app: App, number: usize, told: oneshot::Receiver<()>) {
    let (world, who, clock) = (Arc::clone(&app.world), app.who, Arc::clone(&app.clock));
    let mut told = std::pin::pin!(told);
    let tenure = tokio::select! {
        biased;
        _ = &mut told => return world.book.note(who, What::Stopped { well: true }),
        tenure = as_app(tenure, world.plan.services.needs_app(), &*clock) => tenure,
    };
    let shutdown = async {
        let _ = told.await;
    };
    let ended = worker(&tenure, app, number).run(shutdown).await;
    world.book.note(who, What::Stopped { well: ended.is_ok() });
}

/// The same handle as an instance of the app; whoever is asked for it asks until it is answered.
pub(crate) async fn as_app(tenure: Tenure, needs_app: bool, clock: &dyn Clock) -> Tenure {
    if !needs_app {
        return tenure;
    }
    loop {
        match tenure.clone().as_app(APP, "the simulated program").await {
            Ok(tenure) => return tenure,
            Err(_) => clock.sleep(Duration::from_millis(500)).await,
        }
    }
}

fn name(queue: &QueuePlan) -> QueueName {
    QueueName::new(&queue.name).expect("the names of a plan are short and plain")
}
