//! T001: every cell of both tables.
//!
//! A is whoever has or had the lease, B and C are others. Each column stands for all the ways in which a
//! lease may have come there, among them that its time is over at this very instant.

use tenure_core::{
    Access, Fence, Late, Lease, LeaseAct, LeaseOutcome, LeaseRefusal, LeaseState, Phase, Unfit, may_use,
};

use crate::lease::given::*;

const COLUMNS: [LeaseState; 5] =
    [LeaseState::Free, LeaseState::Held, LeaseState::Breaking, LeaseState::Broken, LeaseState::Lapsed];

/// Every way to stand in a column.
fn column(state: LeaseState) -> Vec<Option<Lease>> {
    let forgotten = Lease { forgotten: true, ..released() };
    let leases = match state {
        LeaseState::Free => return vec![None, Some(released()), Some(forgotten)],
        LeaseState::Held => vec![held_until(NOW + 20), held_until(NOW + 1), endless()],
        LeaseState::Breaking => vec![breaking_until(NOW + 20), breaking_until(NOW + 1)],
        LeaseState::Broken => vec![of_a(Phase::Broken), breaking_until(NOW), breaking_until(NOW - 5)],
        LeaseState::Lapsed => {
            vec![held_until(NOW), held_until(NOW - 5), of_a(Phase::Lapsed { at: at(NOW - 5) })]
        }
    };
    leases.into_iter().map(Some).collect()
}

#[test]
fn each_column_holds_leases_in_its_state() {
    for state in COLUMNS {
        for lease in column(state).into_iter().flatten() {
            assert_eq!(lease.state(at(NOW)), state, "{lease:?}");
        }
    }
}

/// What comes of a wish, in words: the answer, then how the lease stands, whose it is, and whether its
/// fence has grown. What is refused changes nothing.
fn cell(lease: Option<&Lease>, act: &LeaseAct) -> String {
    let now = at(NOW);
    let stepped = stepped(lease, act, now);
    let answer = answer_words(&stepped.outcome);
    if let LeaseOutcome::Refused(_) = stepped.outcome {
        assert_eq!(stepped.lease, None, "what is refused changes nothing: {act:?}");
        return format!("no: {answer}");
    }
    let was = lease.map_or(Fence::NONE, |lease| lease.fence);
    let Some(after) = stepped.lease.as_ref().or(lease) else { return format!("{answer}: nothing") };
    let owner = after.held.as_ref().map_or(' ', |held| (b'A' + held.id.as_bytes()[0] - 1) as char);
    let grown = if after.fence > was { " +1" } else { "" };
    assert!(after.fence == was || after.fence.number() == was.number() + 1);
    format!("{answer}: {} {owner}{grown}", after.state(now)).replace("  ", " ").trim_end().to_owned()
}

fn answer_words(outcome: &LeaseOutcome) -> &'static str {
    match outcome {
        LeaseOutcome::Granted { .. } => "granted",
        LeaseOutcome::Renewed { .. } => "renewed",
        LeaseOutcome::RenewedLate { .. } => "late",
        LeaseOutcome::Changed { .. } => "changed",
        LeaseOutcome::Released => "released",
        LeaseOutcome::Breaks { .. } => "breaks",
        LeaseOutcome::Left => "left",
        LeaseOutcome::Forgotten => "forgotten",
        LeaseOutcome::Refused(refusal) => match refusal {
            LeaseRefusal::Held { .. } => "held",
            LeaseRefusal::Breaking { .. } => "breaking",
            LeaseRefusal::Awaited { .. } => "awaited",
            LeaseRefusal::WrongId => "wrong id",
            LeaseRefusal::Lost { .. } => "lost",
            LeaseRefusal::Lapsed { .. } => "lapsed",
            LeaseRefusal::Broken => "broken",
            LeaseRefusal::NotHeld => "not held",
        },
    }
}

