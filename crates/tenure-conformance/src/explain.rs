//! What surrounds a job, and that its explanation and the claim are of one mind.

use super::generator::{Generator, QUEUES};
use std::collections::BTreeSet;
use tenure_core::{
    End, HostId, Job, JobId, OnConflict, Reason, Serves, State, StateName, Why, Window, explain,
};

use super::given::{Given, TTL, cancel_within, host, kind, minutes, queue, retry, seconds, trouble, want};
use super::operation::Side;
use super::{Test, test};
use tenure_store::{Kinds, Reserve, Want};

/// Maximum number of random histories after which a test compares explanation and claim.
const HISTORIES: u64 = 60;
/// With fewer histories, as for slow stores, the tests do not require that every reason occurs.
const FEWEST: u64 = 40;
const STEPS: usize = 40;

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(a_finished_job_is_explained_by_its_end),
        test(a_running_job_is_explained_by_its_holder),
        test(a_job_of_a_paused_queue_is_explained_by_the_pause),
        test(a_job_for_later_is_explained_by_its_instant),
        test(a_job_that_backs_off_is_explained_by_its_failure),
        test(a_job_that_nobody_serves_is_explained_by_that),
        test(a_job_of_an_unknown_kind_is_explained_by_that),
        test(a_job_behind_full_slots_is_explained_by_what_has_them),
        test(a_job_behind_slots_that_other_queues_took_is_explained_by_that),
        test(free_slots_of_a_host_without_a_handler_for_the_kind_do_not_count),
        test(a_lapsed_job_that_may_not_be_tried_again_is_explained_by_its_end),
        test(a_job_that_nothing_stands_against_is_next),
        test(what_is_explained_as_next_is_what_a_turn_grants),
        test(what_is_explained_as_next_is_what_free_slots_would_be_granted),
        test(of_jobs_with_keys_what_is_explained_as_next_is_what_a_turn_grants),
    ]
}

pub(super) async fn standing(given: &Given, id: JobId) -> tenure_core::Standing {
    given.store.standing(id).await.unwrap().expect("the job is there")
}

pub(super) async fn reason(given: &Given, id: JobId) -> Reason {
    explain(&standing(given, id).await, given.now())
}

pub(super) fn serves(name: &str, kinds: Option<&[&str]>, slots: u32) -> Serves {
    let kinds = kinds.map(|kinds| kinds.iter().map(|name| kind(name)).collect());
    Serves { queue: queue(name), kinds, slots, all_waiting: false }
}

/// Announces a host with a slot for whatever its queues may run.
pub(super) async fn announce(given: &Given, number: u8, serves: &[Serves]) {
    let slots = serves.iter().map(|serves| serves.slots).sum();
    given.store.announce(host(number), "web", slots, serves, minutes(1)).await.unwrap();
}

/// Announces the host that reserves.
pub(super) async fn announce_holder(given: &Given, slots: u32, serves: &[Serves]) {
    given.store.announce(given.holder, "web", slots, serves, minutes(1)).await.unwrap();
}

async fn a_finished_job_is_explained_by_its_end(given: Given) {
    let id = given.succeeded().await;
    let State::Finished { end, at } = given.job(id).await.state else { panic!("it has finished") };
    given.store.set_paused(&queue("mail"), true).await.unwrap();
    assert_eq!(reason(&given, id).await, Reason::Finished { end, at, needed_by: vec![] });
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
    announce_holder(&given, 2, &[serves("mail", None, 2)]).await;
    let jobs = given.enqueue("mail", 3).await;
    let taken = given.reserve("mail", 2).await;
    let running = vec![jobs[0], jobs[1]];
    assert_eq!(
        reason(&given, jobs[2]).await,
        Reason::SlotsFull { slots: 2, elsewhere: 0, running, waiting: false }
    );
    for reserved in taken {
        given.succeed(reserved).await;
    }
    assert_eq!(reason(&given, jobs[2]).await, Reason::Next { ahead: 0 });
}

async fn a_job_behind_slots_that_other_queues_took_is_explained_by_that(given: Given) {
    announce_holder(&given, 2, &[serves("mail", None, 2), serves("post", None, 2)]).await;
    let (mail, post) = (given.enqueue("mail", 2).await, given.enqueue("post", 1).await);
    let first = given.take("mail").await;
    assert_eq!(reason(&given, mail[1]).await, Reason::Next { ahead: 0 });
    let other = given.take("post").await;
    let running = vec![mail[0], post[0]];
    assert_eq!(
        reason(&given, mail[1]).await,
        Reason::SlotsFull { slots: 2, elsewhere: 1, running, waiting: false }
    );
    given.succeed(first).await;
    assert_eq!(reason(&given, mail[1]).await, Reason::Next { ahead: 0 });
    given.succeed(other).await;
}

