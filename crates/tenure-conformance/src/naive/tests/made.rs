//! A small store made by hand, in which everything is right.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::schedule::Schedule;
use tenure_core::{
    AfterJobs, Args, Attempt, AttemptEnd, Block, Bucket, End, Epoch, Fate, Fence, Head, Holder, HostId,
    IfFailed, Job, JobId, Key, Kind, Lease, LeaseId, LeaseName, LeaseState, LedgerEntry, LedgerNote, Limit,
    LimitKey, Limited, Meter, Name, NewTimer, Ordered, OrderingKey, Origin, Ownership, Phase, Policies,
    Priority, QueueName, QueueTerms, SlotRecord, Standing, State, StateName, Terms, Timer, TimerJob,
    Timestamp, Ttl, UniqueKey, What, Why,
};
use tenure_store::{Count, KeyHold, LeaseInfo, LimitInfo, QueueInfo, Rest, Totals};

use super::super::Rows;
use super::super::rows::Around;

pub(super) fn at(second: u64) -> Timestamp {
    Timestamp::EPOCH.after(Duration::from_secs(second))
}

pub(super) fn id(seq: u8) -> JobId {
    JobId::from_bytes([seq; 16])
}

fn key(text: &str) -> Key {
    text.parse().unwrap()
}

fn queue() -> QueueName {
    QueueName::new("mail").unwrap()
}

fn kind() -> Kind {
    Kind::new("send").unwrap()
}

pub(super) fn waiting(due: u64) -> State {
    State::Waiting { due: at(due), why: Why::Enqueued }
}

fn blocked(on: Block) -> State {
    State::Blocked { on, due: at(50), why: Why::Enqueued }
}

fn job(seq: u8, state: State, terms: Terms) -> Job {
    Job {
        id: id(seq),
        seq: seq.into(),
        kind: kind(),
        queue: queue(),
        args: Args::stored(b"{}"),
        priority: Priority::default(),
        created: at(50),
        terms: Arc::new(terms),
        state,
        attempt: 0,
        delivery: 0,
        fence: Fence::NONE,
        holder: None,
        started: None,
        cancel: None,
        progress: None,
        failure: None,
        output: None,
        expires: None,
    }
}

/// Changes the terms of a job.
pub(super) fn set(job: &mut Job, change: impl FnOnce(&mut Terms)) {
    change(Arc::make_mut(&mut job.terms));
}

/// One more grant, under the fence of the first one.
pub(super) fn grant(job: &mut Job) {
    job.delivery += 1;
    job.attempt += 1;
    (job.fence, job.holder, job.started) = (Fence::from_number(11), Some(host()), Some(at(90)));
}

fn host() -> HostId {
    HostId::from_bytes([1; 16])
}

/// Seven jobs: one runs, three are blocked, two are queued, and one has ended.
fn jobs() -> Vec<Job> {
    let ordering = || Some(OrderingKey { key: key("cart"), head: Head::Block });
    let limit = || Some(LimitKey { key: key("smtp"), most: Some(1) });
    let shared = || Terms { share: Some(key("a")), ..Terms::default() };
    let after = Some(AfterJobs { jobs: vec![id(1)], if_failed: IfFailed::Cancel });
    let runs = State::Running { holder: host(), until: at(120), due: at(50) };
    let ended = State::Finished { at: at(60), end: End::Succeeded };
    let mut jobs = vec![
        job(1, runs, Terms { ordering: ordering(), limit: limit(), ..Terms::default() }),
        job(2, blocked(Block::Order), Terms { ordering: ordering(), ..Terms::default() }),
        job(3, blocked(Block::Limit), Terms { limit: limit(), ..Terms::default() }),
        job(4, waiting(50), shared()),
        job(5, waiting(50), shared()),
        job(6, ended, Terms::default()),
        job(7, blocked(Block::Jobs), Terms { after, ..Terms::default() }),
    ];
    grant(&mut jobs[0]);
    grant(&mut jobs[5]);
    jobs[5].expires = Some(at(60 + 24 * 3600));
    jobs
}

fn standing(job: &Job) -> Standing {
    let turn = |ahead| Some(Ordered { of: Some(id(1)), ahead });
    let meter = Meter { running: 1, ..Meter::new(Limit::of(1)) };
    let limited = || Some(Limited { meter, running: vec![id(1)], ahead: 0 });
    let queue = Meter { running: 1, ..Meter::new(Limit::default()) };
    let (seq, job) = (job.seq, job.clone());
    Standing {
        job,
        paused: false,
        serving: Vec::new(),
        running: Vec::new(),
        ahead: u32::from(seq == 5),
        after: if seq == 7 { vec![id(1)] } else { Vec::new() },
        spoiled_by: None,
        needed_by: Vec::new(),
        turn: if seq < 3 { turn(u32::from(seq == 2)) } else { None },
        limit: if seq == 1 || seq == 3 { limited() } else { None },
        queue,
    }
}

