//! What the ledger promises: it tells who held what, from when to when, and how it ended.

use tenure_core::{Holder, Holding, LeaseAct, LedgerNote, Ttl, What, holdings, limits};

use super::given::{Given, TTL, host, minutes, seconds};
use super::wishes::{
    Mine, acquire, break_within, by, change_to, forget, granted, id, leave, name, notes, queue_up, release,
    renew, renew_late, wish,
};
use super::{Test, test};
use tenure_store::LedgerAsk;

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(it_tells_who_held_it_when_and_how_that_ended),
        test(each_note_tells_what_is_known),
        test(a_lapse_is_told_once_at_its_instant_by_whoever_notices_it),
        test(tending_notices_what_lapsed_in_the_order_of_the_instants),
        test(tending_notices_a_bounded_number_and_says_that_there_is_more),
        test(a_lapse_that_was_noticed_can_be_renewed_late),
        test(a_refusal_is_told_once_for_each_ownership_and_holder),
        test(what_changes_nothing_is_not_told),
        test(a_reason_is_cut_and_kept_without_nul),
        test(it_outlasts_the_name),
    ]
}

fn whats(notes: &[LedgerNote]) -> Vec<What> {
    notes.iter().map(|note| note.what).collect()
}

/// "Who held `billing-close` at 03:12?"
async fn it_tells_who_held_it_when_and_how_that_ended(given: Given) {
    let start = given.now();
    let at = |second| start.after(seconds(second));
    let one = given.hold("billing-close", 1).await;
    given.pass(seconds(20));
    given.wish("billing-close", renew(one)).await;
    given.pass(seconds(20));
    given.give_back("billing-close", one).await;
    given.pass(seconds(10));
    given.hold("billing-close", 2).await;
    given.pass(seconds(50));
    let three = given.hold("billing-close", 3).await;
    given.wish("billing-close", break_within(seconds(20))).await;
    given.pass(seconds(5));
    given.wish("billing-close", break_within(seconds(5))).await;
    given.pass(seconds(30));
    let four = given.hold_for("billing-close", 4, Ttl::Endless).await;
    given.wish("billing-close", break_within(minutes(1))).await;
    given.pass(seconds(5));
    given.give_back("billing-close", four).await;
    given.hold("billing-close", 5).await;
    let fence = |n: u64| tenure_core::Fence::from_number(one.fence.number() + n - 1);
    assert_eq!((three.fence, four.fence), (fence(3), fence(4)));
    let held = |n, from, to: Option<u64>, end| Holding {
        name: name("billing-close"),
        fence: fence(n),
        by: by(n),
        from: at(from),
        to: to.map(at),
        end,
    };
    let expected = [
        held(1, 0, Some(40), Some(What::Released)),
        held(2, 50, Some(80), Some(What::Lapsed)),
        held(3, 100, Some(110), Some(What::Broke)),
        held(4, 135, Some(140), Some(What::Released)),
        held(5, 140, None, None),
    ];
    assert_eq!(holdings(&given.notes("billing-close").await), expected);
}

async fn each_note_tells_what_is_known(given: Given) {
    let start = given.now();
    let holder = Holder { host: Some(host(7)), ..by(1) };
    let act = LeaseAct::Acquire { id: id(1), by: holder.clone(), ttl: Ttl::For(TTL), wait: None };
    let mine = Mine { id: id(1), fence: granted(&given.wish("x", act).await).unwrap() };
    given.pass(seconds(1));
    given.refusal("x", acquire(2)).await;
    given.wish("x", change_to(mine, 9)).await;
    let mine = Mine { id: id(9), ..mine };
    given.pass(TTL);
    let late = given.now();
    given.wish("x", renew_late(mine)).await;
    given.wish("x", break_within(seconds(5))).await;
    given.pass(seconds(5));
    let after = given.now();
    let next = given.hold("x", 2).await;
    given.give_back("x", next).await;
    given.wish("x", forget()).await;

    let end = start.after(TTL);
    let note = |what, at, fence, by: &Holder, since, until, note: &str| LedgerNote {
        at,
        name: name("x"),
        fence,
        what,
        by: by.clone(),
        since,
        until,
        note: note.to_owned(),
    };
    let first = mine.fence;
    let a_second = start.after(seconds(1));
    let expected = [
        note(What::Acquired, start, first, &holder, Some(start), Some(end), ""),
        note(What::Refused, a_second, first, &by(2), None, Some(end), ""),
        note(What::Changed, a_second, first, &holder, Some(start), Some(end), ""),
        note(
            What::RenewedLate,
            late,
            first,
            &holder,
            Some(start),
            Some(late.after(TTL)),
            &format!("it had lapsed at {end}"),
        ),
        note(What::Broke, late, first, &Holder::named("ops"), Some(start), Some(after), "it hangs"),
        note(What::TookOver, after, next.fence, &by(2), Some(after), Some(after.after(TTL)), "after web-1"),
        note(What::Released, after, next.fence, &by(2), Some(after), None, ""),
        note(What::Forgotten, after, next.fence, &Holder::named("ops"), None, None, ""),
    ];
    let told = given.notes("x").await;
    for (told, expected) in told.iter().zip(&expected) {
        assert_eq!(told, expected);
    }
    assert_eq!(told.len(), expected.len());
}

