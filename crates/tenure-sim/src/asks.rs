//! What clients ask for: jobs whose args say how their handler shall behave.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::{Backoff, Draft, Job, Keep, Only, Retention, RetryPolicy, Singleton};
use tenure_core::{AfterJobs, Args, Head, IfFailed, JobId, LimitKey, OrderingKey, Terms};
use tenure_store::Chance;

use crate::plan::{KeyPlan, Plan, SHARED};

/// The args of every simulated job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Script {
    /// The number of the ask.
    pub(crate) ask: u64,
    /// What its handler does.
    pub(crate) how: How,
}

/// What a handler does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum How {
    /// It is done at once.
    Done,
    /// It works for so long, and stops when told.
    Works { ms: u64 },
    /// It works for so long and does not listen.
    Deaf { ms: u64 },
    /// It works and tells about it.
    Chats { ms: u64, lines: u32 },
    /// It fails so many times, then succeeds.
    Fails { times: u32, ms: u64 },
    /// It fails for good.
    FailsForGood,
    /// It panics so many times, then succeeds.
    Panics { times: u32 },
    /// It asks so many times to be called later.
    Snoozes { times: u32, ms: u64 },
    /// It gives the job back so many times.
    Releases { times: u32 },
    /// It enqueues another job.
    Begets { ask: u64, id: JobId },
}

/// Most jobs.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Work(pub(crate) Script);

/// Jobs that not every host knows.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Chore(pub(crate) Script);

/// Jobs whose attempts take a lease: of each part one runs at a time.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Sole {
    #[serde(flatten)]
    pub(crate) script: Script,
    part: u64,
}

impl Job for Sole {
    const KIND: &'static str = "sole";
    type Output = u64;

    fn singleton() -> Option<Singleton> {
        Some(Singleton::function().scope("{part}").lease(Duration::from_secs(4)))
    }
}

impl Job for Work {
    const KIND: &'static str = "work";
    type Output = u64;
}

impl Job for Chore {
    const KIND: &'static str = "chore";
    type Output = u64;
}

/// A wish for a job, good for any number of tries.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) script: Script,
    pub(crate) id: Option<JobId>,
    readable: bool,
    chore: bool,
    /// Which part of a singleton it is, if it is one.
    part: Option<u64>,
    queue: String,
    priority: i64,
    delay: Option<Duration>,
    only: Option<Only>,
    retry: RetryPolicy,
    timeout: Option<Duration>,
    short_lived: bool,
    /// What it shares with others.
    keys: Terms,
}

impl Ask {
    /// A wish by chance. `next` gives the numbers of asks.
    pub(crate) fn draw(
        plan: &Plan,
        chance: &Chance,
        mut next: impl FnMut() -> u64,
        new_id: impl Fn() -> JobId,
    ) -> Self {
        let ask = next();
        let ttl_ms = u64::try_from(plan.ttl.as_millis()).unwrap_or(u64::MAX);
        let one_in = |n: u64| chance.below(n) == 0;
        let times = || u32::try_from(1 + chance.below(4)).unwrap_or(1);
        let how = match chance.below(16) {
            0..=3 => How::Done,
            4..=6 => How::Works { ms: chance.below(ttl_ms / 2) },
            7 => How::Works { ms: ttl_ms + chance.below(2 * ttl_ms) },
            8 => How::Deaf { ms: chance.below(3 * ttl_ms) },
            9 => How::Chats { ms: chance.below(ttl_ms), lines: times() },
            10 => How::Fails { times: times(), ms: chance.below(1_000) },
            11 => How::FailsForGood,
            12 => How::Panics { times: times() },
            13 => How::Snoozes { times: times(), ms: chance.below(5_000) },
            14 => How::Releases { times: times() },
            _ => How::Begets { ask: next(), id: new_id() },
        };
        let plain = plan.queues.iter().filter(|queue| queue.name != SHARED);
        let plain: Vec<&str> = plain.map(|queue| queue.name.as_str()).collect();
        let queue = plain[usize::try_from(chance.below(plain.len() as u64)).unwrap_or(0)].to_owned();
        let retry = RetryPolicy {
            backoff: Backoff::Fixed(Duration::from_millis(chance.below(3_000))),
            max_attempts: u32::try_from(1 + chance.below(7)).unwrap_or(1),
            max_deliveries: if one_in(8) { 6 } else { 10_000 },
        };
        Self {
            script: Script { ask, how },
            id: (!one_in(3)).then(new_id),
            readable: !one_in(40),
            chore: one_in(4),
            part: (plan.services.sole && one_in(5)).then(|| chance.below(2)),
            queue,
            priority: i64::try_from(chance.below(5)).unwrap_or(0) - 2,
            delay: one_in(4).then(|| Duration::from_millis(chance.below(15_000))),
            only: one_in(4).then(|| draw_only(chance)),
            retry,
            timeout: one_in(10).then(|| Duration::from_millis(1 + chance.below(2 * ttl_ms))),
            short_lived: one_in(4),
            keys: Terms::default(),
        }
    }

