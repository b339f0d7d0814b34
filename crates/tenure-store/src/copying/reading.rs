//! Reading all that a store keeps, page by page, through its views.

use std::collections::BTreeMap;

use tenure_core::{Block, Bucket, Cancel, Job, JobId, Noticed, QueueName, State, Timestamp};

use super::items::{CopiedJob, CopiedLimit, CopiedQueue, Item, Rest};
use super::lapsing;
use super::pouring::Pouring;
use crate::{Fault, LeasesAsk, LedgerAsk, Order, PageAsk, SlotsAsk, Store, TimersAsk};

/// How much is read with one call. Jobs may be large.
const PAGE: usize = 500;
const PAGE_JOBS: usize = 100;
const PAGE_LINES: usize = 100;

/// Reads everything: queues, jobs in the order of their acceptance, then all else.
pub(super) async fn read_all(from: &dyn Store, rest: &Rest, to: &mut Pouring<'_>) -> Result<(), Fault> {
    queues(from, rest, to).await?;
    jobs(from, to).await?;
    keys(from, to).await?;
    limits(from, to).await?;
    leases(from, to).await?;
    ledger(from, to).await?;
    timers(from, to).await?;
    slots(from, to).await?;
    records(from, to).await?;
    journals(from, to).await?;
    for app in from.apps().await? {
        to.put(Item::App(app)).await?;
    }
    Ok(())
}

async fn queues(from: &dyn Store, rest: &Rest, to: &mut Pouring<'_>) -> Result<(), Fault> {
    let buckets: BTreeMap<&QueueName, Bucket> =
        rest.buckets.iter().map(|(name, left)| (name, *left)).collect();
    for queue in from.queues().await? {
        let bucket = buckets.get(&queue.name).copied().unwrap_or(Bucket::FULL);
        let (name, paused, limit, terms) = (queue.name, queue.paused, queue.limit, queue.terms);
        to.put(Item::Queue(CopiedQueue { name, paused, limit, bucket, terms })).await?;
    }
    Ok(())
}

