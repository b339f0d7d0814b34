//! What surrounds a job, and that its explanation and the claim are of one mind.

use std::collections::BTreeSet;

use tenure_core::{
    Due, JobId, NewJob, OnConflict, Reason, Serves, State, StateName, Why, Window, explain, lapse,
};

use super::generator::{Generator, QUEUES};
use super::given::{
    Given, TTL, cancel_within, host, kind, minutes, priority, queue, retry, seconds, trouble, want,
};
use super::operation::Side;
use super::{Test, test};

/// Random histories after which explanation and claim are compared.
const HISTORIES: u64 = 60;
const STEPS: usize = 40;

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(a_job_that_is_not_there_has_no_standing),
        test(a_standing_shows_the_job_and_what_the_live_hosts_serve),
        test(hosts_that_fell_silent_serve_nothing),
        test(a_standing_lists_what_runs_in_the_queue_oldest_first),
        test(what_has_lapsed_does_not_run),
        test(a_standing_counts_the_due_jobs_that_come_before),
        test(a_job_that_is_not_due_has_nothing_ahead),
        test(a_finished_job_is_explained_by_its_end),
        test(a_running_job_is_explained_by_its_holder),
        test(a_job_of_a_paused_queue_is_explained_by_the_pause),
        test(a_job_for_later_is_explained_by_its_instant),
        test(a_job_that_backs_off_is_explained_by_its_failure),
        test(a_job_that_nobody_serves_is_explained_by_that),
        test(a_job_of_an_unknown_kind_is_explained_by_that),
        test(a_job_behind_full_slots_is_explained_by_what_has_them),
        test(a_job_that_nothing_stands_against_is_next),
        test(what_is_explained_as_next_is_what_a_turn_grants),
    ]
}

async fn standing(given: &Given, id: JobId) -> tenure_core::Standing {
    given.store.standing(id).await.unwrap().expect("the job is there")
}

async fn reason(given: &Given, id: JobId) -> Reason {
    explain(&standing(given, id).await, given.now())
}

fn serves(name: &str, kinds: Option<&[&str]>, slots: u32) -> Serves {
    let kinds = kinds.map(|kinds| kinds.iter().map(|name| kind(name)).collect());
    Serves { queue: queue(name), kinds, slots }
}

async fn announce(given: &Given, number: u8, serves: &[Serves]) {
    given.store.announce(host(number), "web", serves, minutes(1)).await.unwrap();
}

async fn a_job_that_is_not_there_has_no_standing(given: Given) {
    given.enqueue("mail", 1).await;
    assert_eq!(given.store.standing(given.id()).await.unwrap(), None);
}

async fn a_standing_shows_the_job_and_what_the_live_hosts_serve(given: Given) {
    let id = given.put(given.new_job("mail")).await;
    let (mail, post) = (serves("mail", None, 8), serves("post", Some(&["send"]), 1));
    announce(&given, 1, &[mail.clone(), post.clone()]).await;
    announce(&given, 2, std::slice::from_ref(&mail)).await;
    let standing = standing(&given, id).await;
    assert_eq!(standing.job, given.job(id).await);
    assert!(!standing.paused);
    assert_eq!(standing.serving, [mail.clone(), post, mail]);
}

async fn hosts_that_fell_silent_serve_nothing(given: Given) {
    let id = given.put(given.new_job("mail")).await;
    announce(&given, 1, &[serves("mail", None, 8)]).await;
    given.pass(seconds(59));
    assert_eq!(standing(&given, id).await.serving.len(), 1);
    given.pass(seconds(1));
    assert_eq!(standing(&given, id).await.serving, []);
}

async fn a_standing_lists_what_runs_in_the_queue_oldest_first(given: Given) {
    let post = given.enqueue("post", 1).await[0];
    let first = given.put(NewJob { priority: priority(9), ..given.new_job("mail") }).await;
    let others = given.enqueue("mail", 3).await;
    given.reserve("mail", 3).await;
    given.take("mail").await;
    given.take("post").await;
    let waiting = given.put(given.new_job("mail")).await;
    let running = standing(&given, waiting).await.running;
    assert_eq!(running, [first, others[0], others[1], others[2]]);
    assert_eq!(standing(&given, post).await.running, [post]);
}

