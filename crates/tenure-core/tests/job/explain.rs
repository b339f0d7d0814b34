//! Why is it not running? One reason at a time, the same as the claim's, in one sentence.

use std::sync::Arc;

use crate::common::{DUE, NOW, at, host, running, waiting};

use tenure_core::{
    AfterJobs, AtWork, Block, CancelRequest, Cause, End, Failure, Head, Hindrance, HostId, IfFailed, Job,
    JobId, Key, Kind, Limit, LimitKey, Limited, Meter, Ordered, OrderingKey, QueueName, Rate, Reason, Room,
    Serves, Serving, Standing, State, Terms, Why, claimable, explain, limits,
};

fn kind(name: &str) -> Kind {
    Kind::new(name).expect("a name")
}

fn queue(name: &str) -> QueueName {
    QueueName::new(name).expect("a name")
}

fn host_of(number: u8) -> HostId {
    HostId::from_bytes([number; 16])
}

/// A host that serves nothing but the queue, with all its slots, and is idle.
fn serving(number: u8, kinds: Option<&[&str]>, slots: u32) -> Serving {
    let kinds = kinds.map(|kinds| kinds.iter().map(|name| kind(name)).collect());
    let serves = vec![Serves { queue: queue("out"), kinds, slots, all_waiting: false }];
    Serving { host: host_of(number), slots, serves, running: 0, elsewhere: 0 }
}

/// A host that gives the queue so many of its slots, and runs so much of the queue and of others.
fn busy(number: u8, (of_queue, slots): (u32, u32), (running, elsewhere): (u32, u32)) -> Serving {
    Serving { slots, running, elsewhere, ..serving(number, None, of_queue) }
}

/// Jobs of the queue, or of another, that this host runs.
fn at_work(host: u8, elsewhere: bool, numbers: &[u8]) -> Vec<AtWork> {
    let one = |n: &u8| AtWork { id: JobId::from_bytes([*n; 16]), holder: host_of(host), elsewhere };
    numbers.iter().map(one).collect()
}

fn ids(number: u8) -> Vec<JobId> {
    (1..=number).map(|n| JobId::from_bytes([n; 16])).collect()
}

/// A job against which nothing stands.
fn standing(job: Job) -> Standing {
    let running = at_work(1, false, &[1]);
    Standing {
        job,
        paused: false,
        serving: vec![busy(1, (2, 2), (1, 0))],
        running,
        ahead: 0,
        after: vec![],
        spoiled_by: None,
        needed_by: vec![],
        turn: None,
        limit: None,
        queue: Meter::new(Limit::default()),
    }
}

fn waits(due: u64, why: Why) -> Job {
    Job { state: State::Waiting { due: at(due), why }, ..waiting() }
}

fn told(standing: &Standing) -> String {
    explain(standing, at(NOW)).to_string()
}

#[test]
fn a_finished_job_says_how_and_when_it_ended() {
    let ended = |end| told(&standing(Job { state: State::Finished { at: at(900), end }, ..waiting() }));
    assert_eq!(ended(End::Succeeded), "it succeeded at 1970-01-01T00:15:00.000000Z");
    assert_eq!(ended(End::Failed), "it failed at 1970-01-01T00:15:00.000000Z");
    assert_eq!(ended(End::Cancelled), "it was cancelled at 1970-01-01T00:15:00.000000Z");
}

#[test]
fn a_finished_job_names_the_jobs_that_keep_it() {
    let state = State::Finished { at: at(900), end: End::Succeeded };
    let ended = |needed_by| told(&Standing { needed_by, ..standing(Job { state, ..waiting() }) });
    let one = JobId::from_bytes([1; 16]);
    assert_eq!(
        ended(ids(1)),
        format!("it succeeded at 1970-01-01T00:15:00.000000Z; it is kept until {one} has ended")
    );
    assert!(ended(ids(2)).contains("; it is kept until ") && ended(ids(2)).ends_with(" have ended"));
}

#[test]
fn a_running_job_names_its_host_and_whether_it_has_been_asked_to_stop() {
    let host = host();
    let mut job = running(1, 1, NOW + 1);
    assert_eq!(
        told(&standing(job.clone())),
        format!(
            "it is running on host {host}, whose lease ends at 1970-01-01T00:16:41.000000Z unless renewed"
        )
    );
    job.cancel = Some(tenure_core::CancelRequest::new(at(900), crate::common::seconds(500), "enough"));
    assert_eq!(told(&standing(job)), format!("it is running on host {host}, which was asked to stop it"));
}

