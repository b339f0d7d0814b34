//! Wanting a lease, waiting for it, and not wanting it any more.

use super::*;

#[test]
fn what_is_asked_for_meanwhile_goes_with_the_next_request() {
    let mut desk = Desk::new();
    for number in 1..=10 {
        desk.ask(number, &format!("lease-{number}"), false);
    }
    let sizes: Vec<usize> = desk.sent.iter().map(|(_, wishes)| wishes.len()).collect();
    assert_eq!(sizes, [1, 1, 1, 1], "no more are under way at once");
    assert_eq!(desk.agree().len(), 4);
    assert_eq!(desk.sent.iter().map(|(_, wishes)| wishes.len()).collect::<Vec<_>>(), [6]);
    assert_eq!(desk.agree().len(), 6);
    assert_eq!(desk.book.tally().held, 10);
}

#[test]
fn whoever_goes_while_it_is_granted_gives_it_back_under_its_fence() {
    let mut desk = Desk::new();
    desk.ask(1, "x", true);
    assert_eq!(desk.put(Input::Abandon(1)), []);
    assert_eq!(desk.acts().len(), 1, "the answer is waited for");
    desk.agree();
    let id = LeaseId::new([1, 0]);
    assert_eq!(desk.acts(), [&LeaseAct::Release { id, fence: Fence::from_number(1) }]);
    desk.agree();
    assert!(desk.book.is_empty());
}

#[test]
fn whoever_goes_without_an_answer_gives_up_whatever_came_of_it() {
    let mut desk = Desk::new();
    desk.ask(1, "x", false);
    let (request, _) = desk.sent.pop().unwrap();
    desk.put(Input::Answered(request, Err(Fault::Unknown("a lost reply".into()))));
    desk.put(Input::Abandon(1));
    desk.pass(secs(0.1));
    assert_eq!(desk.acts(), [&LeaseAct::Leave { id: LeaseId::new([1, 0]) }]);
    desk.agree();
    assert!(desk.book.is_empty());
}

#[test]
fn whoever_goes_before_anything_was_asked_leaves_no_trace() {
    let mut desk = Desk::new();
    desk.book.step(desk.now(), Input::Ask(1, Box::new(wanted(1, "x", true))));
    assert_eq!(desk.put(Input::Abandon(1)), []);
    assert!(desk.book.is_empty() && desk.sent.is_empty());
}

/// T003: the same id, so that one grant in total comes of it.
#[test]
fn an_acquisition_whose_reply_was_lost_is_asked_again_under_the_same_id() {
    let mut desk = Desk::new();
    desk.ask(1, "x", false);
    let (request, first) = desk.sent.pop().unwrap();
    desk.put(Input::Answered(request, Err(Fault::Unknown("a lost reply".into()))));
    desk.pass(secs(0.1));
    assert_eq!(desk.sent[0].1, first);
    assert!(matches!(desk.agree()[..], [Output::Granted { number: 1, .. }]));
}

#[test]
fn a_grant_that_comes_too_late_to_be_waited_for_counts_while_it_can_be_believed() {
    let mut desk = Desk::new();
    desk.ask(1, "x", true);
    desk.pass(secs(5.1));
    assert_eq!(desk.sent.len(), 2, "it is asked for again");
    let (first, _) = desk.sent.remove(0);
    let (granted, until) = (Fence::from_number(1), desk.until());
    let grant = || Ok(vec![LeaseOutcome::Granted { fence: granted, until }]);
    let news = desk.put(Input::Answered(first, grant()));
    let [Output::Granted { deadline: Some(deadline), .. }] = news[..] else { panic!("{news:?}") };
    assert_eq!(deadline, Moment::from_start(secs(12.5)), "it counts from when it was sent");
    let (second, _) = desk.sent.remove(0);
    assert_eq!(desk.put(Input::Answered(second, grant())), []);
    assert_eq!((desk.book.tally().held, desk.book.tally().waiting), (1, 0));

    let mut desk = Desk::new();
    desk.ask(1, "x", true);
    desk.pass(secs(12.6));
    let (first, _) = desk.sent.remove(0);
    assert_eq!(desk.put(Input::Answered(first, grant())), []);
}

