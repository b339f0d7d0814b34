//! The tricky parts of the reference. The whole contract is the conformance suite's.

mod gates;
mod history;

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{
    AttemptEnd, Due, HostId, JobId, Keep, Kind, NewJob, OnConflict, Priority, QueueName, Reserved, Retention,
    RetryPolicy, StateName, Terms, Timestamp, Unique, UniqueKey, Verdict, Window, limits,
};

use super::MemoryStore;
use crate::{
    Accepted, Change, ChangeOutcome, Clock, Enqueued, Fault, Happening, Held, Hints, Jobs, Kinds,
    ManualClock, Refusal, Renew, Renewal, Reservation, Reserve, Selection, Settled, Store, Views, Want,
};

const TTL: Duration = Duration::from_secs(30);
const SECOND: Duration = Duration::from_secs(1);

/// A store, its clock, and the calls that tests make of it.
struct Bench {
    clock: ManualClock,
    store: MemoryStore,
}

fn bench() -> Bench {
    let clock = ManualClock::new();
    let store = MemoryStore::new(Arc::new(clock.clone()));
    Bench { clock, store }
}

fn id(number: u64) -> JobId {
    JobId::from_bytes(u128::from(number).to_be_bytes())
}

fn host(number: u8) -> HostId {
    HostId::from_bytes([number; 16])
}

fn job(number: u64) -> NewJob {
    NewJob {
        id: id(number),
        kind: Kind::new("mail").unwrap(),
        queue: QueueName::default(),
        args: tenure_core::Args::new(b"{}".as_slice()).unwrap(),
        priority: Priority::default(),
        due: Due::Now,
        terms: Arc::default(),
    }
}

/// A job that wants the one key there is.
fn only(number: u64, window: Window, on_conflict: OnConflict) -> NewJob {
    let unique = Some(Unique { key: UniqueKey([7; 16]), window, on_conflict });
    NewJob { terms: Arc::new(Terms { unique, ..Terms::default() }), ..job(number) }
}

impl Bench {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn enqueue(&self, batch: &[NewJob]) -> Vec<Accepted> {
        match self.store.enqueue(batch.to_vec()).await.unwrap() {
            Enqueued::Stored(answers) => answers,
            Enqueued::Refused { index, refusal } => panic!("job {index} was refused: {refusal:?}"),
        }
    }

    async fn turn(&self, holder: u8, at_most: usize) -> Reservation {
        let want = Want { queue: QueueName::default(), kinds: Kinds::All, at_most };
        self.store
            .reserve(Reserve { holder: host(holder), ttl: TTL, wants: vec![want], at_most })
            .await
            .unwrap()
    }

    async fn reserve_one(&self, holder: u8) -> Reserved {
        self.turn(holder, 1).await.jobs.pop().unwrap()
    }

    async fn settle(&self, held: Reserved, verdict: Verdict) -> Settled {
        let settlement = held.settle(verdict, &RetryPolicy::default(), 0.5);
        self.store.settle(vec![settlement], None).await.unwrap().settled[0]
    }

    async fn change(&self, change: Change, number: u64) -> ChangeOutcome {
        self.store.change(change, Selection::Ids(vec![id(number)])).await.unwrap().outcomes[0].1
    }

    async fn cancel(&self, number: u64, grace: Duration) -> ChangeOutcome {
        self.change(Change::Cancel { grace, reason: "no longer wanted".to_owned() }, number).await
    }

    async fn state(&self, number: u64) -> Option<StateName> {
        self.store.job(id(number)).await.unwrap().map(|job| job.state.name(self.now()))
    }
}

fn held(reserved: &Reserved) -> Held {
    Held { id: reserved.job().id, seq: reserved.job().seq, fence: reserved.fence() }
}

