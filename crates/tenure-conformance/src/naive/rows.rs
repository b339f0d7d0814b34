//! All rows of a store and all of its answers, read through the contract.

use std::collections::BTreeMap;

use tenure_core::{Attempt, Job, JobId, LedgerEntry, SlotRecord, Standing, State, Timer, Timestamp};
use tenure_store::{
    Count, Fault, Host, KeyHold, LeaseInfo, LeasesAsk, LedgerAsk, LimitInfo, Order, PageAsk, QueueInfo, Rest,
    SlotsAsk, Store, TimersAsk,
};

/// Most items of one page.
const PAGE: usize = 500;

/// The amount that a look reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Rows and counters.
    Rows,
    /// Also the standing and the attempts of each job, which takes three calls a job.
    Standings,
}

/// The rows and answers of a store at one time.
#[derive(Debug, Clone)]
pub struct Rows {
    /// The store's clock.
    pub now: Timestamp,
    /// The numbers that no view shows; `None` if the store only wraps another one.
    pub rest: Option<Rest>,
    /// All jobs, in order of acceptance.
    pub jobs: Vec<Job>,
    /// The surroundings of each job by its place in the order of acceptance, if they were read.
    pub around: BTreeMap<u64, Around>,
    /// All counters.
    pub counts: Vec<Count>,
    /// All queues.
    pub queues: Vec<QueueInfo>,
    /// All limits of limit keys.
    pub limits: Vec<LimitInfo>,
    /// All unique keys that are held.
    pub holds: Vec<KeyHold>,
    /// The hosts that are alive.
    pub hosts: Vec<Host>,
    /// All leases that are shown.
    pub leases: Vec<LeaseInfo>,
    /// The history of leases, oldest first.
    pub ledger: Vec<LedgerEntry>,
    /// All schedules.
    pub timers: Vec<Timer>,
    /// The results of all occurrences, oldest first.
    pub slots: Vec<SlotRecord>,
    /// Number of records and of entries of journals.
    pub records: (u64, u64),
}

/// Views of one job.
#[derive(Debug, Clone)]
pub struct Around {
    /// The job as the view of one job shows it.
    pub job: Option<Job>,
    /// Its standing.
    pub standing: Option<Standing>,
    /// Its attempts.
    pub attempts: Vec<Attempt>,
}

impl Around {
    /// Reads all views of a job.
    ///
    /// # Errors
    /// The store could not answer.
    pub async fn read(store: &dyn Store, id: JobId) -> Result<Self, Fault> {
        let (job, attempts) = (store.job(id).await?, store.attempts(id).await?);
        Ok(Self { job, standing: store.standing(id).await?, attempts })
    }
}

impl Rows {
    /// The rows of an empty store at this time.
    #[must_use]
    pub fn empty(now: Timestamp) -> Self {
        Self {
            now,
            rest: None,
            jobs: Vec::new(),
            around: BTreeMap::new(),
            counts: Vec::new(),
            queues: Vec::new(),
            limits: Vec::new(),
            holds: Vec::new(),
            hosts: Vec::new(),
            leases: Vec::new(),
            ledger: Vec::new(),
            timers: Vec::new(),
            slots: Vec::new(),
            records: (0, 0),
        }
    }

    /// Reads a store that is at rest.
    ///
    /// # Errors
    /// The store could not answer.
    pub async fn read(store: &dyn Store, depth: Depth) -> Result<Self, Fault> {
        let jobs = jobs(store).await?;
        let mut around = BTreeMap::new();
        if depth == Depth::Standings {
            for job in &jobs {
                around.insert(job.seq, Around::read(store, job.id).await?);
            }
        }
        let mut rows = Self {
            jobs,
            around,
            counts: store.counts().await?,
            queues: store.queues().await?,
            hosts: store.hosts().await?,
            ..Self::empty(store.clock().now())
        };
        rows.read_keys(store).await?;
        rows.read_leases(store).await?;
        rows.read_timers(store).await?;
        rows.read_rest(store).await?;
        Ok(rows)
    }

