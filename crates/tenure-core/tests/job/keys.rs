//! Jobs that share keys: which gate keeps one, what it is told, and what becomes of one that waits for others.

use crate::common::{NOW, at, host, waiting};
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{
    AfterJobs, Block, Cancel, Cause, End, Gates, Head, IfFailed, Job, JobId, Key, Limit, LimitKey, Limited,
    Meter, Noticed, Ordered, OrderingKey, Rate, Serves, Serving, Standing, State, Terms, Why, explain,
    round_of,
};

const SECOND: Duration = Duration::from_secs(1);

fn key(text: &str) -> Key {
    text.parse().expect("a key")
}

fn id(number: u8) -> JobId {
    JobId::from_bytes([number; 16])
}

fn terms(head: Head) -> Terms {
    Terms {
        ordering: Some(OrderingKey { key: key("cart-7"), head }),
        limit: Some(LimitKey { key: key("smtp"), most: Some(2) }),
        after: Some(AfterJobs { jobs: vec![id(1)], if_failed: IfFailed::Cancel }),
        ..Terms::default()
    }
}

/// A job with all keys that is blocked so, in a queue that somebody serves.
fn blocked(on: Block) -> Standing {
    let state = State::Blocked { on, due: at(NOW), why: Why::Enqueued };
    let job = Job { state, terms: Arc::new(terms(Head::Block)), ..waiting() };
    let serves = vec![Serves { queue: job.queue.clone(), kinds: None, slots: 2, all_waiting: false }];
    let serving = Serving { host: host(), slots: 2, serves, running: 0, elsewhere: 0 };
    Standing {
        job,
        paused: false,
        serving: vec![serving],
        running: vec![],
        ahead: 0,
        after: vec![],
        spoiled_by: None,
        needed_by: vec![],
        turn: Some(Ordered { of: None, ahead: 0 }),
        limit: Some(Limited { meter: Meter::new(Limit::of(2)), running: vec![], ahead: 0 }),
        queue: Meter::new(Limit::default()),
    }
}

fn told(standing: &Standing) -> String {
    explain(standing, at(NOW)).to_string()
}

#[test]
fn the_first_closed_gate_keeps_a_job() {
    let gates = |jobs_ended, has_turn, has_room| Gates { jobs_ended, has_turn, has_room };
    let stands = |gates: Gates, head, due| match gates.state(&terms(head), at(due), Why::Enqueued, at(NOW)) {
        State::Blocked { on, .. } => Some(on),
        State::Waiting { .. } => None,
        state @ (State::Running { .. } | State::Finished { .. }) => panic!("{state:?}"),
    };
    for head in [Head::Block, Head::StepAside] {
        assert_eq!(stands(gates(false, false, false), head, NOW), Some(Block::Jobs));
        assert_eq!(stands(gates(true, false, false), head, NOW), Some(Block::Order));
        assert_eq!(stands(gates(true, true, false), head, NOW), Some(Block::Limit));
        assert_eq!(stands(gates(true, true, true), head, NOW), None);
        assert_eq!(stands(gates(true, true, false), head, NOW + 1), None, "a limit is for what is due");
    }
    assert_eq!(stands(gates(true, false, true), Head::Block, NOW + 1), Some(Block::Order));
    assert_eq!(stands(gates(true, false, true), Head::StepAside, NOW + 1), None);
}

#[test]
fn a_job_that_waits_for_others_names_them() {
    let standing = Standing { after: vec![id(1), id(2)], ..blocked(Block::Jobs) };
    let words = format!("it waits for {}, {} to end", id(1), id(2));
    assert_eq!(told(&standing), words);
    assert_eq!(told(&Standing { after: vec![], ..standing }), "it is next in line");
}

#[test]
fn a_job_that_will_be_cancelled_for_another_says_so() {
    let standing = Standing { spoiled_by: Some(id(1)), ..blocked(Block::Jobs) };
    let words =
        format!("job {}, which it depends on, did not succeed; the next maintenance turn cancels it", id(1));
    assert_eq!(told(&standing), words);
}