#[tokio::test]
async fn a_settlement_that_is_sent_twice_takes_effect_once() {
    let bench = bench();
    bench.enqueue(&[job(1)]).await;
    let settlement =
        bench.reserve_one(1).await.settle(Verdict::Snoozed(Due::In(SECOND)), &RetryPolicy::default(), 0.5);
    let twice = vec![settlement.clone(), settlement];
    let turn = bench.store.settle(twice, None).await.unwrap();
    assert_eq!(turn.settled, [Settled::Done(StateName::Scheduled), Settled::Repeated]);
    assert_eq!(bench.store.attempts(id(1)).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_batch_that_is_sent_twice_is_stored_once_even_if_its_jobs_have_finished() {
    let bench = bench();
    let batch = [only(1, Window::WhileUnfinished, OnConflict::Reject), job(2)];
    bench.enqueue(&batch).await;
    assert_eq!(bench.enqueue(&batch).await, [Accepted::Repeated(id(1)), Accepted::Repeated(id(2))]);
    for reserved in bench.turn(1, 2).await.jobs {
        bench.settle(reserved, Verdict::Succeeded(None)).await;
    }
    assert_eq!(bench.enqueue(&batch).await, [Accepted::Repeated(id(1)), Accepted::Repeated(id(2))]);
    assert!(bench.turn(1, 2).await.jobs.is_empty());
}

#[tokio::test]
async fn a_late_worker_is_fenced_off_once_somebody_has_noticed_that_it_lapsed() {
    let bench = bench();
    bench.enqueue(&[job(1), job(2)]).await;
    let (late, noticed) = (bench.reserve_one(1).await, bench.reserve_one(1).await);
    bench.clock.advance(TTL);
    let renewal = bench.store.renew(Renew { ttl: TTL, held: vec![held(&noticed)] }).await.unwrap();
    assert_eq!(renewal, [Renewal::Lapsed]);
    assert_eq!(bench.settle(late, Verdict::Succeeded(None)).await, Settled::Done(StateName::Succeeded));

    let taken = bench.reserve_one(2).await;
    assert!(taken.fence() > noticed.fence());
    let renewal = bench.store.renew(Renew { ttl: TTL, held: vec![held(&noticed)] }).await.unwrap();
    assert_eq!(renewal, [Renewal::Lost]);
    assert_eq!(bench.settle(noticed, Verdict::Succeeded(None)).await, Settled::Fenced);
    assert_eq!(bench.settle(taken, Verdict::Succeeded(None)).await, Settled::Done(StateName::Succeeded));
    let ends: Vec<_> =
        bench.store.attempts(id(2)).await.unwrap().into_iter().map(|a| a.ended.unwrap().1).collect();
    assert_eq!(ends, [AttemptEnd::Lost, AttemptEnd::Succeeded]);
}

#[tokio::test]
async fn a_job_is_taken_from_a_holder_that_renews_but_does_not_stop() {
    let bench = bench();
    bench.enqueue(&[job(1)]).await;
    let deaf = bench.reserve_one(1).await;
    assert_eq!(bench.cancel(1, SECOND * 5).await, ChangeOutcome::Asked);
    assert_eq!(bench.cancel(1, Duration::ZERO).await, ChangeOutcome::Already);
    let deadline = bench.now().after(SECOND * 5);
    assert_eq!(bench.turn(2, 1).await.due_in, Some(SECOND * 5));

    bench.clock.advance(SECOND * 4);
    let renewal = bench.store.renew(Renew { ttl: TTL, held: vec![held(&deaf)] }).await.unwrap();
    let Renewal::Held(holds) = &renewal[0] else { panic!("{renewal:?}") };
    assert_eq!(holds.cancel.as_ref().map(|cancel| cancel.deadline), Some(deadline));

    bench.clock.advance(SECOND);
    assert!(bench.turn(2, 1).await.jobs.is_empty());
    assert_eq!(bench.state(1).await, Some(StateName::Cancelled));
    assert_eq!(bench.settle(deaf, Verdict::Succeeded(None)).await, Settled::Fenced);
}

#[tokio::test]
async fn a_refused_job_leaves_nothing_of_its_batch_behind() {
    let bench = bench();
    bench.enqueue(&[only(1, Window::WhileUnfinished, OnConflict::Reject)]).await;
    let mut events = bench.store.events();
    let replacing = only(2, Window::WhileUnfinished, OnConflict::Replace);
    let batch = vec![replacing, job(3), only(4, Window::WhileUnfinished, OnConflict::Reject)];
    // The third meets the first of its own batch, not the one that it replaced.
    let answer = bench.store.enqueue(batch).await.unwrap();
    assert_eq!(answer, Enqueued::Refused { index: 2, refusal: Refusal::KeyHeld(id(2)) });
    assert_eq!(bench.state(1).await, Some(StateName::Queued));
    assert_eq!((bench.state(2).await, bench.state(3).await), (None, None));
    assert!(events.try_recv().is_err());

    bench.enqueue(&[job(5)]).await;
    assert_eq!(bench.store.job(id(5)).await.unwrap().unwrap().seq, 2);
}

#[tokio::test]
async fn a_waiting_job_is_replaced_and_a_running_one_is_returned() {
    let bench = bench();
    let replace = |number| only(number, Window::WhileUnfinished, OnConflict::Replace);
    let answers = bench.enqueue(&[replace(1), replace(2)]).await;
    assert_eq!(answers, [Accepted::New(id(1)), Accepted::Replaced { id: id(2), old: id(1) }]);
    let replaced = bench.store.job(id(1)).await.unwrap().unwrap();
    assert_eq!(replaced.failure.unwrap().message, format!("replaced by job {}", id(2)));

    let running = bench.reserve_one(1).await;
    assert_eq!(running.job().id, id(2));
    assert_eq!(bench.enqueue(&[replace(3)]).await, [Accepted::Existing(id(2))]);
    // The replaced one would need the key that the running one has.
    assert_eq!(bench.change(Change::Redo, 1).await, ChangeOutcome::RefusedKeyHeld(id(2)));
    bench.settle(running, Verdict::Succeeded(None)).await;
    assert_eq!(bench.change(Change::Redo, 1).await, ChangeOutcome::Done);
    assert_eq!(bench.change(Change::Redo, 2).await, ChangeOutcome::RefusedKeyHeld(id(1)));
}

#[tokio::test]
async fn a_key_held_for_a_time_outlives_the_end_and_the_pruning_of_its_job_but_not_its_deletion() {
    let bench = bench();
    let hour = Window::For(SECOND * 3600);
    let mut brief = only(1, hour, OnConflict::Return);
    let retention = Retention::always(Keep::For(Duration::ZERO));
    brief.terms = Arc::new(Terms { retention, ..brief.terms.as_ref().clone() });
    bench.enqueue(&[brief]).await;
    let running = bench.reserve_one(1).await;
    bench.settle(running, Verdict::Succeeded(None)).await;
    assert_eq!(bench.store.tend().await.unwrap().pruned, 1);
    assert_eq!(bench.state(1).await, None);
    assert_eq!(bench.enqueue(&[only(2, hour, OnConflict::Return)]).await, [Accepted::Existing(id(1))]);

    bench.clock.advance(SECOND * 3600);
    assert_eq!(bench.enqueue(&[only(2, hour, OnConflict::Return)]).await, [Accepted::New(id(2))]);
    assert_eq!(bench.change(Change::Delete, 2).await, ChangeOutcome::Done);
    assert_eq!(bench.enqueue(&[only(3, hour, OnConflict::Return)]).await, [Accepted::New(id(3))]);
}

#[tokio::test]
async fn jobs_of_all_kinds_are_handed_out_in_one_line() {
    let bench = bench();
    let of = |number, kind: &str, priority, due| NewJob {
        kind: Kind::new(kind).unwrap(),
        priority: Priority::new(priority).unwrap(),
        due: Due::At(due),
        ..job(number)
    };
    let (now, before) = (bench.now(), bench.now().before(SECOND));
    let batch = [of(1, "a", 0, now), of(2, "b", 0, before), of(3, "c", -1, now), of(4, "a", 0, before)];
    bench.enqueue(&batch).await;
    assert_eq!(bench.store.queues().await.unwrap()[0].oldest_due, Some(now), "it came late");
    assert_eq!(bench.store.standing(id(1)).await.unwrap().unwrap().ahead, 3);
    let granted: Vec<_> = bench.turn(1, 10).await.jobs.iter().map(|reserved| reserved.job().id).collect();
    assert_eq!(granted, [id(3), id(2), id(4), id(1)]);
}

#[tokio::test]
async fn a_job_counts_as_scheduled_until_a_turn_finds_it_due() {
    let bench = bench();
    bench.enqueue(&[NewJob { due: Due::In(SECOND), ..job(1) }]).await;
    let counted = async || bench.store.counts().await.unwrap().pop().map(|count| (count.state, count.jobs));
    bench.clock.advance(SECOND);
    assert_eq!(bench.state(1).await, Some(StateName::Queued));
    assert_eq!(counted().await, Some((StateName::Scheduled, 1)));
    bench.turn(1, 0).await;
    assert_eq!(counted().await, Some((StateName::Queued, 1)));
}

#[tokio::test]
async fn pruning_goes_in_steps_and_says_when_there_is_more() {
    let bench = bench();
    let terms = Terms { retention: Retention::always(Keep::For(SECOND)), ..Terms::default() };
    let terms = Arc::new(terms);
    let surplus = limits::PRUNE_JOBS as u64 + 1;
    let batch: Vec<_> = (0..surplus).map(|n| NewJob { terms: Arc::clone(&terms), ..job(n) }).collect();
    bench.enqueue(&batch).await;
    for number in 0..surplus {
        bench.cancel(number, Duration::ZERO).await;
    }
    assert_eq!(bench.store.tend().await.unwrap().pruned, 0);
    bench.clock.advance(SECOND);
    let steps = [bench.store.tend().await.unwrap(), bench.store.tend().await.unwrap()];
    assert_eq!(steps.map(|step| (step.pruned, step.more)), [(limits::PRUNE_JOBS, true), (1, false)]);
    assert!(bench.store.counts().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_listener_hears_the_life_of_a_job_in_order() {
    let bench = bench();
    let mut events = bench.store.events();
    bench.enqueue(&[job(1)]).await;
    let running = bench.reserve_one(1).await;
    bench.cancel(1, TTL).await;
    bench.settle(running, Verdict::Released).await;
    bench.change(Change::Delete, 1).await;
    let heard: Vec<_> =
        std::iter::from_fn(|| events.try_recv().ok()).map(|event| event.what.clone()).collect();
    let failure = Some("cancelled: no longer wanted".to_owned());
    let cancelled = Happening::Became { state: StateName::Cancelled, failure };
    let started = Happening::Started { attempt: 1 };
    assert_eq!(heard, [Happening::Enqueued, started, Happening::AskedToStop, cancelled, Happening::Deleted]);
}

#[tokio::test]
async fn a_closed_store_answers_every_call_with_a_fault() {
    let bench = bench();
    bench.store.close().await.unwrap();
    assert_eq!(bench.store.counts().await, Err(Fault::Closed));
    assert_eq!(bench.store.enqueue(vec![job(1)]).await, Err(Fault::Closed));
    assert_eq!(bench.store.close().await, Err(Fault::Closed));
}
