//! Words for jobs that share keys or wait for one another.

use tenure_core::{
    AfterJobs, Head, IfFailed, JobId, Key, Limit, LimitKey, NewJob, OrderingKey, Rate, Reason, StateName,
    Terms, Verdict, explain,
};

use super::given::{Given, ids, kind, queue, seconds, want};
use tenure_store::{LimitInfo, Settled, Want};

pub(super) fn key(text: &str) -> Key {
    text.parse().unwrap()
}

/// With an ordering key.
pub(super) fn ordered(head: Head) -> Terms {
    Terms { ordering: Some(OrderingKey { key: key("cart-7"), head }), ..Terms::default() }
}

/// With a limit key, and a number if one is said.
pub(super) fn limited(most: Option<u32>) -> Terms {
    Terms { limit: Some(LimitKey { key: key("smtp"), most }), ..Terms::default() }
}

/// With a share key.
pub(super) fn shared(tenant: &str) -> Terms {
    Terms { share: Some(key(tenant)), ..Terms::default() }
}

/// After other jobs.
pub(super) fn after(jobs: &[JobId], if_failed: IfFailed) -> Terms {
    Terms { after: Some(AfterJobs { jobs: jobs.to_vec(), if_failed }), ..Terms::default() }
}

/// So many starts a second, of which so many at once.
pub(super) fn per_second(times: u32, burst: u32) -> Limit {
    Limit { most: None, rate: Some(Rate::new(times, seconds(1)).burst(burst)) }
}

impl Given {
    /// Enqueues jobs of a queue on these terms, one after the other.
    pub(super) async fn put_on(&self, queue: &str, terms: &Terms, count: usize) -> Vec<JobId> {
        let mut ids = Vec::new();
        for _ in 0..count {
            ids.push(self.put(self.on_terms(queue, terms.clone())).await);
        }
        ids
    }

    /// Reserves a job of this kind; there is one to be had.
    pub(super) async fn reserve_kind(&self, queue: &str, kind: &str) -> tenure_core::Reserved {
        let wants = vec![super::given::want_kinds(queue, &[kind], 1)];
        self.turn(self.ask(wants, 1)).await.jobs.pop().expect("a job of the kind is due")
    }

    /// Everything that one turn grants of these queues, each to be settled by its place.
    pub(super) async fn grab(&self, queues: &[&str]) -> Vec<tenure_core::Reserved> {
        let wants: Vec<Want> = queues.iter().map(|name| want(name, 1_000)).collect();
        self.turn(self.ask(wants, 1_000)).await.jobs
    }

    /// Runs all there is in these queues, a turn after the other, and answers who ran in which turn.
    pub(super) async fn drain(&self, queues: &[&str]) -> Vec<Vec<JobId>> {
        let mut turns = Vec::new();
        loop {
            let granted = self.grab(queues).await;
            if granted.is_empty() {
                return turns;
            }
            turns.push(ids(&granted));
            for reserved in granted {
                self.succeed(reserved).await;
            }
            assert!(turns.len() < 10_000, "jobs come to an end");
        }
    }

    /// The states of these jobs.
    pub(super) async fn states(&self, ids: &[JobId]) -> Vec<StateName> {
        let mut states = Vec::new();
        for id in ids {
            states.push(self.state(*id).await);
        }
        states
    }

    /// Settles and answers where the job stands then.
    pub(super) async fn settle_to(&self, reserved: tenure_core::Reserved, verdict: Verdict) -> StateName {
        match self.settle(reserved, verdict).await {
            Settled::Done(state) => state,
            refused @ (Settled::Repeated | Settled::Fenced | Settled::Gone) => panic!("{refused:?}"),
        }
    }

    /// Why a job is where it is.
    pub(super) async fn why(&self, id: JobId) -> Reason {
        let standing = self.store.standing(id).await.unwrap().expect("the job is there");
        explain(&standing, self.now())
    }

    /// Every limit.
    pub(super) async fn limits(&self) -> Vec<LimitInfo> {
        self.store.limits(None, 1_000).await.unwrap().limits
    }

    /// A job of this queue and kind on these terms.
    pub(super) fn keyed(&self, queue: &str, kind: &str, terms: Terms) -> NewJob {
        NewJob { kind: self::kind(kind), queue: self::queue(queue), ..self.on_terms(queue, terms) }
    }

    /// A host that has a handler for every kind and as many slots as anybody could want.
    pub(super) async fn serve(&self, queues: &[&str]) {
        let serves = |name: &&str| tenure_core::Serves {
            queue: queue(name),
            kinds: None,
            slots: 10_000,
            all_waiting: false,
        };
        let serves: Vec<_> = queues.iter().map(serves).collect();
        let ttl = super::given::minutes(60 * 24);
        self.store.announce(super::given::host(99), "web", 10_000, &serves, ttl).await.unwrap();
    }
}
