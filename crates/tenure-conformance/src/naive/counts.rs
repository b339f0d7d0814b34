//! Counters: totals, counts by queue, kind and state, and the queues themselves.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{Job, Kind, QueueName, State, StateName, Timestamp};
use tenure_store::{Count, QueueInfo, Totals};

use super::{Findings, Past, Rows, differs, unless};

type Counts = BTreeMap<(QueueName, Kind, StateName), u64>;

/// The totals are the numbers of rows.
pub(super) fn totals(rows: &Rows) -> Findings {
    let Some(rest) = &rows.rest else { return Vec::new() };
    let recomputed = Totals {
        jobs: rows.jobs.len() as u64,
        keys: rows.holds.len() as u64,
        leases: rows.leases.len() as u64,
        entries: rows.ledger.len() as u64,
        timers: rows.timers.len() as u64,
        slots: rows.slots.len() as u64,
        records: rows.records.0,
        journal_entries: rows.records.1,
    };
    differs("totals", &rest.totals, &recomputed).into_iter().collect()
}

/// The counters are a recount of the jobs. A due job may count as scheduled until a turn has found it, so both states are
/// taken together, and then the split is checked against the two ways of counting a job that no turn may have found.
pub(super) fn counters(rows: &Rows, past: &Past) -> Findings {
    let together = |state| if state == StateName::Scheduled { StateName::Queued } else { state };
    let (mut answer, mut found) = (Counts::new(), 0);
    for Count { queue, kind, state, jobs } in &rows.counts {
        *answer.entry((queue.clone(), kind.clone(), together(*state))).or_default() += jobs;
        found += if *state == StateName::Queued { *jobs } else { 0 };
    }
    let mut recount = Counts::new();
    let (mut surely, mut maybe) = (0, 0);
    for job in &rows.jobs {
        let state = together(job.state.name(rows.now));
        *recount.entry((job.queue.clone(), job.kind.clone(), state)).or_default() += 1;
        surely += u64::from(past.is_surely_due(job));
        maybe += u64::from(past.is_maybe_due(job));
    }
    let zero = rows.counts.iter().filter(|count| count.jobs == 0);
    let zero = zero.map(|count| format!("counter {count:?} is zero and listed"));
    let split = unless(surely <= found && found <= maybe, || {
        format!("{found} jobs count as queued: {surely} were due when they came, {maybe} are due")
    });
    zero.chain(differs("counters", &answer, &recount)).chain(split).collect()
}

/// Each queue that a job names exists, and shows since when its oldest due job has been due.
pub(super) fn queues(rows: &Rows, past: &Past) -> Findings {
    let names: BTreeSet<&QueueName> = rows.queues.iter().map(|queue| &queue.name).collect();
    let unknown = rows.jobs.iter().filter(|job| !names.contains(&job.queue));
    let unknown = unknown.map(|job| format!("queue {} of #{} is not there", job.queue, job.seq));
    unknown.chain(rows.queues.iter().filter_map(|queue| oldest_due(rows, past, queue))).collect()
}

/// A due job that no turn has found may be passed over.
fn oldest_due(rows: &Rows, past: &Past, queue: &QueueInfo) -> Option<String> {
    let is_due = |job: &&Job| matches!(job.state, State::Waiting { due, .. } if due <= rows.now);
    let mut jobs: Vec<&Job> = rows.jobs.iter().filter(|job| job.queue == queue.name).filter(is_due).collect();
    jobs.sort_by_key(|job| (job.state.due(), job.seq));
    let mut allowed: Vec<Option<Timestamp>> = Vec::new();
    for job in jobs {
        allowed.push(job.state.due().map(|due| due.max(job.created).min(rows.now)));
        if past.is_surely_due(job) {
            break;
        }
    }
    let is_right = match queue.oldest_due {
        Some(_) => allowed.contains(&queue.oldest_due),
        None => !of_queue_surely_due(rows, past, queue),
    };
    unless(is_right, || {
        format!("queue {}: oldest due {:?} is none of {allowed:?}", queue.name, queue.oldest_due)
    })
}

fn of_queue_surely_due(rows: &Rows, past: &Past, queue: &QueueInfo) -> bool {
    rows.jobs.iter().any(|job| job.queue == queue.name && past.is_surely_due(job))
}
