//! What may happen to a store, drawn by chance, and doing it to one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tenure_core::{
    Attempt, Fence, HostId, Job, JobId, Key, Limit, LogLine, Name, NewJob, NewTimer, Progress, QueueName,
    Reserved, Serves, Settlement, SlotRecord, Timer, Timestamp, Verdict, explain,
};

use super::given::{decide, held, pages};
use super::naive::{Around, Depth, Rows};
use tenure_store::{
    Accepted, Change, Clock, Enqueued, Filter, Held, ListedBy, ManualClock, Order, PageAsk, Renew, Report,
    Reservation, Reserve, Selection, SlotsAsk, Store, TimerAct, TimersAsk,
};

/// Something that somebody does with a store. Reservations and settlements go by their place in
/// what the [`Side`] has, for a proof belongs to the store that made it.
#[derive(Debug, Clone)]
pub(super) enum Operation {
    Enqueue(Vec<NewJob>),
    Reserve(Reserve),
    Renew { held: Vec<usize>, spent: Vec<usize>, ttl: Duration },
    Settle { held: Vec<(usize, Verdict)>, spent: Vec<usize>, then: Option<Reserve> },
    Report { held: Vec<usize>, spent: Vec<usize>, progress: Option<Progress>, lines: Vec<u32> },
    Change(Change, Vec<JobId>),
    ChangeMatching(Change, Filter),
    SetPaused(QueueName, bool),
    SetQueueLimit(QueueName, Limit),
    SetLimit(Key, Option<Limit>),
    Announce(HostId, u32, Vec<Serves>, Duration),
    Retire(HostId),
    Tend,
    SetTimers(Vec<NewTimer>, Option<HostId>),
    Fire(usize),
    ChangeTimer(Name, TimerAct),
    PruneSlots(Timestamp),
    LookAt(JobId),
    List(Filter, ListedBy, Order, usize),
    LookAround,
    Pass(Duration),
    PutBack(Duration),
}

/// A store and what its callers have of it.
pub(super) struct Side {
    store: Arc<dyn Store>,
    clock: ManualClock,
    pub(super) held: Vec<Reserved>,
    pub(super) spent: Vec<Settlement>,
    seen: Mutex<Seen>,
}

/// The numbers that were seen. Which ones a store gives is its own affair, but for their order.
#[derive(Default)]
struct Seen {
    seqs: BTreeSet<u64>,
    /// Of each job by its number: another may come to have its id.
    fences: BTreeMap<u64, BTreeSet<Fence>>,
}

/// What a store answered.
#[derive(Debug, PartialEq)]
pub(super) struct Answered {
    /// In full, as text; the numbers of jobs and ownerships as places among all that were seen.
    pub(super) text: String,
    /// In how long the store expects something, if it was asked to reserve.
    pub(super) due_in: Option<Duration>,
}

impl Side {
    pub(super) fn new(store: Arc<dyn Store>, clock: ManualClock) -> Self {
        Self { store, clock, held: Vec::new(), spent: Vec::new(), seen: Mutex::default() }
    }