async fn jobs(from: &dyn Store, to: &mut Pouring<'_>) -> Result<(), Fault> {
    let mut after = None;
    loop {
        let ask = PageAsk { order: Order::OldestFirst, after, at_most: PAGE_JOBS, ..PageAsk::default() };
        let page = from.jobs(ask).await?;
        for job in page.jobs {
            one_job(from, job, to).await?;
        }
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

async fn one_job(from: &dyn Store, job: Job, to: &mut Pouring<'_>) -> Result<(), Fault> {
    let (id, seq, has_run) = (job.id, job.seq, job.delivery > 0);
    let now = from.clock().now();
    let mut attempts = if has_run { from.attempts(id).await? } else { Vec::new() };
    let was_finished = job.state.is_finished();
    let job = lapsing::job(job, &mut attempts, to.epoch, now);
    let (job, waits) = waiting(from, job, now).await?;
    if job.state.is_finished() && !was_finished && job.terms.unique.is_some() {
        to.ended.insert(id);
    }
    to.put(Item::Job(Box::new(CopiedJob { job, attempts, waits }))).await?;
    if has_run { lines(from, id, seq, to).await } else { Ok(()) }
}

async fn lines(from: &dyn Store, id: JobId, seq: u64, to: &mut Pouring<'_>) -> Result<(), Fault> {
    let mut behind = (0, 0);
    loop {
        let lines = from.logs(id, behind, PAGE_LINES).await?;
        let Some(last) = lines.last() else { return Ok(()) };
        behind = (last.delivery, last.number);
        to.put(Item::Lines(seq, lines)).await?;
    }
}

/// For which jobs a job still has to wait. What the next turn would have found is decided here: other jobs may have
/// ended, and those that have need not be kept any more.
async fn waiting(from: &dyn Store, job: Job, now: Timestamp) -> Result<(Job, Vec<JobId>), Fault> {
    let (State::Blocked { on: Block::Jobs, due, why }, Some(after)) = (job.state, job.terms.after.clone())
    else {
        return Ok((job, Vec::new()));
    };
    let Some(standing) = from.standing(job.id).await? else { return Ok((job, Vec::new())) };
    if let Some(other) = standing.spoiled_by {
        let end = match from.job(other).await?.map(|other| other.state) {
            Some(State::Finished { end, .. }) => Some(end),
            Some(State::Waiting { .. } | State::Blocked { .. } | State::Running { .. }) | None => None,
        };
        if let Noticed::Cancels(request) = after.noticed(other, end, now)
            && let Cancel::Ends(transition) = Cancel::decide(&job, request)
        {
            return Ok((job.after(*transition), Vec::new()));
        }
    }
    if standing.after.is_empty() {
        return Ok((Job { state: State::Waiting { due, why }, ..job }, Vec::new()));
    }
    Ok((job, standing.after))
}

async fn keys(from: &dyn Store, to: &mut Pouring<'_>) -> Result<(), Fault> {
    let mut behind = None;
    loop {
        let page = from.keys_held(behind, PAGE).await?;
        let Some(last) = page.last() else { return Ok(()) };
        behind = Some(last.key);
        for hold in page {
            if hold.until.is_none() && to.ended.contains(&hold.job) {
                to.keys_freed += 1;
            } else {
                to.put(Item::Key(hold)).await?;
            }
        }
    }
}

async fn limits(from: &dyn Store, to: &mut Pouring<'_>) -> Result<(), Fault> {
    let mut behind = None;
    loop {
        let page = from.limits(behind, PAGE).await?;
        for info in page.limits {
            let (key, limit, set, bucket) = (info.key, info.meter.limit, info.set, info.meter.bucket);
            to.put(Item::Limit(CopiedLimit { key, limit, set, bucket })).await?;
        }
        behind = page.next;
        if behind.is_none() {
            return Ok(());
        }
    }
}

async fn leases(from: &dyn Store, to: &mut Pouring<'_>) -> Result<(), Fault> {
    let mut behind = None;
    loop {
        let page = from.leases(LeasesAsk { prefix: String::new(), behind, at_most: PAGE }).await?;
        for info in page.leases {
            let lease = lapsing::lease(info.lease, to.epoch);
            to.put(Item::Lease(lease)).await?;
        }
        behind = page.next;
        if behind.is_none() {
            return Ok(());
        }
    }
}

async fn ledger(from: &dyn Store, to: &mut Pouring<'_>) -> Result<(), Fault> {
    let mut behind = None;
    loop {
        let ask = LedgerAsk { order: Order::OldestFirst, behind, at_most: PAGE, ..LedgerAsk::default() };
        let page = from.ledger(ask).await?;
        for entry in page.entries {
            to.put(Item::Entry(entry)).await?;
        }
        behind = page.next;
        if behind.is_none() {
            return Ok(());
        }
    }
}

async fn timers(from: &dyn Store, to: &mut Pouring<'_>) -> Result<(), Fault> {
    let mut behind = None;
    loop {
        let page = from.timers(TimersAsk { prefix: String::new(), behind, at_most: PAGE_JOBS }).await?;
        for timer in page.timers {
            to.put(Item::Timer(Box::new(timer))).await?;
        }
        behind = page.next;
        if behind.is_none() {
            return Ok(());
        }
    }
}

async fn slots(from: &dyn Store, to: &mut Pouring<'_>) -> Result<(), Fault> {
    let mut behind = None;
    loop {
        let ask = SlotsAsk { order: Order::OldestFirst, behind, at_most: PAGE, ..SlotsAsk::default() };
        let page = from.slots(ask).await?;
        for record in page.slots {
            to.put(Item::Slot(record)).await?;
        }
        behind = page.next;
        if behind.is_none() {
            return Ok(());
        }
    }
}

async fn records(from: &dyn Store, to: &mut Pouring<'_>) -> Result<(), Fault> {
    let mut behind = None;
    loop {
        let page = from.records_kept(behind, PAGE_JOBS).await?;
        let Some(last) = page.last() else { return Ok(()) };
        behind = Some((last.shelf.clone(), last.key.clone()));
        for record in page {
            to.put(Item::Record(record)).await?;
        }
    }
}

async fn journals(from: &dyn Store, to: &mut Pouring<'_>) -> Result<(), Fault> {
    let mut behind = None;
    loop {
        let page = from.entries_kept(behind, PAGE).await?;
        let Some(last) = page.last() else { return Ok(()) };
        behind = Some((last.journal.clone(), last.number));
        for entry in page {
            to.put(Item::JournalEntry(entry)).await?;
        }
    }
}
