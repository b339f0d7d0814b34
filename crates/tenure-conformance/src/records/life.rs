//! Versions, expiry, bounds, and the end.

use std::time::Duration;

use tenure_core::limits;
use tenure_store::{EntriesAsk, Fault, NewValue, Only, RecordsAsk, Writes, Written};

use super::super::given::{Given, minutes, seconds};
use super::super::{Test, test};
use super::{append, document, key, put, put_for, removal, word};

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(a_version_is_not_given_again_after_a_removal),
        test(a_version_is_not_given_again_after_expiry),
        test(the_same_text_again_is_another_version),
        test(a_record_is_there_until_its_instant_and_not_at_it),
        test(a_new_value_brings_its_own_expiry),
        test(what_expired_comes_back_with_a_clock_that_was_put_back),
        test(tending_removes_no_record_that_is_alive),
        test(tending_removes_what_has_expired_a_bounded_number_at_a_time),
        test(the_largest_value_and_the_longest_key_are_kept),
        test(what_is_too_much_is_a_fault_and_nothing_is_written),
        test(a_record_that_is_named_twice_is_a_fault),
        test(jobs_are_not_changed_by_records),
        test(after_the_close_records_are_a_fault),
    ]
}

async fn a_version_is_not_given_again_after_a_removal(given: Given) {
    let mut versions = vec![];
    for _ in 0..3 {
        versions.push(given.put_record(put("k", Only::Absent, "1")).await);
        given.write_all(vec![removal("k", Only::Any)], vec![]).await;
    }
    assert!(versions.is_sorted_by(|one, next| one < next), "{versions:?}");
    given.put_record(put("k", Only::Absent, "1")).await;
    let old = given.write_all(vec![put("k", Only::Version(versions[2]), "2")], vec![]).await;
    assert!(matches!(old, Written::Refused(_)));
}

async fn a_version_is_not_given_again_after_expiry(given: Given) {
    let old = given.put_record(put_for("k", Only::Any, "1", seconds(1))).await;
    given.pass(seconds(2));
    while given.tend().await.more {}
    let new = given.put_record(put("k", Only::Absent, "1")).await;
    assert!(new > old);
}

async fn the_same_text_again_is_another_version(given: Given) {
    let first = given.put_record(put("k", Only::Any, "1")).await;
    let second = given.put_record(put("k", Only::Any, "1")).await;
    assert!(second > first);
}

async fn a_record_is_there_until_its_instant_and_not_at_it(given: Given) {
    given.put_record(put_for("k", Only::Any, "1", minutes(1))).await;
    given.pass(minutes(1) - Duration::from_micros(1));
    assert!(given.token("k").await.is_some());
    given.pass(Duration::from_micros(1));
    assert_eq!(given.token("k").await, None);
    assert_eq!(super::keys(&*given.store, RecordsAsk::of(word("token"))).await, [""; 0]);
}

async fn a_new_value_brings_its_own_expiry(given: Given) {
    given.put_record(put_for("k", Only::Any, "1", minutes(1))).await;
    given.pass(seconds(30));
    given.put_record(put_for("k", Only::Any, "2", minutes(1))).await;
    given.pass(seconds(45));
    while given.tend().await.more {}
    assert_eq!(given.said("k").await.as_deref(), Some("2"));
    given.put_record(put("k", Only::Any, "3")).await;
    given.pass(minutes(60));
    while given.tend().await.more {}
    assert_eq!(given.said("k").await.as_deref(), Some("3"));
}

async fn what_expired_comes_back_with_a_clock_that_was_put_back(given: Given) {
    given.put_record(put_for("k", Only::Any, "1", minutes(1))).await;
    given.pass(minutes(2));
    assert_eq!(given.token("k").await, None);
    given.step_back(minutes(2));
    assert!(given.token("k").await.is_some(), "nobody has removed it");
}

async fn tending_removes_no_record_that_is_alive(given: Given) {
    given.put_record(put("forever", Only::Any, "1")).await;
    given.put_record(put_for("later", Only::Any, "1", minutes(2))).await;
    given.put_record(put_for("gone", Only::Any, "1", minutes(1))).await;
    given.pass(minutes(1));
    while given.tend().await.more {}
    assert_eq!(super::keys(&*given.store, RecordsAsk::of(word("token"))).await, ["forever", "later"]);
    given.step_back(minutes(1));
    assert_eq!(given.token("gone").await, None, "it was removed");
}

