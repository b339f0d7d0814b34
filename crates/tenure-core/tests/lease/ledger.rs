//! The ledger as one lease writes it.

use tenure_core::{
    Fence, Holder, Holding, Late, Lease, LeaseAct, LedgerNote, Phase, Timestamp, What, holding, holdings,
    limits,
};

use crate::lease::given::*;

fn notes(lease: &Lease, act: &LeaseAct) -> Vec<LedgerNote> {
    stepped(Some(lease), act, at(NOW)).notes
}

fn whats(notes: &[LedgerNote]) -> Vec<What> {
    notes.iter().map(|note| note.what).collect()
}

#[test]
fn what_is_written_down_of_each_wish() {
    use What::{Acquired, Broke, Changed, Forgotten, Lapsed, Refused, Released, RenewedLate, TookOver};
    let (held, breaking) = (held_until(NOW + 20), breaking_until(NOW + 20));
    let (lapsed, broken) = (held_until(NOW - 5), of_a(Phase::Broken));
    let (free, on_record) = (released(), of_a(Phase::Lapsed { at: at(NOW - 5) }));
    #[rustfmt::skip]
    let rows: Vec<(&Lease, LeaseAct, Vec<What>)> = vec![
        (&free,       acquire(B),                        vec![Acquired]),
        (&broken,     acquire(B),                        vec![TookOver]),
        (&lapsed,     acquire(B),                        vec![Lapsed, TookOver]),
        (&on_record,  acquire(B),                        vec![TookOver]),
        (&held,       acquire(A),                        vec![]),
        (&held,       acquire(B),                        vec![Refused]),
        (&breaking,   acquire(B),                        vec![Refused]),
        (&held,       renew(A, FENCE, Late::Counts),     vec![]),
        (&lapsed,     renew(A, FENCE, Late::Counts),     vec![RenewedLate]),
        (&lapsed,     renew(A, FENCE, Late::Refused),    vec![]),
        (&held,       renew(B, FENCE, Late::Counts),     vec![]),
        (&held,       change(A, FENCE, B),               vec![Changed]),
        (&held,       change(B, FENCE, A),               vec![]),
        (&held,       release(A, FENCE),                 vec![Released]),
        (&breaking,   release(A, FENCE),                 vec![Released]),
        (&broken,     release(A, FENCE),                 vec![]),
        (&lapsed,     release(A, FENCE),                 vec![Lapsed]),
        (&on_record,  release(A, FENCE),                 vec![]),
        (&held,       leave(A),                          vec![Released]),
        (&lapsed,     leave(A),                          vec![Lapsed]),
        (&held,       leave(B),                          vec![]),
        (&held,       break_within(None),                vec![Broke]),
        (&breaking,   break_within(Some(5)),             vec![Broke]),
        (&breaking,   break_within(None),                vec![]),
        (&broken,     break_within(None),                vec![]),
        (&lapsed,     break_within(None),                vec![Lapsed]),
        (&on_record,  break_within(None),                vec![]),
        (&free,       forget(),                          vec![Forgotten]),
        (&broken,     forget(),                          vec![Forgotten]),
        (&lapsed,     forget(),                          vec![Lapsed, Forgotten]),
        (&held,       forget(),                          vec![]),
    ];
    for (lease, act, expected) in rows {
        assert_eq!(whats(&notes(lease, &act)), expected, "{act:?} where it is {lease:?}");
    }
}

#[test]
fn whoever_removed_a_name_is_on_record() {
    let told = notes(&released(), &forget());
    assert_eq!((told[0].what, &told[0].by), (What::Forgotten, &Holder::named("ops")));
}

#[test]
fn a_lapse_is_told_at_the_instant_at_which_it_happened() {
    let lapse = LedgerNote {
        at: at(NOW - 5),
        name: name(),
        fence: FENCE,
        what: What::Lapsed,
        by: by(A),
        since: Some(at(900)),
        until: None,
        note: String::new(),
    };
    let lapsed = held_until(NOW - 5);
    for act in [acquire(B), release(A, FENCE), leave(A), break_within(None), forget()] {
        assert_eq!(notes(&lapsed, &act)[0], lapse, "{act:?}");
    }
    assert_eq!(lapsed.noticed(at(NOW)).map(|(_, note)| note), Some(lapse));
    for other in [held_until(NOW + 1), endless(), breaking_until(NOW), of_a(Phase::Broken), released()] {
        assert_eq!(other.noticed(at(NOW)), None);
    }
}