async fn a_lapse_is_told_once_at_its_instant_by_whoever_notices_it(given: Given) {
    let lapse = given.soon(TTL);
    let held: Vec<Mine> = [
        given.hold("taken", 1).await,
        given.hold("given-back", 1).await,
        given.hold("broken", 1).await,
        given.hold("forgotten", 1).await,
        given.hold("left", 1).await,
        given.hold("tended", 1).await,
    ]
    .to_vec();
    given.pass(TTL + minutes(1));
    assert_eq!(given.all_notes().await.len(), 6, "looking is not noticing");
    given.wish("taken", acquire(2)).await;
    given.give_back("given-back", held[1]).await;
    given.wish("broken", break_within(None)).await;
    given.wish("forgotten", forget()).await;
    given.wish("left", leave(1)).await;
    given.tend().await;
    given.tend().await;
    let rest = [
        ("taken", vec![What::TookOver]),
        ("given-back", vec![]),
        ("broken", vec![]),
        ("forgotten", vec![What::Forgotten]),
        ("left", vec![]),
        ("tended", vec![]),
    ];
    for (name, rest) in rest {
        let notes = given.notes(name).await;
        let expected: Vec<What> = [What::Acquired, What::Lapsed].into_iter().chain(rest).collect();
        assert_eq!(whats(&notes), expected, "{name}");
        assert_eq!((notes[1].at, &notes[1].by, notes[1].since), (lapse, &by(1), Some(notes[0].at)), "{name}");
    }
    // What was noticed is not told again by whoever comes next.
    given.hold("tended", 2).await;
    given.hold("broken", 2).await;
    assert_eq!(whats(&given.notes("tended").await), [What::Acquired, What::Lapsed, What::TookOver]);
    assert_eq!(whats(&given.notes("broken").await), [What::Acquired, What::Lapsed, What::TookOver]);
}

async fn tending_notices_what_lapsed_in_the_order_of_the_instants(given: Given) {
    for (name, ttl) in [("b", 30), ("c", 10), ("a", 30), ("d", 60), ("e", 20)] {
        given.hold_for(name, 1, Ttl::For(seconds(ttl))).await;
    }
    given.hold_for("endless", 1, Ttl::Endless).await;
    given.pass(seconds(30));
    given.tend().await;
    let lapsed: Vec<String> = given.all_notes().await[6..].iter().map(|note| note.name.to_string()).collect();
    assert_eq!(lapsed, ["c", "e", "a", "b"]);
}

async fn tending_notices_a_bounded_number_and_says_that_there_is_more(given: Given) {
    let many = limits::SWEEP_ROWS + 1;
    given.wishes((0..many).map(|n| wish(&format!("x-{n:05}"), acquire(1))).collect()).await;
    given.pass(TTL);
    assert!(given.tend().await.more);
    let lapsed = || LedgerAsk { what: vec![What::Lapsed], ..LedgerAsk::default() };
    assert_eq!(notes(&*given.store, lapsed(), 1_000).await.len(), limits::SWEEP_ROWS);
    assert!(!given.tend().await.more);
    assert_eq!(notes(&*given.store, lapsed(), 1_000).await.len(), many);
}

