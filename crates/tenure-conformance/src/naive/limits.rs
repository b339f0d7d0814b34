//! Limits of limit keys and queues: use, room and tokens.

use std::collections::BTreeMap;

use tenure_core::{Block, Bucket, Job, JobId, Key, Kind, Limit, QueueName, State, limits};
use tenure_store::LimitInfo;

use super::rows::{is_held, runs};
use super::{Findings, Past, Rows, differs, unless};

fn key_of(job: &Job) -> Option<&Key> {
    job.terms.limit.as_ref().map(|limit| &limit.key)
}

/// The unfinished jobs of a limit key.
fn of_key<'a>(rows: &'a Rows, key: &'a Key) -> impl Iterator<Item = &'a Job> {
    rows.unfinished().filter(move |job| key_of(job) == Some(key))
}

fn is_blocked(job: &Job) -> bool {
    matches!(job.state, State::Blocked { on: Block::Limit, .. })
}

/// A limit exists while it is set or an unfinished job has its key. It shows how much of it is in use.
pub(super) fn keys(rows: &Rows, past: &Past) -> Findings {
    let mut findings = Vec::new();
    for job in rows.unfinished() {
        let is_there = key_of(job).is_none_or(|key| rows.limits.iter().any(|info| info.key == *key));
        findings.extend(unless(is_there, || format!("the limit of #{} is not there", job.seq)));
    }
    for info in &rows.limits {
        let jobs: Vec<&Job> = of_key(rows, &info.key).collect();
        let count = |of: &dyn Fn(&Job) -> bool| jobs.iter().filter(|job| of(job)).count() as u64;
        let about = |what: &str| format!("limit {}: {what}", info.key);
        findings.extend(unless(info.set || !jobs.is_empty(), || about("neither set nor in use")));
        findings.extend(differs(about("running"), &u64::from(info.meter.running), &count(&runs)));
        findings.extend(differs(about("blocked"), &info.blocked, &count(&is_blocked)));
        let surely = count(&|job| past.is_surely_due(job));
        let maybe = count(&|job| past.is_maybe_due(job));
        findings.extend(unless(surely <= info.queued && info.queued <= maybe, || {
            about(&format!("{} are queued: {surely} were due when they came, {maybe} are due", info.queued))
        }));
        findings.extend(room(rows, info, past));
    }
    findings
}

/// In each lane as many jobs are queued as there is room, and others are blocked only if that many are queued. A rate may
/// have made more room since the last turn.
fn room(rows: &Rows, info: &LimitInfo, past: &Past) -> Findings {
    let mut lanes: BTreeMap<(&QueueName, &Kind), Vec<&Job>> = BTreeMap::new();
    for job in of_key(rows, &info.key) {
        lanes.entry((&job.queue, &job.kind)).or_default().push(job);
    }
    let room = u64::from(info.meter.room(rows.now));
    let mut findings = Vec::new();
    for (lane, jobs) in lanes {
        let count = |of: &dyn Fn(&Job) -> bool| jobs.iter().filter(|job| of(job)).count() as u64;
        let surely = count(&|job| past.is_surely_due(job));
        let maybe = count(&|job| past.is_maybe_due(job));
        let (blocked, is_steady) = (count(&is_blocked), info.meter.limit.rate.is_none());
        let is_right = surely <= room && (blocked == 0 || !is_steady || maybe >= room);
        findings.extend(unless(is_right, || {
            let counts = format!("{surely} to {maybe} queued, {blocked} blocked");
            format!("limit {}, lane {lane:?}: room for {room}, {counts}", info.key)
        }));
    }
    findings
}

/// A limit that is not set has the number from the latest job that states one. A retried job may state its number late.
pub(super) fn numbers(rows: &Rows, past: &Past) -> Findings {
    let mut findings = Vec::new();
    for info in rows.limits.iter().filter(|info| !info.set) {
        let numbers = past.numbers.get(&info.key).cloned().unwrap_or_default();
        let is_latest = |(seq, _): &&(u64, u32)| {
            !past.retried.contains(seq) && rows.at(*seq).is_some_and(|job| !job.state.is_finished())
        };
        let latest = numbers.iter().filter(is_latest).map(|(seq, _)| *seq).max();
        let allowed: Vec<u32> = numbers
            .iter()
            .filter(|(seq, _)| latest.is_none_or(|latest| *seq >= latest))
            .map(|(_, most)| *most)
            .collect();
        let is_right = match info.meter.limit {
            Limit { rate: Some(_), .. } => false,
            Limit { most: Some(most), .. } => allowed.contains(&most),
            Limit { most: None, .. } => latest.is_none(),
        };
        findings.extend(unless(is_right, || {
            format!("limit {}: {:?}, its jobs say one of {allowed:?}", info.key, info.meter.limit)
        }));
    }
    findings
}

