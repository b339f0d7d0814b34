//! The gates before a job's line: every combination, and where it leads.

use crate::common::{NOW, at};
use tenure_core::{AfterJobs, Block, Gates, Head, IfFailed, Key, LimitKey, OrderingKey, State, Terms, Why};

fn key(text: &str) -> Key {
    Key::new("key", text).expect("a key")
}

fn ordered(head: Head) -> Terms {
    Terms { ordering: Some(OrderingKey { key: key("cart-7"), head }), ..Terms::default() }
}

#[test]
fn every_combination_of_gates_leads_somewhere() {
    use Block::{Jobs, Limit, Order};
    let (yes, no) = (true, false);
    #[rustfmt::skip]
    let rows = [
        // the others have ended, it has the turn, there is room:
        //             head blocks,             head steps aside
        //             due,         later,      due,         later
        (no,  no,  no,  [Some(Jobs),  Some(Jobs),  Some(Jobs),  Some(Jobs)]),
        (no,  no,  yes, [Some(Jobs),  Some(Jobs),  Some(Jobs),  Some(Jobs)]),
        (no,  yes, no,  [Some(Jobs),  Some(Jobs),  Some(Jobs),  Some(Jobs)]),
        (no,  yes, yes, [Some(Jobs),  Some(Jobs),  Some(Jobs),  Some(Jobs)]),
        (yes, no,  no,  [Some(Order), Some(Order), Some(Order), None]),
        (yes, no,  yes, [Some(Order), Some(Order), Some(Order), None]),
        (yes, yes, no,  [Some(Limit), None,        Some(Limit), None]),
        (yes, yes, yes, [None,        None,        None,        None]),
    ];
    for (jobs_ended, has_turn, has_room, expected) in rows {
        let gates = Gates { jobs_ended, has_turn, has_room };
        let cells =
            [(Head::Block, NOW), (Head::Block, NOW + 1), (Head::StepAside, NOW), (Head::StepAside, NOW + 1)];
        for ((head, due), on) in cells.into_iter().zip(expected) {
            for why in [Why::Enqueued, Why::Retry, Why::Snoozed, Why::Released, Why::Lost, Why::Asked] {
                let due = at(due);
                let expected = on.map_or(State::Waiting { due, why }, |on| State::Blocked { on, due, why });
                assert_eq!(gates.state(&ordered(head), due, why, at(NOW)), expected, "{gates:?} {head:?}");
            }
        }
    }
}

/// A job without an ordering key has the turn whenever it is asked for.
#[test]
fn open_gates_keep_nobody() {
    for terms in [Terms::default(), ordered(Head::Block), ordered(Head::StepAside)] {
        for due in [NOW - 5, NOW, NOW + 5] {
            let waiting = State::Waiting { due: at(due), why: Why::Enqueued };
            assert_eq!(Gates::OPEN.state(&terms, at(due), Why::Enqueued, at(NOW)), waiting);
        }
    }
}

#[test]
fn any_key_is_a_gate_and_no_other_term_is() {
    let plain = Terms { tags: crate::common::terms().tags, ..crate::common::terms() };
    assert!(!plain.are_gated() && !Terms::default().are_gated());
    let gated = [
        ordered(Head::Block),
        Terms { limit: Some(LimitKey { key: key("smtp"), most: None }), ..Terms::default() },
        Terms { share: Some(key("tenant-7")), ..Terms::default() },
        Terms {
            after: Some(AfterJobs { jobs: vec![crate::common::waiting().id], if_failed: IfFailed::Run }),
            ..Terms::default()
        },
    ];
    for terms in gated {
        assert!(terms.are_gated() && !terms.are_default(), "{terms:?}");
    }
}
