//! What the limit of a queue promises.

use tenure_core::{JobId, Limit, Rate, Reason, StateName};

use super::given::{Given, TTL, host, ids, minutes, queue, seconds, want, want_kinds};
use super::keyed::{limited, per_second};
use super::{Test, test};
use tenure_store::{Change, Reserve};

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(of_a_queue_with_a_limit_so_many_run_at_once_over_all_hosts),
        test(the_jobs_of_a_full_queue_stay_queued),
        test(one_call_with_many_wants_grants_no_more_than_the_queue_has_room_for),
        test(an_end_and_a_lapse_make_room_in_a_queue),
        test(a_queue_keeps_to_its_rate),
        test(nothing_is_due_until_a_queue_has_room_by_time_alone),
        test(a_queue_is_limited_before_it_has_a_job),
        test(setting_the_limit_of_a_queue_tells_whether_that_is_new),
        test(a_queue_limit_below_what_runs_ends_nothing),
        test(another_rate_of_a_queue_counts_at_once),
        test(a_job_that_is_moved_in_counts_when_it_runs),
        test(queue_limits_and_limit_keys_both_count),
        test(a_job_of_a_full_queue_is_explained_by_that),
    ]
}

async fn bound(given: &Given, limit: Limit) -> bool {
    given.store.set_queue_limit(&queue("mail"), limit).await.unwrap()
}

async fn of_a_queue_with_a_limit_so_many_run_at_once_over_all_hosts(given: Given) {
    bound(&given, Limit::of(3)).await;
    let mail = given.enqueue("mail", 5).await;
    let post = given.enqueue("post", 5).await;
    let mut granted = Vec::new();
    for number in 1..=3 {
        let ask = Reserve { holder: host(number), ..given.ask(vec![want("mail", 2), want("post", 1)], 9) };
        granted.extend(ids(&given.turn(ask).await.jobs));
    }
    assert_eq!(granted, [mail[0], mail[1], post[0], mail[2], post[1], post[2]]);
}

async fn the_jobs_of_a_full_queue_stay_queued(given: Given) {
    bound(&given, Limit::of(1)).await;
    let jobs = given.enqueue("mail", 3).await;
    given.take("mail").await;
    assert_eq!(given.grab(&["mail"]).await, []);
    assert_eq!(given.states(&jobs[1..]).await, [StateName::Queued; 2]);
    assert_eq!(given.drain(&["post"]).await, Vec::<Vec<JobId>>::new());
}

async fn one_call_with_many_wants_grants_no_more_than_the_queue_has_room_for(given: Given) {
    bound(&given, Limit::of(2)).await;
    for kind in ["send", "print", "send", "print"] {
        given.put(given.of_kind("mail", kind)).await;
    }
    let wants = vec![want_kinds("mail", &["print"], 1), want_kinds("mail", &["send"], 9), want("mail", 9)];
    assert_eq!(given.turn(given.ask(wants, 9)).await.jobs.len(), 2);
}

async fn an_end_and_a_lapse_make_room_in_a_queue(given: Given) {
    bound(&given, Limit::of(1)).await;
    let jobs = given.enqueue("mail", 3).await;
    given.succeed(given.take("mail").await).await;
    assert_eq!(given.take("mail").await.job().id, jobs[1]);
    given.pass(TTL);
    assert_eq!(ids(&given.grab(&["mail"]).await), [jobs[1]]);
}

async fn a_queue_keeps_to_its_rate(given: Given) {
    bound(&given, per_second(2, 2)).await;
    given.enqueue("mail", 9).await;
    for expected in [2, 0] {
        assert_eq!(given.grab(&["mail"]).await.len(), expected);
    }
    given.pass(seconds(1) / 2);
    assert_eq!(given.grab(&["mail"]).await.len(), 1);
    given.pass(minutes(1));
    assert_eq!(given.grab(&["mail"]).await.len(), 2, "and what lapsed starts again by the rate");
}

async fn nothing_is_due_until_a_queue_has_room_by_time_alone(given: Given) {
    bound(&given, per_second(1, 1)).await;
    given.enqueue("mail", 2).await;
    given.succeed(given.take("mail").await).await;
    let turn = given.turn(given.ask(vec![want("mail", 9)], 9)).await;
    assert_eq!(turn.jobs, []);
    assert!(turn.due_in.expect("time alone makes room") <= seconds(1));
    given.pass(seconds(1));
    given.succeed(given.take("mail").await).await;
    assert_eq!(given.turn(given.ask(vec![want("mail", 9)], 9)).await.due_in, None);
}