/// A desk at which lease 1 is held by a late grant, while it is asked for a second time.
fn asked_twice() -> (Desk, u64) {
    let mut desk = Desk::new();
    desk.ask(1, "x", true);
    desk.pass(secs(5.1));
    let [(first, _), (second, _)] = desk.sent[..] else { panic!("it is asked for again: {:?}", desk.sent) };
    desk.sent.clear();
    let news = desk.put(Input::Answered(first, Ok(vec![granted(&desk, 1)])));
    assert!(matches!(news[..], [Output::Granted { .. }]), "{news:?}");
    (desk, second)
}

fn granted(desk: &Desk, fence: u64) -> LeaseOutcome {
    LeaseOutcome::Granted { fence: Fence::from_number(fence), until: desk.until() }
}

/// T025: it is given back when it is let go of, and once more when nothing is under way that could have brought
/// it back.
#[test]
fn what_is_given_back_while_it_is_asked_for_is_given_back_again() {
    let (release, leave) = (
        LeaseAct::Release { id: LeaseId::new([1, 0]), fence: Fence::from_number(1) },
        LeaseAct::Leave { id: LeaseId::new([1, 0]) },
    );
    // The store takes the second request after the first release: it is granted to nobody.
    let (mut desk, second) = asked_twice();
    desk.put(Input::LetGo(1));
    assert_eq!(desk.acts(), [&release], "others need not wait for the answer");
    assert_eq!(desk.agree(), [], "nobody knows yet whether it is free");
    assert_eq!(desk.put(Input::Answered(second, Ok(vec![granted(&desk, 2)]))), []);
    assert_eq!(desk.acts(), [&leave]);
    assert_eq!(desk.agree(), [Output::Gone { number: 1, end: Gone::Free }]);
    assert!(desk.book.is_empty());

    // Nobody ever hears what came of the second request.
    let (mut desk, second) = asked_twice();
    desk.put(Input::LetGo(1));
    desk.put(Input::Answered(second, Err(Fault::Unknown("no answer".into()))));
    assert_eq!(desk.agree(), []);
    assert_eq!(desk.acts(), [&leave]);
    assert_eq!(desk.agree(), [Output::Gone { number: 1, end: Gone::Free }]);

    // An answer to the first release that comes after the second one was sent is not the second one's.
    let (mut desk, second) = asked_twice();
    desk.put(Input::LetGo(1));
    let (slow, _) = desk.sent.remove(0);
    desk.put(Input::Answered(second, Ok(vec![granted(&desk, 1)])));
    desk.pass(secs(2.6));
    assert_eq!(desk.put(Input::Answered(slow, Ok(vec![LeaseOutcome::Released]))), []);
    assert_eq!(desk.acts(), [&release]);
    assert_eq!(desk.agree(), [Output::Gone { number: 1, end: Gone::Free }]);
    assert!(desk.book.is_empty());
}

/// T025: what was lost is not given back. What may have been granted to nobody after that is.
#[test]
fn what_was_lost_while_it_was_asked_for_again_is_given_back() {
    for heard in [true, false] {
        let (mut desk, second) = asked_twice();
        desk.put(Input::Lost(1, Loss::Expired { at: desk.now().time }));
        if heard {
            desk.put(Input::Answered(second, Ok(vec![granted(&desk, 2)])));
        }
        desk.put(Input::LetGo(1));
        assert_eq!(desk.acts(), [&LeaseAct::Leave { id: LeaseId::new([1, 0]) }]);
        desk.agree();
        if !heard {
            desk.put(Input::Answered(second, Ok(vec![granted(&desk, 2)])));
            desk.agree();
        }
        assert!(desk.book.is_empty(), "{heard}: {:?}", desk.book);
    }
}

/// The store grants another fence to an id only when it held nothing any more: what was believed is over.
#[test]
fn a_second_grant_under_another_fence_is_a_loss_and_one_under_the_same_is_nothing() {
    let (mut desk, second) = asked_twice();
    assert_eq!(desk.put(Input::Answered(second, Ok(vec![granted(&desk, 1)]))), []);
    assert_eq!(desk.book.tally().held, 1);

    let (mut desk, second) = asked_twice();
    let fence = Fence::from_number(2);
    let news = desk.put(Input::Answered(second, Ok(vec![granted(&desk, 2)])));
    assert_eq!(news, [Output::Lost { number: 1, loss: Loss::TakenAway { fence } }]);
    desk.put(Input::LetGo(1));
    assert_eq!(desk.acts(), [&LeaseAct::Leave { id: LeaseId::new([1, 0]) }]);
}