async fn free_slots_of_a_host_without_a_handler_for_the_kind_do_not_count(given: Given) {
    announce_holder(&given, 1, &[serves("mail", None, 1)]).await;
    announce(&given, 2, &[serves("mail", Some(&["print"]), 8)]).await;
    let jobs = given.enqueue("mail", 2).await;
    let taken = given.take("mail").await;
    let full = Reason::SlotsFull { slots: 1, elsewhere: 0, running: vec![jobs[0]], waiting: false };
    assert_eq!(reason(&given, jobs[1]).await, full);
    announce(&given, 2, &[serves("mail", Some(&["send"]), 8)]).await;
    assert_eq!(reason(&given, jobs[1]).await, Reason::Next { ahead: 0 }, "now it has one");
    given.succeed(taken).await;
}

async fn a_lapsed_job_that_may_not_be_tried_again_is_explained_by_its_end(given: Given) {
    let (spent, asked) =
        (given.put(given.with_attempts("mail", 1)).await, given.put(given.with_attempts("mail", 3)).await);
    given.reserve("mail", 2).await;
    given.change(asked, cancel_within(minutes(9))).await;
    given.pass(TTL);
    announce_holder(&given, 8, &[serves("mail", None, 8)]).await;
    let holder = given.holder;
    assert_eq!(reason(&given, spent).await, Reason::Ending { holder, end: End::Failed });
    assert_eq!(reason(&given, asked).await, Reason::Ending { holder, end: End::Cancelled });
    assert!(given.reserve("mail", 8).await.is_empty());
    assert_eq!(given.state(spent).await, StateName::Failed);
    assert_eq!(given.state(asked).await, StateName::Cancelled);
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
    let histories = given.histories().min(HISTORIES);
    for seed in 1..=histories {
        let (given, _) = after_a_history(&given, seed, Generator::new(seed)).await;
        announce(&given, 99, &QUEUES.map(|name| serves(name, None, 1_000))).await;
        let (next, others) = explained(&given).await;
        let wants = QUEUES.map(|name| want(name, 1_000)).to_vec();
        let granted = given.turn(given.ask(wants, 1_000)).await.jobs;
        let granted: BTreeSet<JobId> = granted.iter().map(|reserved| reserved.job().id).collect();
        assert_eq!(granted, next, "history {seed}");
        granted_in_all += granted.len();
        left_in_all += others;
        given.store.close().await.unwrap();
    }
    let told = format!("{granted_in_all} granted, {left_in_all} left");
    assert!(histories < FEWEST || granted_in_all > 50 && left_in_all > 50, "{told}");
}

/// The same where slots are few: the jobs that are explained as next are those for which a host has a
/// handler and a free slot, each were it the first in line.
async fn what_is_explained_as_next_is_what_free_slots_would_be_granted(given: Given) {
    let (mut granted_in_all, mut full_in_all) = (0, 0);
    let histories = given.histories().min(HISTORIES);
    for seed in 1..=histories {
        let (given, generator) = after_a_history(&given, seed, Generator::new(seed)).await;
        let mut asks = Vec::new();
        for number in 1..=3 {
            let (slots, serves) = generator.few_slots();
            given.store.announce(host(number), "web", slots, &serves, minutes(1)).await.unwrap();
            asks.push(ask_of_free_slots(&given, host(number), slots, &serves).await);
        }
        let (next, _) = explained(&given).await;
        for job in given.all().await {
            full_in_all += usize::from(matches!(reason(&given, job.id).await, Reason::SlotsFull { .. }));
        }
        let mut granted = BTreeSet::new();
        for ask in asks {
            granted.extend(given.turn(ask).await.jobs.iter().map(|reserved| reserved.job().id));
        }
        assert_eq!(granted, next, "history {seed}");
        granted_in_all += granted.len();
        given.store.close().await.unwrap();
    }
    let told = format!("{granted_in_all} granted, {full_in_all} behind full slots");
    assert!(histories < FEWEST || granted_in_all > 20 && full_in_all > 20, "{told}");
}

