//! Journals: they only grow, and are read by number.

use tenure_core::{Subject, limits};
use tenure_store::{Append, EntriesAsk, Order};

use super::super::given::{Given, minutes, seconds};
use super::super::{Test, test};
use super::{append, entries, numbers, word};

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(an_entry_tells_what_and_when),
        test(numbers_grow),
        test(journals_are_apart),
        test(a_journal_is_read_in_both_orders),
        test(a_page_of_a_journal_goes_on_where_the_last_one_ended),
        test(a_page_of_a_journal_is_bounded),
        test(entries_of_a_subject_are_found_by_its_whole_text),
        test(entries_of_a_time_are_found),
        test(who_has_seen_a_number_asks_for_what_comes_behind_it),
        test(an_entry_is_there_until_it_expires),
        test(tending_removes_entries_that_have_expired_and_no_others),
        test(a_number_is_not_given_again_after_expiry),
        test(a_journal_that_nobody_used_is_empty),
    ]
}

fn audit(order: Order) -> EntriesAsk {
    EntriesAsk { order, ..EntriesAsk::of(word("audit")) }
}

/// Sixty entries about three subjects, second by second.
async fn a_minute(given: &Given) -> Vec<u64> {
    let mut numbers = vec![];
    for second in 0..60 {
        let subject = ["job/1", "job/11", "Job/1"][second % 3];
        numbers.push(given.append(append(subject, &second.to_string())).await);
        given.pass(seconds(1));
    }
    numbers
}

async fn an_entry_tells_what_and_when(given: Given) {
    let keep = Some(minutes(3));
    let number = given.append(Append { keep, ..append("token/ø", "{\"by\": 7}") }).await;
    let all = given.audit().await;
    assert_eq!(all.len(), 1);
    assert_eq!(
        (all[0].number, all[0].at, all[0].expires),
        (number, given.now(), Some(given.soon(minutes(3))))
    );
    assert_eq!((all[0].journal.as_str(), all[0].subject.as_str()), ("audit", "token/ø"));
    assert_eq!(all[0].value.as_bytes(), b"{\"by\": 7}");
}

async fn numbers_grow(given: Given) {
    let all = a_minute(&given).await;
    assert!(all.is_sorted_by(|one, next| one < next) && all[0] > 0, "{all:?}");
    assert_eq!(numbers(&given.audit().await), all);
}

async fn journals_are_apart(given: Given) {
    let mine = given.append(append("x", "1")).await;
    given.append(Append { journal: word("deliveries"), ..append("x", "2") }).await;
    assert_eq!(numbers(&given.audit().await), [mine]);
}

async fn a_journal_is_read_in_both_orders(given: Given) {
    let mut all = a_minute(&given).await;
    assert_eq!(numbers(&entries(&*given.store, audit(Order::OldestFirst)).await), all);
    all.reverse();
    assert_eq!(numbers(&entries(&*given.store, audit(Order::NewestFirst)).await), all);
}

async fn a_page_of_a_journal_goes_on_where_the_last_one_ended(given: Given) {
    let all = a_minute(&given).await;
    let back: Vec<u64> = all.iter().rev().copied().collect();
    for at_most in [1, 7, 30, 60, 61] {
        let oldest = EntriesAsk { at_most, ..audit(Order::OldestFirst) };
        assert_eq!(numbers(&entries(&*given.store, oldest).await), all);
        let newest = EntriesAsk { at_most, ..audit(Order::NewestFirst) };
        assert_eq!(numbers(&entries(&*given.store, newest).await), back);
    }
    let exact = given.store.entries(EntriesAsk { at_most: 60, ..audit(Order::OldestFirst) }).await.unwrap();
    assert_eq!((exact.entries.len(), exact.next), (60, None), "nothing is behind it");
}

async fn a_page_of_a_journal_is_bounded(given: Given) {
    for _ in 0..=limits::PAGE_ENTRIES / limits::WRITE_ENTRIES {
        let batch = (0..limits::WRITE_ENTRIES).map(|n| append("x", &n.to_string())).collect();
        super::done(given.write_all(vec![], batch).await);
    }
    let page = given.store.entries(EntriesAsk { at_most: usize::MAX, ..audit(Order::OldestFirst) }).await;
    let page = page.unwrap();
    assert_eq!(page.entries.len(), limits::PAGE_ENTRIES);
    assert_eq!(page.next, page.entries.last().map(|entry| entry.number));
    let one = given.store.entries(EntriesAsk { at_most: 0, ..audit(Order::NewestFirst) }).await.unwrap();
    assert_eq!(one.entries.len(), 1, "there is room for one at least");
}