#[test]
fn every_cell_of_the_table_of_acts() {
    let (counts, refused) = (Late::Counts, Late::Refused);
    let none = "no: not held";
    let took_b = "granted: held B +1";
    let took_a = "granted: held A +1";
    #[rustfmt::skip]
    let rows = [
        // act                     free,          held,                breaking,               broken,              lapsed
        (acquire(A),               [took_a,       "granted: held A",   "no: breaking",         took_a,              took_a]),
        (acquire(B),               [took_b,       "no: held",          "no: breaking",         took_b,              took_b]),
        (queue_up(B, TTL),         [took_b,       "no: held",          "no: breaking",         took_b,              took_b]),
        (break_within(Some(0)),    [none,         "breaks: broken A",  "breaks: broken A",     "breaks: broken A",  "breaks: broken A"]),
        (change(A, FENCE, B),      [none,         "changed: held B",   "no: breaking",         "no: broken",        "no: lapsed"]),
        (change(B, FENCE, A),      [none,         "changed: held A",   "no: breaking",         "no: broken",        "no: lapsed"]),
        (change(B, FENCE, C),      [none,         "no: wrong id",      "no: wrong id",         "no: wrong id",      "no: wrong id"]),
        (renew(A, FENCE, counts),  [none,         "renewed: held A",   "no: breaking",         "no: broken",        "late: held A"]),
        (renew(A, FENCE, refused), [none,         "renewed: held A",   "no: breaking",         "no: broken",        "no: lapsed"]),
        (renew(B, FENCE, counts),  [none,         "no: wrong id",      "no: wrong id",         "no: wrong id",      "no: wrong id"]),
        (renew(A, fence(8), counts), [none,       "no: wrong id",      "no: wrong id",         "no: wrong id",      "no: wrong id"]),
        (release(A, FENCE),        [none,         "released: free",    "released: free",       "released: free",    "released: free"]),
        (release(B, FENCE),        [none,         "no: wrong id",      "no: wrong id",         "no: wrong id",      "no: wrong id"]),
        (leave(A),                 ["left: free", "left: free",        "left: free",           "left: free",        "left: free"]),
        (leave(B),                 ["left: free", "left: held A",      "left: breaking A",     "left: broken A",    "left: lapsed A"]),
        (forget(),                 ["forgotten: free", "no: held",     "no: breaking",         "forgotten: free",   "forgotten: free"]),
    ];
    for (act, cells) in rows {
        for (state, expected) in COLUMNS.into_iter().zip(cells) {
            for lease in column(state) {
                // A name that nobody held stays one, whatever is wished of it but to have it.
                let nothing = lease.is_none() && expected.ends_with(": free");
                let expected =
                    if nothing { expected.replace(": free", ": nothing") } else { expected.to_owned() };
                assert_eq!(cell(lease.as_ref(), &act), expected, "{act:?} where it is {state}: {lease:?}");
            }
        }
    }
}

/// A break with a period, or without: where it leads depends on what is left.
#[test]
fn every_cell_of_the_rows_of_breaks_with_a_period() {
    #[rustfmt::skip]
    let rows = [
        // lease,                  within,    answer and state,     free after
        (held_until(NOW + 20),     Some(5),   LeaseState::Breaking, 5),
        (held_until(NOW + 20),     Some(60),  LeaseState::Breaking, 20),
        (held_until(NOW + 20),     None,      LeaseState::Breaking, 20),
        (endless(),                Some(5),   LeaseState::Breaking, 5),
        (endless(),                Some(60),  LeaseState::Breaking, 60),
        (endless(),                None,      LeaseState::Broken,   0),
        (breaking_until(NOW + 20), Some(5),   LeaseState::Breaking, 5),
        (breaking_until(NOW + 20), Some(60),  LeaseState::Breaking, 20),
        (breaking_until(NOW + 20), None,      LeaseState::Breaking, 20),
        (of_a(Phase::Broken),      Some(5),   LeaseState::Broken,   0),
        (breaking_until(NOW),      Some(5),   LeaseState::Broken,   0),
        (held_until(NOW),          Some(5),   LeaseState::Broken,   0),
        (held_until(NOW),          None,      LeaseState::Broken,   0),
    ];
    for (lease, within, state, left) in rows {
        let stepped = stepped(Some(&lease), &break_within(within), at(NOW));
        let context = format!("within {within:?}: {lease:?}");
        assert_eq!(stepped.outcome, LeaseOutcome::Breaks { free: at(NOW + left) }, "{context}");
        let after = stepped.lease.unwrap_or(lease);
        assert_eq!(after.state(at(NOW)), state, "{context}");
        assert_eq!(after.fence, FENCE, "{context}");
        // "Time passes" of the origin's table.
        assert_eq!(after.state(at(NOW + left)), LeaseState::Broken, "{context}");
        if left > 0 {
            assert_eq!(after.state(at(NOW + left).before(std::time::Duration::from_micros(1))), state);
        }
    }
}