async fn what_has_lapsed_does_not_run(given: Given) {
    let lapsed = given.running().await.job().id;
    assert_eq!(standing(&given, lapsed).await.running, [lapsed]);
    given.pass(TTL);
    assert_eq!(standing(&given, lapsed).await.running, []);
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

async fn a_finished_job_is_explained_by_its_end(given: Given) {
    let id = given.succeeded().await;
    let State::Finished { end, at } = given.job(id).await.state else { panic!("it has finished") };
    given.store.set_paused(&queue("mail"), true).await.unwrap();
    assert_eq!(reason(&given, id).await, Reason::Finished { end, at });
}

async fn a_running_job_is_explained_by_its_holder(given: Given) {
    let reserved = given.running().await;
    let (id, holder, until) = (reserved.job().id, given.holder, given.now().after(TTL));
    given.store.set_paused(&queue("mail"), true).await.unwrap();
    assert_eq!(reason(&given, id).await, Reason::Running { holder, until, cancelling: false });
    given.cancel(id).await;
    assert_eq!(reason(&given, id).await, Reason::Running { holder, until, cancelling: true });
}

async fn a_job_of_a_paused_queue_is_explained_by_the_pause(given: Given) {
    announce(&given, 1, &[serves("mail", None, 8)]).await;
    let id = given.put(given.new_job("mail")).await;
    given.store.set_paused(&queue("mail"), true).await.unwrap();
    assert!(standing(&given, id).await.paused);
    assert_eq!(reason(&given, id).await, Reason::QueuePaused { queue: queue("mail") });
}

async fn a_job_for_later_is_explained_by_its_instant(given: Given) {
    announce(&given, 1, &[serves("mail", None, 8)]).await;
    let id = given.put(given.due_in("mail", seconds(30))).await;
    let due = given.now().after(seconds(30));
    assert_eq!(reason(&given, id).await, Reason::DueLater { due, why: Why::Enqueued });
    given.pass(seconds(30));
    assert_eq!(reason(&given, id).await, Reason::Next { ahead: 0 }, "once it is due, found or not");
}

async fn a_job_that_backs_off_is_explained_by_its_failure(given: Given) {
    let id = given.put(given.with_attempts("mail", 3)).await;
    given.settle(given.take("mail").await, retry()).await;
    let due = given.now().after(minutes(1));
    let expected = Reason::BackingOff { due, attempts: 1, failure: Some(trouble("try later")) };
    assert_eq!(reason(&given, id).await, expected);
}

async fn a_job_that_nobody_serves_is_explained_by_that(given: Given) {
    let id = given.put(given.new_job("mail")).await;
    announce(&given, 1, &[serves("post", None, 8)]).await;
    assert_eq!(reason(&given, id).await, Reason::QueueNotServed { queue: queue("mail") });
}

async fn a_job_of_an_unknown_kind_is_explained_by_that(given: Given) {
    let id = given.put(given.of_kind("mail", "print")).await;
    announce(&given, 1, &[serves("mail", Some(&["send", "fold"]), 8)]).await;
    announce(&given, 2, &[serves("mail", Some(&["send"]), 8)]).await;
    let served = vec![kind("fold"), kind("send")];
    assert_eq!(reason(&given, id).await, Reason::KindNotServed { kind: kind("print"), served });
}

async fn a_job_behind_full_slots_is_explained_by_what_has_them(given: Given) {
    announce(&given, 1, &[serves("mail", None, 2)]).await;
    let jobs = given.enqueue("mail", 3).await;
    let taken = given.reserve("mail", 2).await;
    let running = vec![jobs[0], jobs[1]];
    assert_eq!(reason(&given, jobs[2]).await, Reason::SlotsFull { slots: 2, running });
    for reserved in taken {
        given.succeed(reserved).await;
    }
    assert_eq!(reason(&given, jobs[2]).await, Reason::Next { ahead: 0 });
}

async fn a_job_that_nothing_stands_against_is_next(given: Given) {
    announce(&given, 1, &[serves("mail", None, 8)]).await;
    let jobs = given.enqueue("mail", 3).await;
    assert_eq!(reason(&given, jobs[0]).await, Reason::Next { ahead: 0 });
    assert_eq!(reason(&given, jobs[2]).await, Reason::Next { ahead: 2 });
    let scheduled = given.put(given.only(1, Window::WhileUnfinished, OnConflict::Reject)).await;
    given.change(scheduled, cancel_within(seconds(0))).await;
    assert_eq!(given.state(scheduled).await, StateName::Cancelled);
}

/// The predicate of the claim is the predicate of the explanation: after whatever history, a turn
/// without bounds grants exactly the jobs that were explained as next while every slot was free.
async fn what_is_explained_as_next_is_what_a_turn_grants(given: Given) {
    let (mut granted_in_all, mut left_in_all) = (0, 0);
    for seed in 1..=HISTORIES {
        let given = given.anew(seed).await;
        let mut generator = Generator::new(seed);
        let mut side = Side::new(given.store.clone(), given.clock.clone());
        for _ in 0..STEPS {
            let operation = generator.draw(given.now(), &side);
            side.apply(&operation).await;
        }
        let (next, others) = explained(&given).await;
        let wants = QUEUES.map(|name| want(name, 1_000)).to_vec();
        let granted = given.turn(given.ask(wants, 1_000)).await.jobs;
        let granted: BTreeSet<JobId> = granted.iter().map(|reserved| reserved.job().id).collect();
        assert_eq!(granted, next, "history {seed}");
        granted_in_all += granted.len();
        left_in_all += others;
        given.store.close().await.unwrap();
    }
    assert!(granted_in_all > 50 && left_in_all > 50, "{granted_in_all} granted, {left_in_all} left");
}

/// The jobs that are explained as next while hosts with many slots serve everything, and how many are not.
async fn explained(given: &Given) -> (BTreeSet<JobId>, usize) {
    let all = QUEUES.map(|name| serves(name, None, 1_000));
    announce(given, 99, &all).await;
    let (mut next, mut others) = (BTreeSet::new(), 0);
    for job in given.all().await {
        let is_next = matches!(reason(given, job.id).await, Reason::Next { .. });
        // A silent holder's job that has no attempt left, or whose end was asked for, is not granted:
        // the turn that finds it ends it. Until then it is explained as next.
        let ends = lapse(&job, job.fence.epoch(), given.now()).is_some_and(|it| it.state.is_finished());
        if is_next && !ends {
            next.insert(job.id);
        } else {
            others += 1;
        }
    }
    (next, others)
}
