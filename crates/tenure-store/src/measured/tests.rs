use std::time::Duration;

use tenure_core::{
    Args, Due, Holder, HostId, JobId, Kind, Late, LeaseAct, LeaseId, LeaseName, LeaseOutcome, NewJob,
    Priority, QueueName, Timestamp, Ttl,
};

use super::*;
use crate::{Fault, Faults, FaultyStore, Jobs, Kinds, LeaseWish, Leases, ManualClock, MemoryStore, Views};
use crate::{Reserve, Want};

const TTL: Duration = Duration::from_secs(30);

struct Bench {
    clock: ManualClock,
    faulty: Arc<FaultyStore>,
    store: MeasuredStore,
}

fn bench(faults: Faults) -> Bench {
    let clock = ManualClock::new();
    let memory = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
    let faulty = Arc::new(FaultyStore::new(memory, faults));
    Bench { clock, faulty: Arc::clone(&faulty), store: MeasuredStore::new(faulty) }
}

impl Bench {
    fn call(&self, operation: &str) -> CallMeasure {
        let calls = self.store.extras().measures.unwrap().calls();
        calls.into_iter().find(|call| call.operation == operation).unwrap()
    }

    async fn enqueue(&self, queue: &str, number: u8) {
        let job = NewJob {
            id: JobId::from_bytes([number; 16]),
            kind: Kind::new("mail").unwrap(),
            queue: QueueName::new(queue).unwrap(),
            args: Args::new(b"{}".as_slice()).unwrap(),
            priority: Priority::default(),
            due: Due::Now,
            terms: Arc::default(),
        };
        self.store.enqueue(vec![job]).await.unwrap();
    }
}

fn ask(queues: &[&str], at_most: usize) -> Reserve {
    let want = |name: &&str| Want { queue: QueueName::new(name).unwrap(), kinds: Kinds::All, at_most };
    let holder = HostId::new(Timestamp::EPOCH, 1);
    Reserve { holder, ttl: TTL, wants: queues.iter().map(want).collect(), at_most }
}

#[tokio::test]
async fn a_call_is_measured_until_its_answer_is_there() {
    let bench = bench(Faults { reply_takes: Duration::from_millis(300), ..Faults::none(1) });
    let pass = async {
        tokio::task::yield_now().await;
        bench.clock.advance(Duration::from_millis(300));
    };
    let (answer, ()) = tokio::join!(bench.store.counts(), pass);
    assert_eq!(answer, Ok(vec![]));
    let call = bench.call("counts");
    assert_eq!((call.took.count(), call.took.sum()), (1, 0.3));
    assert!(call.faults.iter().all(|(_, count)| *count == 0), "{call:?}");
}

#[tokio::test]
async fn a_fault_is_told_as_it_came_and_counted_by_its_kind() {
    let bench = bench(Faults { fail: 1.0, ..Faults::none(1) });
    assert!(matches!(bench.store.counts().await, Err(Fault::Unavailable(_))));
    bench.faulty.set(Faults { drop_reply: 1.0, ..Faults::none(1) });
    assert!(matches!(bench.store.counts().await, Err(Fault::Unknown(_))));
    bench.faulty.heal();
    bench.store.counts().await.unwrap();
    let call = bench.call("counts");
    assert_eq!(call.faults, [("unavailable", 1), ("unknown", 1), ("broken", 0), ("closed", 0)]);
    assert_eq!(call.took.count(), 3);
}

/// Whoever stops waiting has no answer that could be measured, and the next call is.
#[tokio::test]
async fn a_call_that_nobody_waits_for_is_not_counted() {
    let bench = bench(Faults::none(1));
    bench.faulty.silent(true);
    {
        let call = bench.store.counts();
        tokio::select! { biased; _ = call => panic!("it is silent"), () = tokio::task::yield_now() => {} }
    }
    bench.faulty.silent(false);
    bench.store.counts().await.unwrap();
    assert_eq!(bench.call("counts").took.count(), 1);
}

#[tokio::test]
async fn claims_tell_what_they_were_granted_and_which_queue_had_nothing() {
    let bench = bench(Faults::none(1));
    bench.enqueue("mail", 1).await;
    bench.enqueue("mail", 2).await;
    let first = bench.store.reserve(ask(&["mail", "post"], 10)).await.unwrap();
    assert_eq!(first.jobs.len(), 2);
    bench.store.settle(vec![], Some(ask(&["mail"], 10))).await.unwrap();
    // Settling alone is no claim.
    bench.store.settle(vec![], None).await.unwrap();
    // Who got all that it wanted did not look further.
    bench.enqueue("mail", 3).await;
    bench.store.reserve(ask(&["mail", "post"], 1)).await.unwrap();
    let claims = bench.store.extras().measures.unwrap().claims();
    assert_eq!((claims.took.count(), claims.jobs.count(), claims.jobs.sum()), (3, 3, 3.0));
    let empty = |queue: &str| claims.empty.get(&Some(QueueName::new(queue).unwrap())).copied();
    assert_eq!((empty("mail"), empty("post")), (Some(1), Some(1)));
}

#[tokio::test]
async fn however_many_queues_are_asked_for_in_vain_a_bounded_number_is_told_apart() {
    let bench = bench(Faults::none(1));
    for number in 0..1_100 {
        bench.store.reserve(ask(&[&format!("q{number}")], 1)).await.unwrap();
    }
    bench.store.reserve(ask(&["q7"], 1)).await.unwrap();
    let empty = bench.store.extras().measures.unwrap().claims().empty;
    assert_eq!((empty.len(), empty[&None]), (1_001, 100));
    assert_eq!(empty[&Some(QueueName::new("q7").unwrap())], 2);
}

#[tokio::test]
async fn leases_tell_what_came_of_wanting_them() {
    let bench = bench(Faults::none(1));
    let wish = |id, wait| LeaseWish {
        name: LeaseName::new("month-end").unwrap(),
        act: LeaseAct::Acquire {
            id: LeaseId::new([id, id]),
            by: Holder::default(),
            ttl: Ttl::For(TTL),
            wait,
        },
    };
    let got = bench.store.lease(vec![wish(1, None), wish(2, None), wish(3, None)]).await.unwrap();
    let LeaseOutcome::Granted { fence, .. } = got[0] else { panic!("{got:?}") };
    let renew = LeaseAct::Renew { id: LeaseId::new([1, 1]), fence, late: Late::Refused };
    let renew = LeaseWish { name: LeaseName::new("month-end").unwrap(), act: renew };
    bench.store.lease(vec![renew]).await.unwrap();
    let leases = bench.store.extras().measures.unwrap().leases();
    assert_eq!(leases.acquired, [("granted", 1), ("held", 2), ("awaited", 0), ("refused", 0)]);
    assert_eq!(leases.renewed.count(), 1);
}