/// A holder that was stopped while it had locked the file goes on when the turns of all who wait are over, none
/// of whom could ask.
#[test]
fn whoever_was_too_late_leaves_the_lease_for_a_moment_to_those_who_wait() {
    let mut desk = Desk::new();
    desk.held(1, "x");
    desk.held(2, "y");
    desk.put(Input::Lost(1, Loss::Expired { at: desk.now().time }));
    desk.put(Input::Lost(2, Loss::Broken));
    desk.put(Input::LetGo(1));
    for (number, waits) in [(3, true), (4, false)] {
        desk.ask(number, "x", waits);
    }
    desk.ask(5, "y", true);
    assert_eq!(
        desk.acts().len(),
        2,
        "who does not wait is not kept waiting, and what is broken was not late"
    );
    desk.agree();
    desk.put(Input::Freed);
    desk.pass(secs(0.4));
    assert_eq!(desk.acts().len(), 0);
    desk.pass(secs(0.2));
    assert_eq!(desk.acts().len(), 1);

    // It is let go of, and wanted again, before anything else has noticed that it was lost.
    let mut desk = Desk::new();
    desk.held(1, "x");
    desk.at += secs(14.0);
    desk.book.step(desk.now(), Input::LetGo(1));
    desk.ask(2, "x", true);
    assert_eq!(desk.acts().len(), 1, "it is given back and not wanted yet: {:?}", desk.acts());
}

/// Between a tick and the question when the next one is due time passes: what could not go at the tick may go.
#[test]
fn a_look_that_may_go_since_a_moment_is_not_slept_over() {
    let mut desk = Desk::new();
    desk.ask(1, "x", true);
    for _ in 0..5 {
        let refusal = held_by_another(&desk);
        desk.answer(|_| refusal.clone());
        desk.put(Input::Freed);
    }
    assert!(desk.sent.is_empty(), "looks are paced: {:?}", desk.sent);
    let asked_at = desk.now().moment.after(secs(1.0));
    let wakes = desk.book.wakes(asked_at);
    assert!(wakes.is_some_and(|wakes| wakes <= asked_at), "{wakes:?}");
}

#[test]
fn what_was_broken_while_the_keeper_slept_in_is_not_slept_over() {
    let mut desk = Desk::new();
    desk.held(1, "x");
    desk.put(Input::Broken);
    desk.put(Input::Broken);
    let asked_at = desk.now().moment.after(secs(1.0));
    assert!(desk.book.wakes(asked_at).is_some_and(|wakes| wakes <= asked_at));
}

/// The store read the look before the lease became free, and called that out before it answered.
#[test]
fn a_lease_that_becomes_free_while_it_is_looked_at_is_looked_at_again() {
    let mut desk = Desk::new();
    desk.ask(1, "x", true);
    desk.put(Input::Freed);
    let refusal = held_by_another(&desk);
    desk.answer(|_| refusal.clone());
    desk.pass(Duration::from_millis(1));
    assert_eq!(desk.acts().len(), 1);
}

#[test]
fn who_does_not_wait_is_told_of_a_fault_and_not_that_it_is_held() {
    let mut desk = Desk::new();
    desk.ask(1, "x", false);
    let (request, _) = desk.sent.pop().unwrap();
    let fault = Fault::Unavailable("down".into());
    let news = desk.put(Input::Answered(request, Err(fault.clone())));
    assert_eq!(news, [Output::Failed { number: 1, fault }]);
    assert!(desk.book.is_empty() && desk.sent.is_empty());
}

#[test]
fn what_is_given_back_goes_to_the_next_in_line_with_the_same_request() {
    let mut desk = Desk::new();
    desk.held(1, "x");
    for number in [2, 3] {
        desk.ask(number, "x", true);
        let refusal = held_by_another(&desk);
        desk.answer(|_| refusal.clone());
    }
    desk.put(Input::LetGo(1));
    let kinds: Vec<_> = desk.acts().into_iter().map(std::mem::discriminant).collect();
    let (release, acquire) = (
        LeaseAct::Release { id: LeaseId::new([1, 0]), fence: Fence::NONE },
        LeaseAct::Acquire { id: LeaseId::new([2, 0]), by: Holder::default(), ttl: Ttl::Endless, wait: None },
    );
    assert_eq!(kinds, [std::mem::discriminant(&release), std::mem::discriminant(&acquire)]);
    let news = desk.agree();
    assert!(news.iter().any(|output| matches!(output, Output::Granted { number: 2, .. })), "{news:?}");
}

