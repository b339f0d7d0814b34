//! Records and journals go along with a copy.

use tenure_core::limits;
use tenure_store::{Append, Copied, Only, Put, RecordsAsk, Written, copy};

use super::super::given::{Given, minutes};
use super::super::{Test, test};
use super::{append, keys, put, put_for, removal, word};

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(a_copy_has_the_records_and_the_journals),
        test(versions_and_numbers_go_on_in_a_copy_also_behind_what_is_gone),
        test(a_place_with_a_record_is_no_place_for_a_copy),
    ]
}

async fn copied(from: &Given, to: &Given) -> Copied {
    copy(&*from.store, &*to.store, false, &mut |_, _| {}).await.unwrap()
}

async fn a_copy_has_the_records_and_the_journals(given: Given) {
    for first in (0..250).step_by(50) {
        let batch = (first..first + 50).map(|n| put_for(&format!("k{n:03}"), Only::Any, "1", minutes(n + 1)));
        let entries = (0..50).map(|n| append(&format!("x{n}"), &n.to_string()));
        super::done(given.write_all(batch.collect(), entries.collect()).await);
    }
    given.put_record(Put { shelf: word("webhook"), ..put("a", Only::Any, "[1, 2]") }).await;
    given.append(Append { journal: word("deliveries"), keep: Some(minutes(1)), ..append("x", "2") }).await;
    let other = given.beside().await;
    let Copied::Whole(totals) = copied(&given, &other).await else { panic!("it is whole") };
    assert_eq!((totals.records, totals.journal_entries), (251, 251));
    for (shelf, at_most) in [("token", limits::PAGE_RECORDS), ("webhook", 1)] {
        let ask = RecordsAsk { at_most, ..RecordsAsk::of(word(shelf)) };
        let page = given.store.records(ask.clone()).await.unwrap();
        assert_eq!(other.store.records(ask).await.unwrap(), page);
        assert!(!page.records.is_empty());
    }
    assert_eq!(other.audit().await, given.audit().await);
    given.pass(minutes(100));
    let left = keys(&*other.store, RecordsAsk::of(word("token"))).await;
    assert_eq!((left.len(), left.first().map(String::as_str)), (150, Some("k100")));
    let _ = other.store.close().await;
}

async fn versions_and_numbers_go_on_in_a_copy_also_behind_what_is_gone(given: Given) {
    let first = given.put_record(put("k", Only::Any, "1")).await;
    let version = given.put_record(put("gone", Only::Any, "1")).await;
    super::done(given.write_all(vec![removal("gone", Only::Any)], vec![]).await);
    given.append(append("x", "1")).await;
    let number = given.append(Append { keep: Some(minutes(1)), ..append("x", "2") }).await;
    given.pass(minutes(2));
    while given.tend().await.more {}
    let other = given.beside().await;
    assert!(matches!(copied(&given, &other).await, Copied::Whole(_)));
    assert!(other.put_record(put("gone", Only::Absent, "1")).await > version);
    assert!(other.append(append("x", "3")).await > number);
    assert!(matches!(
        other.write_all(vec![put("k", Only::Version(first), "2")], vec![]).await,
        Written::Done { .. }
    ));
    let _ = other.store.close().await;
}

async fn a_place_with_a_record_is_no_place_for_a_copy(given: Given) {
    let other = given.beside().await;
    other.put_record(put("k", Only::Any, "1")).await;
    assert!(matches!(copied(&given, &other).await, Copied::Refused(_)));
    assert_eq!(other.said("k").await.as_deref(), Some("1"));
    let _ = other.store.close().await;
}