#[test]
fn a_paused_queue_is_named() {
    let paused = Standing { paused: true, ..standing(waiting()) };
    assert_eq!(told(&paused), "queue out is paused");
}

#[test]
fn a_job_that_is_due_later_says_when_and_what_it_waits_for() {
    let rows = [
        (Why::Enqueued, "enqueued with a delay"),
        (Why::Snoozed, "snoozed by its handler"),
        (Why::Released, "released by its worker"),
        (Why::Lost, "its worker stopped responding"),
        (Why::Asked, "retried by request"),
    ];
    for (why, words) in rows {
        let expected = format!("it is due at 1970-01-01T00:16:41.000000Z ({words})");
        assert_eq!(told(&standing(waits(NOW + 1, why))), expected);
    }
}

#[test]
fn a_job_that_backs_off_names_the_attempt_and_its_error_on_one_line() {
    let failed =
        |failure: Option<Failure>| told(&standing(Job { attempt: 3, failure, ..waits(NOW + 1, Why::Retry) }));
    let start = "attempt 3 failed; the next is due at 1970-01-01T00:16:41.000000Z";
    assert_eq!(failed(None), start);
    let refused = Failure::new(Cause::Error, "connection refused");
    assert_eq!(failed(Some(refused)), format!("{start}: connection refused"));
    let trace = Failure::new(Cause::Panic, "index out of bounds\n  at main.rs:7\n  at lib.rs:3");
    assert_eq!(failed(Some(trace)), format!("{start}: panic: index out of bounds …"));
    let long = failed(Some(Failure::new(Cause::Error, &"x".repeat(8_000))));
    assert!(long.len() < 400 && long.ends_with("(cut)"), "{long}");
}

#[test]
fn a_queue_that_nobody_serves_is_named() {
    let alone = Standing { serving: vec![], ..standing(waiting()) };
    assert_eq!(told(&alone), "no live worker serves queue out");
}