async fn entries_of_a_subject_are_found_by_its_whole_text(given: Given) {
    let all = a_minute(&given).await;
    for (at, text) in ["job/1", "job/11", "Job/1"].into_iter().enumerate() {
        let subject = Some(Subject::new(text).unwrap());
        let mut expected: Vec<u64> = all.iter().skip(at).step_by(3).copied().collect();
        let ask = EntriesAsk { subject: subject.clone(), at_most: 7, ..audit(Order::OldestFirst) };
        assert_eq!(numbers(&entries(&*given.store, ask).await), expected);
        expected.reverse();
        let ask = EntriesAsk { subject, at_most: 7, ..audit(Order::NewestFirst) };
        assert_eq!(numbers(&entries(&*given.store, ask).await), expected);
    }
    for text in ["job", "job/", "job/%", "job/_"] {
        let ask = EntriesAsk { subject: Some(Subject::new(text).unwrap()), ..audit(Order::OldestFirst) };
        assert_eq!(entries(&*given.store, ask).await, []);
    }
}

async fn entries_of_a_time_are_found(given: Given) {
    let start = given.now();
    let all = a_minute(&given).await;
    let at = |second| Some(start.after(seconds(second)));
    let times =
        [(None, at(20), 0..20), (at(20), None, 20..60), (at(20), at(40), 20..40), (at(40), at(20), 0..0)];
    for (from, before, expected) in times {
        for at_most in [3, 100] {
            let ask = EntriesAsk { from, before, at_most, ..audit(Order::OldestFirst) };
            assert_eq!(numbers(&entries(&*given.store, ask).await), all[expected.clone()]);
            let ask = EntriesAsk { from, before, at_most, ..audit(Order::NewestFirst) };
            let mut found = numbers(&entries(&*given.store, ask).await);
            found.reverse();
            assert_eq!(found, all[expected.clone()]);
        }
    }
}

async fn who_has_seen_a_number_asks_for_what_comes_behind_it(given: Given) {
    let all = a_minute(&given).await;
    let behind = |number| EntriesAsk { behind: Some(number), ..audit(Order::OldestFirst) };
    assert_eq!(numbers(&entries(&*given.store, behind(all[39])).await), all[40..]);
    assert_eq!(entries(&*given.store, behind(all[59])).await, []);
    let new = given.append(append("x", "1")).await;
    assert_eq!(numbers(&entries(&*given.store, behind(all[59])).await), [new]);
    assert_eq!(entries(&*given.store, behind(u64::MAX)).await, []);
    let before = EntriesAsk { behind: Some(all[1]), ..audit(Order::NewestFirst) };
    assert_eq!(numbers(&entries(&*given.store, before).await), all[..1]);
}

async fn an_entry_is_there_until_it_expires(given: Given) {
    let gone = given.append(Append { keep: Some(minutes(1)), ..append("x", "1") }).await;
    let stays = given.append(append("x", "2")).await;
    given.pass(seconds(59));
    assert_eq!(numbers(&given.audit().await), [gone, stays]);
    given.pass(seconds(1));
    assert_eq!(numbers(&given.audit().await), [stays]);
    let subject = Some(Subject::new("x").unwrap());
    let about = EntriesAsk { subject, ..audit(Order::NewestFirst) };
    assert_eq!(numbers(&entries(&*given.store, about).await), [stays]);
}

async fn tending_removes_entries_that_have_expired_and_no_others(given: Given) {
    let batch = (0..60).map(|n| Append { keep: (n % 2 == 0).then(|| minutes(1)), ..append("x", "1") });
    let (_, all) = super::done(given.write_all(vec![], batch.collect()).await);
    given.pass(minutes(1));
    while given.tend().await.more {}
    given.step_back(minutes(1));
    let left: Vec<u64> = all.into_iter().skip(1).step_by(2).collect();
    assert_eq!(numbers(&given.audit().await), left, "the others were removed");
}

async fn a_number_is_not_given_again_after_expiry(given: Given) {
    let old = given.append(Append { keep: Some(seconds(1)), ..append("x", "1") }).await;
    given.pass(seconds(2));
    while given.tend().await.more {}
    assert_eq!(given.audit().await, []);
    assert!(given.append(append("x", "2")).await > old);
}

async fn a_journal_that_nobody_used_is_empty(given: Given) {
    let page = given.store.entries(EntriesAsk::of(word("audit"))).await.unwrap();
    assert_eq!((page.entries.len(), page.next), (0, None));
}
