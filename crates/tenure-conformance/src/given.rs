//! What the tests start from: a fresh store on a clock that stands still, and words for what they do with it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenure_core::{
    Args, Attempt, Backoff, Cause, Due, Failure, HostId, IdSequence, Job, JobId, Keep, Kind, NewJob,
    OnConflict, Output, Priority, QueueName, Reserved, Retention, RetryPolicy, Settlement, StateName, Terms,
    Timestamp, Unique, UniqueKey, Verdict, Window, limits,
};

use super::Maker;
use super::naive::Looks;
use tenure_store::{
    Accepted, Chance, Change, ChangeOutcome, Changed, Clock, Enqueued, Filter, Held, Kinds, ManualClock,
    MemoryStore, Order, PageAsk, Renew, Renewal, Reservation, Reserve, Selection, Settled, Store, Tended,
    Want,
};

/// For how long the tests reserve.
pub(super) const TTL: Duration = Duration::from_secs(30);

/// A store with nothing in it, the clock that it goes by, and a holder.
pub(super) struct Given {
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: ManualClock,
    pub(super) holder: HostId,
    maker: Arc<dyn Maker>,
    chance: Chance,
    ids: Mutex<IdSequence>,
}

impl Given {
    pub(super) async fn new(maker: Arc<dyn Maker>) -> Self {
        Self::seeded(maker, 1).await
    }

    async fn seeded(maker: Arc<dyn Maker>, seed: u64) -> Self {
        let clock = ManualClock::new();
        let store = maker.make(Arc::new(clock.clone())).await;
        Self { store, clock, holder: host(1), maker, chance: Chance::seeded(seed), ids: Mutex::default() }
    }

    /// The same again, with another fresh store.
    pub(super) async fn anew(&self, seed: u64) -> Self {
        Self::seeded(Arc::clone(&self.maker), seed).await
    }

    /// How many random histories this store goes through.
    pub(super) fn histories(&self) -> u64 {
        self.maker.histories()
    }

    /// The naive checker for the random history with this seed.
    pub(super) fn naive(&self, seed: u64) -> Looks {
        Looks::every(self.maker.steps_per_look(seed))
    }

    /// Another fresh store, on the same clock.
    pub(super) async fn beside(&self) -> Self {
        let clock = self.clock.clone();
        let store = self.maker.make(Arc::new(clock.clone())).await;
        let (maker, chance) = (Arc::clone(&self.maker), Chance::seeded(2));
        Self { store, clock, holder: self.holder, maker, chance, ids: Mutex::default() }
    }

    /// A store that answers as every store has to, on the same clock.
    pub(super) fn reference(&self) -> Arc<dyn Store> {
        Arc::new(MemoryStore::new(Arc::new(self.clock.clone())))
    }

    // Time.

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(super) fn pass(&self, span: Duration) {
        self.clock.advance(span);
    }

    // Jobs to enqueue.

    pub(super) fn id(&self) -> JobId {
        self.ids.lock().unwrap().next(self.now(), self.chance.bits())
    }

    /// A job of kind `send`, due at once, on default terms.
    pub(super) fn new_job(&self, queue: &str) -> NewJob {
        NewJob {
            id: self.id(),
            kind: kind("send"),
            queue: self::queue(queue),
            args: Args::new(*b"{\"to\":7}").unwrap(),
            priority: Priority::default(),
            due: Due::Now,
            terms: Arc::default(),
        }
    }

    pub(super) fn due_in(&self, queue: &str, span: Duration) -> NewJob {
        NewJob { due: Due::In(span), ..self.new_job(queue) }
    }

    pub(super) fn of_kind(&self, queue: &str, kind: &str) -> NewJob {
        NewJob { kind: self::kind(kind), ..self.new_job(queue) }
    }

    pub(super) fn on_terms(&self, queue: &str, terms: Terms) -> NewJob {
        NewJob { terms: Arc::new(terms), ..self.new_job(queue) }
    }

    /// A job that is allowed so many attempts, a minute apart.
    pub(super) fn with_attempts(&self, queue: &str, max_attempts: u32) -> NewJob {
        let retry =
            RetryPolicy { backoff: Backoff::Fixed(minutes(1)), max_attempts, ..RetryPolicy::default() };
        self.on_terms(queue, Terms { retry: Some(retry), ..Terms::default() })
    }

    /// A job that is kept so long after its end.
    pub(super) fn kept(&self, queue: &str, keep: Keep) -> NewJob {
        self.on_terms(queue, Terms { retention: Retention::always(keep), ..Terms::default() })
    }

    /// A job that holds key number `key`.
    pub(super) fn only(&self, key: u8, window: Window, on_conflict: OnConflict) -> NewJob {
        let unique = Unique { key: UniqueKey([key; 16]), window, on_conflict };
        self.on_terms("mail", Terms { unique: Some(unique), ..Terms::default() })
    }

    // Enqueueing.