async fn tending_removes_what_has_expired_a_bounded_number_at_a_time(given: Given) {
    let all = limits::PRUNE_RECORDS + 50;
    for first in (0..all).step_by(limits::WRITE_RECORDS) {
        let batch = (first..all.min(first + limits::WRITE_RECORDS))
            .map(|n| put_for(&format!("{n:05}"), Only::Any, "1", minutes(1)))
            .collect();
        super::done(given.write_all(batch, vec![]).await);
    }
    given.pass(minutes(1));
    assert!(given.tend().await.more, "one step removes a bounded number");
    while given.tend().await.more {}
    given.step_back(minutes(1));
    assert_eq!(super::keys(&*given.store, RecordsAsk::of(word("token"))).await, [""; 0]);
}

async fn the_largest_value_and_the_longest_key_are_kept(given: Given) {
    let value = format!("\"{}\"", "ø".repeat((limits::RECORD_BYTES - 2) / 2));
    let long = "ø".repeat(limits::RECORD_KEY_BYTES / 2) + "!";
    assert_eq!((value.len(), long.len()), (limits::RECORD_BYTES, limits::RECORD_KEY_BYTES));
    given.put_record(put(&long, Only::Absent, &value)).await;
    assert_eq!(given.said(&long).await, Some(value));
    let value = format!("\"{}\"", "x".repeat(limits::ENTRY_BYTES - 2));
    given.append(append(&long, &value)).await;
    assert_eq!(given.audit().await[0].value.as_bytes(), value.as_bytes());
}

async fn what_is_too_much_is_a_fault_and_nothing_is_written(given: Given) {
    let many = |count: usize| (0..count).map(|n| put(&format!("k{n}"), Only::Any, "1")).collect();
    let entries = |count: usize| (0..count).map(|_| append("k", "1")).collect();
    let large = format!("\"{}\"", "x".repeat(limits::ENTRY_BYTES));
    let ever = limits::LONGEST + Duration::from_secs(1);
    let for_ever = NewValue { value: document("1"), keep: Some(ever) };
    let too_much = [
        Writes { records: many(limits::WRITE_RECORDS + 1), ..Writes::default() },
        Writes { records: many(1), entries: entries(limits::WRITE_ENTRIES + 1), ..Writes::default() },
        Writes { records: many(1), entries: vec![append("k", &large)], ..Writes::default() },
        Writes {
            records: vec![tenure_store::Put { to: Some(for_ever), ..put("k0", Only::Any, "1") }],
            ..Writes::default()
        },
    ];
    for writes in too_much {
        assert!(matches!(given.store.write_records(writes).await, Err(Fault::Broken(_))));
    }
    assert_eq!((given.token("k0").await, given.audit().await.len()), (None, 0));
    let most = Writes {
        records: many(limits::WRITE_RECORDS),
        entries: entries(limits::WRITE_ENTRIES),
        ..Writes::default()
    };
    let (versions, numbers) = super::done(given.store.write_records(most).await.unwrap());
    assert_eq!((versions.len(), numbers.len()), (limits::WRITE_RECORDS, limits::WRITE_ENTRIES));
}

async fn a_record_that_is_named_twice_is_a_fault(given: Given) {
    let twice =
        Writes { records: vec![put("k", Only::Any, "1"), removal("k", Only::Any)], ..Writes::default() };
    assert!(matches!(given.store.write_records(twice).await, Err(Fault::Broken(_))));
    assert_eq!(given.token("k").await, None);
}

async fn jobs_are_not_changed_by_records(given: Given) {
    let id = given.put(given.new_job("mail")).await;
    let before = given.job(id).await;
    given.put_record(put("k", Only::Any, "1")).await;
    given.append(append("k", "1")).await;
    let tended = given.tend().await;
    assert_eq!((given.job(id).await, tended.pruned), (before, 0));
}

async fn after_the_close_records_are_a_fault(given: Given) {
    let store = &given.store;
    store.close().await.unwrap();
    let closed = |answer: Result<(), Fault>| assert_eq!(answer, Err(Fault::Closed));
    let writes = Writes {
        records: vec![put("k", Only::Any, "1")],
        entries: vec![append("k", "1")],
        ..Writes::default()
    };
    closed(store.write_records(writes).await.map(drop));
    closed(store.record(&word("token"), &key("k")).await.map(drop));
    closed(store.records(RecordsAsk::of(word("token"))).await.map(drop));
    closed(store.entries(EntriesAsk::of(word("audit"))).await.map(drop));
}
