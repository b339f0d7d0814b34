//! How much is measured.

use std::time::Duration;

use super::Bench;

/// How much of each figure is measured.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sizes {
    /// Jobs of a whole life, and of a bulk.
    pub(crate) jobs: usize,
    /// Rounds of which the median counts.
    pub(crate) rounds: usize,
    /// Jobs of which one comes at a time, unless the time is over first.
    pub(crate) single_jobs: usize,
    /// That time.
    pub(crate) single_limit: Duration,
    /// Jobs that come at a steady pace.
    pub(crate) paced_jobs: u32,
    /// Jobs that wait, and as many that have finished.
    pub(crate) backlog: usize,
    /// Jobs that are claimed in a round, with and without a backlog.
    pub(crate) claims: usize,
    /// How long an idle worker is watched.
    pub(crate) idle: Duration,
    /// Leases that are held at once.
    pub(crate) leases: usize,
    /// For how long each is taken.
    pub(crate) lease_ttl: Duration,
    /// For how many seconds timers with a slot in each are watched.
    pub(crate) timer_seconds: u32,
    /// Timers of which none is ripe.
    pub(crate) timers: usize,
    /// Timers with a slot at the same instant.
    pub(crate) timers_together: usize,
    /// How long before that instant they are set.
    pub(crate) timers_lead: Duration,
    /// How long the disk's own pace is watched.
    pub(crate) disk: Duration,
    /// Keys that jobs share where keys are measured.
    pub(crate) keys: usize,
    /// Requests to a server, of each sort.
    pub(crate) http_requests: usize,
    /// Connections on which somebody waits for something that does not come.
    pub(crate) http_idle: usize,
    /// Requests of each client beside which others ask badly.
    pub(crate) hostile: usize,
    /// Duration of the steady load on a server.
    pub(crate) soak: Duration,
    /// Slots of the worker that drains.
    pub(crate) slots: usize,
}

impl Sizes {
    pub(crate) fn of(bench: &Bench) -> Self {
        let given = bench.jobs.and_then(|jobs| usize::try_from(jobs).ok());
        let slots = usize::from(bench.slots);
        let millis = Duration::from_millis;
        if bench.quick {
            let jobs = given.unwrap_or(1_000);
            return Self {
                jobs,
                rounds: 1,
                single_jobs: jobs,
                single_limit: millis(200),
                paced_jobs: 30,
                backlog: jobs,
                claims: jobs / 2,
                idle: millis(200),
                leases: 100,
                lease_ttl: millis(1_000),
                timer_seconds: 1,
                timers: 100,
                timers_together: 100,
                timers_lead: millis(2_000),
                disk: millis(20),
                keys: (jobs / 100).max(1),
                http_requests: jobs,
                http_idle: 100,
                hostile: 20,
                soak: millis(2_000),
                slots,
            };
        }
        let jobs = given.unwrap_or(100_000);
        Self {
            jobs,
            rounds: 3,
            single_jobs: jobs,
            single_limit: millis(2_000),
            paced_jobs: 1_000,
            backlog: jobs.saturating_mul(10),
            claims: (jobs / 10).max(100),
            idle: millis(10_000),
            leases: 10_000,
            lease_ttl: millis(15_000),
            timer_seconds: 30,
            timers: 100_000,
            timers_together: 10_000,
            timers_lead: millis(30_000),
            disk: millis(300),
            keys: (jobs / 100).max(1),
            http_requests: jobs,
            http_idle: 10_000,
            hostile: 500,
            soak: Duration::from_secs(60 * u64::from(bench.minutes)),
            slots,
        }
    }
}