    pub(super) async fn enqueue_all(&self, batch: Vec<NewJob>) -> Enqueued {
        self.store.enqueue(batch).await.unwrap()
    }

    /// Enqueues one job that is not refused.
    pub(super) async fn offer(&self, job: NewJob) -> Accepted {
        match self.enqueue_all(vec![job]).await {
            Enqueued::Stored(accepted) => {
                assert_eq!(accepted.len(), 1);
                accepted[0]
            }
            Enqueued::Refused { refusal, .. } => panic!("refused: {refusal:?}"),
        }
    }

    /// Enqueues one job that is stored.
    pub(super) async fn put(&self, job: NewJob) -> JobId {
        let id = job.id;
        assert_eq!(self.offer(job).await, Accepted::New(id));
        id
    }

    /// Enqueues so many ordinary jobs in one batch.
    pub(super) async fn enqueue(&self, queue: &str, count: usize) -> Vec<JobId> {
        let batch: Vec<NewJob> = (0..count).map(|_| self.new_job(queue)).collect();
        let ids: Vec<JobId> = batch.iter().map(|job| job.id).collect();
        let all_new = ids.iter().copied().map(Accepted::New).collect();
        assert_eq!(self.enqueue_all(batch).await, Enqueued::Stored(all_new));
        ids
    }

    // Reserving.

    pub(super) fn ask(&self, wants: Vec<Want>, at_most: usize) -> Reserve {
        Reserve { holder: self.holder, ttl: TTL, wants, at_most }
    }

    pub(super) async fn turn(&self, ask: Reserve) -> Reservation {
        self.store.reserve(ask).await.unwrap()
    }

    /// Reserves up to so many jobs of any kind.
    pub(super) async fn reserve(&self, queue: &str, at_most: usize) -> Vec<Reserved> {
        self.turn(self.ask(vec![want(queue, at_most)], at_most)).await.jobs
    }

    /// Reserves a job; there is one to be had.
    pub(super) async fn take(&self, queue: &str) -> Reserved {
        self.reserve(queue, 1).await.pop().expect("a job of the queue is due")
    }

    /// Enqueues an ordinary job and reserves it.
    pub(super) async fn running(&self) -> Reserved {
        let id = self.put(self.new_job("mail")).await;
        let reserved = self.take("mail").await;
        assert_eq!(reserved.job().id, id);
        reserved
    }

    pub(super) async fn renew(&self, held: Held, ttl: Duration) -> Renewal {
        self.store.renew(Renew { ttl, held: vec![held] }).await.unwrap().pop().unwrap()
    }

    // Settling.

    pub(super) async fn write(&self, settlement: Settlement) -> Settled {
        let turn = self.store.settle(vec![settlement], None).await.unwrap();
        assert_eq!(turn.settled.len(), 1);
        turn.settled[0]
    }

    pub(super) async fn settle(&self, reserved: Reserved, verdict: Verdict) -> Settled {
        self.write(decide(reserved, verdict)).await
    }

    pub(super) async fn succeed(&self, reserved: Reserved) {
        let settled = self.settle(reserved, Verdict::Succeeded(None)).await;
        assert_eq!(settled, Settled::Done(StateName::Succeeded));
    }

    pub(super) async fn fail(&self, reserved: Reserved) {
        assert_eq!(self.settle(reserved, failed()).await, Settled::Done(StateName::Failed));
    }

    pub(super) async fn release(&self, reserved: Reserved) {
        assert_eq!(self.settle(reserved, Verdict::Released).await, Settled::Done(StateName::Queued));
    }

    /// Enqueues an ordinary job and lets it succeed.
    pub(super) async fn succeeded(&self) -> JobId {
        let reserved = self.running().await;
        let id = reserved.job().id;
        self.succeed(reserved).await;
        id
    }

    // Changing.

    pub(super) async fn change(&self, id: JobId, change: Change) -> ChangeOutcome {
        let changed = self.store.change(change, Selection::Ids(vec![id])).await.unwrap();
        assert_eq!((changed.outcomes.len(), changed.next), (1, None));
        assert_eq!(changed.outcomes[0].0, id);
        changed.outcomes[0].1
    }

    /// Changes all that the filter means, in as many steps as it takes.
    pub(super) async fn change_matching(&self, change: Change, filter: Filter) -> Vec<Changed> {
        let (mut steps, mut after) = (Vec::new(), None);
        loop {
            let selection = Selection::Matching { filter: filter.clone(), after };
            let changed = self.store.change(change.clone(), selection).await.unwrap();
            after = changed.next;
            steps.push(changed);
            assert!(steps.len() < 1_000, "a change over a filter comes to an end");
            if after.is_none() {
                return steps;
            }
        }
    }

    pub(super) async fn cancel(&self, id: JobId) -> ChangeOutcome {
        self.change(id, cancel_within(minutes(1))).await
    }

    pub(super) async fn tend(&self) -> Tended {
        self.store.tend().await.unwrap()
    }