#[test]
fn words_that_come_from_outside_are_cut_and_freed_of_nul() {
    let long = "ø\0".repeat(10_000);
    let act = LeaseAct::Break { within: None, by: by(B), reason: long.clone() };
    let broke = notes(&endless(), &act).pop().expect("a note");
    assert!(broke.note.len() <= limits::NOTE_BYTES && !broke.note.contains('\0'), "{broke:?}");
    let mut lapsed = held_until(NOW);
    lapsed.held.as_mut().expect("it was held").by = Holder::named(&long);
    let took_over = notes(&lapsed, &acquire(B)).pop().expect("a note");
    assert!(took_over.note.len() <= limits::NOTE_BYTES && !took_over.note.contains('\0'));
}

fn note(what: What, second: u64, fence: Fence, until: Option<Timestamp>) -> LedgerNote {
    LedgerNote {
        at: at(second),
        name: name(),
        fence,
        what,
        by: by(A),
        since: None,
        until,
        note: String::new(),
    }
}

fn held(number: u64, from: u64, to: Option<u64>, end: Option<What>) -> Holding {
    Holding { name: name(), fence: fence(number), by: by(A), from: at(from), to: to.map(at), end }
}

#[test]
fn a_holding_ends_with_the_last_note_that_ends_it() {
    let began = note(What::Acquired, 1, fence(1), Some(at(31)));
    assert_eq!(holding(&began, None), held(1, 1, None, None));
    let released = note(What::Released, 9, fence(1), None);
    assert_eq!(holding(&began, Some(&released)), held(1, 1, Some(9), Some(What::Released)));
    // It was told at once that it would end, and ended when that was over.
    let broke = note(What::Broke, 5, fence(1), Some(at(25)));
    assert_eq!(holding(&began, Some(&broke)), held(1, 1, Some(25), Some(What::Broke)));
    let told = holdings([&began, &broke, &released]);
    assert_eq!(told, [held(1, 1, Some(9), Some(What::Released))], "it was given back sooner");
}

#[test]
fn holdings_are_told_of_many_names_and_without_what_has_no_beginning() {
    let other =
        |note: LedgerNote| LedgerNote { name: tenure_core::LeaseName::new("other").expect("a name"), ..note };
    let notes = [
        note(What::Released, 1, fence(1), None),
        note(What::Acquired, 2, fence(2), Some(at(32))),
        other(note(What::Acquired, 3, fence(2), None)),
        note(What::Refused, 4, fence(2), None),
        note(What::Lapsed, 32, fence(2), None),
        note(What::RenewedLate, 40, fence(2), Some(at(70))),
        note(What::Changed, 41, fence(2), Some(at(70))),
        note(What::Lapsed, 70, fence(2), None),
        note(What::TookOver, 80, fence(3), None),
        note(What::Forgotten, 90, fence(3), None),
    ];
    let mut others = held(2, 3, None, None);
    others.name = tenure_core::LeaseName::new("other").expect("a name");
    let expected = [held(2, 2, Some(70), Some(What::Lapsed)), others, held(3, 80, None, None)];
    assert_eq!(holdings(&notes), expected);
}

#[test]
fn each_word_of_the_ledger_is_written_as_it_is_told() {
    for what in What::ALL {
        assert_eq!(serde_json::to_value(what).expect("a word"), what.as_str());
    }
    let begins: Vec<What> = What::ALL.into_iter().filter(|what| what.begins()).collect();
    let ends: Vec<What> = What::ALL.into_iter().filter(|what| what.ends()).collect();
    assert_eq!(begins, [What::Acquired, What::TookOver]);
    assert_eq!(ends, [What::Broke, What::Lapsed, What::Released]);
}
