//! How things stand: what the store is asked when somebody asks for metrics, in a bounded number of calls.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tenure::{
    Count, Error, Fault, Host, LeasesAsk, Limit, QueueInfo, Sizes, StateName, Tenure, TimersAsk, Timestamp,
    limits,
};

use super::seen::OTHER;
use super::table;
use super::text::Text;
use crate::callbacks::{delivery, end};

/// The queue of operations on many jobs.
const BULK_QUEUE: &str = "tenure.bulk";
/// Maximum number of queues with separate series. All others are counted together.
const MOST_QUEUES: usize = 1_000;
/// Leases that are looked at, at most. If there are more names it tells of fewer than are held.
const MOST_LEASES: usize = 10 * limits::PAGE_LEASES;
/// Leases and schedules of one read. Their args and metadata can be large.
const LEASES_AT_ONCE: usize = 250;
const SCHEDULES_AT_ONCE: usize = 50;
/// Maximum number of schedules that are shown, by name.
const MOST_SCHEDULES: usize = limits::PAGE_TIMERS;
/// Whoever asks for metrics waits no longer for the store: Prometheus itself gives up after ten seconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// How things stand.
#[derive(Debug, Default)]
pub(super) struct Standing {
    counts: Vec<Count>,
    queues: Vec<QueueInfo>,
    hosts: Vec<Host>,
    /// The first of them, by name.
    schedules: Vec<Schedule>,
    leases_held: Option<usize>,
    sizes: Sizes,
}

/// The part of a schedule that metrics show. Its args can be large, and this is kept until the next look.
#[derive(Debug)]
struct Schedule {
    name: String,
    next: Option<Timestamp>,
    is_paused: bool,
}

impl Standing {
    /// Asks the store.
    pub(super) async fn ask(tenure: &Tenure) -> Result<Self, Error> {
        tokio::select! {
            biased;
            standing = Self::look(tenure) => standing,
            () = tenure.store().clock().sleep(PATIENCE) => {
                let seconds = PATIENCE.as_secs();
                Err(Fault::Unavailable(format!("no answer within {seconds} s")).into())
            }
        }
    }

    async fn look(tenure: &Tenure) -> Result<Self, Error> {
        Ok(Self {
            counts: tenure.counts().await?,
            queues: tenure.queues().list().await?,
            hosts: tenure.hosts().await?,
            schedules: schedules(tenure).await?,
            leases_held: Some(leases_held(tenure).await?),
            sizes: tenure.store().sizes().await?,
        })
    }

    pub(super) fn write(&self, text: &mut Text, now: Timestamp) {
        let shown = Shown::of(self);
        self.write_queues(text, now, &shown);
        self.write_workers(text, &shown);
        self.write_schedules(text);
        text.begin(&table::LEASES_HELD);
        self.leases_held.iter().for_each(|held| text.value(&[], *held as f64));
        text.begin(&table::STORAGE_BYTES);
        for (part, bytes) in &self.sizes.parts {
            text.value(&[part], *bytes as f64);
        }
        text.begin(&table::DISK_FREE);
        self.sizes.disk_free.iter().for_each(|free| text.value(&[], *free as f64));
        text.begin(&table::WEBHOOK_PENDING);
        let queues = [delivery::QUEUE, end::QUEUE];
        let pending = |count: &Count| queues.contains(&count.queue.as_str()) && !has_ended(count.state);
        text.value(&[], self.jobs(pending) as f64);
        text.begin(&table::BULK_RUNNING);
        let bulk = |count: &Count| count.queue.as_str() == BULK_QUEUE && !has_ended(count.state);
        text.value(&[], self.jobs(bulk) as f64);
    }

    fn write_queues(&self, text: &mut Text, now: Timestamp, shown: &Shown<'_>) {
        let mut depth: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for count in self.counts.iter().filter(|count| !has_ended(count.state)) {
            *depth.entry((shown.label(count.queue.as_str()), count.state.as_str())).or_default() +=
                count.jobs;
        }
        text.begin(&table::QUEUE_DEPTH);
        for ((queue, state), jobs) in depth {
            text.value(&[queue, state], jobs as f64);
        }
        let mut oldest: BTreeMap<&str, f64> = BTreeMap::new();
        for queue in &self.queues {
            let age = queue.oldest_due.map_or(0.0, |due| now.since(due).as_secs_f64());
            let oldest = oldest.entry(shown.label(queue.name.as_str())).or_default();
            *oldest = oldest.max(age);
        }
        text.begin(&table::QUEUE_OLDEST_AGE);
        for (queue, age) in oldest {
            text.value(&[queue], age);
        }
        // Settings of different queues have no sum.
        let apart = || self.queues.iter().filter(|queue| shown.is_apart(queue.name.as_str()));
        text.begin(&table::QUEUE_PAUSED);
        for queue in apart() {
            text.value(&[queue.name.as_str()], f64::from(u8::from(queue.paused)));
        }
        text.begin(&table::QUEUE_INFO);
        for queue in apart() {
            let (at_once, rate) = words_of(&queue.limit);
            text.value(&[queue.name.as_str(), &at_once, &rate], 1.0);
        }
        text.begin(&table::RUNNING);
        for (queue, jobs) in self.running(shown) {
            text.value(&[queue], jobs as f64);
        }
    }

