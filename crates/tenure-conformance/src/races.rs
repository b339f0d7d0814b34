//! Sixteen callers at once. Whoever wins, exactly one does.

use std::collections::BTreeSet;
use std::sync::Arc;

use tenure_core::{AttemptEnd, Due, JobId, NewJob, OnConflict, Reserved, StateName, Verdict, Window};
use tokio::sync::Barrier;

use super::counts::recount;
use super::generator::Generator;
use super::given::{
    Given, TTL, cancel_within, decide, held, host, ids, minutes, queue, retry_at, seconds, want,
};
use super::operation::{Side, new_ones};
use super::{Test, race};
use tenure_store::{Accepted, Change, ChangeOutcome, Enqueued, Filter, Refusal, Renewal, Reserve, Settled};

pub(super) const CALLERS: usize = 16;

pub(super) fn tests() -> Vec<Test> {
    vec![
        race(claimers_never_get_the_same_job_twice),
        race(of_many_claimers_of_one_job_one_gets_it),
        race(workers_that_settle_and_reserve_finish_every_job_once),
        race(of_many_jobs_with_one_key_one_is_new),
        race(of_many_rejecting_jobs_with_one_key_one_is_stored),
        race(of_many_replacing_jobs_with_one_key_one_is_left_waiting),
        race(of_many_enqueuers_of_one_id_one_stores_it),
        race(numbers_are_unique_and_grow_for_every_writer),
        race(of_many_equal_settlements_one_is_written),
        race(a_settlement_and_a_sweep_come_to_one_end),
        race(a_cancel_and_a_settlement_come_to_one_end),
        race(a_cancel_and_a_claim_come_to_one_end),
        race(a_delete_and_a_claim_come_to_one_end),
        race(a_reschedule_and_a_claim_come_to_one_end),
        race(of_many_who_do_a_job_again_one_does),
        race(a_late_renewal_never_holds_what_others_take),
        race(whoever_begins_to_listen_while_an_end_is_written_hears_of_it),
        race(counters_agree_with_the_jobs_after_a_turmoil),
    ]
}

/// Lets every caller do its part at the same time, as far as the machine allows.
pub(super) async fn all_at_once<T, Run>(callers: usize, part: impl Fn(usize) -> Run) -> Vec<T>
where
    T: Send + 'static,
    Run: Future<Output = T> + Send + 'static,
{
    let start = Arc::new(Barrier::new(callers));
    let runs: Vec<_> = (0..callers)
        .map(|caller| {
            let (start, run) = (Arc::clone(&start), part(caller));
            tokio::spawn(async move {
                start.wait().await;
                run.await
            })
        })
        .collect();
    let mut results = Vec::new();
    for run in runs {
        results.push(run.await.unwrap());
    }
    results
}

/// Lets two callers do their parts at the same time.
pub(super) async fn both<A, B>(
    one: impl Future<Output = A> + Send + 'static,
    other: impl Future<Output = B> + Send + 'static,
) -> (A, B)
where
    A: Send + 'static,
    B: Send + 'static,
{
    let (one, other) = (tokio::spawn(one), tokio::spawn(other));
    (one.await.unwrap(), other.await.unwrap())
}

/// S7
async fn claimers_never_get_the_same_job_twice(given: Given) {
    let jobs = given.enqueue("mail", 320).await;
    let given = Arc::new(given);
    let granted = all_at_once(CALLERS, |caller| {
        let given = Arc::clone(&given);
        async move {
            let mut mine = Vec::new();
            loop {
                let ask = Reserve { holder: host(caller as u8), ..given.ask(vec![want("mail", 3)], 3) };
                let granted = given.turn(ask).await.jobs;
                if granted.is_empty() {
                    return mine;
                }
                mine.extend(ids(&granted));
            }
        }
    });
    let granted: Vec<JobId> = granted.await.into_iter().flatten().collect();
    assert_eq!(granted.len(), jobs.len());
    assert_eq!(BTreeSet::from_iter(granted), BTreeSet::from_iter(jobs));
    assert!(given.all().await.iter().all(|job| job.delivery == 1));
}

async fn of_many_claimers_of_one_job_one_gets_it(given: Given) {
    let given = Arc::new(given);
    for _ in 0..20 {
        let id = given.put(given.new_job("mail")).await;
        let turns = all_at_once(CALLERS, |_| {
            let given = Arc::clone(&given);
            async move { given.reserve("mail", 1).await }
        });
        let granted: Vec<Reserved> = turns.await.into_iter().flatten().collect();
        assert_eq!(ids(&granted), [id]);
    }
}

