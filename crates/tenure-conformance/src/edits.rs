//! What changing several things about a job at once promises.

use std::collections::BTreeMap;

use tenure_core::{Due, Edit, Head, Key, Name, NewJob, OrderingKey, State, StateName, Terms};
use tenure_store::{Change, ChangeOutcome, Filter, PageAsk};

use super::given::{Given, ids, minutes, pages, priority, queue, retry, seconds};
use super::{Test, test};

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(an_edit_changes_what_it_says_and_nothing_else),
        test(an_edit_that_says_nothing_new_changes_nothing),
        test(an_edited_job_is_found_by_its_new_tags_and_no_more_by_its_old_ones),
        test(a_job_that_is_not_as_it_was_seen_is_not_edited),
        test(a_job_that_only_came_to_be_blocked_is_as_it_was_seen),
        test(an_edited_number_of_attempts_counts),
        test(an_edited_job_of_an_ordering_key_gives_up_its_turn_where_it_was),
        test(what_runs_or_has_ended_is_not_edited),
        test(an_edit_survives),
    ]
}

fn tag(name: &str) -> Name {
    Name::new("tag", name).unwrap()
}

fn notes(key: &str) -> BTreeMap<String, String> {
    [(key.to_owned(), "a note".to_owned())].into()
}

fn tagged(given: &Given) -> NewJob {
    let terms = Terms { tags: vec![tag("eu"), tag("vip")], meta: notes("first"), ..Terms::default() };
    NewJob { terms: (terms).into(), ..given.new_job("mail") }
}

fn edit(edit: Edit) -> Change {
    Change::Edit(Box::new(edit))
}

async fn an_edit_changes_what_it_says_and_nothing_else(given: Given) {
    let id = given.put(tagged(&given)).await;
    let mut expected = given.job(id).await;
    given.pass(seconds(1));
    let all = Edit {
        seen: Some(Box::new(expected.clone())),
        queue: Some(queue("post")),
        priority: Some(priority(-3)),
        due: Some(Due::In(minutes(1))),
        tags: Some(vec![tag("us")]),
        meta: Some(notes("second")),
        attempts: Some(2),
    };
    assert_eq!(given.change(id, edit(all)).await, ChangeOutcome::Done);
    let terms = Terms { tags: vec![tag("us")], meta: notes("second"), attempts: Some(2), ..Terms::default() };
    (expected.queue, expected.priority, expected.terms) = (queue("post"), priority(-3), terms.into());
    let State::Waiting { why, .. } = expected.state else { panic!("{expected:?}") };
    expected.state = State::Waiting { due: given.now().after(minutes(1)), why };
    assert_eq!(given.job(id).await, expected);
    assert_eq!(given.reserve("post", 9).await, []);
    given.pass(minutes(1));
    assert_eq!(ids(&given.reserve("mail", 9).await), []);
    assert_eq!(ids(&given.reserve("post", 9).await), [id]);
}

async fn an_edit_that_says_nothing_new_changes_nothing(given: Given) {
    let id = given.put(tagged(&given)).await;
    let before = given.job(id).await;
    let same = Edit {
        queue: Some(queue("mail")),
        priority: Some(before.priority),
        tags: Some(vec![tag("eu"), tag("vip")]),
        meta: Some(notes("first")),
        ..Edit::default()
    };
    for none in [Edit::default(), same] {
        assert_eq!(given.change(id, edit(none)).await, ChangeOutcome::Already);
    }
    assert_eq!(given.job(id).await, before);
}

async fn an_edited_job_is_found_by_its_new_tags_and_no_more_by_its_old_ones(given: Given) {
    let id = given.put(tagged(&given)).await;
    let other = given.put(tagged(&given)).await;
    let change = Edit { tags: Some(vec![tag("vip"), tag("us")]), ..Edit::default() };
    given.change(id, edit(change)).await;
    for (word, expected) in [("eu", vec![other]), ("vip", vec![other, id]), ("us", vec![id])] {
        let filter = Filter { tags: vec![tag(word)], ..Filter::default() };
        let found = pages(&*given.store, PageAsk { filter, at_most: 9, ..PageAsk::default() }).await;
        let found: Vec<_> = found.into_iter().map(|job| job.id).collect();
        assert_eq!(found, expected, "{word}");
    }
}

