//! What settling promises.

use tenure_core::{
    AttemptEnd, Due, End, Head, Keep, OnConflict, Output, Reserved, Retention, Settlement, State, StateName,
    Terms, Verdict, Why, Window, limits,
};

use super::given::{
    Given, TTL, cancel_within, decide, failed, ids, minutes, output, retry, retry_at, seconds, trouble, want,
};
use super::keyed::{limited, ordered, shared};
use super::{Test, test};
use tenure_store::{Change, Reservation, Settled};

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(every_verdict_is_written_as_it_was_resolved),
        test(a_success_keeps_its_output),
        test(an_output_is_kept_byte_for_byte_up_to_the_limit),
        test(a_retry_waits_as_its_policy_says),
        test(the_last_attempt_is_not_retried),
        test(a_job_that_is_snoozed_spends_no_attempt),
        test(a_job_that_is_given_back_returns_to_its_old_place_in_line),
        test(the_last_failure_stays_on_record),
        test(an_ended_job_expires_as_its_terms_say),
        test(a_settlement_under_an_old_fence_is_refused_and_changes_nothing),
        test(a_settlement_after_a_sweep_is_refused_and_changes_nothing),
        test(a_settlement_of_a_job_that_others_finished_is_refused),
        test(a_settlement_repeated_is_told_so_and_changes_nothing),
        test(a_repeated_settlement_is_known_while_the_job_waits_again),
        test(a_repeated_settlement_is_fenced_once_the_job_was_granted_again),
        test(another_verdict_under_a_settled_fence_changes_nothing),
        test(a_settlement_of_a_deleted_job_finds_it_gone),
        test(a_lapsed_reservation_that_nobody_has_taken_may_still_be_settled),
        test(what_a_late_holder_tells_stands_although_the_same_turn_asks_for_more),
        test(settlements_are_answered_one_by_one_in_order),
        test(a_settlement_twice_in_one_call_is_written_once),
        test(of_many_successes_only_those_under_a_current_fence_count),
        test(settling_nothing_is_answered_with_nothing),
        test(a_turn_settles_first_and_then_reserves),
        test(a_turn_without_an_ask_reserves_nothing),
        test(a_job_whose_end_was_asked_for_does_not_wait_again),
        test(a_job_that_succeeds_although_its_end_was_asked_for_has_succeeded),
        test(a_handler_that_stops_as_asked_ends_its_job_as_cancelled),
        test(the_wish_to_cancel_goes_with_the_attempt),
    ]
}

/// The settlement as decided, and the job as the store has to keep it.
async fn settled(given: &Given, reserved: Reserved, verdict: Verdict) {
    let before = given.job(reserved.job().id).await;
    let settlement = decide(reserved, verdict);
    let asked = before.cancel.as_ref().map(|request| request.reason.clone());
    let transition = settlement.resolve(given.now(), asked.as_deref());
    let name = transition.state.name(given.now());
    let expected = before.after(transition);
    assert_eq!(given.write(settlement).await, Settled::Done(name));
    assert_eq!(given.job(expected.id).await, expected);
}

async fn every_verdict_is_written_as_it_was_resolved(given: Given) {
    let verdicts = [
        Verdict::Succeeded(None),
        Verdict::Succeeded(Some(output("{\"stars\":7}"))),
        failed(),
        retry(),
        retry_at(Due::Now),
        retry_at(Due::At(given.now().after(minutes(90)))),
        Verdict::Snoozed(Due::In(minutes(7))),
        Verdict::Released,
        Verdict::Cancelled(trouble("stopped")),
    ];
    for verdict in verdicts {
        let id = given.put(given.new_job("mail")).await;
        let reserved = given.reserve("mail", 9).await.into_iter().find(|r| r.job().id == id).unwrap();
        given.pass(seconds(3));
        settled(&given, reserved, verdict).await;
    }
}

