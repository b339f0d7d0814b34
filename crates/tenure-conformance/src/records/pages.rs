//! Listing a shelf.

use tenure_core::limits;
use tenure_store::{Only, Put, RecordsAsk};

use super::super::given::{Given, minutes};
use super::super::{Test, test};
use super::{key, keys, put, put_for, word};

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(a_shelf_is_listed_by_key_byte_by_byte),
        test(a_page_of_a_shelf_goes_on_where_the_last_one_ended),
        test(a_page_of_a_shelf_is_bounded),
        test(a_prefix_is_text_and_no_pattern),
        test(a_prefix_may_end_with_the_last_character_that_there_is),
        test(a_prefix_with_a_character_that_no_key_has_lists_nothing),
        test(a_page_goes_on_behind_a_record_that_is_gone),
        test(a_page_leaves_out_what_has_expired),
        test(a_shelf_that_nobody_used_is_empty),
    ]
}

fn tokens() -> RecordsAsk {
    RecordsAsk::of(word("token"))
}

fn begins(prefix: &str) -> RecordsAsk {
    RecordsAsk { prefix: prefix.to_owned(), ..tokens() }
}

async fn fill(given: &Given, keys: &[&str]) {
    let puts = keys.iter().map(|key| put(key, Only::Absent, "1")).collect();
    super::done(given.write_all(puts, vec![]).await);
}

async fn a_shelf_is_listed_by_key_byte_by_byte(given: Given) {
    fill(&given, &["b", "a b", "B", "ø", "a-b", "a", "\u{1}", "\u{10FFFF}", "Z", "ä"]).await;
    let other = Put { shelf: word("tokens"), ..put("c", Only::Any, "1") };
    given.put_record(other).await;
    let expected = ["\u{1}", "B", "Z", "a", "a b", "a-b", "b", "ä", "ø", "\u{10FFFF}"];
    assert_eq!(keys(&*given.store, tokens()).await, expected);
}

async fn a_page_of_a_shelf_goes_on_where_the_last_one_ended(given: Given) {
    let all: Vec<String> = (0..50).map(|n| format!("k{n:02}")).collect();
    fill(&given, &all.iter().map(String::as_str).collect::<Vec<_>>()).await;
    for at_most in [1, 7, 25, 50, 51] {
        assert_eq!(keys(&*given.store, RecordsAsk { at_most, ..tokens() }).await, all);
    }
    let exact = given.store.records(RecordsAsk { at_most: 50, ..tokens() }).await.unwrap();
    assert_eq!((exact.records.len(), exact.next), (50, None), "nothing is behind it");
}

async fn a_page_of_a_shelf_is_bounded(given: Given) {
    for first in (0..300).step_by(limits::WRITE_RECORDS) {
        let batch =
            (first..first + limits::WRITE_RECORDS).map(|n| put(&format!("{n:03}"), Only::Any, "1")).collect();
        super::done(given.write_all(batch, vec![]).await);
    }
    let page = given.store.records(RecordsAsk { at_most: usize::MAX, ..tokens() }).await.unwrap();
    assert_eq!(page.records.len(), limits::PAGE_RECORDS);
    assert_eq!(page.next, page.records.last().map(|record| record.key.clone()));
    let page = given.store.records(RecordsAsk { at_most: 0, ..tokens() }).await.unwrap();
    assert_eq!(page.records.len(), 1, "there is room for one at least");
}

async fn a_prefix_is_text_and_no_pattern(given: Given) {
    fill(&given, &["50%", "50% off", "500", "a_b", "a_bc", "axb", "øl", "ølø", "o"]).await;
    assert_eq!(keys(&*given.store, begins("50%")).await, ["50%", "50% off"]);
    assert_eq!(keys(&*given.store, begins("a_b")).await, ["a_b", "a_bc"]);
    assert_eq!(keys(&*given.store, begins("øl")).await, ["øl", "ølø"]);
    assert_eq!(keys(&*given.store, begins("%")).await, [""; 0]);
    assert_eq!(keys(&*given.store, begins("A_B")).await, [""; 0]);
}

async fn a_prefix_may_end_with_the_last_character_that_there_is(given: Given) {
    fill(&given, &["a\u{10FFFF}", "a\u{10FFFF}b", "b", "\u{10FFFF}x", "\u{D7FF}", "\u{E000}"]).await;
    assert_eq!(keys(&*given.store, begins("a\u{10FFFF}")).await, ["a\u{10FFFF}", "a\u{10FFFF}b"]);
    assert_eq!(keys(&*given.store, begins("\u{10FFFF}")).await, ["\u{10FFFF}x"]);
    assert_eq!(keys(&*given.store, begins("\u{D7FF}")).await, ["\u{D7FF}"]);
}

async fn a_prefix_with_a_character_that_no_key_has_lists_nothing(given: Given) {
    fill(&given, &["a", "b"]).await;
    assert_eq!(keys(&*given.store, begins("a\0")).await, [""; 0]);
}

async fn a_page_goes_on_behind_a_record_that_is_gone(given: Given) {
    fill(&given, &["a", "c"]).await;
    let ask = RecordsAsk { behind: Some(key("b")), ..tokens() };
    assert_eq!(keys(&*given.store, ask).await, ["c"]);
    let ask = RecordsAsk { behind: Some(key("a")), ..begins("c") };
    assert_eq!(keys(&*given.store, ask).await, ["c"], "a place before the prefix");
    let ask = RecordsAsk { behind: Some(key("d")), ..begins("c") };
    assert_eq!(keys(&*given.store, ask).await, [""; 0], "a place behind the prefix");
}

async fn a_page_leaves_out_what_has_expired(given: Given) {
    let batch = (0..60)
        .map(|n| {
            let key = format!("k{n:02}");
            if n % 3 == 0 { put(&key, Only::Any, "1") } else { put_for(&key, Only::Any, "1", minutes(1)) }
        })
        .collect();
    super::done(given.write_all(batch, vec![]).await);
    given.pass(minutes(1));
    let alive: Vec<String> = (0..60).step_by(3).map(|n| format!("k{n:02}")).collect();
    for at_most in [1, 6, 20, 100] {
        assert_eq!(keys(&*given.store, RecordsAsk { at_most, ..tokens() }).await, alive);
    }
}

async fn a_shelf_that_nobody_used_is_empty(given: Given) {
    let page = given.store.records(tokens()).await.unwrap();
    assert_eq!((page.records.len(), page.next), (0, None));
}
