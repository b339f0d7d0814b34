use std::sync::Arc;
use std::time::Duration;

use tenure_core::QueueName;

use super::{Faults, FaultyStore, Tally};
use crate::{Fault, ManualClock, MemoryStore, Views};

const SECOND: Duration = Duration::from_secs(1);

struct Bench {
    clock: ManualClock,
    inner: Arc<MemoryStore>,
    faulty: Arc<FaultyStore>,
}

fn bench(faults: Faults) -> Bench {
    let clock = ManualClock::new();
    let inner = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
    let faulty = Arc::new(FaultyStore::new(Arc::clone(&inner) as _, faults));
    Bench { clock, inner, faulty }
}

impl Bench {
    /// Makes calls one after another and answers what became of each.
    async fn calls(&self, how_many: usize) -> Vec<Result<(), Fault>> {
        let mut answers = Vec::new();
        for _ in 0..how_many {
            answers.push(self.faulty.counts().await.map(drop));
        }
        answers
    }

    async fn pause(&self) -> Result<bool, Fault> {
        self.faulty.set_paused(&QueueName::default(), true).await
    }

    async fn is_paused(&self) -> bool {
        self.inner.queues().await.unwrap().iter().any(|queue| queue.paused)
    }
}

#[tokio::test]
async fn a_call_that_fails_has_done_nothing_and_says_so() {
    let bench = bench(Faults { fail: 1.0, ..Faults::none(1) });
    assert!(matches!(bench.pause().await, Err(Fault::Unavailable(_))));
    assert!(!bench.is_paused().await);
}

#[tokio::test]
async fn a_dropped_request_has_done_nothing_but_cannot_be_told_from_a_dropped_reply() {
    let bench = bench(Faults { drop_request: 1.0, ..Faults::none(1) });
    assert!(matches!(bench.pause().await, Err(Fault::Unknown(_))));
    assert!(!bench.is_paused().await);
}

#[tokio::test]
async fn a_dropped_reply_has_taken_effect() {
    let bench = bench(Faults { drop_reply: 1.0, ..Faults::none(1) });
    assert!(matches!(bench.pause().await, Err(Fault::Unknown(_))));
    assert!(bench.is_paused().await);
}

#[tokio::test]
async fn a_delayed_call_is_over_within_the_longest_delay() {
    let bench = bench(Faults { delay: 1.0, longest_delay: SECOND, ..Faults::none(1) });
    let faulty = Arc::clone(&bench.faulty);
    let call = tokio::spawn(async move { faulty.counts().await });
    tokio::task::yield_now().await;
    assert!(!call.is_finished());
    bench.clock.advance(SECOND);
    assert_eq!(call.await.unwrap(), Ok(vec![]));
    assert_eq!(bench.faulty.tally(), Tally { calls: 1, delayed: 1, ..Tally::default() });
}

#[tokio::test]
async fn a_delay_holds_up_some_requests_before_they_take_effect_and_some_replies_after() {
    let bench = bench(Faults { delay: 1.0, longest_delay: SECOND, ..Faults::none(1) });
    let mut taken_effect = Vec::new();
    for _ in 0..20 {
        bench.inner.set_paused(&QueueName::default(), false).await.unwrap();
        let faulty = Arc::clone(&bench.faulty);
        let call = tokio::spawn(async move { faulty.set_paused(&QueueName::default(), true).await });
        tokio::task::yield_now().await;
        taken_effect.push(bench.is_paused().await);
        bench.clock.advance(SECOND);
        call.await.unwrap().unwrap();
    }
    assert!(taken_effect.contains(&true) && taken_effect.contains(&false), "{taken_effect:?}");
}

#[tokio::test]
async fn every_kind_of_fault_occurs_and_most_calls_get_through() {
    let bench = bench(Faults { longest_delay: Duration::ZERO, ..Faults::some(1) });
    let answers = bench.calls(1_000).await;
    let tally = bench.faulty.tally();
    assert_eq!(tally.calls, 1_000);
    for count in [tally.failed, tally.requests_dropped, tally.replies_dropped] {
        assert!((20..100).contains(&count), "{tally:?}");
    }
    let faults = tally.failed + tally.requests_dropped + tally.replies_dropped;
    assert_eq!(answers.iter().filter(|answer| answer.is_err()).count(), usize::try_from(faults).unwrap());
}

#[tokio::test]
async fn the_same_seed_gives_the_same_faults_and_another_seed_others() {
    let history = async |seed| {
        let bench = bench(Faults { longest_delay: Duration::ZERO, ..Faults::some(seed) });
        (bench.calls(200).await, bench.faulty.tally())
    };
    assert_eq!(history(7).await, history(7).await);
    assert_ne!(history(7).await.0, history(8).await.0);
}

#[tokio::test]
async fn faults_are_switched_at_run_time_and_their_seed_begins_anew() {
    let bench = bench(Faults::none(1));
    assert!(bench.calls(50).await.iter().all(Result::is_ok));
    let faults = Faults { fail: 0.5, ..Faults::none(3) };
    bench.faulty.set(faults);
    let first = bench.calls(50).await;
    assert!(first.iter().any(Result::is_err));
    bench.faulty.set(faults);
    assert_eq!(bench.calls(50).await, first);
    bench.faulty.heal();
    assert!(bench.calls(50).await.iter().all(Result::is_ok));
}

#[tokio::test]
async fn a_store_that_is_down_turns_every_call_away_until_it_is_up_again() {
    let bench = bench(Faults::none(1));
    bench.faulty.down(true);
    assert!(matches!(bench.pause().await, Err(Fault::Unavailable(_))));
    assert!(!bench.is_paused().await);
    assert_eq!(bench.faulty.tally().turned_away, 1);
    bench.faulty.down(false);
    assert_eq!(bench.pause().await, Ok(true));
}