async fn a_success_keeps_its_output(given: Given) {
    let reserved = given.running().await;
    let id = reserved.job().id;
    given.settle(reserved, Verdict::Succeeded(Some(output("{\"stars\":7}")))).await;
    assert_eq!(given.job(id).await.output, Some(output("{\"stars\":7}")));
}

async fn an_output_is_kept_byte_for_byte_up_to_the_limit(given: Given) {
    let outputs = [
        Output::default(),
        Output { value: vec![0, 255, b'"', b'\n'], place: None },
        Output::new([vec![b' '; limits::OUTPUT_BYTES - 1], vec![b'7']].concat(), Some("/ø".repeat(500)))
            .unwrap(),
    ];
    for output in outputs {
        // The end of a job with a unique key means more to a store than that of an ordinary one.
        for job in [given.new_job("mail"), given.only(1, Window::WhileUnfinished, OnConflict::Reject)] {
            let id = given.put(job).await;
            let reserved = given.take("mail").await;
            given.settle(reserved, Verdict::Succeeded(Some(output.clone()))).await;
            assert!(given.job(id).await.output.as_ref() == Some(&output), "{} bytes", output.value.len());
        }
    }
}

async fn a_retry_waits_as_its_policy_says(given: Given) {
    let id = given.put(given.with_attempts("mail", 3)).await;
    given.pass(seconds(5));
    let reserved = given.take("mail").await;
    given.pass(seconds(5));
    assert_eq!(given.settle(reserved, retry()).await, Settled::Done(StateName::Scheduled));
    let due = given.now().after(minutes(1));
    assert_eq!(given.job(id).await.state, State::Waiting { due, why: Why::Retry });
    given.pass(minutes(1));
    assert_eq!(given.take("mail").await.job().attempt, 2);
}

/// T092, T136
async fn the_last_attempt_is_not_retried(given: Given) {
    let id = given.put(given.with_attempts("mail", 2)).await;
    given.settle(given.take("mail").await, retry_at(Due::Now)).await;
    let settled = given.settle(given.take("mail").await, retry_at(Due::Now)).await;
    assert_eq!(settled, Settled::Done(StateName::Failed));
    let job = given.job(id).await;
    assert_eq!(job.state, State::Finished { at: given.now(), end: End::Failed });
    assert_eq!(job.failure, Some(trouble("try later")));
}

async fn a_job_that_is_snoozed_spends_no_attempt(given: Given) {
    let id = given.put(given.with_attempts("mail", 1)).await;
    for delivery in 1..=3 {
        let settled = given.settle(given.take("mail").await, Verdict::Snoozed(Due::In(minutes(1)))).await;
        assert_eq!(settled, Settled::Done(StateName::Scheduled));
        let job = given.job(id).await;
        assert_eq!((job.attempt, job.delivery), (0, delivery));
        given.pass(minutes(1));
    }
}

async fn a_job_that_is_given_back_returns_to_its_old_place_in_line(given: Given) {
    let first = given.running().await;
    let id = first.job().id;
    given.pass(seconds(5));
    let second = given.enqueue("mail", 1).await[0];
    given.release(first).await;
    assert_eq!(given.job(id).await.attempt, 0);
    assert_eq!(ids(&given.reserve("mail", 9).await), [id, second]);
}

async fn the_last_failure_stays_on_record(given: Given) {
    let id = given.put(given.new_job("mail")).await;
    given.settle(given.take("mail").await, retry_at(Due::Now)).await;
    given.succeed(given.take("mail").await).await;
    assert_eq!(given.job(id).await.failure, Some(trouble("try later")));
}