async fn workers_that_settle_and_reserve_finish_every_job_once(given: Given) {
    let jobs = given.enqueue("mail", 200).await;
    let given = Arc::new(given);
    let done = all_at_once(CALLERS, |caller| {
        let given = Arc::clone(&given);
        async move {
            let ask = || Reserve { holder: host(caller as u8), ..given.ask(vec![want("mail", 2)], 2) };
            let (mut running, mut done) = (given.turn(ask()).await.jobs, 0);
            while !running.is_empty() {
                let ended = running.into_iter().map(|r| decide(r, Verdict::Succeeded(None))).collect();
                let turn = given.store.settle(ended, Some(ask())).await.unwrap();
                assert!(turn.settled.iter().all(|settled| *settled == Settled::Done(StateName::Succeeded)));
                done += turn.settled.len();
                running = turn.reservation.jobs;
            }
            done
        }
    });
    assert_eq!(done.await.into_iter().sum::<usize>(), jobs.len());
    for id in jobs {
        assert_eq!(given.attempts(id).await.len(), 1);
    }
    assert_eq!(given.count("mail", StateName::Succeeded).await, 200);
}

async fn enqueue_at_once(given: &Arc<Given>, job: impl Fn() -> NewJob) -> Vec<Enqueued> {
    all_at_once(CALLERS, |_| {
        let (given, job) = (Arc::clone(given), job());
        async move { given.enqueue_all(vec![job]).await }
    })
    .await
}

/// T104 as far as a store goes: of eight racers, one.
async fn of_many_jobs_with_one_key_one_is_new(given: Given) {
    let given = Arc::new(given);
    for key in 0..10 {
        let only = || given.only(key, Window::WhileUnfinished, OnConflict::Return);
        let answers = enqueue_at_once(&given, only).await;
        let new: Vec<JobId> = answers.iter().flat_map(new_ones).collect();
        assert_eq!(new.len(), 1);
        let existing = Enqueued::Stored(vec![Accepted::Existing(new[0])]);
        assert_eq!(answers.iter().filter(|answer| **answer == existing).count(), CALLERS - 1);
    }
    assert_eq!(given.all().await.len(), 10);
}

async fn of_many_rejecting_jobs_with_one_key_one_is_stored(given: Given) {
    let given = Arc::new(given);
    let only = || given.only(1, Window::For(minutes(1)), OnConflict::Reject);
    let answers = enqueue_at_once(&given, only).await;
    let new: Vec<JobId> = answers.iter().flat_map(new_ones).collect();
    assert_eq!(new.len(), 1);
    let refused = Enqueued::Refused { index: 0, refusal: Refusal::KeyHeld(new[0]) };
    assert_eq!(answers.iter().filter(|answer| **answer == refused).count(), CALLERS - 1);
}

async fn of_many_replacing_jobs_with_one_key_one_is_left_waiting(given: Given) {
    let given = Arc::new(given);
    let only = || given.only(1, Window::WhileUnfinished, OnConflict::Replace);
    let answers = enqueue_at_once(&given, only).await;
    assert_eq!(answers.iter().flat_map(new_ones).count(), CALLERS, "each was stored in place of the last");
    assert_eq!(given.count("mail", StateName::Queued).await, 1);
    assert_eq!(given.count("mail", StateName::Cancelled).await, CALLERS as u64 - 1);
}

/// T131, S6
async fn of_many_enqueuers_of_one_id_one_stores_it(given: Given) {
    let given = Arc::new(given);
    for round in 1..=10 {
        let job = given.new_job("mail");
        let answers = enqueue_at_once(&given, || job.clone()).await;
        assert_eq!(answers.iter().flat_map(new_ones).count(), 1);
        let repeated = Enqueued::Stored(vec![Accepted::Repeated(job.id)]);
        assert_eq!(answers.iter().filter(|answer| **answer == repeated).count(), CALLERS - 1);
        assert_eq!(given.all().await.len(), round);
    }
}

/// T146
async fn numbers_are_unique_and_grow_for_every_writer(given: Given) {
    let given = Arc::new(given);
    let written = all_at_once(CALLERS, |_| {
        let given = Arc::clone(&given);
        async move {
            let mut seqs = Vec::new();
            for _ in 0..20 {
                let id = given.put(given.new_job("mail")).await;
                seqs.push(given.job(id).await.seq);
            }
            seqs
        }
    });
    let written = written.await;
    assert!(written.iter().all(|seqs| seqs.windows(2).all(|two| two[0] < two[1])));
    let all: BTreeSet<u64> = written.into_iter().flatten().collect();
    assert_eq!(all, (1..=320).collect());
}