    // Looking.

    pub(super) async fn job(&self, id: JobId) -> Job {
        self.store.job(id).await.unwrap().expect("the job is there")
    }

    pub(super) async fn state(&self, id: JobId) -> StateName {
        self.job(id).await.state.name(self.now())
    }

    pub(super) async fn is_there(&self, id: JobId) -> bool {
        self.store.job(id).await.unwrap().is_some()
    }

    pub(super) async fn attempts(&self, id: JobId) -> Vec<Attempt> {
        self.store.attempts(id).await.unwrap()
    }

    /// How many jobs of the queue the counters say are in this state.
    pub(super) async fn count(&self, queue: &str, state: StateName) -> u64 {
        let counts = self.store.counts().await.unwrap();
        counts.iter().filter(|c| c.queue.as_str() == queue && c.state == state).map(|c| c.jobs).sum()
    }

    /// Every job that the filter means, page by page.
    pub(super) async fn list(&self, filter: Filter, order: Order, page: usize) -> Vec<Job> {
        list(&*self.store, filter, order, page).await
    }

    pub(super) async fn all(&self) -> Vec<Job> {
        self.list(Filter::default(), Order::OldestFirst, 1_000).await
    }
}

/// Every job of a store that the filter means, page by page.
pub(super) async fn list(store: &dyn Store, filter: Filter, order: Order, page: usize) -> Vec<Job> {
    pages(store, PageAsk { filter, order, at_most: page, ..PageAsk::default() }).await
}

/// Every job of a listing, page by page.
pub(super) async fn pages(store: &dyn Store, ask: PageAsk) -> Vec<Job> {
    let (mut jobs, mut after) = (Vec::new(), None);
    for _ in 0..100_000 {
        let page = store.jobs(PageAsk { after, ..ask.clone() }).await.unwrap();
        jobs.extend(page.jobs);
        after = page.next;
        if after.is_none() {
            return jobs;
        }
    }
    panic!("a listing comes to an end");
}

/// Terms with as much metadata as a job may have, and a number of such jobs that no page examines.
pub(super) fn much_metadata() -> (Terms, usize) {
    let bytes = limits::META_BYTES;
    let full = (0..limits::META_ENTRIES).map(|number| (format!("{number:0>bytes$}"), "x".repeat(bytes)));
    let many = limits::PAGE_EXAMINED_BYTES / (limits::META_ENTRIES * 2 * bytes) + 20;
    (Terms { meta: full.collect(), ..Terms::default() }, many)
}

pub(super) fn queue(name: &str) -> QueueName {
    QueueName::new(name).unwrap()
}

pub(super) fn kind(name: &str) -> Kind {
    Kind::new(name).unwrap()
}

pub(super) fn host(number: u8) -> HostId {
    HostId::from_bytes([number; 16])
}

pub(super) fn priority(number: i64) -> Priority {
    Priority::new(number).unwrap()
}

pub(super) const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

pub(super) const fn minutes(count: u64) -> Duration {
    Duration::from_secs(60 * count)
}

pub(super) fn want(queue: &str, at_most: usize) -> Want {
    Want { queue: self::queue(queue), kinds: Kinds::All, at_most }
}

pub(super) fn want_kinds(queue: &str, kinds: &[&str], at_most: usize) -> Want {
    let kinds = kinds.iter().map(|name| kind(name)).collect();
    Want { queue: self::queue(queue), kinds: Kinds::Only(kinds), at_most }
}

pub(super) fn held(reserved: &Reserved) -> Held {
    Held { id: reserved.job().id, seq: reserved.job().seq, fence: reserved.fence() }
}

pub(super) fn ids(reserved: &[Reserved]) -> Vec<JobId> {
    reserved.iter().map(|reserved| reserved.job().id).collect()
}

pub(super) fn ids_of(jobs: &[Job]) -> Vec<JobId> {
    jobs.iter().map(|job| job.id).collect()
}

/// Decides under the default policy and a middling chance.
pub(super) fn decide(reserved: Reserved, verdict: Verdict) -> Settlement {
    reserved.settle(verdict, &RetryPolicy::default(), 0.5)
}

pub(super) fn trouble(message: &str) -> Failure {
    Failure::new(Cause::Error, message)
}

pub(super) fn failed() -> Verdict {
    Verdict::Failed(trouble("no such address"))
}

pub(super) fn retry() -> Verdict {
    Verdict::Retry { failure: trouble("try later"), due: None }
}

pub(super) fn retry_at(due: Due) -> Verdict {
    Verdict::Retry { failure: trouble("try later"), due: Some(due) }
}

pub(super) fn output(value: &str) -> Output {
    Output::new(value.as_bytes().to_vec(), Some("/stars/7".to_owned())).unwrap()
}

pub(super) fn cancel_within(grace: Duration) -> Change {
    Change::Cancel { grace, reason: "not wanted any more".to_owned() }
}
