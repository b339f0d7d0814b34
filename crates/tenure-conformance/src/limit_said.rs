//! Which number of a limit key counts: what its jobs say, what people set, and what is told of it.

use tenure_core::{Due, JobId, Limit, NewJob, Priority, StateName, limits};

use super::given::{Given, cancel_within, ids, minutes, seconds};
use super::keyed::{key, limited};
use super::limit::running;
use super::{Test, test};
use tenure_store::{Change, Enqueued};

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(what_the_last_accepted_job_said_counts),
        test(a_job_that_is_not_stored_says_nothing),
        test(what_a_scheduled_job_said_counts),
        test(a_job_done_again_says_its_number_only_if_nobody_else_has),
        test(a_limit_that_is_set_outranks_what_jobs_say_until_it_is_cleared),
        test(a_limit_below_what_runs_ends_nothing),
        test(a_greater_limit_lets_more_in_at_once),
        test(a_call_lets_in_a_bounded_number_of_jobs_and_turns_let_in_the_rest_in_order),
        test(a_limit_is_there_while_a_job_has_need_of_it_or_it_is_set),
        test(a_limit_tells_how_much_of_it_is_used),
        test(limits_are_listed_by_key_page_by_page),
    ]
}

async fn most(given: &Given) -> Option<u32> {
    given.limits().await[0].meter.limit.most
}

async fn what_the_last_accepted_job_said_counts(given: Given) {
    let jobs = given.put_on("mail", &limited(None), 4).await;
    assert_eq!(given.states(&jobs).await, [StateName::Queued; 4], "nobody has said a number");
    let last = running(&given, 2, 1).await[0];
    assert_eq!(most(&given).await, Some(2));
    let blocked = StateName::Blocked;
    assert_eq!(given.states(&[jobs[1], jobs[2], last]).await, [StateName::Queued, blocked, blocked]);
    given.put_on("mail", &limited(None), 1).await;
    assert_eq!(most(&given).await, Some(2), "who says none changes nothing");
    running(&given, 5, 1).await;
    assert_eq!(most(&given).await, Some(5));
    given.change(last, Change::Delete).await;
    assert_eq!(most(&given).await, Some(5));
}

async fn a_job_that_is_not_stored_says_nothing(given: Given) {
    let job = given.on_terms("mail", limited(Some(2)));
    given.put(job.clone()).await;
    let louder = |job: NewJob| NewJob { terms: std::sync::Arc::new(limited(Some(9))), ..job };
    given.offer(louder(job)).await;
    let refused = vec![louder(given.new_job("mail")), {
        let after = super::keyed::after(&[given.id()], tenure_core::IfFailed::Run);
        given.on_terms("mail", after)
    }];
    assert!(matches!(given.enqueue_all(refused).await, Enqueued::Refused { index: 1, .. }));
    assert_eq!(most(&given).await, Some(2));
}

async fn what_a_scheduled_job_said_counts(given: Given) {
    given.put(NewJob { due: Due::In(minutes(1)), ..given.on_terms("mail", limited(Some(1))) }).await;
    let jobs = given.put_on("mail", &limited(None), 2).await;
    assert_eq!(given.states(&jobs).await, [StateName::Queued, StateName::Blocked]);
}

async fn a_job_done_again_says_its_number_only_if_nobody_else_has(given: Given) {
    let old = running(&given, 2, 1).await[0];
    given.drain(&["mail"]).await;
    given.change(old, Change::Redo).await;
    assert_eq!(most(&given).await, Some(2));
    given.drain(&["mail"]).await;
    running(&given, 5, 1).await;
    given.change(old, Change::Redo).await;
    assert_eq!(most(&given).await, Some(5));
}

async fn a_limit_that_is_set_outranks_what_jobs_say_until_it_is_cleared(given: Given) {
    let jobs = running(&given, 3, 4).await;
    let set = |limit| given.store.set_limit(&key("smtp"), limit);
    let queued = async || given.states(&jobs).await.iter().filter(|s| **s == StateName::Queued).count();
    set(Some(Limit::of(1))).await.unwrap();
    assert_eq!((queued().await, given.limits().await[0].set), (1, true));
    running(&given, 2, 1).await;
    assert_eq!(most(&given).await, Some(1));
    set(Some(Limit::default())).await.unwrap();
    assert_eq!((queued().await, most(&given).await), (4, None));
    set(None).await.unwrap();
    assert_eq!((queued().await, most(&given).await), (2, Some(2)), "what was said meanwhile counts");
    assert!(!given.limits().await[0].set);
    set(None).await.unwrap();
    assert_eq!(most(&given).await, Some(2));
}