/// T095: exactly one completion is recorded.
async fn of_many_equal_settlements_one_is_written(given: Given) {
    let given = Arc::new(given);
    for _ in 0..10 {
        let settlement = decide(given.running().await, Verdict::Succeeded(None));
        let id = settlement.id();
        let answers = all_at_once(CALLERS, |_| {
            let (given, settlement) = (Arc::clone(&given), settlement.clone());
            async move { given.write(settlement).await }
        });
        let answers = answers.await;
        let done = Settled::Done(StateName::Succeeded);
        assert_eq!(answers.iter().filter(|answer| **answer == done).count(), 1);
        assert_eq!(answers.iter().filter(|answer| **answer == Settled::Repeated).count(), CALLERS - 1);
        assert_eq!(given.attempts(id).await.len(), 1);
    }
}

/// One half of the callers settles what has lapsed, the other takes it from them.
async fn a_settlement_and_a_sweep_come_to_one_end(given: Given) {
    let jobs = given.enqueue("mail", CALLERS).await;
    let mut reserved = given.reserve("mail", CALLERS).await;
    given.pass(TTL);
    let given = Arc::new(given);
    let settlements: Vec<_> = reserved.drain(..).map(|r| decide(r, Verdict::Succeeded(None))).collect();
    let answers = all_at_once(2 * CALLERS, |caller| {
        let (given, settlement) = (Arc::clone(&given), settlements.get(caller).cloned());
        async move {
            match settlement {
                Some(settlement) => Some(given.write(settlement).await),
                None => {
                    given.tend().await;
                    None
                }
            }
        }
    });
    let answers: Vec<Settled> = answers.await.into_iter().flatten().collect();
    assert_eq!(answers.len(), CALLERS);
    for (id, answer) in jobs.into_iter().zip(answers) {
        let ends: Vec<_> =
            given.attempts(id).await.iter().filter_map(|a| a.ended).map(|(_, how)| how).collect();
        match answer {
            Settled::Done(StateName::Succeeded) => {
                assert_eq!(given.state(id).await, StateName::Succeeded);
                assert_eq!(ends, [AttemptEnd::Succeeded]);
            }
            Settled::Fenced => {
                assert_eq!(given.state(id).await, StateName::Queued);
                assert_eq!(ends, [AttemptEnd::Lost]);
            }
            Settled::Done(_) | Settled::Repeated | Settled::Gone => panic!("{answer:?}"),
        }
    }
}

/// T101, T147
async fn a_cancel_and_a_settlement_come_to_one_end(given: Given) {
    let given = Arc::new(given);
    for _ in 0..20 {
        let reserved = given.running().await;
        let id = reserved.job().id;
        let settlement = decide(reserved, retry_at(Due::Now));
        let (settled, cancelled) = both(
            {
                let given = Arc::clone(&given);
                async move { given.write(settlement).await }
            },
            {
                let given = Arc::clone(&given);
                async move { given.cancel(id).await }
            },
        )
        .await;
        match (settled, cancelled) {
            (Settled::Done(StateName::Cancelled), ChangeOutcome::Asked)
            | (Settled::Done(StateName::Queued), ChangeOutcome::Done) => {}
            other => panic!("{other:?}"),
        }
        assert_eq!(given.state(id).await, StateName::Cancelled, "either way it never runs again");
    }
}

/// What a change and a claim of one waiting job come to, over and over.
async fn change_against_claim(
    given: &Arc<Given>,
    change: Change,
) -> Vec<(JobId, ChangeOutcome, Vec<Reserved>)> {
    let mut outcomes = Vec::new();
    for _ in 0..20 {
        let id = given.put(given.new_job("mail")).await;
        let (changed, granted) = both(
            {
                let (given, change) = (Arc::clone(given), change.clone());
                async move { given.change(id, change).await }
            },
            {
                let given = Arc::clone(given);
                async move { given.reserve("mail", 1).await }
            },
        )
        .await;
        outcomes.push((id, changed, granted));
    }
    outcomes
}

/// S16: a cancel that was acknowledged before the claim means that the job never runs.
async fn a_cancel_and_a_claim_come_to_one_end(given: Given) {
    let given = Arc::new(given);
    for (id, outcome, granted) in change_against_claim(&given, cancel_within(minutes(1))).await {
        if outcome == ChangeOutcome::Done {
            assert_eq!((granted, given.state(id).await), (vec![], StateName::Cancelled));
            continue;
        }
        assert_eq!(outcome, ChangeOutcome::Asked);
        assert_eq!((ids(&granted), given.state(id).await), (vec![id], StateName::Running));
        assert!(given.job(id).await.cancel.is_some());
    }
}