async fn a_lapse_that_was_noticed_can_be_renewed_late(given: Given) {
    let mine = given.hold("x", 1).await;
    let lapsed = given.soon(TTL);
    for _ in 0..2 {
        given.pass(TTL);
        given.tend().await;
        given.pass(seconds(5));
        let outcome = given.wish("x", renew_late(mine)).await;
        assert!(matches!(outcome, tenure_core::LeaseOutcome::RenewedLate { .. }), "{outcome:?}");
    }
    let told = given.notes("x").await;
    let expected = [What::Acquired, What::Lapsed, What::RenewedLate, What::Lapsed, What::RenewedLate];
    assert_eq!(whats(&told), expected);
    assert_eq!((told[1].at, told[3].at), (lapsed, lapsed.after(TTL + seconds(5))));
    let held = holdings(&told);
    assert_eq!((held.len(), held[0].to), (1, None), "nobody had it in between");
}

async fn a_refusal_is_told_once_for_each_ownership_and_holder(given: Given) {
    let mine = given.hold("x", 1).await;
    let at_host = |number| {
        let by = Holder { host: Some(host(number)), ..by(2) };
        LeaseAct::Acquire { id: id(2), by, ttl: Ttl::For(TTL), wait: Some(TTL) }
    };
    let refusals = async |name: &str| {
        let what = vec![What::Refused];
        let ask = LedgerAsk { name: Some(self::name(name)), what, ..LedgerAsk::default() };
        notes(&*given.store, ask, 7).await.len()
    };
    for _ in 0..3 {
        for act in [acquire(2), queue_up(2, TTL), acquire(3), at_host(1), at_host(2)] {
            given.refusal("x", act).await;
        }
        given.pass(seconds(1));
    }
    assert_eq!(refusals("x").await, 4);
    given.wish("x", break_within(seconds(5))).await;
    given.refusal("x", acquire(2)).await;
    given.refusal("x", acquire(4)).await;
    assert_eq!(refusals("x").await, 5, "while it is being broken, too");
    given.give_back("x", mine).await;
    given.pass(minutes(1));
    given.hold("x", 1).await;
    given.refusal("x", acquire(2)).await;
    assert_eq!(refusals("x").await, 6, "the next ownership is another");
    given.hold("y", 1).await;
    given.refusal("y", acquire(2)).await;
    assert_eq!((refusals("x").await, refusals("y").await), (6, 1), "another name is another");
}

async fn what_changes_nothing_is_not_told(given: Given) {
    let mine = given.hold("x", 1).await;
    given.refusal("x", queue_up(2, minutes(10))).await;
    given.wish("x", change_to(mine, 5)).await;
    let mine = Mine { id: id(5), ..mine };
    given.wish("x", break_within(seconds(9))).await;
    let told = given.notes("x").await.len();
    let wrong = Mine { id: id(8), ..mine };
    for act in [renew(wrong), release(wrong), change_to(wrong, 9), change_to(mine, 5), forget(), leave(7)] {
        given.wish("x", act).await;
    }
    given.wish("x", break_within(None)).await;
    given.wish("x", break_within(seconds(9))).await;
    given.refusal("x", renew(mine)).await;
    assert_eq!(given.notes("x").await.len(), told);
    given.give_back("x", mine).await;
    let told = given.notes("x").await.len();
    given.wish("x", release(mine)).await;
    given.wish("x", break_within(None)).await;
    given.refusal("x", acquire(9)).await;
    assert_eq!(given.notes("x").await.len(), told, "being kept back for those in line is no refusal");
    let mine = Mine { id: id(2), fence: granted(&given.wish("x", acquire(2)).await).unwrap() };
    let told = given.notes("x").await.len();
    given.wish("x", acquire(2)).await;
    given.wish("x", renew(mine)).await;
    given.tend().await;
    assert_eq!(given.notes("x").await.len(), told);
}

async fn a_reason_is_cut_and_kept_without_nul(given: Given) {
    given.hold("x", 1).await;
    let reason = "ø\0".repeat(1_000);
    let act = LeaseAct::Break { within: None, by: Holder::named("ops"), reason };
    given.wish("x", act).await;
    let told = given.notes("x").await.pop().unwrap();
    assert!(told.note.len() <= limits::NOTE_BYTES && told.note.ends_with("(cut)"), "{told:?}");
    assert!(told.note.starts_with("ø\u{fffd}ø"), "{told:?}");
}

async fn it_outlasts_the_name(given: Given) {
    let mine = given.hold("x", 1).await;
    given.give_back("x", mine).await;
    given.wish("x", forget()).await;
    given.hold("x", 2).await;
    let expected = [What::Acquired, What::Released, What::Forgotten, What::Acquired];
    assert_eq!(whats(&given.notes("x").await), expected);
}
