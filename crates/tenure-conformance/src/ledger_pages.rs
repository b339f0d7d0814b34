//! What reading and pruning the ledger promise.

use tenure_core::{LedgerNote, Ttl, What, limits};

use super::given::{Given, TTL, minutes, seconds};
use super::wishes::{
    Mine, acquire, break_within, forget, granted, id, name, notes, release, renew_late, wish,
};
use super::{Test, test};
use tenure_store::{LedgerAsk, LedgerPage, Order, Pruned};

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(it_is_read_in_both_orders),
        test(it_is_read_by_name_by_what_and_by_time),
        test(a_page_of_it_goes_on_where_the_last_one_ended),
        test(a_page_of_it_is_bounded_and_never_empty_for_want_of_room),
        test(it_goes_on_behind_an_entry_that_is_gone),
        test(pruning_removes_what_is_older_the_oldest_first),
        test(pruning_keeps_the_beginning_of_the_present_ownership),
        test(pruning_is_bounded_and_says_that_there_is_more_to_remove),
        test(numbers_are_not_used_again_after_pruning),
        test(a_refusal_that_was_pruned_is_told_again),
    ]
}

fn whats(notes: &[LedgerNote]) -> Vec<What> {
    notes.iter().map(|note| note.what).collect()
}

/// Something happens to three names, second by second.
async fn a_minute(given: &Given) {
    for second in 0..60_u64 {
        let name = ["x", "y", "z"][second as usize % 3];
        match second % 4 {
            0 => drop(given.wish(name, acquire(second)).await),
            1 => drop(given.wish(name, break_within(seconds(second % 3))).await),
            2 => drop(given.wish(name, forget()).await),
            _ => drop(given.wish(name, acquire(1)).await),
        }
        given.pass(seconds(1));
    }
}

async fn it_is_read_in_both_orders(given: Given) {
    a_minute(&given).await;
    let oldest = given.all_notes().await;
    assert!(oldest.len() > 30);
    assert!(oldest.is_sorted_by_key(|note| note.at), "nothing lapsed, so all was told as it happened");
    let mut newest = notes(&*given.store, LedgerAsk::default(), 1_000).await;
    newest.reverse();
    assert_eq!(newest, oldest);
}

async fn it_is_read_by_name_by_what_and_by_time(given: Given) {
    let start = given.now();
    a_minute(&given).await;
    let all = given.all_notes().await;
    let at = |second| Some(start.after(seconds(second)));
    let mut asks = vec![];
    for name in [None, Some("x"), Some("y"), Some("X"), Some("nobody")] {
        for what in [vec![], vec![What::Broke], vec![What::Acquired, What::TookOver], vec![What::Lapsed]] {
            for (from, before) in
                [(None, None), (at(20), None), (None, at(20)), (at(20), at(40)), (at(40), at(20))]
            {
                let name = name.map(self::name);
                asks.push(LedgerAsk { name, what: what.clone(), from, before, ..LedgerAsk::default() });
            }
        }
    }
    let mut meant = 0;
    for ask in asks {
        let mut expected: Vec<LedgerNote> = all.iter().filter(|note| ask.means(note)).cloned().collect();
        meant += usize::from(!expected.is_empty());
        let ask = LedgerAsk { order: Order::OldestFirst, ..ask };
        assert_eq!(notes(&*given.store, ask.clone(), 3).await, expected, "{ask:?}");
        expected.reverse();
        let ask = LedgerAsk { order: Order::NewestFirst, ..ask };
        assert_eq!(notes(&*given.store, ask.clone(), 3).await, expected, "{ask:?}");
    }
    assert!(meant > 20, "{meant}");
    // From an instant on, and up to but without another.
    let exact = LedgerAsk { from: Some(all[5].at), before: Some(all[6].at), ..LedgerAsk::default() };
    assert_eq!(notes(&*given.store, exact, 9).await, all[5..6]);
}

async fn a_page_of_it_goes_on_where_the_last_one_ended(given: Given) {
    a_minute(&given).await;
    for order in [Order::OldestFirst, Order::NewestFirst] {
        for name in [None, Some(name("x"))] {
            let ask = LedgerAsk { name, order, ..LedgerAsk::default() };
            let whole = notes(&*given.store, ask.clone(), 1_000).await;
            for size in 1..9 {
                assert_eq!(notes(&*given.store, ask.clone(), size).await, whole, "pages of {size}");
            }
        }
    }
    // What is added meanwhile neither repeats nor hides anything.
    let first = given.store.ledger(LedgerAsk { at_most: 5, ..LedgerAsk::default() }).await.unwrap();
    let whole = given.all_notes().await;
    given.pass(minutes(1));
    given.hold("new", 1).await;
    let rest = notes(&*given.store, LedgerAsk { behind: first.next, ..LedgerAsk::default() }, 4).await;
    let mut seen: Vec<LedgerNote> = first.entries.into_iter().map(|entry| entry.note).chain(rest).collect();
    seen.reverse();
    assert_eq!(seen, whole);
    let oldest = LedgerAsk { order: Order::OldestFirst, at_most: 1_000, ..LedgerAsk::default() };
    let page = given.store.ledger(oldest.clone()).await.unwrap();
    let behind = page.entries.last().map(|entry| entry.number);
    given.hold("newer", 1).await;
    let page = given.store.ledger(LedgerAsk { behind, ..oldest }).await.unwrap();
    assert_eq!((page.entries.len(), page.entries[0].note.name.as_str()), (1, "newer"));
}