    pub(super) async fn apply(&mut self, operation: &Operation) -> Answered {
        let mut due_in = None;
        let text = match operation {
            Operation::Enqueue(batch) => text(&self.store.enqueue(batch.clone()).await.unwrap()),
            Operation::Reserve(ask) => {
                let reservation = self.store.reserve(ask.clone()).await.unwrap();
                due_in = reservation.due_in;
                self.keep(reservation)
            }
            Operation::Renew { held, spent, ttl } => {
                let ask = Renew { ttl: *ttl, held: self.ownerships(held, spent) };
                text(&self.store.renew(ask).await.unwrap())
            }
            Operation::Settle { held, spent, then } => {
                let settlements = self.decide(held, spent);
                let turn = self.store.settle(settlements, then.clone()).await.unwrap();
                due_in = turn.reservation.due_in;
                format!("{:?} {}", turn.settled, self.keep(turn.reservation))
            }
            Operation::Report { held, spent, progress, lines } => {
                let reports = self.reports(held, spent, progress, lines);
                text(&self.store.report(reports).await.unwrap())
            }
            Operation::Change(change, ids) => {
                text(&self.store.change(change.clone(), Selection::Ids(ids.clone())).await.unwrap())
            }
            Operation::ChangeMatching(change, filter) => self.change_matching(change, filter).await,
            Operation::SetPaused(queue, paused) => {
                text(&self.store.set_paused(queue, *paused).await.unwrap())
            }
            Operation::SetQueueLimit(queue, limit) => {
                text(&self.store.set_queue_limit(queue, *limit).await.unwrap())
            }
            Operation::SetLimit(key, limit) => text(&self.store.set_limit(key, *limit).await.unwrap()),
            Operation::Announce(id, slots, serves, ttl) => {
                text(&self.store.announce(*id, "web", *slots, serves, *ttl).await.unwrap())
            }
            Operation::Retire(id) => text(&self.store.retire(*id).await.unwrap()),
            Operation::Tend => text(&self.store.tend().await.unwrap()),
            Operation::SetTimers(timers, starts) => {
                text(&self.store.set_timers(timers.clone(), *starts).await.unwrap())
            }
            Operation::Fire(at_most) => text(&self.store.fire(*at_most).await.unwrap()),
            Operation::ChangeTimer(name, act) => {
                text(&self.store.change_timer(name, act.clone()).await.unwrap())
            }
            Operation::PruneSlots(before) => text(&self.store.prune_slots(*before).await.unwrap()),
            Operation::LookAt(id) => self.look_at(*id).await,
            Operation::List(filter, by, order, page) => {
                let ask = PageAsk {
                    filter: filter.clone(),
                    by: *by,
                    order: *order,
                    at_most: *page,
                    ..PageAsk::default()
                };
                let jobs = pages(&*self.store, ask).await;
                text(&jobs.into_iter().map(|job| self.ranked(job)).collect::<Vec<_>>())
            }
            Operation::LookAround => self.look_around().await,
            Operation::Pass(span) => {
                self.clock.advance(*span);
                String::new()
            }
            Operation::PutBack(span) => {
                self.clock.step_to(self.clock.now().before(*span));
                String::new()
            }
        };
        Answered { text, due_in }
    }

    /// All rows of the store.
    pub(super) async fn rows(&self) -> Rows {
        Rows::read(&*self.store, Depth::Standings).await.unwrap()
    }

    /// Everything there is to see, one job after the other.
    pub(super) async fn look_at_all(&self, rows: &Rows) -> Vec<String> {
        let mut seen = vec![self.look_around().await];
        for job in &rows.jobs {
            seen.push(self.text_of(job.id, rows.around[&job.seq].clone()).await);
        }
        seen
    }

    async fn look_at(&self, id: JobId) -> String {
        self.text_of(id, Around::read(&*self.store, id).await.unwrap()).await
    }

    async fn text_of(&self, id: JobId, around: Around) -> String {
        let Around { job, standing, attempts } = around;
        let seq = job.as_ref().map_or(0, |job| job.seq);
        let job = job.map(|job| self.ranked(job));
        let attempts: Vec<Attempt> =
            attempts.into_iter().map(|a| Attempt { fence: self.rank_of(seq, a.fence), ..a }).collect();
        let log = self.store.logs(id, (1, 1), 5).await.unwrap();
        let now = self.store.clock().now();
        let reason = standing.as_ref().map(|standing| explain(standing, now));
        let gates =
            standing.as_ref().map(|s| (s.after.clone(), s.spoiled_by, s.turn, s.limit.clone(), s.queue));
        let around = standing.map(|s| (s.paused, s.serving, s.running, s.ahead, self.ranked(s.job)));
        format!("{job:?}\n{attempts:?}\n{log:?}\n{reason:?}\n{gates:?}\n{around:?}")
    }

    async fn look_around(&self) -> String {
        let counts = self.store.counts().await.unwrap();
        let queues = self.store.queues().await.unwrap();
        let hosts = self.store.hosts().await.unwrap();
        let limits = self.store.limits(None, 100).await.unwrap();
        let (timers, slots) = (self.timers().await, self.slots().await);
        format!("{counts:?}\n{queues:?}\n{limits:?}\n{hosts:?}\n{timers:?}\n{slots:?}")
    }