#[test]
fn however_many_wait_and_whatever_is_called_out_looks_go_once_a_second() {
    let mut desk = Desk::new();
    for number in 1..=1_000 {
        desk.book
            .step(desk.now(), Input::Ask(number, Box::new(wanted(number, &format!("lease-{number}"), true))));
    }
    desk.put(Input::Tick);
    let refusal = held_by_another(&desk);
    desk.answer(|_| refusal.clone());
    let mut requests = 0;
    for _ in 0..6_000 {
        desk.put(Input::Freed);
        desk.pass(Duration::from_millis(10));
        requests += desk.sent.len();
        let refusal = held_by_another(&desk);
        desk.answer(|_| refusal.clone());
    }
    assert!((60..=64).contains(&requests), "{requests} in a minute");
    assert_eq!(desk.book.tally().waiting, 1_000);
}

#[test]
fn when_a_lease_lapses_only_the_first_in_line_of_this_program_asks() {
    let mut desk = Desk::new();
    for number in 1..=100 {
        desk.ask(number, "x", true);
    }
    let until = Some(desk.now().time.after(secs(3.0)));
    let refusal = LeaseRefusal::Held {
        by: Holder::default(),
        fence: Fence::from_number(1),
        since: Timestamp::EPOCH,
        until,
        waiting: 0,
    };
    while !desk.sent.is_empty() {
        desk.answer(|_| LeaseOutcome::Refused(refusal.clone()));
    }
    desk.pass(secs(2.9));
    assert!(desk.sent.is_empty(), "there is nothing to ask before");
    desk.pass(secs(0.4));
    assert_eq!(desk.acts().len(), 1);
}

#[test]
fn a_wait_is_over_on_time_even_if_nothing_is_answered() {
    let mut desk = Desk::new();
    let until = Some(desk.now().moment.after(secs(2.0)));
    desk.put(Input::Ask(1, Box::new(Ask { until, ..wanted(1, "x", true) })));
    assert_eq!(desk.pass(secs(1.9)), []);
    assert_eq!(desk.pass(secs(0.1)), [Output::Over { number: 1, last: None }]);
}

/// T016: under the same id, too: not before the work under the lost one has ended.
#[test]
fn an_id_is_used_by_one_at_a_time() {
    let mut desk = Desk::new();
    desk.held(1, "x");
    let same = |number, waits| {
        Input::Ask(number, Box::new(Ask { id: LeaseId::new([1, 0]), ..wanted(number, "x", waits) }))
    };
    let news = desk.put(same(2, false));
    assert!(
        matches!(news[..], [Output::Refused { number: 2, refusal: LeaseRefusal::Held { .. } }]),
        "{news:?}"
    );
    desk.put(Input::Lost(1, Loss::Broken));
    let news = desk.put(same(4, false));
    assert!(matches!(news[..], [Output::Refused { number: 4, .. }]), "its work may still run: {news:?}");
    desk.put(same(3, true));
    assert!(desk.sent.is_empty());
    desk.put(Input::LetGo(1));
    assert_eq!(desk.acts(), [&LeaseAct::Release { id: LeaseId::new([1, 0]), fence: Fence::from_number(1) }]);
    let until = desk.until();
    let news = desk.answer(|wish| agree(wish, until));
    assert!(matches!(news[..], [Output::Gone { number: 1, end: Gone::Free }]), "{news:?}");
    assert!(matches!(desk.acts()[..], [LeaseAct::Acquire { .. }]));
    assert!(matches!(desk.agree()[..], [Output::Granted { number: 3, .. }]));
}

#[test]
fn a_book_takes_only_so_many() {
    let mut desk = Desk::new();
    for number in 1..=limits::HELD_LEASES as u64 {
        desk.book.step(desk.now(), Input::Ask(number, Box::new(wanted(number, &format!("{number}"), true))));
    }
    assert_eq!(desk.ask(0, "one too many", false), [Output::Full { number: 0 }]);
}
