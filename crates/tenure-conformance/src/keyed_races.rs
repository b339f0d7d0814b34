//! Sixteen callers at once over jobs that share keys. A number is never exceeded, an order never broken.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tenure_core::{
    Head, IfFailed, JobId, LimitKey, NewJob, OrderingKey, Reserved, StateName, Terms, Verdict,
};

use super::given::{Given, decide, host, ids, queue, want};
use super::keyed::{after, key, limited, ordered, per_second};
use super::races::{CALLERS, all_at_once};
use super::{Test, race};
use tenure_store::{Reserve, Settled, Want};

const QUEUES: [&str; 3] = ["mail", "post", "fax"];

pub(super) fn tests() -> Vec<Test> {
    vec![
        race(no_limit_is_exceeded_and_no_job_is_left),
        race(no_queue_limit_is_exceeded_and_no_job_is_left),
        race(a_limit_that_changes_all_the_time_leaks_no_slot),
        race(of_an_ordering_key_never_two_run_and_always_in_order),
        race(of_many_jobs_enqueued_at_once_one_has_the_turn),
        race(a_rate_starts_no_more_than_its_burst_at_an_instant),
        race(a_job_runs_once_all_have_ended_that_end_at_once),
    ]
}

fn ask(given: &Given, caller: usize, at_most: usize) -> Reserve {
    // Each begins with another queue.
    let wants: Vec<Want> = (0..3).map(|n| want(QUEUES[(caller + n) % 3], at_most)).collect();
    Reserve { holder: host(caller as u8), ..given.ask(wants, at_most) }
}

async fn succeed_all(given: &Given, reserved: Vec<Reserved>) {
    let ended = reserved.into_iter().map(|one| decide(one, Verdict::Succeeded(None))).collect();
    let turn = given.store.settle(ended, None).await.unwrap();
    assert!(turn.settled.iter().all(|settled| *settled == Settled::Done(StateName::Succeeded)));
}

/// Lets every caller run jobs until all are done; `begin` and `end` hear of each.
async fn work(
    given: &Arc<Given>,
    jobs: usize,
    begin: impl Fn(&Reserved) + Clone + Send + 'static,
    end: impl Fn(&Reserved) + Clone + Send + 'static,
) {
    let done = Arc::new(AtomicUsize::new(0));
    let workers = all_at_once(CALLERS, |caller| {
        let (given, done, begin, end) = (Arc::clone(given), Arc::clone(&done), begin.clone(), end.clone());
        async move {
            for turn in 0..100_000 {
                if done.load(Ordering::SeqCst) == jobs {
                    return;
                }
                let reserved = given.turn(ask(&given, caller, 1 + turn % 4)).await.jobs;
                reserved.iter().for_each(&begin);
                tokio::task::yield_now().await;
                reserved.iter().for_each(&end);
                let count = reserved.len();
                succeed_all(&given, reserved).await;
                done.fetch_add(count, Ordering::SeqCst);
                tokio::task::yield_now().await;
            }
            panic!("of {jobs} jobs {done:?} came to an end");
        }
    });
    workers.await;
    assert_eq!(given.count("mail", StateName::Succeeded).await + count_elsewhere(given).await, jobs as u64);
}

async fn count_elsewhere(given: &Given) -> u64 {
    given.count("post", StateName::Succeeded).await + given.count("fax", StateName::Succeeded).await
}

/// Counts what is under way, and complains of too many.
fn counted(
    most: usize,
) -> (impl Fn(&Reserved) + Clone + Send + 'static, impl Fn(&Reserved) + Clone + Send + 'static) {
    let running = Arc::new(AtomicUsize::new(0));
    let begin = Arc::clone(&running);
    (
        move |_: &Reserved| {
            let now = begin.fetch_add(1, Ordering::SeqCst) + 1;
            assert!(now <= most, "{now} run at once");
        },
        move |_: &Reserved| {
            running.fetch_sub(1, Ordering::SeqCst);
        },
    )
}

/// S15
async fn no_limit_is_exceeded_and_no_job_is_left(given: Given) {
    let batch: Vec<NewJob> = (0..240).map(|n| given.on_terms(QUEUES[n % 3], limited(Some(5)))).collect();
    given.enqueue_all(batch).await;
    let given = Arc::new(given);
    let (begin, end) = counted(5);
    work(&given, 240, begin, end).await;
    assert_eq!(given.limits().await, []);
}

async fn no_queue_limit_is_exceeded_and_no_job_is_left(given: Given) {
    given.store.set_queue_limit(&queue("mail"), tenure_core::Limit::of(3)).await.unwrap();
    given.enqueue("mail", 200).await;
    let given = Arc::new(given);
    let (begin, end) = counted(3);
    work(&given, 200, begin, end).await;
}