#[test]
fn a_job_without_the_turn_names_who_has_it() {
    let turn = |of, ahead| Standing { turn: Some(Ordered { of, ahead }), ..blocked(Block::Order) };
    let words = format!(
        "it waits for job {} with the same ordering key cart-7; 3 jobs in total are ahead of it",
        id(9)
    );
    assert_eq!(told(&turn(Some(id(9)), 3)), words);
    assert_eq!(told(&turn(None, 2)), "2 jobs with the same ordering key cart-7 are ahead of it");
    assert_eq!(told(&turn(None, 0)), "it is next in line", "nobody else can take it");
    assert_eq!(told(&turn(Some(waiting().id), 0)), "it is next in line");
}

#[test]
fn a_job_without_room_says_what_takes_it() {
    let limited = |meter: Meter, ahead| {
        let limit = Limited { meter, running: vec![id(1), id(2)], ahead };
        Standing { limit: Some(limit), ..blocked(Block::Limit) }
    };
    let full = Meter::new(Limit::of(2)).started(2, at(NOW));
    let words = format!("its limit smtp allows 2 running jobs, and 2 are running: {}, {}", id(1), id(2));
    assert_eq!(told(&limited(full, 0)), words);
    let rate = Some(Rate::new(1, SECOND));
    let spent = Meter::new(Limit { most: None, rate }).started(1, at(NOW));
    assert_eq!(
        told(&limited(spent, 0)),
        format!("its limit smtp allows the next start at {}", at(NOW).after(SECOND))
    );
    let half = Meter::new(Limit::of(2)).started(1, at(NOW));
    assert_eq!(told(&limited(half, 4)), "its limit smtp has room, but 4 jobs are ahead of it");
    assert_eq!(told(&limited(half, 0)), "it is next in line");
}

#[test]
fn a_job_in_a_full_queue_says_that_it_is_the_queue() {
    let queue = Meter::new(Limit::of(1)).started(1, at(NOW));
    let job = Job { state: State::Waiting { due: at(NOW), why: Why::Enqueued }, ..waiting() };
    let standing = Standing { queue, job, ..blocked(Block::Limit) };
    assert_eq!(told(&standing), "the limit of its queue allows one running job, and one is running");
}

#[test]
fn a_job_that_waited_goes_on_or_is_cancelled_as_it_said() {
    let after = |if_failed| AfterJobs { jobs: vec![id(1)], if_failed };
    for end in [Some(End::Succeeded), Some(End::Failed), Some(End::Cancelled), None] {
        assert_eq!(after(IfFailed::Run).noticed(id(1), end, at(NOW)), Noticed::Ended);
    }
    assert_eq!(after(IfFailed::Cancel).noticed(id(1), Some(End::Succeeded), at(NOW)), Noticed::Ended);
    for (end, fate) in
        [(Some(End::Failed), "failed"), (Some(End::Cancelled), "was cancelled"), (None, "was deleted")]
    {
        let Noticed::Cancels(request) = after(IfFailed::Cancel).noticed(id(1), end, at(NOW)) else {
            panic!("{end:?} is no success")
        };
        let Cancel::Ends(transition) = Cancel::decide(&blocked(Block::Jobs).job, request) else {
            panic!("a blocked job ends at once")
        };
        let failure = transition.failure.expect("it says why");
        let words = format!("job {}, which it depends on, {fate}", id(1));
        assert_eq!((failure.cause, failure.message), (Cause::Cancelled, words));
        assert_eq!(transition.state, State::Finished { at: at(NOW), end: End::Cancelled });
    }
}

#[test]
fn each_key_has_one_job_a_round_and_none_joins_a_round_that_has_passed() {
    assert_eq!([round_of(None, 7), round_of(Some(7), 7), round_of(Some(9), 7)], [7, 8, 10]);
    assert_eq!(round_of(Some(3), 7), 7, "who was away takes no rounds with it");
}
