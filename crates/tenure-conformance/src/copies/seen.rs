//! All that can be seen of a store, to be compared.

use tenure_core::{
    AppUse, Attempt, Fence, Job, LedgerEntry, LogLine, Reason, SlotRecord, Standing, State, Timer, explain,
};

use super::super::given::list;
use super::super::wishes::leases;
use tenure_store::{
    Count, Encryption, Filter, Host, LeaseInfo, LedgerAsk, LimitInfo, Order, QueueInfo, SlotsAsk, Store,
    TimersAsk,
};

/// A job with all that is told of it.
#[derive(Debug, PartialEq)]
struct SeenJob {
    job: Job,
    attempts: Vec<Attempt>,
    lines: Vec<LogLine>,
    standing: Option<Standing>,
    why: Option<Reason>,
}

/// All that can be seen of a store.
#[derive(Debug, PartialEq)]
pub(super) struct Seen {
    jobs: Vec<SeenJob>,
    counts: Vec<Count>,
    queues: Vec<QueueInfo>,
    limits: Vec<LimitInfo>,
    leases: Vec<LeaseInfo>,
    entries: Vec<LedgerEntry>,
    timers: Vec<Timer>,
    slots: Vec<SlotRecord>,
    apps: Vec<AppUse>,
    hosts: Vec<Host>,
}

/// All that can be seen of a store. The fences of leases that somebody may go on with differ in a copy.
pub(super) async fn seen(store: &dyn Store) -> Seen {
    // A copy keeps encrypted values unchanged, so compare them without decryption.
    let store = store.extras().encryption.map_or(store, Encryption::beneath);
    let mut jobs = Vec::new();
    for job in list(store, Filter::default(), Order::OldestFirst, 100).await {
        assert!(!matches!(job.state, State::Running { .. }), "a job runs");
        let standing = store.standing(job.id).await.unwrap();
        let why = standing.as_ref().map(|standing| explain(standing, store.clock().now()));
        let attempts = store.attempts(job.id).await.unwrap();
        let lines = store.logs(job.id, (0, 0), 1_000).await.unwrap();
        jobs.push(SeenJob { job, attempts, lines, standing, why });
    }
    let mut leases = leases(store, "", 100).await;
    for info in leases.iter_mut().filter(|info| info.lease.held.is_some()) {
        info.lease.fence = Fence::NONE;
    }
    let ledger = LedgerAsk { order: Order::OldestFirst, at_most: 1_000, ..LedgerAsk::default() };
    let slots = SlotsAsk { order: Order::OldestFirst, at_most: 1_000, ..SlotsAsk::default() };
    Seen {
        jobs,
        counts: store.counts().await.unwrap(),
        queues: store.queues().await.unwrap(),
        limits: store.limits(None, 1_000).await.unwrap().limits,
        leases,
        entries: store.ledger(ledger).await.unwrap().entries,
        timers: store.timers(TimersAsk { at_most: 1_000, ..TimersAsk::default() }).await.unwrap().timers,
        slots: store.slots(slots).await.unwrap().slots,
        apps: store.apps().await.unwrap(),
        hosts: store.hosts().await.unwrap(),
    }
}