async fn a_limit_that_changes_all_the_time_leaks_no_slot(given: Given) {
    let batch: Vec<NewJob> = (0..160).map(|n| given.on_terms(QUEUES[n % 3], limited(Some(4)))).collect();
    given.enqueue_all(batch).await;
    let given = Arc::new(given);
    let (begin, end) = counted(8);
    let changing = {
        let given = Arc::clone(&given);
        tokio::spawn(async move {
            for round in 0..100_u32 {
                let limit = tenure_core::Limit::of(1 + round % 8);
                given.store.set_limit(&key("smtp"), Some(limit)).await.unwrap();
                tokio::task::yield_now().await;
            }
        })
    };
    work(&given, 160, begin, end).await;
    changing.await.unwrap();
    let left = given.limits().await.remove(0);
    assert_eq!((left.meter.running, left.queued, left.blocked), (0, 0, 0));
}

async fn of_an_ordering_key_never_two_run_and_always_in_order(given: Given) {
    let mut orders: BTreeMap<String, Vec<JobId>> = BTreeMap::new();
    let mut batch = Vec::new();
    for number in 0..200_usize {
        let name = format!("cart-{}", number % 5);
        let head = if number % 2 == 0 { Head::Block } else { Head::StepAside };
        let terms = Terms { ordering: Some(OrderingKey { key: key(&name), head }), ..Terms::default() };
        let job = given.on_terms(QUEUES[number % 3], terms);
        orders.entry(name).or_default().push(job.id);
        batch.push(job);
    }
    given.enqueue_all(batch).await;
    let given = Arc::new(given);
    let seen: Arc<Mutex<BTreeMap<String, Vec<JobId>>>> = Arc::default();
    let busy: Arc<BTreeMap<String, AtomicBool>> =
        Arc::new(orders.keys().map(|name| (name.clone(), AtomicBool::new(false))).collect());
    let name_of = |reserved: &Reserved| reserved.job().terms.ordering.as_ref().unwrap().key.to_string();
    let begin = {
        let (seen, busy) = (Arc::clone(&seen), Arc::clone(&busy));
        move |reserved: &Reserved| {
            let name = name_of(reserved);
            assert!(!busy[&name].swap(true, Ordering::SeqCst), "two of {name} at once");
            seen.lock().unwrap().entry(name).or_default().push(reserved.job().id);
        }
    };
    let end = move |reserved: &Reserved| busy[&name_of(reserved)].store(false, Ordering::SeqCst);
    work(&given, 200, begin, end).await;
    assert_eq!(*seen.lock().unwrap(), orders);
}

async fn of_many_jobs_enqueued_at_once_one_has_the_turn(given: Given) {
    let given = Arc::new(given);
    let enqueued = all_at_once(CALLERS, |caller| {
        let given = Arc::clone(&given);
        async move { given.put_on(QUEUES[caller % 3], &ordered(Head::Block), 5).await }
    });
    enqueued.await;
    let mut queued = 0;
    for name in QUEUES {
        queued += given.count(name, StateName::Queued).await;
    }
    assert_eq!(queued, 1);
    let order: Vec<Vec<JobId>> = given.all().await.into_iter().map(|job| vec![job.id]).collect();
    assert_eq!(given.drain(&QUEUES).await, order);
}

async fn a_rate_starts_no_more_than_its_burst_at_an_instant(given: Given) {
    given.store.set_limit(&key("smtp"), Some(per_second(5, 5))).await.unwrap();
    let limit = Some(LimitKey { key: key("smtp"), most: None });
    let terms = Terms { limit, ..Terms::default() };
    for name in QUEUES {
        given.put_on(name, &terms, 30).await;
    }
    let given = Arc::new(given);
    for _ in 0..3 {
        let granted = all_at_once(CALLERS, |caller| {
            let given = Arc::clone(&given);
            async move { given.turn(ask(&given, caller, 3)).await.jobs.len() }
        });
        assert_eq!(granted.await.into_iter().sum::<usize>(), 5);
        given.pass(super::given::seconds(1));
    }
}

async fn a_job_runs_once_all_have_ended_that_end_at_once(given: Given) {
    let given = Arc::new(given);
    for _ in 0..10 {
        let others = given.enqueue("post", CALLERS).await;
        let job = given.put(given.on_terms("mail", after(&others, IfFailed::Cancel))).await;
        let reserved = Arc::new(Mutex::new(given.reserve("post", CALLERS).await));
        let granted = all_at_once(CALLERS, |caller| {
            let (given, reserved) = (Arc::clone(&given), Arc::clone(&reserved));
            async move {
                let mine = reserved.lock().unwrap().pop().unwrap();
                let then = Reserve { holder: host(caller as u8), ..given.ask(vec![want("mail", 9)], 9) };
                let ended = vec![decide(mine, Verdict::Succeeded(None))];
                given.store.settle(ended, Some(then)).await.unwrap().reservation.jobs
            }
        });
        let granted: Vec<Reserved> = granted.await.into_iter().flatten().collect();
        assert_eq!(ids(&granted), [job]);
        succeed_all(&given, granted).await;
    }
}