#[test]
fn every_cell_of_the_row_of_time() {
    let later = at(NOW + 100_000);
    #[rustfmt::skip]
    let rows = [
        (released(),                  LeaseState::Free),
        (held_until(NOW + 20),        LeaseState::Lapsed),
        (endless(),                   LeaseState::Held),
        (breaking_until(NOW + 20),    LeaseState::Broken),
        (of_a(Phase::Broken),         LeaseState::Broken),
        (held_until(NOW),             LeaseState::Lapsed),
        (of_a(Phase::Lapsed { at: at(NOW) }), LeaseState::Lapsed),
    ];
    for (lease, expected) in rows {
        assert_eq!(lease.state(later), expected, "{lease:?}");
    }
}

#[test]
fn every_cell_of_the_table_of_use() {
    let (a, b) = (Some((id(A), FENCE)), Some((id(B), FENCE)));
    let (old, future) = (Some((id(A), fence(6))), Some((id(A), fence(8))));
    let ok = Ok(());
    let (lost, mismatch, missing) = (Err(Unfit::Lost), Err(Unfit::Mismatch), Err(Unfit::Missing));
    #[rustfmt::skip]
    let rows = [
        // use           by       free, held,     breaking, broken, lapsed
        (Access::Write,  a,       [lost, ok,       ok,       lost,   lost]),
        (Access::Write,  b,       [lost, mismatch, mismatch, lost,   lost]),
        (Access::Write,  old,     [lost, mismatch, mismatch, lost,   lost]),
        (Access::Write,  future,  [lost, mismatch, mismatch, lost,   lost]),
        (Access::Write,  None,    [ok,   missing,  missing,  ok,     ok]),
        (Access::Read,   a,       [lost, ok,       ok,       lost,   lost]),
        (Access::Read,   b,       [lost, mismatch, mismatch, lost,   lost]),
        (Access::Read,   old,     [lost, mismatch, mismatch, lost,   lost]),
        (Access::Read,   None,    [ok,   ok,       ok,       ok,     ok]),
    ];
    for (access, claim, cells) in rows {
        for (state, expected) in COLUMNS.into_iter().zip(cells) {
            for lease in column(state) {
                let lease = lease.unwrap_or_else(|| Lease::fresh(name(), at(NOW)));
                let context = format!("{access:?} by {claim:?} where it is {state}: {lease:?}");
                assert_eq!(may_use(&lease, access, claim, at(NOW)), expected, "{context}");
            }
        }
    }
}

/// A write by nobody in particular makes what lapsed or was broken free for good.
#[test]
fn what_was_written_meanwhile_cannot_be_renewed_late() {
    for state in COLUMNS {
        for lease in column(state).into_iter().flatten() {
            let (touched, lapsed) = lease.clone().touched(at(NOW));
            let expected = match state {
                LeaseState::Broken | LeaseState::Lapsed => LeaseState::Free,
                LeaseState::Free | LeaseState::Held | LeaseState::Breaking => state,
            };
            assert_eq!(touched.state(at(NOW)), expected);
            assert_eq!(touched.fence, lease.fence);
            assert_eq!(lapsed.is_some(), lease.noticed(at(NOW)).is_some());
            let act = renew(A, FENCE, Late::Counts);
            let renewed = stepped(Some(&touched), &act, at(NOW)).outcome;
            if expected == LeaseState::Free {
                assert_eq!(renewed, LeaseOutcome::Refused(LeaseRefusal::NotHeld));
            }
        }
    }
}