async fn a_limit_below_what_runs_ends_nothing(given: Given) {
    let jobs = running(&given, 3, 5).await;
    let mut reserved = given.grab(&["mail"]).await;
    given.store.set_limit(&key("smtp"), Some(Limit::of(1))).await.unwrap();
    let running = StateName::Running;
    assert_eq!(given.states(&jobs[..3]).await, [running; 3]);
    for left in [2, 1, 0] {
        given.succeed(reserved.pop().unwrap()).await;
        let expected = if left == 0 { StateName::Queued } else { StateName::Blocked };
        assert_eq!(given.state(jobs[3]).await, expected, "{left} run");
    }
    assert_eq!(given.drain(&["mail"]).await, [[jobs[3]], [jobs[4]]]);
}

async fn a_greater_limit_lets_more_in_at_once(given: Given) {
    let jobs = running(&given, 1, 3).await;
    given.take("mail").await;
    given.store.set_limit(&key("smtp"), Some(Limit::of(2))).await.unwrap();
    assert_eq!(given.states(&jobs[1..]).await, [StateName::Queued, StateName::Blocked]);
    running(&given, 9, 1).await;
    given.store.set_limit(&key("smtp"), None).await.unwrap();
    assert_eq!(given.states(&jobs[1..]).await, [StateName::Queued; 2]);
}

async fn a_call_lets_in_a_bounded_number_of_jobs_and_turns_let_in_the_rest_in_order(given: Given) {
    const MOST: u32 = limits::LIMIT_MOST;
    let job = |most| given.on_terms("mail", limited(Some(most)));
    let batch: Vec<NewJob> = (0..limits::LET_IN_JOBS + 100).map(|_| job(1)).collect();
    let mut order: Vec<JobId> = batch.iter().map(|job| job.id).collect();
    given.enqueue_all(batch).await;
    // The first number lets in as many as a batch may, the second pushes them out, the third lets in none.
    let batch = [MOST, 1, MOST].map(job).to_vec();
    order.extend(batch.iter().map(|job| job.id));
    given.enqueue_all(batch).await;
    assert_eq!(given.count("mail", StateName::Queued).await, 1);
    let first = NewJob { priority: Priority::FIRST, ..job(MOST) };
    order.insert(0, given.put(first).await);
    assert_eq!(given.count("mail", StateName::Queued).await, 2 + limits::LET_IN_JOBS as u64);
    let (now, later) = order.split_at(limits::RESERVE_JOBS);
    assert_eq!(ids(&given.grab(&["mail"]).await), now);
    assert_eq!(given.count("mail", StateName::Blocked).await, 0);
    assert_eq!(ids(&given.grab(&["mail"]).await), later);
}

async fn a_limit_is_there_while_a_job_has_need_of_it_or_it_is_set(given: Given) {
    assert_eq!(given.limits().await, []);
    let ends: [(&str, Option<Change>); 3] =
        [("it ran", None), ("cancelled", Some(cancel_within(seconds(0)))), ("deleted", Some(Change::Delete))];
    for (how, change) in ends {
        let job = running(&given, 2, 1).await[0];
        assert_eq!(given.limits().await.len(), 1, "{how}");
        match change {
            Some(change) => _ = given.change(job, change).await,
            None => _ = given.drain(&["mail"]).await,
        }
        assert_eq!(given.limits().await, [], "{how}");
    }
    given.store.set_limit(&key("smtp"), Some(Limit::of(7))).await.unwrap();
    running(&given, 2, 1).await;
    given.drain(&["mail"]).await;
    assert_eq!(most(&given).await, Some(7));
    given.store.set_limit(&key("smtp"), None).await.unwrap();
    assert_eq!(given.limits().await, []);
    given.store.set_limit(&key("smtp"), None).await.unwrap();
    assert_eq!(given.limits().await, []);
}

async fn a_limit_tells_how_much_of_it_is_used(given: Given) {
    running(&given, 3, 5).await;
    given.put(NewJob { due: Due::In(minutes(1)), ..given.on_terms("mail", limited(None)) }).await;
    given.take("mail").await;
    let info = given.limits().await.remove(0);
    assert_eq!((info.meter.running, info.queued, info.blocked), (1, 2, 2));
    assert_eq!((info.key, info.meter.limit, info.set), (key("smtp"), Limit::of(3), false));
}

async fn limits_are_listed_by_key_page_by_page(given: Given) {
    for name in ["c", "a", "d", "b", "B"] {
        given.store.set_limit(&key(name), Some(Limit::of(1))).await.unwrap();
    }
    let (mut names, mut behind) = (Vec::new(), None);
    for page in 0..3 {
        let listed = given.store.limits(behind, 2).await.unwrap();
        names.extend(listed.limits.into_iter().map(|info| info.key.to_string()));
        behind = listed.next;
        assert_eq!(behind.is_none(), page == 2);
    }
    assert_eq!(names, ["B", "a", "b", "c", "d"]);
    let all = given.store.limits(None, usize::MAX).await.unwrap();
    assert!(all.limits.len() == 5 && all.next.is_none());
    assert_eq!(given.store.limits(Some(key("d")), 9).await.unwrap().limits, []);
    assert_eq!(given.store.limit(&key("b")).await.unwrap(), Some(all.limits[2].clone()));
    assert_eq!(given.store.limit(&key("e")).await.unwrap(), None);
}