async fn a_delete_and_a_claim_come_to_one_end(given: Given) {
    let given = Arc::new(given);
    for (id, outcome, granted) in change_against_claim(&given, Change::Delete).await {
        if outcome == ChangeOutcome::Done {
            assert_eq!((granted, given.is_there(id).await), (vec![], false));
            continue;
        }
        assert_eq!(outcome, ChangeOutcome::RefusedRunning);
        assert_eq!((ids(&granted), given.state(id).await), (vec![id], StateName::Running));
    }
}

/// T101
async fn a_reschedule_and_a_claim_come_to_one_end(given: Given) {
    let given = Arc::new(given);
    let later = Change::Reschedule(Due::In(minutes(60)));
    for (id, outcome, granted) in change_against_claim(&given, later).await {
        if outcome == ChangeOutcome::Done {
            assert_eq!((granted, given.state(id).await), (vec![], StateName::Scheduled));
            continue;
        }
        assert_eq!(outcome, ChangeOutcome::RefusedRunning);
        assert_eq!((ids(&granted), given.state(id).await), (vec![id], StateName::Running));
    }
}

async fn of_many_who_do_a_job_again_one_does(given: Given) {
    let id = given.succeeded().await;
    let given = Arc::new(given);
    let outcomes = all_at_once(CALLERS, |_| {
        let given = Arc::clone(&given);
        async move { given.change(id, Change::Redo).await }
    });
    let outcomes = outcomes.await;
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == ChangeOutcome::Done).count(), 1);
    let refused = ChangeOutcome::RefusedUnfinished;
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == refused).count(), CALLERS - 1);
}

async fn a_late_renewal_never_holds_what_others_take(given: Given) {
    let given = Arc::new(given);
    for _ in 0..20 {
        let slow = given.running().await;
        given.pass(TTL);
        let ownership = held(&slow);
        let (renewed, quick) = both(
            {
                let given = Arc::clone(&given);
                async move { given.renew(ownership, TTL).await }
            },
            {
                let given = Arc::clone(&given);
                async move { given.take("mail").await }
            },
        )
        .await;
        assert!(matches!(renewed, Renewal::Lapsed | Renewal::Lost), "{renewed:?}");
        assert_eq!(given.settle(slow, Verdict::Succeeded(None)).await, Settled::Fenced);
        given.succeed(quick).await;
    }
}

/// Every caller does what it likes, and time passes for all of them.
async fn counters_agree_with_the_jobs_after_a_turmoil(given: Given) {
    let given = Arc::new(given);
    let ends = all_at_once(CALLERS, |caller| {
        let given = Arc::clone(&given);
        async move {
            let seed = caller as u64 + 1;
            let mut generator =
                if caller % 2 == 0 { Generator::with_keys(seed) } else { Generator::new(seed) };
            let mut side = Side::new(Arc::clone(&given.store), given.clock.clone());
            for _ in 0..60 {
                let operation = generator.draw(given.now(), &side);
                side.apply(&operation).await;
            }
        }
    });
    ends.await;
    // Whatever the turmoil leaves, there is something to count.
    given.enqueue_all(vec![given.new_job("mail"), given.new_job("mail")]).await;
    while given.tend().await.more {}
    assert!(!given.all().await.is_empty());
    assert_eq!(given.store.counts().await.unwrap(), recount(&given).await);
    let of_mail = Filter { queues: vec![queue("mail")], ..Filter::default() };
    given.change_matching(cancel_within(seconds(0)), of_mail.clone()).await;
    given.pass(seconds(1));
    while given.tend().await.more {}
    given.change_matching(Change::Delete, of_mail).await;
    assert_eq!(given.store.counts().await.unwrap(), recount(&given).await);
}

/// Whoever listens, and then finds a job that has not ended, is told when it ends: nothing falls between.
async fn whoever_begins_to_listen_while_an_end_is_written_hears_of_it(given: Given) {
    for round in 0..60 {
        let settlement = decide(given.running().await, Verdict::Succeeded(None));
        let id = settlement.id();
        let (store, seen) = (Arc::clone(&given.store), Arc::clone(&given.store));
        let settle = async move { store.settle(vec![settlement], None).await.unwrap() };
        let listen = async move {
            let (events, others) = (seen.events(), seen.others());
            let job = seen.job(id).await.unwrap().expect("it is kept");
            (job.state.name(job.created), events, others)
        };
        let (_, (state, mut events, mut others)) = both(settle, listen).await;
        // What is told is told before the call is answered.
        let is_told = events.try_recv().is_ok() || others.try_recv().is_ok();
        assert!(
            state == StateName::Succeeded || is_told,
            "round {round}: it was {state} when it was looked at"
        );
    }
}
