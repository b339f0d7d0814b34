//! What a seed decides before anything happens: the cluster and which faults it meets.

use std::time::Duration;

use tenure_core::{Head, Key, Limit, Rate};
use tenure_store::{Chance, Faults};

use crate::timers::TimerPlan;

/// The queue in which jobs have share keys.
pub(crate) const SHARED: &str = "shared";
/// How long the store is out of reach in a seed with a long outage.
pub(crate) const LONG_OUTAGE: Duration = Duration::from_secs(600);

/// A cluster and its faults.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) hosts: usize,
    pub(crate) clients: usize,
    pub(crate) jobs: u64,
    /// How long there are faults.
    pub(crate) length: Duration,
    pub(crate) ttl: Duration,
    pub(crate) poll: Duration,
    pub(crate) queues: Vec<QueuePlan>,
    pub(crate) all_slots: usize,
    pub(crate) prefetch: usize,
    pub(crate) strict: bool,
    pub(crate) finish_within: Duration,
    pub(crate) stop_grace: Duration,
    pub(crate) leases: LeasePlan,
    pub(crate) keys: KeyPlan,
    pub(crate) services: ServicePlan,
    /// A part of the seeds have some.
    pub(crate) timers: Option<TimerPlan>,
    pub(crate) weather: Weather,
}

/// What runs once in the cluster.
#[derive(Debug, Clone)]
pub(crate) struct ServicePlan {
    /// Whether something listens on one host at a time.
    pub(crate) singleton: bool,
    /// Whether attempts of one kind take a lease.
    pub(crate) sole: bool,
    /// How many messages the single writer takes at once, if there is one.
    pub(crate) writer: Option<usize>,
    /// Whether whoever enqueues says of which app it is.
    pub(crate) clients_say_app: bool,
}

/// Which keys jobs share, and which limits there are. Most seeds have some of them.
#[derive(Debug, Clone)]
pub(crate) struct KeyPlan {
    /// Ordering keys: what a job that waits does to those behind it; each job as it likes if `None`.
    pub(crate) ordering: Vec<(Key, Option<Head>)>,
    pub(crate) limits: Vec<LimitPlan>,
    pub(crate) queue_limits: Vec<(String, Limit)>,
    /// How many share keys there are in the shared queue.
    pub(crate) shares: u64,
    /// Whether jobs wait for others.
    pub(crate) after: bool,
}

/// A limit key.
#[derive(Debug, Clone)]
pub(crate) struct LimitPlan {
    pub(crate) key: Key,
    pub(crate) limit: Limit,
    /// Whether each job says the limit; if not, somebody has set it.
    pub(crate) said: bool,
}

/// Which names there are to hold, and who wants them.
#[derive(Debug, Clone)]
pub(crate) struct LeasePlan {
    pub(crate) names: u64,
    /// Parts of each host's program that take leases by the library.
    pub(crate) holders: usize,
    /// Whether there are programs on the hosts that ask the store themselves, and do not behave.
    pub(crate) rivals: bool,
}

/// A queue and its slots in each worker.
#[derive(Debug, Clone)]
pub(crate) struct QueuePlan {
    pub(crate) name: String,
    pub(crate) slots: usize,
    pub(crate) weight: u32,
}

/// Which faults there are. Each seed has a few of them: all at once would hide each other.
#[derive(Debug, Clone)]
pub(crate) struct Weather {
    pub(crate) crashes: bool,
    pub(crate) freezes: bool,
    pub(crate) cuts: bool,
    pub(crate) outages: bool,
    pub(crate) stops: bool,
    pub(crate) host_clocks_step: bool,
    pub(crate) store_clock_steps: bool,
    pub(crate) drift: bool,
    pub(crate) hints_lost: bool,
    pub(crate) operators: bool,
    /// Nobody tends the store: correctness needs none of it.
    pub(crate) untended: bool,
    pub(crate) network: Option<Faults>,
    /// Whether the store's clock steps by many minutes.
    pub(crate) steps_far: bool,
}

impl Plan {
    /// The plan of a seed.
    pub(crate) fn draw(seed: u64) -> Self {
        let chance = Chance::seeded(stream(seed, 1));
        let between = |low: u64, high: u64| low + chance.below(high - low + 1);
        let size = |low: u64, high: u64| usize::try_from(between(low, high)).unwrap_or(1);
        let ms = |low: u64, high: u64| Duration::from_millis(between(low, high));
        let mut queues: Vec<QueuePlan> = (0..between(1, 3))
            .map(|n| QueuePlan {
                name: format!("q{n}"),
                slots: size(1, 4),
                weight: u32::try_from(between(1, 5)).unwrap_or(1),
            })
            .collect();
        let keys = KeyPlan::draw(seed, queues.len());
        if keys.shares > 0 {
            queues.push(QueuePlan { name: SHARED.to_owned(), slots: 1, weight: 1 });
        }
        let plan = Self {
            hosts: size(2, 5),
            clients: size(1, 2),
            jobs: between(30, 120),
            length: ms(40_000, 150_000),
            ttl: ms(2_000, 10_000),
            poll: ms(200, 1_500),
            queues,
            all_slots: size(2, 8),
            prefetch: size(0, 3),
            strict: chance.below(4) == 0,
            finish_within: ms(0, 8_000),
            stop_grace: ms(0, 3_000),
            leases: LeasePlan::draw(seed),
            keys,
            services: ServicePlan::draw(seed),
            timers: TimerPlan::draw(seed),
            weather: Weather::draw(seed),
        };
        plan.with_timers(seed)
    }