fn around(job: &Job) -> Around {
    let ended = job.state.ended().map(|ended| (ended, AttemptEnd::Succeeded));
    let attempt = Attempt {
        attempt: 1,
        delivery: 1,
        fence: job.fence,
        holder: host(),
        started: at(90),
        ended,
        failure: None,
    };
    let attempts = if job.delivery > 0 { vec![attempt] } else { Vec::new() };
    Around { job: Some(job.clone()), standing: Some(standing(job)), attempts }
}

/// A lease that is held under this fence.
pub(super) fn lease(fence: u64) -> LeaseInfo {
    let phase = Phase::Held { until: Some(at(130)) };
    let (id, ttl) = (LeaseId::from_bytes([1; 16]), Ttl::For(Duration::from_secs(30)));
    let held = Some(Ownership { id, by: Holder::named("web"), since: at(90), ttl, phase });
    let name = LeaseName::new("backup").unwrap();
    let lease = Lease { name, fence: Fence::from_number(fence), held, freed: at(80), forgotten: false };
    LeaseInfo { lease, state: LeaseState::Held, waiting: 0 }
}

fn entry() -> LedgerEntry {
    let (name, by) = (LeaseName::new("backup").unwrap(), Holder::named("web"));
    let (fence, since, until) = (Fence::from_number(12), Some(at(90)), Some(at(120)));
    let note =
        LedgerNote { at: at(90), name, fence, what: What::Acquired, by, since, until, note: String::new() };
    LedgerEntry { number: 1, note }
}

/// A schedule with an occurrence each minute.
pub(super) fn schedule(decided: Option<u64>, next: u64) -> Timer {
    let job = TimerJob {
        kind: kind(),
        queue: queue(),
        args: Args::stored(b"{}"),
        priority: Priority::default(),
        terms: Arc::default(),
    };
    let name = Name::new("timer", "hourly").unwrap();
    let schedule = Schedule::parse("0 * * * * *").unwrap();
    let new = NewTimer { name, schedule, job, policies: Policies::default(), revision: 0 };
    Timer { next: Some(at(next)), decided: decided.map(at), ..Timer::accepted(new, at(50)) }
}

/// The result of an occurrence that was skipped.
pub(super) fn occurrence(second: u64) -> SlotRecord {
    let fate = Fate::Skipped { why: tenure_core::Skipped::Missed };
    SlotRecord::of_one(&Name::new("timer", "hourly").unwrap(), at(second), Origin::Schedule, fate, at(70))
}

/// The whole store.
pub(super) fn good() -> Rows {
    let mut rows = Rows::empty(at(100));
    rows.jobs = jobs();
    rows.around = rows.jobs.iter().map(|job| (job.seq, around(job))).collect();
    let states =
        [(StateName::Queued, 2), (StateName::Blocked, 3), (StateName::Running, 1), (StateName::Succeeded, 1)];
    states.into_iter().for_each(|(state, jobs)| rows.count(state, jobs));
    let (oldest_due, limit, terms) = (Some(at(50)), Limit::default(), QueueTerms::default());
    rows.queues.push(QueueInfo { name: queue(), paused: false, oldest_due, limit, terms });
    let meter = Meter { running: 1, ..Meter::new(Limit::of(1)) };
    rows.limits.push(LimitInfo { key: key("smtp"), meter, set: false, queued: 0, blocked: 1 });
    rows.leases.push(lease(12));
    rows.ledger.push(entry());
    rows.timers.push(schedule(Some(60), 120));
    rows.slots.push(occurrence(60));
    let totals = Totals { jobs: 7, leases: 1, entries: 1, timers: 1, slots: 1, ..Totals::default() };
    let buckets = vec![(queue(), Bucket::FULL)];
    rows.rest = Some(Rest { epoch: Epoch::new(10), last_seq: 7, buckets, totals, ..Rest::default() });
    rows
}

impl Rows {
    pub(super) fn count(&mut self, state: StateName, jobs: u64) {
        self.counts.push(Count { queue: queue(), kind: kind(), state, jobs });
    }

    pub(super) fn around_of(&mut self, seq: u64) -> &mut Standing {
        self.around.get_mut(&seq).unwrap().standing.as_mut().unwrap()
    }

    /// A new job, and its place in line.
    pub(super) fn add(&mut self, job: Job, ahead: u32) {
        let mut around = around(&job);
        around.standing.as_mut().unwrap().ahead = ahead;
        self.around.insert(job.seq, around);
        self.jobs.push(job);
    }

    pub(super) fn hold(&mut self, key: [u8; 16], job: JobId) {
        self.holds.push(KeyHold { key: UniqueKey(key), job, seq: 0, until: None });
    }
}