    async fn read_keys(&mut self, store: &dyn Store) -> Result<(), Fault> {
        self.limits = pages(async |behind| {
            let page = store.limits(behind, PAGE).await?;
            Ok((page.limits, page.next))
        })
        .await?;
        self.holds = pages(async |behind| {
            let page = store.keys_held(behind, PAGE).await?;
            let next = page.last().map(|hold| hold.key);
            Ok((page, next))
        })
        .await?;
        Ok(())
    }

    async fn read_leases(&mut self, store: &dyn Store) -> Result<(), Fault> {
        self.leases = pages(async |behind| {
            let ask = LeasesAsk { prefix: String::new(), behind, at_most: PAGE };
            let page = store.leases(ask).await?;
            Ok((page.leases, page.next))
        })
        .await?;
        self.ledger = pages(async |behind| {
            let ask = LedgerAsk { order: Order::OldestFirst, behind, at_most: PAGE, ..LedgerAsk::default() };
            let page = store.ledger(ask).await?;
            Ok((page.entries, page.next))
        })
        .await?;
        Ok(())
    }

    async fn read_timers(&mut self, store: &dyn Store) -> Result<(), Fault> {
        self.timers = pages(async |behind| {
            let page = store.timers(TimersAsk { behind, at_most: PAGE, ..TimersAsk::default() }).await?;
            Ok((page.timers, page.next))
        })
        .await?;
        self.slots = pages(async |behind| {
            let ask = SlotsAsk { order: Order::OldestFirst, behind, at_most: PAGE, ..SlotsAsk::default() };
            let page = store.slots(ask).await?;
            Ok((page.slots, page.next))
        })
        .await?;
        Ok(())
    }

    async fn read_rest(&mut self, store: &dyn Store) -> Result<(), Fault> {
        self.rest = Some(store.rest().await?);
        let records = pages(async |behind| {
            let page = store.records_kept(behind, PAGE).await?;
            let next = page.last().map(|record| (record.shelf.clone(), record.key.clone()));
            Ok((page, next))
        });
        let records = records.await?.len() as u64;
        let entries = pages(async |behind| {
            let page = store.entries_kept(behind, PAGE).await?;
            let next = page.last().map(|entry| (entry.journal.clone(), entry.number));
            Ok((page, next))
        });
        self.records = (records, entries.await?.len() as u64);
        Ok(())
    }

    /// The standings of all jobs, if they were read.
    pub(super) fn standings(&self) -> impl Iterator<Item = (&Job, &Standing)> {
        self.jobs.iter().filter_map(|job| Some((job, self.around.get(&job.seq)?.standing.as_ref()?)))
    }

    /// The jobs that have not ended.
    pub(super) fn unfinished(&self) -> impl Iterator<Item = &Job> {
        self.jobs.iter().filter(|job| !job.state.is_finished())
    }

    /// The job with this place in the order of acceptance.
    pub(super) fn at(&self, seq: u64) -> Option<&Job> {
        self.jobs.iter().find(|job| job.seq == seq)
    }
}

/// True if a host has the job.
pub(super) fn runs(job: &Job) -> bool {
    matches!(job.state, State::Running { .. })
}

/// True if a host has the job, and the next turn does not take it from it: it is neither silent nor late to stop.
pub(super) fn is_held(job: &Job, now: Timestamp) -> bool {
    let stops = job.cancel.as_ref().map_or(Timestamp::LAST, |cancel| cancel.deadline);
    matches!(job.state, State::Running { until, .. } if until > now && stops > now)
}

async fn jobs(store: &dyn Store) -> Result<Vec<Job>, Fault> {
    pages(async |after| {
        let ask = PageAsk { order: Order::OldestFirst, after, at_most: PAGE, ..PageAsk::default() };
        let page = store.jobs(ask).await?;
        Ok((page.jobs, page.next))
    })
    .await
}

/// All items of a listing, page by page.
async fn pages<T, C>(
    page: impl AsyncFn(Option<C>) -> Result<(Vec<T>, Option<C>), Fault>,
) -> Result<Vec<T>, Fault> {
    let (mut all, mut behind) = (Vec::new(), None);
    loop {
        let (items, next) = page(behind).await?;
        all.extend(items);
        if next.is_none() {
            return Ok(all);
        }
        behind = next;
    }
}