    async fn timers(&self) -> Vec<Timer> {
        let (mut timers, mut behind) = (Vec::new(), None);
        loop {
            let page = self.store.timers(TimersAsk { behind, at_most: 2, ..TimersAsk::default() });
            let page = page.await.unwrap();
            timers.extend(page.timers);
            behind = page.next;
            if behind.is_none() {
                return timers;
            }
        }
    }

    /// Every record, in both orders.
    async fn slots(&self) -> Vec<SlotRecord> {
        let mut slots = Vec::new();
        for order in [Order::OldestFirst, Order::NewestFirst] {
            let mut behind = None;
            loop {
                let ask = SlotsAsk { order, behind, at_most: 7, ..SlotsAsk::default() };
                let page = self.store.slots(ask).await.unwrap();
                slots.extend(page.slots);
                behind = page.next;
                if behind.is_none() {
                    break;
                }
            }
        }
        slots
    }

    async fn change_matching(&self, change: &Change, filter: &Filter) -> String {
        let (mut outcomes, mut after) = (Vec::new(), None);
        for _ in 0..1_000 {
            let selection = Selection::Matching { filter: filter.clone(), after };
            let changed = self.store.change(change.clone(), selection).await.unwrap();
            outcomes.extend(changed.outcomes);
            after = changed.next;
            if after.is_none() {
                return text(&outcomes);
            }
        }
        panic!("a change over a filter comes to an end");
    }

    /// A job with places among those that were seen in place of its numbers.
    fn ranked(&self, mut job: Job) -> Job {
        job.fence = self.rank_of(job.seq, job.fence);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.seqs.insert(job.seq);
        job.seq = seen.seqs.range(..=job.seq).count() as u64;
        job
    }

    fn rank_of(&self, seq: u64, fence: Fence) -> Fence {
        if fence == Fence::NONE {
            return fence;
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let fences = seen.fences.entry(seq).or_default();
        fences.insert(fence);
        Fence::from_number(fences.range(..=fence).count() as u64)
    }

    fn keep(&mut self, reservation: Reservation) -> String {
        let jobs: Vec<Job> = reservation.jobs.iter().map(|r| self.ranked(r.job().clone())).collect();
        self.held.extend(reservation.jobs);
        text(&jobs)
    }

    fn ownerships(&self, places: &[usize], spent: &[usize]) -> Vec<Held> {
        let of_spent = |s: &Settlement| Held { id: s.id(), seq: s.seq(), fence: s.fence() };
        let present = places.iter().map(|place| held(&self.held[*place]));
        present.chain(spent.iter().map(|place| of_spent(&self.spent[*place]))).collect()
    }

    fn decide(&mut self, places: &[(usize, Verdict)], spent: &[usize]) -> Vec<Settlement> {
        let mut settlements: Vec<Settlement> = spent.iter().map(|place| self.spent[*place].clone()).collect();
        for (place, verdict) in places {
            settlements.push(decide(self.held.swap_remove(*place), verdict.clone()));
        }
        self.spent.extend(settlements.iter().skip(spent.len()).cloned());
        settlements
    }

    fn reports(
        &self,
        places: &[usize],
        spent: &[usize],
        progress: &Option<Progress>,
        lines: &[u32],
    ) -> Vec<Report> {
        let now = self.store.clock().now();
        let of_held = |place: &usize| {
            let delivery = self.held[*place].job().delivery;
            let lines = lines.iter().map(|n| LogLine::new(delivery, *n, now, &format!("line {n}"))).collect();
            Report { held: held(&self.held[*place]), progress: progress.clone(), lines }
        };
        let of_spent = |held: Held| Report { held, progress: progress.clone(), lines: vec![] };
        let stale = self.ownerships(&[], spent).into_iter().map(of_spent);
        places.iter().map(of_held).chain(stale).collect()
    }
}

fn text(answer: &impl std::fmt::Debug) -> String {
    format!("{answer:?}")
}

/// The jobs of an answer that were not there before.
pub(super) fn new_ones(enqueued: &Enqueued) -> Vec<JobId> {
    let Enqueued::Stored(accepted) = enqueued else { return vec![] };
    let new = accepted.iter().filter_map(|accepted| match accepted {
        Accepted::New(id) | Accepted::Replaced { id, .. } => Some(*id),
        Accepted::Repeated(_) | Accepted::Existing(_) => None,
    });
    new.collect()
}
