//! What has to be there for a change to be done, and what is answered if it is not.

use tenure_store::Only;

use super::super::given::{Given, minutes};
use super::super::{Test, test};
use super::{append, done, put, put_for, refused, removal};

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(what_is_put_is_there_byte_for_byte),
        test(without_a_condition_the_last_one_is_there),
        test(only_if_absent_the_first_one_stays),
        test(a_refusal_has_what_is_in_the_way),
        test(only_in_its_version_a_record_is_changed_once),
        test(a_version_of_what_is_not_there_is_refused),
        test(a_removal_leaves_nothing),
        test(a_removal_in_an_old_version_is_refused),
        test(a_removal_only_if_absent_is_refused_by_what_is_there),
        test(to_remove_what_is_not_there_is_done),
        test(what_has_expired_counts_as_absent),
        test(what_has_expired_has_no_version),
        test(one_condition_that_does_not_hold_stops_the_whole_batch),
        test(all_conditions_that_do_not_hold_are_told_in_order),
        test(a_refused_batch_appends_nothing),
        test(a_record_and_its_entry_are_written_together),
        test(a_batch_answers_in_its_order),
        test(an_empty_batch_is_done),
        test(shelves_do_not_share_keys),
    ]
}

async fn what_is_put_is_there_byte_for_byte(given: Given) {
    let value = "{ \"a\" : 1.0,  \"ø\":[null] }";
    let version = given.put_record(put("k", Only::Any, value)).await;
    let record = given.token("k").await.unwrap();
    assert_eq!(record.value.as_bytes(), value.as_bytes());
    assert_eq!((record.shelf.as_str(), record.key.as_str()), ("token", "k"));
    assert_eq!((record.version, record.expires), (version, None));
}

async fn without_a_condition_the_last_one_is_there(given: Given) {
    let first = given.put_record(put("k", Only::Any, "1")).await;
    let second = given.put_record(put("k", Only::Any, "2")).await;
    assert!(second > first);
    assert_eq!(given.said("k").await.as_deref(), Some("2"));
}

async fn only_if_absent_the_first_one_stays(given: Given) {
    given.put_record(put("k", Only::Absent, "1")).await;
    refused(given.write_all(vec![put("k", Only::Absent, "2")], vec![]).await);
    assert_eq!(given.said("k").await.as_deref(), Some("1"));
}

async fn a_refusal_has_what_is_in_the_way(given: Given) {
    given.put_record(put_for("k", Only::Absent, "1", minutes(5))).await;
    let there = given.token("k").await;
    assert_eq!(there.as_ref().and_then(|there| there.expires), Some(given.soon(minutes(5))));
    let unmet = refused(given.write_all(vec![put("k", Only::Absent, "2")], vec![]).await);
    assert_eq!((unmet.len(), unmet[0].index, &unmet[0].there), (1, 0, &there));
}

async fn only_in_its_version_a_record_is_changed_once(given: Given) {
    let first = given.put_record(put("k", Only::Any, "1")).await;
    let second = given.put_record(put("k", Only::Version(first), "2")).await;
    let unmet = refused(given.write_all(vec![put("k", Only::Version(first), "3")], vec![]).await);
    assert_eq!(unmet[0].there.as_ref().map(|there| there.version), Some(second));
    assert_eq!(given.said("k").await.as_deref(), Some("2"));
}

async fn a_version_of_what_is_not_there_is_refused(given: Given) {
    for change in [put("k", Only::Version(1), "1"), removal("k", Only::Version(0))] {
        let unmet = refused(given.write_all(vec![change], vec![]).await);
        assert_eq!((unmet[0].index, &unmet[0].there), (0, &None));
    }
    assert_eq!(given.token("k").await, None);
}

async fn a_removal_leaves_nothing(given: Given) {
    let version = given.put_record(put("k", Only::Any, "1")).await;
    let (versions, _) = done(given.write_all(vec![removal("k", Only::Version(version))], vec![]).await);
    assert_eq!(versions, [None]);
    assert_eq!(given.token("k").await, None);
}

async fn a_removal_in_an_old_version_is_refused(given: Given) {
    let old = given.put_record(put("k", Only::Any, "1")).await;
    given.put_record(put("k", Only::Any, "2")).await;
    refused(given.write_all(vec![removal("k", Only::Version(old))], vec![]).await);
    assert_eq!(given.said("k").await.as_deref(), Some("2"));
}

async fn a_removal_only_if_absent_is_refused_by_what_is_there(given: Given) {
    given.put_record(put("k", Only::Any, "1")).await;
    refused(given.write_all(vec![removal("k", Only::Absent)], vec![]).await);
    assert_eq!(given.said("k").await.as_deref(), Some("1"));
}