async fn shown(given: &Given) -> Vec<(String, Limit)> {
    given.store.queues().await.unwrap().into_iter().map(|info| (info.name.to_string(), info.limit)).collect()
}

async fn a_queue_is_limited_before_it_has_a_job(given: Given) {
    let limit = Limit { most: Some(7), ..per_second(1, 1) };
    bound(&given, limit).await;
    assert_eq!(shown(&given).await, [("mail".to_owned(), limit)]);
    given.enqueue("post", 1).await;
    assert_eq!(shown(&given).await[1], ("post".to_owned(), Limit::default()));
    bound(&given, Limit::default()).await;
    assert_eq!(shown(&given).await[0].1, Limit::default());
}

async fn setting_the_limit_of_a_queue_tells_whether_that_is_new(given: Given) {
    assert!(!bound(&given, Limit::default()).await);
    assert!(bound(&given, Limit::of(2)).await);
    assert!(!bound(&given, Limit::of(2)).await);
    assert!(bound(&given, per_second(1, 1)).await);
    assert!(bound(&given, per_second(1, 2)).await);
    assert!(bound(&given, Limit::default()).await);
}

async fn a_queue_limit_below_what_runs_ends_nothing(given: Given) {
    let jobs = given.enqueue("mail", 4).await;
    let mut running = given.reserve("mail", 3).await;
    bound(&given, Limit::of(1)).await;
    assert_eq!(given.states(&jobs[..3]).await, [StateName::Running; 3]);
    for _ in 0..3 {
        assert_eq!(given.grab(&["mail"]).await, []);
        given.succeed(running.pop().unwrap()).await;
    }
    assert_eq!(ids(&given.grab(&["mail"]).await), [jobs[3]]);
}

async fn another_rate_of_a_queue_counts_at_once(given: Given) {
    bound(&given, Limit { most: None, rate: Some(Rate::new(1, minutes(60)).burst(2)) }).await;
    given.enqueue("mail", 9).await;
    assert_eq!(given.grab(&["mail"]).await.len(), 2);
    bound(&given, per_second(2, 2)).await;
    assert_eq!(given.grab(&["mail"]).await.len(), 0);
    given.pass(seconds(1));
    assert_eq!(given.grab(&["mail"]).await.len(), 2);
    bound(&given, Limit::default()).await;
    assert_eq!(given.grab(&["mail"]).await.len(), 5);
}

async fn a_job_that_is_moved_in_counts_when_it_runs(given: Given) {
    bound(&given, Limit::of(1)).await;
    let jobs = given.enqueue("post", 2).await;
    for id in &jobs {
        given.change(*id, Change::Move(queue("mail"))).await;
    }
    assert_eq!(given.drain(&["mail"]).await, [[jobs[0]], [jobs[1]]]);
}

async fn queue_limits_and_limit_keys_both_count(given: Given) {
    bound(&given, Limit::of(2)).await;
    let keyed = given.put_on("mail", &limited(Some(1)), 3).await;
    let plain = given.enqueue("mail", 2).await;
    let turns = given.drain(&["mail"]).await;
    assert_eq!(turns, [vec![keyed[0], plain[0]], vec![keyed[1], plain[1]], vec![keyed[2]]]);
}

async fn a_job_of_a_full_queue_is_explained_by_that(given: Given) {
    given.serve(&["mail"]).await;
    bound(&given, Limit { most: Some(1), ..per_second(1, 1) }).await;
    let jobs = given.enqueue("mail", 2).await;
    assert_eq!(given.why(jobs[1]).await, Reason::Next { ahead: 1 });
    let reserved = given.take("mail").await;
    let full = given.why(jobs[1]).await;
    assert!(matches!(full, Reason::LimitFull { key: None, most: 1, .. }), "{full:?}");
    given.succeed(reserved).await;
    let next = given.now().after(seconds(1));
    assert_eq!(given.why(jobs[1]).await, Reason::RateReached { key: None, next });
    given.pass(seconds(1));
    assert_eq!(given.why(jobs[1]).await, Reason::Next { ahead: 0 });
    given.take("mail").await;
    given.pass(TTL);
    assert_eq!(given.why(jobs[1]).await, Reason::Next { ahead: 0 }, "what has lapsed takes no room");
}