async fn a_job_that_is_not_as_it_was_seen_is_not_edited(given: Given) {
    let id = given.put(tagged(&given)).await;
    let seen = given.job(id).await;
    given.change(id, Change::Reprioritise(priority(1))).await;
    let before = given.job(id).await;
    let change = Edit { seen: Some(Box::new(seen)), tags: Some(vec![]), ..Edit::default() };
    assert_eq!(given.change(id, edit(change.clone())).await, ChangeOutcome::RefusedChanged);
    assert_eq!(given.job(id).await, before);
    let change = Edit { seen: Some(Box::new(before)), ..change };
    assert_eq!(given.change(id, edit(change.clone())).await, ChangeOutcome::Done);
    assert_eq!(given.change(id, edit(change)).await, ChangeOutcome::RefusedChanged, "it is other by that");
}

fn ordered() -> Terms {
    let key = Key::new("ordering_key", "one").unwrap();
    Terms { ordering: Some(OrderingKey { key, head: Head::Block }), ..Terms::default() }
}

async fn a_job_that_only_came_to_be_blocked_is_as_it_was_seen(given: Given) {
    let first = given.put(NewJob { terms: (ordered()).into(), ..given.new_job("mail") }).await;
    let second = given.put(NewJob { terms: (ordered()).into(), ..given.new_job("mail") }).await;
    let seen = given.job(second).await;
    assert_eq!(ids(&given.reserve("mail", 9).await), [first]);
    assert_eq!(given.job(second).await.state.name(given.now()), StateName::Blocked);
    let change = Edit { seen: Some(Box::new(seen)), tags: Some(vec![tag("eu")]), ..Edit::default() };
    assert_eq!(given.change(second, edit(change)).await, ChangeOutcome::Done);
}

async fn an_edited_number_of_attempts_counts(given: Given) {
    let reserved = given.running().await;
    let id = reserved.job().id;
    given.settle(reserved, retry()).await;
    let change = Edit { attempts: Some(2), due: Some(Due::Now), ..Edit::default() };
    assert_eq!(given.change(id, edit(change)).await, ChangeOutcome::Done);
    let again = given.reserve("mail", 1).await.remove(0);
    given.settle(again, retry()).await;
    assert_eq!(given.job(id).await.state.name(given.now()), StateName::Failed);
    let ends: Vec<_> =
        given.store.attempts(id).await.unwrap().into_iter().map(|attempt| attempt.ended).collect();
    assert_eq!(ends.len(), 2, "{ends:?}");
}

async fn an_edited_job_of_an_ordering_key_gives_up_its_turn_where_it_was(given: Given) {
    let first = given.put(NewJob { terms: (ordered()).into(), ..given.new_job("mail") }).await;
    let second = given.put(NewJob { terms: (ordered()).into(), ..given.new_job("mail") }).await;
    let change = Edit {
        due: Some(Due::In(minutes(1))),
        priority: Some(priority(5)),
        tags: Some(vec![tag("late")]),
        ..Edit::default()
    };
    assert_eq!(given.change(second, edit(change)).await, ChangeOutcome::Done);
    assert_eq!(ids(&given.reserve("mail", 9).await), [first]);
    let job = given.job(second).await;
    assert_eq!((job.priority, &job.terms.tags), (priority(5), &vec![tag("late")]));
}

async fn what_runs_or_has_ended_is_not_edited(given: Given) {
    let change = || edit(Edit { tags: Some(vec![tag("eu")]), ..Edit::default() });
    let reserved = given.running().await;
    assert_eq!(given.change(reserved.job().id, change()).await, ChangeOutcome::RefusedRunning);
    assert_eq!(given.job(reserved.job().id).await, *reserved.job());
    let id = given.succeeded().await;
    assert_eq!(given.change(id, change()).await, ChangeOutcome::RefusedFinished);
    assert_eq!(given.change(given.id(), change()).await, ChangeOutcome::NotFound);
}

/// It is told by what is kept, not only by who changed it.
async fn an_edit_survives(given: Given) {
    let id = given.put(given.new_job("mail")).await;
    let change = Edit { tags: Some(vec![tag("eu")]), meta: Some(notes("a")), ..Edit::default() };
    given.change(id, edit(change)).await;
    let back = Edit { tags: Some(vec![]), meta: Some(BTreeMap::new()), ..Edit::default() };
    let reserved = given.reserve("mail", 1).await.remove(0);
    assert_eq!(reserved.job().terms.tags, [tag("eu")]);
    given.settle(reserved, tenure_core::Verdict::Released).await;
    assert_eq!(given.change(id, edit(back)).await, ChangeOutcome::Done);
    assert!(given.job(id).await.terms.are_default());
}
