//! What those are told who are not asked for as they expect, and what nobody is told of.

use super::*;

/// Two requests were under way at once, and the later one was read and answered first.
#[test]
fn answers_that_overtake_each_other_are_no_step_of_the_clock() {
    let mut desk = Desk::new();
    desk.held(1, "x");
    desk.pass(secs(5.6));
    let (slow, _) = desk.sent.remove(0);
    desk.ask(2, "y", false);
    let (quick, _) = desk.sent.remove(0);
    desk.pass(secs(2.4));
    let granted = LeaseOutcome::Granted { fence: Fence::from_number(1), until: desk.until() };
    desk.put(Input::Answered(quick, Ok(vec![granted])));
    // It was read two seconds before the other, whose answer came first.
    let until = Some(desk.now().time.after(TTL).before(secs(2.0)));
    let news = desk.put(Input::Answered(slow, Ok(vec![LeaseOutcome::Renewed { until }])));
    assert!(matches!(news[..], [Output::Renewed { number: 1, .. }]), "{news:?}");
}

/// Who waits for what this program holds under the same id is not even asked for. The store is not away.
#[test]
fn whoever_waits_behind_its_own_program_under_one_id_is_told_who_has_it() {
    let mut desk = Desk::new();
    desk.held(1, "x");
    let until = Some(desk.now().moment.after(secs(3.0)));
    let ask = Ask { id: LeaseId::new([1, 0]), until, ..wanted(2, "x", true) };
    desk.put(Input::Ask(2, Box::new(ask)));
    assert!(desk.sent.is_empty());
    let news = desk.pass(secs(3.0));
    assert!(
        matches!(&news[..], [Output::Over { number: 2, last: Some(Ok(LeaseRefusal::Held { .. })) }]),
        "{news:?}"
    );
}