async fn to_remove_what_is_not_there_is_done(given: Given) {
    for only in [Only::Any, Only::Absent] {
        assert_eq!(done(given.write_all(vec![removal("k", only)], vec![]).await).0, [None]);
    }
}

async fn what_has_expired_counts_as_absent(given: Given) {
    given.put_record(put_for("k", Only::Any, "1", minutes(1))).await;
    refused(given.write_all(vec![put("k", Only::Absent, "2")], vec![]).await);
    given.pass(minutes(1));
    given.put_record(put("k", Only::Absent, "2")).await;
    assert_eq!(given.said("k").await.as_deref(), Some("2"));
    assert_eq!(given.token("k").await.unwrap().expires, None);
}

async fn what_has_expired_has_no_version(given: Given) {
    let version = given.put_record(put_for("k", Only::Any, "1", minutes(1))).await;
    given.pass(minutes(1));
    let unmet = refused(given.write_all(vec![put("k", Only::Version(version), "2")], vec![]).await);
    assert_eq!(unmet[0].there, None);
}

async fn one_condition_that_does_not_hold_stops_the_whole_batch(given: Given) {
    given.put_record(put("b", Only::Any, "1")).await;
    given.put_record(put("c", Only::Any, "1")).await;
    let batch = vec![put("a", Only::Any, "2"), put("b", Only::Absent, "2"), removal("c", Only::Any)];
    let unmet = refused(given.write_all(batch, vec![]).await);
    assert_eq!((unmet.len(), unmet[0].index), (1, 1));
    assert_eq!(given.token("a").await, None);
    assert_eq!(given.said("b").await.as_deref(), Some("1"));
    assert_eq!(given.said("c").await.as_deref(), Some("1"));
}

async fn all_conditions_that_do_not_hold_are_told_in_order(given: Given) {
    given.put_record(put("b", Only::Any, "7")).await;
    let batch = vec![
        put("z", Only::Version(99), "2"),
        put("y", Only::Absent, "2"),
        put("b", Only::Absent, "2"),
        removal("a", Only::Version(1)),
    ];
    let unmet = refused(given.write_all(batch, vec![]).await);
    assert_eq!(unmet.iter().map(|unmet| unmet.index).collect::<Vec<_>>(), [0, 2, 3]);
    assert_eq!(unmet[1].there, given.token("b").await);
    assert!(unmet[0].there.is_none() && unmet[2].there.is_none());
}

async fn a_refused_batch_appends_nothing(given: Given) {
    given.put_record(put("k", Only::Any, "1")).await;
    refused(given.write_all(vec![put("k", Only::Absent, "2")], vec![append("k", "1")]).await);
    assert_eq!(given.audit().await, []);
}

async fn a_record_and_its_entry_are_written_together(given: Given) {
    let both = given.write_all(vec![put("k", Only::Absent, "1")], vec![append("k", "\"created\"")]).await;
    let (versions, numbers) = done(both);
    assert_eq!(given.token("k").await.map(|record| record.version), versions[0]);
    assert_eq!(super::numbers(&given.audit().await), numbers);
    // Whoever repeats that finds what was written, and nothing is written down twice.
    let again = given.write_all(vec![put("k", Only::Absent, "1")], vec![append("k", "\"created\"")]).await;
    assert_eq!(refused(again)[0].there.as_ref().map(|there| there.version), versions[0]);
    assert_eq!(given.audit().await.len(), 1);
}

async fn a_batch_answers_in_its_order(given: Given) {
    given.put_record(put("b", Only::Any, "1")).await;
    let batch = vec![put("z", Only::Any, "1"), removal("b", Only::Any), put("a", Only::Any, "2")];
    let entries = vec![append("first", "1"), append("second", "2"), append("third", "3")];
    let (versions, numbers) = done(given.write_all(batch, entries).await);
    let version = async |key| given.token(key).await.map(|record| record.version);
    assert_eq!(versions, [version("z").await, None, version("a").await]);
    assert!(versions[0].is_some() && versions[2].is_some() && versions[0] != versions[2]);
    let audit = given.audit().await;
    assert_eq!(super::numbers(&audit), numbers);
    let subjects: Vec<&str> = audit.iter().map(|entry| entry.subject.as_str()).collect();
    assert_eq!(subjects, ["first", "second", "third"]);
}

async fn an_empty_batch_is_done(given: Given) {
    assert_eq!(done(given.write_all(vec![], vec![]).await), (vec![], vec![]));
}

async fn shelves_do_not_share_keys(given: Given) {
    given.put_record(put("k", Only::Absent, "1")).await;
    let other = tenure_store::Put { shelf: super::word("webhook"), ..put("k", Only::Absent, "2") };
    given.put_record(other).await;
    assert_eq!(given.said("k").await.as_deref(), Some("1"));
}