/// T144
async fn an_ended_job_expires_as_its_terms_say(given: Given) {
    const DAY: u64 = 24 * 3600;
    let keeps = [
        (Keep::For(seconds(0)), Some(0)),
        (Keep::For(seconds(400 * DAY)), Some(400 * DAY)),
        (Keep::Forever, None),
    ];
    for (keep, expected) in keeps {
        for (verdict, counts) in [(Verdict::Succeeded(None), true), (failed(), false)] {
            let other = Keep::For(seconds(7));
            let retention = match counts {
                true => Retention { succeeded: keep, failed: other },
                false => Retention { succeeded: other, failed: keep },
            };
            let id = given.put(given.on_terms("mail", Terms { retention, ..Terms::default() })).await;
            given.settle(given.take("mail").await, verdict).await;
            let expires = expected.map(|after| given.now().after(seconds(after)));
            assert_eq!(given.job(id).await.expires, expires);
        }
    }
}

/// T009, T095, T138, S8
async fn a_settlement_under_an_old_fence_is_refused_and_changes_nothing(given: Given) {
    for verdict in [Verdict::Succeeded(Some(output("1"))), failed(), retry(), Verdict::Released] {
        let slow = given.running().await;
        given.pass(TTL);
        let quick = given.take("mail").await;
        let id = quick.job().id;
        let (job, attempts) = (given.job(id).await, given.attempts(id).await);
        assert_eq!(given.settle(slow, verdict).await, Settled::Fenced);
        assert_eq!(given.job(id).await, job);
        assert_eq!(given.attempts(id).await, attempts);
        given.succeed(quick).await;
    }
}

async fn a_settlement_after_a_sweep_is_refused_and_changes_nothing(given: Given) {
    let slow = given.running().await;
    let id = slow.job().id;
    given.pass(TTL);
    given.tend().await;
    let job = given.job(id).await;
    assert_eq!(given.settle(slow, Verdict::Succeeded(None)).await, Settled::Fenced);
    assert_eq!(given.job(id).await, job);
}

/// T138: a zombie can change neither the state nor the expiry of what is complete.
async fn a_settlement_of_a_job_that_others_finished_is_refused(given: Given) {
    let slow = given.running().await;
    given.pass(TTL);
    let quick = given.take("mail").await;
    let id = quick.job().id;
    given.succeed(quick).await;
    let job = given.job(id).await;
    given.pass(minutes(1));
    assert_eq!(given.settle(slow, failed()).await, Settled::Fenced);
    assert_eq!(given.job(id).await, job);
    let outcomes: Vec<_> =
        given.attempts(id).await.iter().filter_map(|a| a.ended).map(|(_, how)| how).collect();
    assert_eq!(outcomes, [AttemptEnd::Lost, AttemptEnd::Succeeded], "one completion is on record");
}

async fn a_settlement_repeated_is_told_so_and_changes_nothing(given: Given) {
    for verdict in [Verdict::Succeeded(Some(output("1"))), failed(), Verdict::Cancelled(trouble("stopped"))] {
        let settlement = decide(given.running().await, verdict);
        given.write(settlement.clone()).await;
        let id = settlement.id();
        let (job, attempts) = (given.job(id).await, given.attempts(id).await);
        given.pass(seconds(1));
        assert_eq!(given.write(settlement.clone()).await, Settled::Repeated);
        assert_eq!(given.write(settlement).await, Settled::Repeated);
        assert_eq!(given.job(id).await, job);
        assert_eq!(given.attempts(id).await, attempts);
    }
}

async fn a_repeated_settlement_is_known_while_the_job_waits_again(given: Given) {
    let id = given.put(given.new_job("mail")).await;
    for verdict in [retry_at(Due::Now), Verdict::Snoozed(Due::Now), Verdict::Released] {
        let settlement = decide(given.take("mail").await, verdict);
        given.write(settlement.clone()).await;
        let job = given.job(id).await;
        assert_eq!(given.write(settlement).await, Settled::Repeated);
        assert_eq!(given.job(id).await, job);
    }
}

async fn a_repeated_settlement_is_fenced_once_the_job_was_granted_again(given: Given) {
    let settlement = decide(given.running().await, Verdict::Released);
    given.write(settlement.clone()).await;
    let next = given.take("mail").await;
    assert_eq!(given.write(settlement).await, Settled::Fenced);
    assert_eq!(given.job(next.job().id).await, *next.job());
}

