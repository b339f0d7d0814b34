//! What a seed decides before anything happens: the cluster and which faults it meets.

use std::time::Duration;

use tenure_store::{Chance, Faults};

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
    pub(crate) weather: Weather,
}

/// Which names there are to hold, and who wants them.
#[derive(Debug, Clone)]
pub(crate) struct LeasePlan {
    pub(crate) names: u64,
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
}

impl Plan {
    /// The plan of a seed.
    pub(crate) fn draw(seed: u64) -> Self {
        let chance = Chance::seeded(stream(seed, 1));
        let between = |low: u64, high: u64| low + chance.below(high - low + 1);
        let size = |low: u64, high: u64| usize::try_from(between(low, high)).unwrap_or(1);
        let ms = |low: u64, high: u64| Duration::from_millis(between(low, high));
        let queues = (0..between(1, 3))
            .map(|n| QueuePlan {
                name: format!("q{n}"),
                slots: size(1, 4),
                weight: u32::try_from(between(1, 5)).unwrap_or(1),
            })
            .collect();
        Self {
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
            weather: Weather::draw(seed),
        }
    }
}

impl LeasePlan {
    fn draw(seed: u64) -> Self {
        let chance = Chance::seeded(stream(seed, 7));
        Self { names: 1 + chance.below(4), rivals: chance.below(2) == 0 }
    }
}

impl Weather {
    fn draw(seed: u64) -> Self {
        let chance = Chance::seeded(stream(seed, 2));
        let some = || chance.below(2) == 0;
        let rare = || chance.below(4) == 0;
        Self {
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
        }
    }
}

fn network(chance: &Chance) -> Faults {
    let up_to = |most: f64| if chance.below(2) == 0 { 0.0 } else { chance.fraction() * most };
    Faults {
        seed: chance.bits(),
        delay: up_to(0.5),
        longest_delay: Duration::from_millis(1 + chance.below(4_000)),
        fail: up_to(0.2),
        drop_request: up_to(0.2),
        drop_reply: up_to(0.2),
    }
}

/// A stream of chance of its own for each part of a seed: one draw more in one part shifts no other.
pub(crate) fn stream(seed: u64, part: u64) -> u64 {
    Chance::seeded(seed.wrapping_mul(1_000_003).wrapping_add(part)).bits()
}
