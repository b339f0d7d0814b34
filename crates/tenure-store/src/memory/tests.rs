//! The tricky parts of the reference; the whole contract is the conformance suite's.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{
    Args, Due, HostId, JobId, Kind, NewJob, Priority, QueueName, Reserved, RetryPolicy, StateName, Verdict,
};

use super::MemoryStore;
use crate::{Accepted, Enqueued, Jobs, Kinds, ManualClock, Reserve, Settled, Views, Want};

const TTL: Duration = Duration::from_secs(30);

struct Bench {
    clock: ManualClock,
    store: MemoryStore,
}

fn bench() -> Bench {
    let clock = ManualClock::new();
    let store = MemoryStore::new(Arc::new(clock.clone()));
    Bench { clock, store }
}

fn id(number: u8) -> JobId {
    JobId::from_bytes([number; 16])
}

fn job(number: u8) -> NewJob {
    NewJob {
        id: id(number),
        kind: Kind::new("mail").unwrap(),
        queue: QueueName::default(),
        args: Args::new(b"{}".as_slice()).unwrap(),
        priority: Priority::default(),
        due: Due::Now,
        terms: Arc::default(),
    }
}

impl Bench {
    async fn enqueue(&self, batch: &[NewJob]) -> Vec<Accepted> {
        match self.store.enqueue(batch.to_vec()).await.unwrap() {
            Enqueued::Stored(answers) => answers,
            Enqueued::Refused { index, refusal } => panic!("job {index} was refused: {refusal:?}"),
        }
    }

    async fn reserve(&self, holder: u8, at_most: usize) -> Vec<Reserved> {
        let want = Want { queue: QueueName::default(), kinds: Kinds::All, at_most };
        let ask = Reserve { holder: HostId::from_bytes([holder; 16]), ttl: TTL, wants: vec![want], at_most };
        self.store.reserve(ask).await.unwrap().jobs
    }

    async fn state(&self, number: u8) -> StateName {
        self.store.job(id(number)).await.unwrap().unwrap().state.name(crate::Clock::now(&self.clock))
    }
}

#[tokio::test]
async fn a_settlement_that_is_sent_twice_takes_effect_once() {
    let bench = bench();
    bench.enqueue(&[job(1)]).await;
    let held = bench.reserve(1, 1).await.pop().unwrap();
    let settlement = held.settle(Verdict::Succeeded(None), &RetryPolicy::default(), 0.5);
    let twice = vec![settlement.clone(), settlement];
    let turn = bench.store.settle(twice, None).await.unwrap();
    assert_eq!(turn.settled, [Settled::Done(StateName::Succeeded), Settled::Repeated]);
    assert_eq!(bench.store.attempts(id(1)).await.unwrap().len(), 1);
    assert_eq!(bench.state(1).await, StateName::Succeeded);
}