async fn another_verdict_under_a_settled_fence_changes_nothing(given: Given) {
    let first = given.running().await;
    let (id, forged) = (first.job().id, Reserved::granted(first.job().clone()));
    given.fail(first).await;
    let job = given.job(id).await;
    assert_eq!(given.settle(forged, Verdict::Succeeded(None)).await, Settled::Repeated);
    assert_eq!(given.job(id).await, job, "what has ended stays as it ended");
}

/// T137
async fn a_settlement_of_a_deleted_job_finds_it_gone(given: Given) {
    let settlement = decide(given.running().await, Verdict::Succeeded(None));
    given.write(settlement.clone()).await;
    given.change(settlement.id(), Change::Delete).await;
    assert_eq!(given.write(settlement).await, Settled::Gone);
}

async fn a_lapsed_reservation_that_nobody_has_taken_may_still_be_settled(given: Given) {
    let late = given.running().await;
    given.pass(minutes(60));
    settled(&given, late, Verdict::Succeeded(None)).await;
    assert_eq!(given.reserve("mail", 9).await, []);
}

/// What is settled is settled before anything is taken from anybody, whatever ties the job to others.
async fn what_a_late_holder_tells_stands_although_the_same_turn_asks_for_more(given: Given) {
    for terms in [Terms::default(), limited(Some(1)), ordered(Head::Block), shared("acme")] {
        given.put(given.on_terms("mail", terms)).await;
        let late = given.take("mail").await;
        let id = late.job().id;
        given.pass(TTL);
        let ask = given.ask(vec![want("mail", 1)], 1);
        let turn = given.store.settle(vec![decide(late, Verdict::Succeeded(None))], Some(ask)).await.unwrap();
        assert_eq!(turn.settled, [Settled::Done(StateName::Succeeded)]);
        assert_eq!(turn.reservation.jobs, []);
        assert_eq!(given.state(id).await, StateName::Succeeded);
    }
}

async fn settlements_are_answered_one_by_one_in_order(given: Given) {
    let slow = given.running().await;
    given.pass(TTL);
    let quick = given.take("mail").await;
    let [second, third] = [given.running().await, given.running().await];
    let (second_id, third_id) = (second.job().id, third.job().id);
    let gone = decide(given.running().await, failed());
    given.write(gone.clone()).await;
    given.change(gone.id(), Change::Delete).await;
    let batch: Vec<Settlement> = vec![
        decide(second, Verdict::Succeeded(None)),
        decide(slow, failed()),
        gone,
        decide(quick, Verdict::Released),
        decide(third, failed()),
    ];
    let turn = given.store.settle(batch, None).await.unwrap();
    let answers = [
        Settled::Done(StateName::Succeeded),
        Settled::Fenced,
        Settled::Gone,
        Settled::Done(StateName::Queued),
        Settled::Done(StateName::Failed),
    ];
    assert_eq!(turn.settled, answers);
    assert_eq!(given.state(second_id).await, StateName::Succeeded);
    assert_eq!(given.state(third_id).await, StateName::Failed);
}

async fn a_settlement_twice_in_one_call_is_written_once(given: Given) {
    let settlement = decide(given.running().await, retry_at(Due::Now));
    let turn = given.store.settle(vec![settlement.clone(), settlement.clone()], None).await.unwrap();
    assert_eq!(turn.settled, [Settled::Done(StateName::Queued), Settled::Repeated]);
    assert_eq!(given.attempts(settlement.id()).await.len(), 1);
}