/// River #1105: a job of an unknown kind waits and says so; it is not discarded.
#[test]
fn a_kind_that_nobody_serves_is_named_beside_those_that_are() {
    let of = |serving| told(&Standing { serving, ..standing(waiting()) });
    let two = vec![serving(1, Some(&["sms", "fax"]), 2), serving(2, Some(&["sms"]), 2)];
    assert_eq!(
        of(two),
        "no live worker has a handler for kind mail; the workers of its queue have handlers for fax, sms"
    );
    assert_eq!(
        of(vec![serving(1, Some(&[]), 2)]),
        "no live worker has a handler for kind mail; the workers of its queue have no handlers"
    );
    let names: Vec<String> = (100..1_000).map(|n| format!("kind-{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert!(of(vec![serving(1, Some(&names), 2)]).ends_with("kind-103, kind-104 and 895 more"));
}

#[test]
fn full_slots_name_the_jobs_that_have_them() {
    let full = |slots, running: u8| {
        told(&Standing {
            serving: vec![busy(1, (slots, slots), (running.into(), 0))],
            running: at_work(1, false, &(1..=running).collect::<Vec<_>>()),
            ..standing(waiting())
        })
    };
    let [one, two] = [JobId::from_bytes([1; 16]), JobId::from_bytes([2; 16])];
    assert_eq!(full(1, 1), format!("the only slot of its queue is busy with {one}"));
    assert_eq!(full(2, 2), format!("all 2 slots of its queue are busy with {one}, {two}"));
    assert!(full(7, 7).ends_with("05050505-0505-0505-0505-050505050505 and 2 more"));
    assert_eq!(full(0, 0), "the workers of its queue have no slots");
}

#[test]
fn slots_of_all_hosts_count_and_never_overflow() {
    let most = u32::MAX;
    let free = vec![busy(1, (7, 7), (7, 0)), busy(2, (most, most), (most - 1, 0))];
    let wide = Standing { serving: free, ..standing(waiting()) };
    assert_eq!(explain(&wide, at(NOW)), Reason::Next { ahead: 0 });
    let full = vec![busy(1, (7, 7), (7, most)), busy(2, (most, most), (9, most))];
    let wide = Standing { serving: full, running: vec![], ..standing(waiting()) };
    let reason = Reason::SlotsFull { slots: most, elsewhere: most, running: vec![], waiting: false };
    assert_eq!(explain(&wide, at(NOW)), reason);
}

/// A slot of the queue may be free, and the worker busy all the same.
#[test]
fn slots_that_other_queues_took_are_told_with_the_jobs_that_have_them() {
    let mut running = at_work(1, false, &[1]);
    running.extend(at_work(1, true, &[2, 3]));
    let of = |serving: Serving| {
        told(&Standing { serving: vec![serving], running: running.clone(), ..standing(waiting()) })
    };
    let [one, two, three] = [1, 2, 3].map(|n| JobId::from_bytes([n; 16]));
    assert_eq!(
        of(busy(1, (3, 3), (1, 2))),
        format!(
            "all 3 slots of its workers are busy, 2 of them with jobs of other queues: {one}, {two}, {three}"
        )
    );
    assert_eq!(of(busy(1, (3, 4), (1, 2))), "it is next in line");
    // Its queue may have no more, whatever the others do.
    assert_eq!(of(busy(1, (1, 3), (1, 2))), format!("the only slot of its queue is busy with {one}"));

    running = at_work(1, true, &[2, 3]);
    let of = |serving: Serving| {
        told(&Standing { serving: vec![serving], running: running.clone(), ..standing(waiting()) })
    };
    assert_eq!(
        of(busy(1, (1, 2), (0, 2))),
        format!("all 2 slots of its workers are busy with jobs of other queues: {two}, {three}")
    );
    assert_eq!(
        of(busy(1, (1, 1), (0, 1))),
        format!("the only slot of its worker is busy with a job of another queue: {two}, {three}")
    );
}

#[test]
fn slots_of_hosts_without_a_handler_for_the_kind_do_not_count() {
    let able = busy(1, (1, 1), (1, 0));
    let mut running = at_work(1, false, &[1]);
    running.extend(at_work(2, false, &[2]));
    let unable = Serving { running: 1, ..serving(2, Some(&["sms"]), 9) };
    let stands = Standing { serving: vec![able, unable], running, ..standing(waiting()) };
    let reason = Reason::SlotsFull { slots: 1, elsewhere: 0, running: ids(1), waiting: false };
    assert_eq!(explain(&stands, at(NOW)), reason);
}

#[test]
fn slots_whose_jobs_wait_for_other_jobs_are_said_to() {
    let knotted = |number| {
        let mut host = busy(number, (1, 1), (1, 0));
        host.serves[0].all_waiting = true;
        host
    };
    let mut running = at_work(1, false, &[1]);
    running.extend(at_work(2, false, &[2]));
    let mut stands = Standing { serving: vec![knotted(1), knotted(2)], running, ..standing(waiting()) };
    let reason = Reason::SlotsFull { slots: 2, elsewhere: 0, running: ids(2), waiting: true };
    assert_eq!(explain(&stands, at(NOW)), reason);
    assert!(
        told(&stands).ends_with(
            "; they wait for other jobs, so add slots, or a queue for the jobs that they wait for"
        )
    );

    stands.serving[1].serves[0].all_waiting = false;
    let reason = Reason::SlotsFull { slots: 2, elsewhere: 0, running: ids(2), waiting: false };
    assert_eq!(explain(&stands, at(NOW)), reason);
}

#[test]
fn the_room_of_a_host_is_the_smaller_of_what_its_queue_and_the_whole_leave() {
    #[rustfmt::skip]
    let rows = [
        // slots of the queue and in all, jobs of the queue and of others, room
        ((2, 4), (0, 0), Room::Free { slots: 2 }),
        ((2, 4), (1, 0), Room::Free { slots: 1 }),
        ((2, 4), (0, 3), Room::Free { slots: 1 }),
        ((2, 4), (0, 4), Room::HostFull { slots: 4 }),
        ((2, 4), (1, 9), Room::HostFull { slots: 4 }),
        ((2, 4), (2, 0), Room::QueueFull { slots: 2 }),
        ((2, 4), (2, 2), Room::QueueFull { slots: 2 }),
        ((9, 4), (4, 0), Room::QueueFull { slots: 4 }),
        ((0, 4), (0, 0), Room::QueueFull { slots: 0 }),
        ((4, 0), (0, 0), Room::QueueFull { slots: 0 }),
    ];
    for (slots, jobs, room) in rows {
        assert_eq!(busy(1, slots, jobs).room(&waiting()), room, "{slots:?} {jobs:?}");
    }
}

#[test]
fn a_job_against_which_nothing_stands_says_how_many_are_before_it() {
    let behind = |ahead| told(&Standing { ahead, ..standing(waiting()) });
    assert_eq!(behind(0), "it is next in line");
    assert_eq!(behind(1), "1 job is ahead of it in line");
    assert_eq!(behind(7), "7 jobs are ahead of it in line");
    let page = u32::try_from(limits::PAGE_JOBS).expect("a page is small");
    assert_eq!(behind(page), "1000 or more jobs are ahead of it in line");
}

/// What a person can change comes before what time changes: a paused queue holds back a job that is
/// due later, too, and resuming it is what they would forget.
#[test]
fn of_several_reasons_the_one_that_has_to_go_first_is_named() {
    let everything =
        |job: Job| Standing { paused: true, serving: vec![], running: vec![], ahead: 9, ..standing(job) };
    let reason = |standing: &Standing| explain(standing, at(NOW));

    let finished = State::Finished { at: at(900), end: End::Failed };
    let mut stands = everything(Job { state: finished, ..waiting() });
    assert_eq!(reason(&stands), Reason::Finished { end: End::Failed, at: at(900), needed_by: vec![] });

    stands.job = running(1, 1, NOW + 1);
    assert_eq!(reason(&stands), Reason::Running { holder: host(), until: at(NOW + 1), cancelling: false });

    stands.job = waits(NOW + 1, Why::Enqueued);
    assert_eq!(reason(&stands), Reason::QueuePaused { queue: queue("out") });

    stands.paused = false;
    assert_eq!(reason(&stands), Reason::DueLater { due: at(NOW + 1), why: Why::Enqueued });

    stands.job = waiting();
    assert_eq!(reason(&stands), Reason::QueueNotServed { queue: queue("out") });

    stands.serving = vec![serving(1, Some(&["sms"]), 2)];
    assert_eq!(reason(&stands), Reason::KindNotServed { kind: kind("mail"), served: vec![kind("sms")] });

    stands.serving.push(Serving { running: 2, ..serving(2, Some(&["mail"]), 2) });
    stands.running = at_work(2, false, &[1, 2]);
    assert_eq!(
        reason(&stands),
        Reason::SlotsFull { slots: 2, elsewhere: 0, running: ids(2), waiting: false }
    );

    stands.serving[1].running = 1;
    assert_eq!(reason(&stands), Reason::Next { ahead: 9 });
}

/// A worker that claims without an id is not listed, and was said to be missing while it waited for the rate.
#[test]
fn a_rate_that_is_used_up_is_named_before_a_worker_that_is_not_listed() {
    let rate = Limit { most: None, rate: Some(Rate::new(2, second())) };
    let spent = Meter::new(rate).started(2, at(NOW));
    let next = spent.next_room(at(NOW)).unwrap();
    let alone = Standing { serving: vec![], queue: spent, ..standing(waiting()) };
    assert_eq!(explain(&alone, at(NOW)), Reason::RateReached { key: None, next });
    assert_eq!(explain(&alone, next), Reason::QueueNotServed { queue: queue("out") });
}

#[test]
fn the_claim_takes_what_is_due_and_what_has_lapsed_and_nothing_else() {
    let (waiting, running) = (|due| waits(due, Why::Enqueued).state, |until| running(1, 1, until).state);
    let later = Hindrance::NotDue { due: at(NOW + 1), why: Why::Enqueued };
    let held = Hindrance::Running { holder: host(), until: at(NOW + 1) };
    let ended = State::Finished { at: at(NOW), end: End::Succeeded };
    let over = Hindrance::Finished { at: at(NOW), end: End::Succeeded };
    #[rustfmt::skip]
    let rows = [
        // state, the queue is paused, what stands against the claim
        (waiting(DUE),     false, Ok(())),
        (waiting(NOW),     false, Ok(())),
        (waiting(NOW + 1), false, Err(later)),
        (waiting(DUE),     true,  Err(Hindrance::Paused)),
        (waiting(NOW + 1), true,  Err(Hindrance::Paused)),
        (running(NOW - 1), false, Ok(())),
        (running(NOW),     false, Ok(())),
        (running(NOW + 1), false, Err(held)),
        (running(NOW),     true,  Err(Hindrance::Paused)),
        (running(NOW + 1), true,  Err(held)),
        (ended,            false, Err(over)),
        (ended,            true,  Err(over)),
    ];
    for (state, paused, expected) in rows {
        assert_eq!(claimable(&state, paused, at(NOW)), expected, "{state:?} paused {paused}");
    }
}

#[test]
fn a_lapsed_job_is_in_line_again_and_is_explained_as_such() {
    assert_eq!(told(&standing(running(1, 1, NOW))), "it is next in line");
    let alone = Standing { serving: vec![], ..standing(running(1, 1, NOW)) };
    assert_eq!(told(&alone), "no live worker serves queue out");
}

/// It is not granted again: the turn that finds it ends it, and a pause does not keep it from that.
#[test]
fn a_lapsed_job_that_may_not_be_tried_again_is_about_to_end() {
    let host = host();
    for paused in [false, true] {
        let of = |job: Job| told(&Standing { paused, ..standing(job) });
        let spent = format!(
            "host {host} stopped responding and no attempts are left; the next maintenance turn fails it"
        );
        assert_eq!(of(running(crate::common::ATTEMPTS, 3, NOW)), spent);
        assert_eq!(of(running(1, crate::common::DELIVERIES, NOW)), spent);

        let asked = |until, grace| Job {
            cancel: Some(CancelRequest::new(at(900), crate::common::seconds(grace), "enough")),
            ..running(1, 1, until)
        };
        let deaf = format!(
            "host {host} was asked to stop it and did not respond; the next maintenance turn cancels it"
        );
        assert_eq!(of(asked(NOW, 500)), deaf, "silent");
        assert_eq!(of(asked(NOW + 1, 100)), deaf, "its time to stop is over");
    }
}

fn key(text: &str) -> Key {
    Key::new("key", text).expect("a key")
}

/// A job with all keys that is blocked on this, though nothing stands against it any more.
fn blocked(on: Block) -> Standing {
    let terms = Terms {
        ordering: Some(OrderingKey { key: key("cart-7"), head: Head::Block }),
        limit: Some(LimitKey { key: key("smtp"), most: None }),
        after: Some(AfterJobs { jobs: ids(2), if_failed: IfFailed::Cancel }),
        ..crate::common::terms()
    };
    let state = State::Blocked { on, due: at(DUE), why: Why::Enqueued };
    Standing {
        turn: Some(Ordered { of: Some(waiting().id), ahead: 0 }),
        limit: Some(Limited { meter: Meter::new(Limit::default()), running: vec![], ahead: 0 }),
        ..standing(Job { state, terms: Arc::new(terms), ..waiting() })
    }
}

fn limited(meter: Meter, ahead: u32, running: u8) -> Option<Limited> {
    Some(Limited { meter, running: ids(running), ahead })
}

fn second() -> std::time::Duration {
    crate::common::seconds(1)
}

/// Whatever blocked it may have gone since; the next turn finds out, and so does whoever asks.
#[test]
fn a_blocked_job_that_nothing_blocks_any_more_is_next() {
    for on in [Block::Jobs, Block::Order, Block::Limit] {
        assert_eq!(explain(&blocked(on), at(NOW)), Reason::Next { ahead: 0 }, "{on:?}");
    }
}

/// The gates stand one behind the other: whatever a job was blocked on when it was last looked at, the
/// first that is closed now is named.
#[test]
fn of_several_closed_gates_the_first_is_named() {
    for on in [Block::Jobs, Block::Order, Block::Limit] {
        let mut stands = blocked(on);
        stands.limit = limited(Meter::new(Limit::of(1)).started(1, at(NOW)), 0, 1);
        let full = Reason::LimitFull { key: Some(key("smtp")), most: 1, running: ids(1) };
        assert_eq!(explain(&stands, at(NOW)), full);
        stands.turn = Some(Ordered { of: Some(JobId::from_bytes([9; 16])), ahead: 1 });
        let turn = Some(JobId::from_bytes([9; 16]));
        assert_eq!(explain(&stands, at(NOW)), Reason::NotItsTurn { key: key("cart-7"), turn, ahead: 1 });
        stands.after = ids(1);
        assert_eq!(explain(&stands, at(NOW)), Reason::AfterJobs { jobs: ids(1) });
        stands.spoiled_by = Some(JobId::from_bytes([1; 16]));
        assert_eq!(explain(&stands, at(NOW)), Reason::Spoiled { job: JobId::from_bytes([1; 16]) });
    }
}

/// A pause is what a person would forget; but a job that is blocked would not run without it either.
#[test]
fn a_blocked_job_in_a_paused_queue_names_what_blocks_it() {
    let stands = Standing { paused: true, after: ids(1), ..blocked(Block::Jobs) };
    assert_eq!(explain(&stands, at(NOW)), Reason::AfterJobs { jobs: ids(1) });
    let stands = Standing { after: vec![], ..stands };
    assert_eq!(explain(&stands, at(NOW)), Reason::QueuePaused { queue: queue("out") });
}

#[test]
fn what_blocks_a_job_is_told_in_a_sentence() {
    let [one, two, nine] = [1, 2, 9].map(|n| JobId::from_bytes([n; 16]));
    let turn = |of, ahead| told(&Standing { turn: Some(Ordered { of, ahead }), ..blocked(Block::Order) });
    let limit = |limit| told(&Standing { limit, ..blocked(Block::Limit) });
    let queue = |queue, running| told(&Standing { queue, running, ..standing(waiting()) });
    let full = |most| Meter::new(Limit::of(most)).started(most, at(NOW));
    let rate = Limit { most: None, rate: Some(Rate::new(2, second())) };
    let spent = Meter::new(rate).started(2, at(NOW));
    let next = at(NOW).after(second() / 2);
    let page = u32::try_from(limits::PAGE_JOBS).expect("a page is small");
    let of_key = "with the same ordering key cart-7";
    #[rustfmt::skip]
    let rows = [
        (told(&Standing { after: ids(1), ..blocked(Block::Jobs) }), format!("it waits for {one} to end")),
        (told(&Standing { after: ids(7), ..blocked(Block::Jobs) }),
            format!("it waits for {} and 2 more to end", ids(5).iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))),
        (told(&Standing { spoiled_by: Some(one), ..blocked(Block::Jobs) }),
            format!("job {one}, which it depends on, did not succeed; the next maintenance turn cancels it")),
        (turn(Some(nine), 1),    format!("it waits for job {nine} {of_key}")),
        // It stepped aside, and another has the turn that came after it.
        (turn(Some(nine), 0),    format!("it waits for job {nine} {of_key}")),
        (turn(Some(nine), 3),    format!("it waits for job {nine} {of_key}; 3 jobs in total are ahead of it")),
        (turn(Some(nine), page), format!("it waits for job {nine} {of_key}; 1000 or more jobs in total are ahead of it")),
        (turn(None, 1),          format!("1 job {of_key} is ahead of it")),
        (turn(None, 2),          format!("2 jobs {of_key} are ahead of it")),
        (limit(limited(full(1), 0, 1)), format!("its limit smtp allows one running job, and one is running: {one}")),
        (limit(limited(full(1), 0, 0)), "its limit smtp allows one running job, and one is running".to_owned()),
        (limit(limited(full(2), 0, 2)), format!("its limit smtp allows 2 running jobs, and 2 are running: {one}, {two}")),
        (limit(limited(spent, 0, 0)),   format!("its limit smtp allows the next start at {next}")),
        (limit(limited(Meter::new(Limit::of(2)), 4, 0)), "its limit smtp has room, but 4 jobs are ahead of it".to_owned()),
        (limit(limited(Meter::new(Limit::of(2)), page, 0)), "its limit smtp has room, but 1000 or more jobs are ahead of it".to_owned()),
        (queue(full(1), at_work(1, false, &[1])), format!("the limit of its queue allows one running job, and one is running: {one}")),
        // Jobs of other queues do not use it up.
        (queue(full(2), at_work(1, true, &[1])), "the limit of its queue allows 2 running jobs, and 2 are running".to_owned()),
        (queue(spent, vec![]), format!("the limit of its queue allows the next start at {next}")),
    ];
    for (told, sentence) in rows {
        assert_eq!(told, sentence);
    }
}

/// A limit without room may have none for two reasons. What runs has to end first, whatever time brings.
#[test]
fn a_limit_whose_slots_are_taken_says_so_before_it_speaks_of_its_rate() {
    let both = Limit { most: Some(1), rate: Some(Rate::new(1, second())) };
    let stands =
        Standing { limit: limited(Meter::new(both).started(1, at(NOW)), 0, 1), ..blocked(Block::Limit) };
    let full = Reason::LimitFull { key: Some(key("smtp")), most: 1, running: ids(1) };
    assert_eq!(explain(&stands, at(NOW)), full);
}

/// The claim does not take a blocked job, whatever blocks it, and its queue need not be paused for that.
#[test]
fn the_claim_takes_no_blocked_job() {
    for on in [Block::Jobs, Block::Order, Block::Limit] {
        for due in [DUE, NOW + 1] {
            let state = State::Blocked { on, due: at(due), why: Why::Enqueued };
            for paused in [false, true] {
                assert_eq!(claimable(&state, paused, at(NOW)), Err(Hindrance::Blocked { on }));
            }
        }
    }
}