async fn a_page_of_it_is_bounded_and_never_empty_for_want_of_room(given: Given) {
    assert_eq!(given.store.ledger(LedgerAsk::default()).await.unwrap(), LedgerPage::default());
    let many = limits::PAGE_LEDGER + 1;
    given.wishes((0..many).map(|n| wish(&format!("x-{n:05}"), acquire(1))).collect()).await;
    let all = LedgerAsk { at_most: usize::MAX, ..LedgerAsk::default() };
    let page = given.store.ledger(all).await.unwrap();
    assert_eq!(page.entries.len(), limits::PAGE_LEDGER);
    assert_eq!(page.next, page.entries.last().map(|entry| entry.number));
    let page = given.store.ledger(LedgerAsk { at_most: 0, ..LedgerAsk::default() }).await.unwrap();
    assert_eq!(page.entries.len(), 1);
    // One that looks for something rare may stop on the way, but comes to its end.
    let rare = LedgerAsk { what: vec![What::Broke], ..LedgerAsk::default() };
    assert_eq!(notes(&*given.store, rare, 10).await, []);
}

async fn it_goes_on_behind_an_entry_that_is_gone(given: Given) {
    a_minute(&given).await;
    let oldest = LedgerAsk { order: Order::OldestFirst, at_most: 5, ..LedgerAsk::default() };
    let page = given.store.ledger(oldest.clone()).await.unwrap();
    let before = given.now().before(seconds(20));
    let kept = LedgerAsk { from: Some(before), ..oldest.clone() };
    let expected = notes(&*given.store, kept.clone(), 9).await;
    prune_all(&given, before).await;
    let rest = LedgerAsk { behind: page.next, ..kept };
    assert_eq!(notes(&*given.store, rest, 9).await, expected);
}

async fn prune_all(given: &Given, before: tenure_core::Timestamp) -> usize {
    let mut removed = 0;
    for _ in 0..1_000 {
        let pruned = given.store.prune_ledger(before).await.unwrap();
        removed += pruned.removed;
        if !pruned.more {
            return removed;
        }
    }
    panic!("pruning comes to an end");
}

async fn pruning_removes_what_is_older_the_oldest_first(given: Given) {
    let start = given.now();
    for second in 0..10 {
        let name = format!("x-{second}");
        let mine = given.hold(&name, 1).await;
        given.give_back(&name, mine).await;
        given.pass(seconds(1));
    }
    let all = given.all_notes().await;
    assert_eq!(prune_all(&given, start).await, 0);
    assert_eq!(prune_all(&given, start.after(seconds(4))).await, 8, "without the instant itself");
    assert_eq!(given.all_notes().await, all[8..]);
    assert_eq!(prune_all(&given, given.now()).await, 12);
    assert_eq!(given.all_notes().await, []);
    assert_eq!(given.store.prune_ledger(given.now()).await.unwrap(), Pruned::default());
}

async fn pruning_keeps_the_beginning_of_the_present_ownership(given: Given) {
    let gone = given.hold("x", 1).await;
    given.pass(TTL);
    let present = given.hold("x", 2).await;
    given.refusal("x", acquire(3)).await;
    given.hold("lapsed", 1).await;
    given.hold_for("broken", 1, Ttl::Endless).await;
    given.wish("broken", break_within(seconds(0))).await;
    given.pass(TTL + seconds(1));
    prune_all(&given, given.now()).await;
    assert!(gone.fence < present.fence);
    let kept = given.all_notes().await;
    let told: Vec<(&str, What)> = kept.iter().map(|note| (note.name.as_str(), note.what)).collect();
    let expected = [("x", What::TookOver), ("lapsed", What::Acquired), ("broken", What::Acquired)];
    assert_eq!(told, expected, "who may still go on or be asked about");
    given.wish("x", renew_late(present)).await;
    given.give_back("x", present).await;
    given.pass(seconds(1));
    prune_all(&given, given.now()).await;
    assert_eq!(given.notes("x").await, [], "it is over");
}

async fn pruning_is_bounded_and_says_that_there_is_more_to_remove(given: Given) {
    let many = limits::PRUNE_LEDGER + 1;
    let names: Vec<String> = (0..many).map(|n| format!("x-{n:05}")).collect();
    let outcomes = given.wishes(names.iter().map(|name| wish(name, acquire(1))).collect()).await;
    let held = |n: usize| Mine { id: id(1), fence: granted(&outcomes[n]).unwrap() };
    given.pass(seconds(1));
    let given_back = names.iter().enumerate().map(|(n, name)| wish(name, release(held(n))));
    given.wishes(given_back.collect()).await;
    let pruned = given.store.prune_ledger(given.now()).await.unwrap();
    assert_eq!(pruned, Pruned { removed: limits::PRUNE_LEDGER, more: true });
    let left = given.all_notes().await;
    assert_eq!((left.len(), left[0].name.as_str()), (many + 1, names[many - 1].as_str()));
    let pruned = given.store.prune_ledger(given.now()).await.unwrap();
    assert_eq!(pruned, Pruned { removed: 1, more: false });
}

async fn numbers_are_not_used_again_after_pruning(given: Given) {
    let last = async || {
        let page = given.store.ledger(LedgerAsk::default()).await.unwrap();
        page.entries.first().map(|entry| entry.number)
    };
    let mine = given.hold("x", 1).await;
    given.give_back("x", mine).await;
    let before = last().await.unwrap();
    given.pass(seconds(1));
    assert_eq!(prune_all(&given, given.now()).await, 2);
    given.hold("x", 1).await;
    assert!(last().await.unwrap() > before, "a reader who goes on behind an old number misses nothing");
}

async fn a_refusal_that_was_pruned_is_told_again(given: Given) {
    given.hold_for("x", 1, Ttl::Endless).await;
    for _ in 0..3 {
        given.refusal("x", acquire(2)).await;
        given.pass(minutes(60));
        assert_eq!(prune_all(&given, given.now()).await, 1);
    }
    assert_eq!(whats(&given.notes("x").await), [What::Acquired]);
}