/// A store may write many successes with one statement.
async fn of_many_successes_only_those_under_a_current_fence_count(given: Given) {
    for over in [None, Some(0), Some(4), Some(11)] {
        given.enqueue("mail", 12).await;
        let reserved = given.reserve("mail", 12).await;
        let batch: Vec<Settlement> =
            reserved.into_iter().map(|reserved| decide(reserved, Verdict::Succeeded(None))).collect();
        let mut answers = vec![Settled::Done(StateName::Succeeded); 12];
        if let Some(over) = over {
            given.write(batch[over].clone()).await;
            answers[over] = Settled::Repeated;
        }
        let before = given.count("mail", StateName::Succeeded).await;
        let turn = given.store.settle(batch.clone(), None).await.unwrap();
        assert_eq!(turn.settled, answers);
        let new = if over.is_some() { 11 } else { 12 };
        assert_eq!(given.count("mail", StateName::Succeeded).await, before + new);
        assert_eq!(given.count("mail", StateName::Running).await, 0);
        for settlement in &batch {
            let job = given.job(settlement.id()).await;
            assert_eq!(job.state, State::Finished { at: given.now(), end: End::Succeeded });
            assert_eq!(job.expires, settlement.retention().expiry(End::Succeeded, given.now()));
        }
    }
}

async fn settling_nothing_is_answered_with_nothing(given: Given) {
    let turn = given.store.settle(vec![], None).await.unwrap();
    assert_eq!(turn.settled, []);
}

async fn a_turn_settles_first_and_then_reserves(given: Given) {
    let reserved = given.running().await;
    let (id, fence) = (reserved.job().id, reserved.fence());
    let ask = given.ask(vec![want("mail", 9)], 9);
    let turn = given.store.settle(vec![decide(reserved, retry_at(Due::Now))], Some(ask)).await.unwrap();
    assert_eq!(turn.settled, [Settled::Done(StateName::Queued)]);
    assert_eq!(ids(&turn.reservation.jobs), [id], "what was just given back can be had at once");
    assert!(turn.reservation.jobs[0].fence() > fence);
}

async fn a_turn_without_an_ask_reserves_nothing(given: Given) {
    let reserved = given.running().await;
    given.enqueue("mail", 1).await;
    let turn = given.store.settle(vec![decide(reserved, failed())], None).await.unwrap();
    assert_eq!(turn.reservation, Reservation::default());
    assert_eq!(given.count("mail", StateName::Queued).await, 1);
}

async fn a_job_whose_end_was_asked_for_does_not_wait_again(given: Given) {
    for verdict in [retry(), Verdict::Released, Verdict::Snoozed(Due::Now)] {
        let reserved = given.running().await;
        let id = reserved.job().id;
        given.change(id, cancel_within(minutes(1))).await;
        settled(&given, reserved, verdict).await;
        assert_eq!(given.state(id).await, StateName::Cancelled);
        assert_eq!(given.attempts(id).await[0].ended, Some((given.now(), AttemptEnd::Cancelled)));
    }
}

async fn a_job_that_succeeds_although_its_end_was_asked_for_has_succeeded(given: Given) {
    let reserved = given.running().await;
    given.change(reserved.job().id, cancel_within(minutes(1))).await;
    settled(&given, reserved, Verdict::Succeeded(Some(output("1")))).await;
}

/// T147
async fn a_handler_that_stops_as_asked_ends_its_job_as_cancelled(given: Given) {
    let reserved = given.running().await;
    let id = reserved.job().id;
    given.change(id, cancel_within(minutes(1))).await;
    settled(&given, reserved, Verdict::Cancelled(trouble("stopped half way"))).await;
    assert_eq!(given.job(id).await.failure, Some(trouble("stopped half way")));
}

async fn the_wish_to_cancel_goes_with_the_attempt(given: Given) {
    let reserved = given.running().await;
    let id = reserved.job().id;
    given.change(id, cancel_within(minutes(1))).await;
    given.settle(reserved, failed()).await;
    assert_eq!(given.job(id).await.cancel, None);
    given.change(id, Change::Redo).await;
    let again = given.take("mail").await;
    assert_eq!(given.settle(again, retry()).await, Settled::Done(StateName::Scheduled));
}