    fn write_workers(&self, text: &mut Text, shown: &Shown<'_>) {
        text.begin(&table::WORKERS);
        text.value(&["alive"], self.hosts.len() as f64);
        let mut slots: BTreeMap<&str, u64> = BTreeMap::new();
        for serves in self.hosts.iter().flat_map(|host| &host.serves) {
            *slots.entry(shown.label(serves.queue.as_str())).or_default() += u64::from(serves.slots);
        }
        let running = self.running(shown);
        text.begin(&table::WORKER_SLOTS);
        for (queue, slots) in slots {
            // What lost its worker runs until its lease lapses, and takes nobody's slot.
            let busy = running.get(queue).copied().unwrap_or_default().min(slots);
            text.value(&[queue, "busy"], busy as f64);
            text.value(&[queue, "free"], (slots - busy) as f64);
        }
    }

    fn write_schedules(&self, text: &mut Text) {
        text.begin(&table::SCHEDULE_NEXT);
        for schedule in self.schedules.iter().filter(|schedule| !schedule.is_paused) {
            schedule.next.iter().for_each(|next| text.value(&[&schedule.name], super::seconds(*next)));
        }
        text.begin(&table::SCHEDULE_PAUSED);
        for schedule in &self.schedules {
            text.value(&[&schedule.name], f64::from(u8::from(schedule.is_paused)));
        }
    }

    /// How many jobs of each queue run.
    fn running<'a>(&'a self, shown: &Shown<'a>) -> BTreeMap<&'a str, u64> {
        let mut running: BTreeMap<&str, u64> =
            self.queues.iter().map(|queue| (shown.label(queue.name.as_str()), 0)).collect();
        for count in self.counts.iter().filter(|count| count.state == StateName::Running) {
            *running.entry(shown.label(count.queue.as_str())).or_default() += count.jobs;
        }
        running
    }

    fn jobs(&self, which: impl Fn(&Count) -> bool) -> u64 {
        self.counts.iter().filter(|count| which(count)).map(|count| count.jobs).sum()
    }
}

/// The busiest queues, which have separate series.
struct Shown<'a> {
    queues: BTreeSet<&'a str>,
}

impl<'a> Shown<'a> {
    fn of(standing: &'a Standing) -> Self {
        let mut jobs: BTreeMap<&str, u64> = BTreeMap::new();
        let served = standing.hosts.iter().flat_map(|host| &host.serves).map(|serves| serves.queue.as_str());
        for queue in standing.queues.iter().map(|queue| queue.name.as_str()).chain(served) {
            jobs.entry(queue).or_default();
        }
        for count in standing.counts.iter().filter(|count| !has_ended(count.state)) {
            *jobs.entry(count.queue.as_str()).or_default() += count.jobs;
        }
        let mut busiest: Vec<(&str, u64)> = jobs.into_iter().collect();
        busiest.sort_by_key(|(queue, jobs)| (Reverse(*jobs), *queue));
        Self { queues: busiest.into_iter().take(MOST_QUEUES).map(|(queue, _)| queue).collect() }
    }

    fn is_apart(&self, queue: &str) -> bool {
        self.queues.contains(queue)
    }

    /// Returns the value of the label `queue`.
    fn label<'q>(&self, queue: &'q str) -> &'q str {
        if self.is_apart(queue) { queue } else { OTHER }
    }
}

/// Returns the first schedules, page by page: each can have a quarter of a megabyte of args.
async fn schedules(tenure: &Tenure) -> Result<Vec<Schedule>, Error> {
    let (mut schedules, mut ask) =
        (Vec::new(), TimersAsk { at_most: SCHEDULES_AT_ONCE, ..TimersAsk::default() });
    loop {
        let page = tenure.timers().list(ask.clone()).await?;
        let shown = page.timers.iter().map(|timer| Schedule {
            name: timer.name().as_str().to_owned(),
            next: timer.next,
            is_paused: timer.paused.is_some(),
        });
        schedules.extend(shown);
        ask.behind = page.next;
        if ask.behind.is_none() || schedules.len() >= MOST_SCHEDULES {
            schedules.truncate(MOST_SCHEDULES);
            return Ok(schedules);
        }
    }
}

async fn leases_held(tenure: &Tenure) -> Result<usize, Error> {
    let (mut held, mut looked_at) = (0, 0);
    let mut ask = LeasesAsk { at_most: LEASES_AT_ONCE, ..LeasesAsk::default() };
    loop {
        let page = tenure.leases().list(ask.clone()).await?;
        held += page.leases.iter().filter(|info| info.state.is_locked()).count();
        looked_at += page.leases.len();
        ask.behind = page.next;
        if ask.behind.is_none() || looked_at >= MOST_LEASES {
            return Ok(held);
        }
    }
}

/// How many jobs run at once, and how many start in which time; nothing where there is no bound.
fn words_of(limit: &Limit) -> (String, String) {
    let rate = limit.rate.map(|rate| format!("{}/{}s", rate.times, rate.per.as_secs_f64()));
    (limit.most.map(|most| most.to_string()).unwrap_or_default(), rate.unwrap_or_default())
}

fn has_ended(state: StateName) -> bool {
    matches!(state, StateName::Succeeded | StateName::Failed | StateName::Cancelled)
}
