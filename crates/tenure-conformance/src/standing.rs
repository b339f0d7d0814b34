//! What surrounds a job, as a store tells it.

use tenure_core::{AtWork, Due, JobId, NewJob, Reason, Serving, limits};

use super::explain::{announce, announce_holder, reason, serves, standing};
use super::given::{Given, TTL, host, minutes, priority, seconds, want};
use super::{Test, test};
use tenure_store::Reserve;

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(a_job_that_is_not_there_has_no_standing),
        test(a_standing_shows_the_job_and_the_live_hosts_that_serve_its_queue),
        test(hosts_that_fell_silent_serve_nothing),
        test(a_standing_lists_what_takes_slots_of_its_hosts_its_own_queue_first),
        test(a_standing_counts_what_each_host_runs_though_it_does_not_list_it_all),
        test(what_has_lapsed_does_not_run),
        test(a_standing_counts_the_due_jobs_that_come_before),
        test(a_job_that_is_not_due_has_nothing_ahead),
    ]
}

async fn a_job_that_is_not_there_has_no_standing(given: Given) {
    given.enqueue("mail", 1).await;
    assert_eq!(given.store.standing(given.id()).await.unwrap(), None);
}

async fn a_standing_shows_the_job_and_the_live_hosts_that_serve_its_queue(given: Given) {
    let id = given.put(given.new_job("mail")).await;
    let (mail, post) = (serves("mail", None, 8), serves("post", Some(&["send"]), 1));
    announce(&given, 2, std::slice::from_ref(&mail)).await;
    announce(&given, 1, &[mail.clone(), post.clone()]).await;
    announce(&given, 3, std::slice::from_ref(&post)).await;
    let standing = standing(&given, id).await;
    assert_eq!(standing.job, given.job(id).await);
    assert!(!standing.paused);
    let idle =
        |n, slots| Serving { host: host(n), slots, serves: vec![mail.clone()], running: 0, elsewhere: 0 };
    assert_eq!(standing.serving, [idle(1, 9), idle(2, 8)]);
}

async fn hosts_that_fell_silent_serve_nothing(given: Given) {
    let id = given.put(given.new_job("mail")).await;
    announce(&given, 1, &[serves("mail", None, 8)]).await;
    given.pass(seconds(59));
    assert_eq!(standing(&given, id).await.serving.len(), 1);
    given.pass(seconds(1));
    assert_eq!(standing(&given, id).await.serving, []);
}

async fn a_standing_lists_what_takes_slots_of_its_hosts_its_own_queue_first(given: Given) {
    announce_holder(&given, 8, &[serves("mail", None, 8), serves("post", None, 8)]).await;
    let post = given.enqueue("post", 1).await[0];
    let first = given.put(NewJob { priority: priority(9), ..given.new_job("mail") }).await;
    let others = given.enqueue("mail", 3).await;
    given.reserve("mail", 3).await;
    given.take("mail").await;
    given.take("post").await;
    // What runs on hosts that do not serve the queue, or not the kind, takes no slot from it.
    given.enqueue("mail", 2).await;
    for number in [90, 91] {
        let ask = Reserve { holder: host(number), ..given.ask(vec![want("mail", 1)], 1) };
        assert_eq!(given.turn(ask).await.jobs.len(), 1);
    }
    announce(&given, 91, &[serves("mail", Some(&["print"]), 8)]).await;

    let waiting = given.put(given.new_job("mail")).await;
    let standing = standing(&given, waiting).await;
    let by_holder = |(id, elsewhere)| AtWork { id, holder: given.holder, elsewhere };
    let mail = [first, others[0], others[1], others[2]].map(|id| by_holder((id, false)));
    assert_eq!(standing.running[..4], mail);
    assert_eq!(standing.running[4..], [by_holder((post, true))]);
    let busy = |number| {
        let found = standing.serving.iter().find(|host| host.host == number).expect("it serves the queue");
        (found.running, found.elsewhere)
    };
    assert_eq!((busy(given.holder), busy(host(91))), ((4, 1), (1, 0)));
}

async fn a_standing_counts_what_each_host_runs_though_it_does_not_list_it_all(given: Given) {
    announce_holder(&given, 2_000, &[serves("mail", None, 1_500)]).await;
    let more = limits::PAGE_JOBS + 5;
    let id = given.enqueue("mail", more + 1).await[more];
    let mut left = more;
    while left > 0 {
        left -= given.reserve("mail", left).await.len();
    }
    let standing = standing(&given, id).await;
    assert_eq!(standing.serving[0].running as usize, more);
    assert_eq!(standing.running.len(), limits::PAGE_JOBS);
    assert_eq!(reason(&given, id).await, Reason::Next { ahead: 0 });
}

async fn what_has_lapsed_does_not_run(given: Given) {
    announce_holder(&given, 8, &[serves("mail", None, 8)]).await;
    let lapsed = given.running().await.job().id;
    let shown = async || {
        let standing = standing(&given, lapsed).await;
        let listed: Vec<JobId> = standing.running.iter().map(|at_work| at_work.id).collect();
        (standing.serving[0].running, listed)
    };
    assert_eq!(shown().await, (1, vec![lapsed]));
    given.pass(TTL);
    announce_holder(&given, 8, &[serves("mail", None, 8)]).await;
    assert_eq!(shown().await, (0, vec![]));
}

async fn a_standing_counts_the_due_jobs_that_come_before(given: Given) {
    let at = |seconds_ago: u64| Due::At(given.now().before(seconds(seconds_ago)));
    let job = |number: i64, due: Due| NewJob { priority: priority(number), due, ..given.new_job("mail") };
    let subject = job(0, at(5));
    let before = [job(-1, at(0)), job(0, at(6)), job(0, at(5))];
    let behind = [job(0, at(4)), job(1, at(9)), job(-9, Due::In(seconds(1)))];
    given.enqueue("post", 2).await;
    given.enqueue_all(before.to_vec()).await;
    given.put(subject.clone()).await;
    given.put(job(0, at(5))).await;
    given.enqueue_all(behind.to_vec()).await;
    assert_eq!(standing(&given, subject.id).await.ahead, 3);
    given.take("mail").await;
    assert_eq!(standing(&given, subject.id).await.ahead, 2, "what runs is not ahead");
    given.pass(seconds(1));
    assert_eq!(standing(&given, subject.id).await.ahead, 3, "what came due is, found or not");
}

async fn a_job_that_is_not_due_has_nothing_ahead(given: Given) {
    given.enqueue("mail", 3).await;
    let running = given.take("mail").await.job().id;
    let later = given.put(given.due_in("mail", minutes(1))).await;
    let ended = given.put(given.new_job("mail")).await;
    given.cancel(ended).await;
    for id in [running, later, ended] {
        assert_eq!(standing(&given, id).await.ahead, 0);
    }
}