    /// With timers there are more hosts and fewer jobs that clients ask for.
    fn with_timers(self, seed: u64) -> Self {
        let Some(timers) = &self.timers else { return self };
        let chance = Chance::seeded(stream(seed, 12));
        let more = if chance.below(10) == 0 { 8 } else { 3 };
        let hosts = 3 + usize::try_from(chance.below(more)).unwrap_or(0);
        let outage = timers.long_outage.map_or(Duration::ZERO, |_| LONG_OUTAGE);
        Self { hosts, clients: 1, jobs: 10 + self.jobs / 4, length: self.length + outage, ..self }
    }
}

impl LeasePlan {
    fn draw(seed: u64) -> Self {
        let chance = Chance::seeded(stream(seed, 7));
        let holders = if chance.below(3) == 0 { 0 } else { 1 + chance.below(2) };
        let holders = usize::try_from(holders).unwrap_or(0);
        Self { names: 1 + chance.below(4), holders, rivals: chance.below(2) == 0 }
    }
}

impl ServicePlan {
    fn draw(seed: u64) -> Self {
        let chance = Chance::seeded(stream(seed, 10));
        let rare = || chance.below(3) == 0;
        let writer = rare().then(|| usize::try_from(1 + chance.below(4)).unwrap_or(1));
        Self { singleton: rare(), sole: rare(), writer, clients_say_app: chance.below(2) == 0 }
    }

    /// Whether any of it needs an app.
    pub(crate) fn needs_app(&self) -> bool {
        self.singleton || self.sole || self.writer.is_some()
    }
}

impl KeyPlan {
    fn draw(seed: u64, queues: usize) -> Self {
        let chance = Chance::seeded(stream(seed, 9));
        let some = |most: u64| if chance.below(2) == 0 { 1 + chance.below(most) } else { 0 };
        let key = |name: String| name.parse().expect("the keys of a plan are short and plain");
        let ordering = (0..some(4)).map(|n| {
            let head = [None, Some(Head::Block), Some(Head::Block), Some(Head::StepAside)];
            (key(format!("order-{n}")), head[usize::try_from(chance.below(4)).unwrap_or(0)])
        });
        let ordering = ordering.collect();
        let limits = (0..some(3)).map(|n| {
            let said = chance.below(2) == 0;
            let limit = if said { Limit::of(most(&chance)) } else { limit(&chance) };
            LimitPlan { key: key(format!("limit-{n}")), limit, said }
        });
        let limits = limits.collect();
        let queue_limits = (0..queues).filter(|_| chance.below(5) == 0);
        let queue_limits = queue_limits.map(|n| (format!("q{n}"), limit(&chance))).collect();
        Self { ordering, limits, queue_limits, shares: some(4), after: chance.below(2) == 0 }
    }
}

/// A limit of some sort.
pub(crate) fn limit(chance: &Chance) -> Limit {
    let rate = (chance.below(2) == 0).then(|| {
        let times = most(chance);
        Rate::new(times, Duration::from_millis(500 + chance.below(1_500))).burst(most(chance).min(times))
    });
    let most = (rate.is_none() || chance.below(2) == 0).then(|| most(chance));
    Limit { most, rate }
}

fn most(chance: &Chance) -> u32 {
    u32::try_from(1 + chance.below(3)).unwrap_or(1)
}

impl Weather {
    fn draw(seed: u64) -> Self {
        let chance = Chance::seeded(stream(seed, 2));
        let some = || chance.below(2) == 0;
        let rare = || chance.below(4) == 0;
        let weather = Self {
            crashes: some(),
            freezes: some(),
            cuts: rare(),
            outages: rare(),
            stops: some(),
            host_clocks_step: rare(),
            store_clock_steps: rare(),
            drift: rare(),
            hints_lost: rare(),
            operators: some(),
            untended: rare(),
            network: some().then(|| network(&chance)),
            steps_far: false,
        };
        Self { steps_far: weather.store_clock_steps && rare(), ..weather }
    }
}

fn network(chance: &Chance) -> Faults {
    let seed = chance.bits();
    let up_to = |most: f64| if chance.below(2) == 0 { 0.0 } else { chance.fraction() * most };
    Faults {
        delay: up_to(0.5),
        longest_delay: Duration::from_millis(1 + chance.below(4_000)),
        fail: up_to(0.2),
        drop_request: up_to(0.2),
        drop_reply: up_to(0.2),
        ..Faults::none(seed)
    }
}

/// A stream of chance of its own for each part of a seed: one draw more in one part shifts no other.
pub(crate) fn stream(seed: u64, part: u64) -> u64 {
    Chance::seeded(seed.wrapping_mul(1_000_003).wrapping_add(part)).bits()
}