    /// The same wish, sharing something with others by chance. `before` are jobs that are there.
    pub(crate) fn sharing(mut self, plan: &KeyPlan, chance: &Chance, before: &[JobId]) -> Self {
        let one_in = |n: u64| chance.below(n) == 0;
        let pick = |n: usize| usize::try_from(chance.below(n as u64)).unwrap_or(0);
        if plan.shares > 0 && one_in(4) {
            return self.in_shared_queue(1 + chance.below(plan.shares));
        }
        if !plan.ordering.is_empty() && one_in(3) {
            let (key, head) = plan.ordering[pick(plan.ordering.len())].clone();
            let any = if one_in(2) { Head::Block } else { Head::StepAside };
            self.keys.ordering = Some(OrderingKey { key, head: head.unwrap_or(any) });
        }
        if !plan.limits.is_empty() && one_in(3) {
            let limit = &plan.limits[pick(plan.limits.len())];
            let most = limit.limit.most.filter(|_| limit.said);
            self.keys.limit = Some(LimitKey { key: limit.key.clone(), most });
        }
        if plan.after && !before.is_empty() && one_in(4) {
            let latest = before.len().min(8);
            let mut jobs: Vec<JobId> =
                (0..1 + chance.below(3)).map(|_| before[before.len() - 1 - pick(latest)]).collect();
            jobs.sort();
            jobs.dedup();
            let if_failed = if one_in(2) { IfFailed::Cancel } else { IfFailed::Run };
            self.keys.after = Some(AfterJobs { jobs, if_failed });
        }
        self
    }

    /// The same wish, as one of many of a tenant. In the shared queue all jobs are of one kind and of one
    /// priority, so that nothing but their shares tells who is first.
    pub(crate) fn in_shared_queue(mut self, tenant: u64) -> Self {
        self.keys = Terms { share: format!("tenant-{tenant}").parse().ok(), ..Terms::default() };
        (self.queue, self.priority, self.delay) = (SHARED.to_owned(), 0, None);
        (self.readable, self.chore, self.part, self.only) = (true, false, None, None);
        self
    }

    /// What is sent for it.
    pub(crate) fn draft(&self) -> Draft {
        let script = self.script.clone();
        let draft = match (self.readable, self.chore) {
            (true, _) if self.part.is_some() => {
                Draft::of(&Sole { script, part: self.part.unwrap_or_default() })
            }
            (false, _) => Draft::raw(Work::KIND, &serde_json::json!({ "ask": script.ask, "how": "?" })),
            (true, false) => Draft::of(&Work(script)),
            (true, true) => Draft::of(&Chore(script)),
        };
        let draft = draft.terms(self.keys.clone());
        let mut draft = draft.queue(&self.queue).priority(self.priority).retry(self.retry.clone());
        if let Some(id) = self.id {
            draft = draft.id(id);
        }
        if let Some(delay) = self.delay {
            draft = draft.after(delay);
        }
        if let Some(only) = &self.only {
            draft = draft.unique_by(only.clone());
        }
        if let Some(timeout) = self.timeout {
            draft = draft.timeout(timeout);
        }
        if self.short_lived {
            // Failed ones stay: a lapse may end them unseen, and then nobody knows when they may go.
            let succeeded = Keep::For(Duration::from_secs(10));
            draft = draft.retain(Retention { succeeded, failed: Keep::Forever });
        }
        draft
    }
}

fn draw_only(chance: &Chance) -> Only {
    let key = chance.below(4);
    let only = match chance.below(3) {
        0 => Only::one(format!("window-{key}")).within(Duration::from_millis(1 + chance.below(30_000))),
        _ => Only::one(format!("unfinished-{key}")),
    };
    match chance.below(3) {
        0 => only,
        1 => only.or_reject(),
        _ => only.or_replace(),
    }
}

/// The ask that the args of a job name; 0, which nobody made, if they name none.
pub(crate) fn ask_in(args: &Args) -> u64 {
    #[derive(Deserialize)]
    struct Named {
        ask: u64,
    }
    serde_json::from_slice::<Named>(args.as_bytes()).map_or(0, |named| named.ask)
}