/// A standing shows the limit of the job's key, the jobs that run under it, and the number of jobs ahead in its line.
pub(super) fn standings(rows: &Rows, past: &Past) -> Findings {
    let mut findings = Vec::new();
    for (job, standing) in rows.standings() {
        let about = |what: &str| format!("limit of #{}: {what}", job.seq);
        let key = key_of(job).filter(|_| !job.state.is_finished());
        let info = key.and_then(|key| rows.limits.iter().find(|info| info.key == *key));
        let (Some(info), Some(limited)) = (info, &standing.limit) else {
            findings
                .extend(unless(info.is_none() && standing.limit.is_none(), || about("missing or made up")));
            continue;
        };
        let running: Vec<JobId> =
            of_key(rows, &info.key).filter(|job| is_held(job, rows.now)).map(|job| job.id).collect();
        let meter = &limited.meter;
        findings.extend(differs(about("limit"), &meter.limit, &info.meter.limit));
        findings.extend(differs(about("bucket"), &meter.bucket, &info.meter.bucket));
        findings.extend(differs(about("running"), &(meter.running as usize), &running.len()));
        let first = running.iter().take(limits::PAGE_JOBS).copied().collect();
        findings.extend(differs(about("running jobs"), &limited.running, &first));
        // The blocked jobs of a lane stand behind the queued ones.
        if is_blocked(job) {
            let in_lane = |other: &&Job| other.queue == job.queue && other.kind == job.kind;
            let queued =
                of_key(rows, &info.key).filter(in_lane).filter(|job| past.is_surely_due(job)).count();
            findings.extend(unless(limited.ahead as usize >= queued, || {
                about(&format!("{} before it, but {queued} are queued", limited.ahead))
            }));
        }
    }
    findings
}

/// A grant exceeds no limit, and takes a token of a rate.
pub(super) fn granted(before: &Rows, rows: &Rows) -> Findings {
    let is_new = |job: &&Job| runs(job) && before.at(job.seq).is_none_or(|was| was.delivery < job.delivery);
    let new: Vec<&Job> = rows.jobs.iter().filter(is_new).collect();
    let buckets = |rows: &Rows| rows.rest.as_ref().map(|rest| rest.buckets.clone()).unwrap_or_default();
    let mut findings = Vec::new();
    for info in &rows.limits {
        let started = new.iter().filter(|job| key_of(job) == Some(&info.key)).count();
        let running = of_key(rows, &info.key).filter(|job| is_held(job, rows.now)).count();
        let about = format!("limit {}", info.key);
        findings.extend(exceeded(&about, info.meter.limit, started, running));
        let was = before.limits.iter().find(|was| was.key == info.key && was.meter.limit == info.meter.limit);
        let spent =
            was.and_then(|was| spent(rows, info.meter.limit, started, was.meter.bucket, info.meter.bucket));
        findings.extend(spent.map(|how| format!("{about}: {how}")));
    }
    for queue in &rows.queues {
        let started = new.iter().filter(|job| job.queue == queue.name).count();
        let of_queue = rows.jobs.iter().filter(|job| job.queue == queue.name);
        let running = of_queue.filter(|job| is_held(job, rows.now)).count();
        let about = format!("limit of queue {}", queue.name);
        findings.extend(exceeded(&about, queue.limit, started, running));
        let bucket =
            |rows| buckets(rows).into_iter().find(|(name, _)| *name == queue.name).map(|(_, bucket)| bucket);
        let is_same = before.queues.iter().any(|was| was.name == queue.name && was.limit == queue.limit);
        let both = bucket(before).zip(bucket(rows)).filter(|_| is_same);
        let spent = both.and_then(|(was, is)| spent(rows, queue.limit, started, was, is));
        findings.extend(spent.map(|how| format!("{about}: {how}")));
    }
    findings
}

fn exceeded(about: &str, limit: Limit, started: usize, running: usize) -> Option<String> {
    let most = limit.most.filter(|_| started > 0)?;
    unless(running <= most as usize, || format!("{about}: {running} run, {most} may"))
}

/// Each start takes one token from the bucket, and nothing else does.
fn spent(rows: &Rows, limit: Limit, started: usize, was: Bucket, is: Bucket) -> Option<String> {
    let rate = limit.rate?;
    let (was, is) = (was.tokens(&rate, rows.now) as usize, is.tokens(&rate, rows.now) as usize);
    unless(was == is + started, || format!("{started} started, and of {was} tokens there are {is}"))
}