/// Once a turn has noticed all there is, the explanation and the claim are of one mind about jobs with keys,
/// too. Each queue and kind is asked by itself, for what one is granted may be the room of another.
async fn of_jobs_with_keys_what_is_explained_as_next_is_what_a_turn_grants(given: Given) {
    let (mut granted_in_all, mut left_in_all, mut blocked_in_all) = (0, 0, 0);
    let histories = 2 * given.histories().min(HISTORIES);
    for seed in 1..=histories {
        let (given, _) = after_a_history(&given, seed, Generator::with_keys(seed)).await;
        while given.tend().await.more {}
        given.serve(&QUEUES).await;
        for (name, kind) in QUEUES.iter().flat_map(|name| [(*name, "send"), (*name, "print")]) {
            let (next, room) = next_of(&given, name, kind).await;
            let granted =
                given.turn(given.ask(vec![super::given::want_kinds(name, &[kind], 1_000)], 1_000)).await;
            let granted = super::given::ids(&granted.jobs);
            let expected: Vec<JobId> = next.iter().copied().take(room).collect();
            assert_eq!(granted, expected, "history {seed}, {name}, {kind}");
            granted_in_all += granted.len();
            left_in_all += next.len() - granted.len();
        }
        let (next, _) = explained(&given).await;
        assert_eq!(next, BTreeSet::new(), "history {seed}: what is next would have been granted");
        for job in given.all().await {
            let State::Blocked { .. } = job.state else { continue };
            blocked_in_all += 1;
            let reason = reason(&given, job.id).await;
            let names_a_gate = matches!(
                reason,
                Reason::AfterJobs { .. }
                    | Reason::NotItsTurn { .. }
                    | Reason::LimitFull { key: Some(_), .. }
                    | Reason::RateReached { key: Some(_), .. }
                    | Reason::BehindInLimit { .. }
            );
            assert!(names_a_gate, "history {seed}: {reason:?}");
        }
        given.store.close().await.unwrap();
    }
    let told =
        format!("{granted_in_all} granted, {left_in_all} left to full queues, {blocked_in_all} blocked");
    let meets_all = granted_in_all > 100 && left_in_all > 0 && blocked_in_all > 100;
    assert!(histories < 2 * FEWEST || meets_all, "{told}");
}

/// The jobs of a queue and kind that are explained as next, in line, and how many its queue has room for.
async fn next_of(given: &Given, queue: &str, kind: &str) -> (Vec<JobId>, usize) {
    let (mut next, mut room) = (Vec::new(), 0);
    for job in given.all().await.into_iter().filter(|j| j.queue.as_str() == queue && j.kind.as_str() == kind)
    {
        let standing = standing(given, job.id).await;
        room = standing.queue.room(given.now()) as usize;
        if let Reason::Next { ahead } = explain(&standing, given.now()) {
            next.push((ahead, job.id));
        }
    }
    next.sort();
    (next.into_iter().map(|(_, id)| id).collect(), room)
}

async fn after_a_history(given: &Given, seed: u64, mut generator: Generator) -> (Given, Generator) {
    let given = given.anew(seed).await;
    let mut side = Side::new(given.store.clone(), given.clock.clone());
    for _ in 0..STEPS {
        let operation = generator.draw(given.now(), &side);
        side.apply(&operation).await;
    }
    for host in given.store.hosts().await.unwrap() {
        given.store.retire(host.id).await.unwrap();
    }
    (given, generator)
}

/// What a host would ask for: everything that it has a handler and a free slot for.
async fn ask_of_free_slots(given: &Given, holder: HostId, slots: u32, serves: &[Serves]) -> Reserve {
    let all = given.all().await;
    let runs = |job: &&Job| match job.state {
        State::Running { holder: has_it, until, .. } => has_it == holder && until > given.now(),
        State::Waiting { .. } | State::Blocked { .. } | State::Finished { .. } => false,
    };
    let running: Vec<&Job> = all.iter().filter(runs).collect();
    let is_free = |serves: &&Serves| {
        let of_queue = running.iter().filter(|job| job.queue == serves.queue).count();
        of_queue < serves.slots as usize && running.len() < slots as usize
    };
    let want = |serves: &Serves| Want {
        queue: serves.queue.clone(),
        kinds: serves.kinds.as_ref().map_or(Kinds::All, |kinds| Kinds::Only(kinds.as_slice().into())),
        at_most: 1_000,
    };
    let wants = serves.iter().filter(is_free).map(want).collect();
    Reserve { holder, ..given.ask(wants, 1_000) }
}

/// The jobs that are explained as next, and how many are not.
async fn explained(given: &Given) -> (BTreeSet<JobId>, usize) {
    let (mut next, mut others) = (BTreeSet::new(), 0);
    for job in given.all().await {
        if matches!(reason(given, job.id).await, Reason::Next { .. }) {
            next.insert(job.id);
        } else {
            others += 1;
        }
    }
    (next, others)
}
