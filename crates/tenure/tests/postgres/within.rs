//! Enqueueing in a transaction of the user's own.

use std::sync::Arc;
use std::time::Duration;

use tenure::{
    Accepted, Chance, Clock, Draft, Error, Keyring, Only, Refusal, SealedStore, StateName, Store,
    SystemClock, Tenure,
};
use tenure_core::Verdict;
use tenure_store::{Settled, Views};

use super::common::{Plain, try_reserve};
use super::rig;

const HOUR: Duration = Duration::from_secs(3600);

async fn ids_of(tenure: &Tenure) -> Vec<u64> {
    let reserved = try_reserve(tenure).await;
    let number = |job: &tenure_core::Reserved| {
        serde_json::from_slice::<Plain>(job.job().args.as_bytes()).unwrap().number
    };
    reserved.iter().map(number).collect()
}

#[tokio::test]
async fn a_job_is_there_when_its_transaction_commits_and_not_before() {
    let rig = rig();
    let mut client = rig.client().await;
    let mut tx = client.transaction().await.unwrap();
    tx.execute("INSERT INTO effect VALUES (1)", &[]).await.unwrap();
    let accepted = rig.tenure.enqueue(Plain { number: 1 }).within(&mut tx).await.unwrap();
    assert!(matches!(accepted, Accepted::New(_)));
    assert!(try_reserve(&rig.tenure).await.is_empty());
    assert!(matches!(rig.tenure.jobs().get(accepted.id()).await, Err(Error::NotFound(_))));
    tx.commit().await.unwrap();
    assert_eq!(ids_of(&rig.another()).await, [1]);
}

#[tokio::test]
async fn nothing_is_left_of_a_job_whose_transaction_rolls_back() {
    let rig = rig();
    let mut client = rig.client().await;
    let mut tx = client.transaction().await.unwrap();
    let job =
        rig.tenure.enqueue(Plain { number: 1 }).unique_key("once").tag("a").ordered("k").within(&mut tx);
    let id = job.await.unwrap().id();
    tx.rollback().await.unwrap();
    assert!(matches!(rig.tenure.jobs().get(id).await, Err(Error::NotFound(_))));
    assert!(try_reserve(&rig.tenure).await.is_empty());
    let again = rig.tenure.enqueue(Plain { number: 2 }).unique_key("once").await.unwrap();
    assert!(matches!(again, Accepted::New(_)), "the key is free");
}

#[tokio::test]
async fn other_hosts_hear_of_it_after_the_commit_and_not_if_it_rolls_back() {
    let rig = rig();
    let other = rig.another();
    let mut client = rig.client().await;
    let mut due = other.store().due();
    for commits in [false, true] {
        // What was said before has been heard once nothing comes for a while.
        let quiet = async |due: &mut tokio::sync::watch::Receiver<_>| {
            tokio::select! {
                biased;
                changed = due.changed() => changed.is_err(),
                () = SystemClock.sleep(Duration::from_secs(1)) => true,
            }
        };
        while !quiet(&mut due).await {}
        let mut tx = client.transaction().await.unwrap();
        for number in 0..100 {
            rig.tenure.enqueue(Plain { number }).within(&mut tx).await.unwrap();
        }
        assert!(!due.has_changed().unwrap());
        if commits {
            tx.commit().await.unwrap()
        } else {
            tx.rollback().await.unwrap()
        }
        let long_enough = SystemClock.sleep(Duration::from_secs(if commits { 60 } else { 1 }));
        let heard = tokio::select! {
            biased;
            _ = due.changed() => true,
            () = long_enough => false,
        };
        assert_eq!(heard, commits);
    }
}

#[tokio::test]
async fn whatever_is_said_of_a_job_counts_as_it_does_outside_of_a_transaction() {
    let rig = rig();
    let mut client = rig.client().await;
    let tenure = &rig.tenure;
    let mut tx = client.transaction().await.unwrap();
    let first = tenure.enqueue(Plain { number: 1 }).ordered("k").tag("red").meta("why", "test");
    let first = first.within(&mut tx).await.unwrap().id();
    let second = tenure.enqueue(Plain { number: 2 }).ordered("k").within(&mut tx).await.unwrap().id();
    let third = tenure.enqueue(Plain { number: 3 }).after_jobs([first]).priority(-5).within(&mut tx);
    let third = third.await.unwrap().id();
    let late = tenure.enqueue(Plain { number: 4 }).after(HOUR).within(&mut tx).await.unwrap().id();
    let limited = tenure.enqueue(Plain { number: 5 }).limited("l", 1).within(&mut tx).await.unwrap().id();
    let blocked = tenure.enqueue(Plain { number: 6 }).limited("l", 1).within(&mut tx).await.unwrap().id();
    tx.commit().await.unwrap();
    assert_eq!(ids_of(tenure).await, [1, 5]);
    let state = |id| async move { tenure.jobs().get(id).await.unwrap().state.name(tenure.now()) };
    for id in [second, third, blocked] {
        assert_eq!(state(id).await, StateName::Blocked);
    }
    assert_eq!((state(late).await, state(limited).await), (StateName::Scheduled, StateName::Running));
    let counts = tenure.counts().await.unwrap();
    let sum = |name| counts.iter().filter(|count| count.state == name).map(|count| count.jobs).sum::<u64>();
    let all = [StateName::Running, StateName::Blocked, StateName::Scheduled, StateName::Queued].map(sum);
    assert_eq!(all, [2, 3, 1, 0]);
    let job = tenure.jobs().get(first).await.unwrap();
    assert_eq!(job.terms.tags[0].as_str(), "red");
    rig.clock.advance(HOUR);
    assert!(ids_of(tenure).await.contains(&4));
}

#[tokio::test]
async fn a_unique_key_means_the_same_in_a_transaction() {
    let rig = rig();
    let mut client = rig.client().await;
    let tenure = &rig.tenure;
    let holder = tenure.enqueue(Plain { number: 1 }).unique_key("k").after(HOUR).await.unwrap().id();
    let mut tx = client.transaction().await.unwrap();
    let existing = tenure.enqueue(Plain { number: 2 }).unique_key("k").within(&mut tx).await.unwrap();
    assert_eq!(existing, Accepted::Existing(holder));
    let refused = tenure.enqueue(Plain { number: 3 }).unique_by(Only::one("k").or_reject()).within(&mut tx);
    let refused = refused.await.unwrap_err();
    assert!(matches!(refused, Error::Refused { refusal: Refusal::KeyHeld(id), .. } if id == holder));
    let replaced = tenure.enqueue(Plain { number: 4 }).unique_by(Only::one("k").or_replace()).within(&mut tx);
    let replaced = replaced.await.unwrap();
    assert!(matches!(replaced, Accepted::Replaced { old, .. } if old == holder), "{replaced:?}");
    let repeated = tenure.enqueue(Plain { number: 4 }).id(replaced.id()).within(&mut tx).await.unwrap();
    assert_eq!(repeated, Accepted::Repeated(replaced.id()));
    let taken = tenure.enqueue(Plain { number: 5 }).id(replaced.id()).within(&mut tx).await.unwrap_err();
    assert!(matches!(taken, Error::Refused { refusal: Refusal::IdTaken(_), .. }), "{taken}");
    let missing = tenure.enqueue(Plain { number: 6 }).after_jobs([tenure.new_id()]).within(&mut tx).await;
    assert!(matches!(missing, Err(Error::Refused { refusal: Refusal::NoSuchJob(_), .. })), "{missing:?}");
    tx.commit().await.unwrap();
    assert_eq!(ids_of(tenure).await, [4]);
    let state = tenure.jobs().get(holder).await.unwrap().state.name(tenure.now());
    assert_eq!(state, StateName::Cancelled);
    let again = tenure.enqueue(Plain { number: 7 }).unique_key("k").await.unwrap();
    assert_eq!(again, Accepted::Existing(replaced.id()));
}

/// A waiting job with an ordering key is replaced as well, and one that is due is not run meanwhile.
#[tokio::test]
async fn a_job_that_was_replaced_in_a_transaction_does_not_run() {
    for ordered in [false, true] {
        let rig = rig();
        let mut client = rig.client().await;
        let tenure = &rig.tenure;
        let old = tenure.enqueue(Plain { number: 1 }).unique_key("k");
        let old = if ordered { old.ordered("o") } else { old }.await.unwrap().id();
        let mut tx = client.transaction().await.unwrap();
        let new = tenure.enqueue(Plain { number: 2 }).unique_by(Only::one("k").or_replace()).within(&mut tx);
        assert!(matches!(new.await.unwrap(), Accepted::Replaced { old: replaced, .. } if replaced == old));
        tx.commit().await.unwrap();
        assert_eq!(ids_of(tenure).await, [2], "ordered: {ordered}");
        let state = tenure.jobs().get(old).await.unwrap().state.name(tenure.now());
        assert_eq!(state, StateName::Cancelled);
        // A replacement that is taken back leaves the old one as it was.
        let old = tenure.enqueue(Plain { number: 3 }).unique_key("j").await.unwrap().id();
        let mut tx = client.transaction().await.unwrap();
        let new = tenure.enqueue(Plain { number: 4 }).unique_by(Only::one("j").or_replace()).within(&mut tx);
        new.await.unwrap();
        tx.rollback().await.unwrap();
        let reserved = try_reserve(tenure).await;
        assert_eq!(reserved.iter().map(|job| job.job().id).collect::<Vec<_>>(), [old]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_transactions_that_want_one_key_one_has_it() {
    let rig = rig();
    let (mut one, mut two) = (rig.client().await, rig.client().await);
    let mut first = one.transaction().await.unwrap();
    let has_it = rig.tenure.enqueue(Plain { number: 1 }).unique_key("k").within(&mut first).await.unwrap();
    let tenure = rig.tenure.clone();
    let second = tokio::spawn(async move {
        let mut second = two.transaction().await.unwrap();
        let accepted = tenure.enqueue(Plain { number: 2 }).unique_key("k").within(&mut second).await.unwrap();
        second.commit().await.unwrap();
        accepted
    });
    SystemClock.sleep(Duration::from_millis(100)).await;
    assert!(!second.is_finished(), "it waits for the end of the other");
    first.commit().await.unwrap();
    assert_eq!(second.await.unwrap(), Accepted::Existing(has_it.id()));
    assert_eq!(ids_of(&rig.tenure).await, [1]);
}

/// A job that was enqueued in a transaction with keys is passed on like any other when it ends.
#[tokio::test]
async fn who_waits_behind_a_job_of_a_transaction_goes_on_after_it() {
    let rig = rig();
    let mut client = rig.client().await;
    let tenure = &rig.tenure;
    let mut tx = client.transaction().await.unwrap();
    for number in [1, 2] {
        tenure.enqueue(Plain { number }).ordered("k").within(&mut tx).await.unwrap();
    }
    tx.commit().await.unwrap();
    tenure.enqueue(Plain { number: 3 }).ordered("k").await.unwrap();
    for number in [1, 2, 3] {
        let mut reserved = try_reserve(tenure).await;
        assert_eq!(reserved.len(), 1);
        let reserved = reserved.remove(0);
        assert_eq!(reserved.job().args.as_bytes(), format!("{{\"number\":{number}}}").as_bytes());
        let settlement = reserved.settle(Verdict::Succeeded(None), &tenure::RetryPolicy::default(), 0.5);
        let turn = tenure.store().settle(vec![settlement], None).await.unwrap();
        assert_eq!(turn.settled, [Settled::Done(StateName::Succeeded)]);
    }
}

#[tokio::test]
async fn a_store_that_is_in_no_database_says_so() {
    let rig = rig();
    let mut client = rig.client().await;
    let mut tx = client.transaction().await.unwrap();
    let elsewhere = super::common::memory().tenure;
    let refused = elsewhere.enqueue(Plain { number: 1 }).within(&mut tx).await.unwrap_err();
    assert!(matches!(refused, Error::NoTransaction), "{refused}");
}

#[tokio::test]
async fn what_a_queue_says_holds_in_a_transaction_as_well() {
    let rig = rig();
    let retention = tenure::Retention::always(tenure::Keep::For(HOUR));
    let retry = tenure::RetryPolicy { max_attempts: 2, ..tenure::RetryPolicy::default() };
    let terms = tenure::QueueTerms {
        max_depth: Some(2),
        retention: Some(retention),
        retry: Some(retry),
        ..tenure::QueueTerms::default()
    };
    let edit = tenure::QueueEdit { terms: Some(terms), ..tenure::QueueEdit::default() };
    rig.tenure.queues().agree("default", edit).await.unwrap();
    let mut client = rig.client().await;
    let mut tx = client.transaction().await.unwrap();
    let plain = rig.tenure.enqueue(Plain { number: 1 }).within(&mut tx).await.unwrap();
    let said = rig.tenure.enqueue(Plain { number: 2 }).attempts(9).unique_key("once");
    let said = said.within(&mut tx).await.unwrap();
    let refused = rig.tenure.enqueue(Plain { number: 3 }).unique_key("another").within(&mut tx).await;
    let full = |refused: Result<Accepted, Error>| {
        matches!(refused, Err(Error::Refused { refusal: Refusal::QueueFull { most: 2 }, .. }))
    };
    assert!(full(refused));
    let same = rig.tenure.enqueue(Plain { number: 2 }).unique_key("once").within(&mut tx).await.unwrap();
    assert_eq!(same, Accepted::Existing(said.id()));
    tx.commit().await.unwrap();
    let (plain, said) = (rig.tenure.jobs().get(plain.id()).await, rig.tenure.jobs().get(said.id()).await);
    let terms = [plain.unwrap().terms, said.unwrap().terms];
    assert_eq!(
        terms.each_ref().map(|terms| (terms.max_attempts(), terms.retention)),
        [(2, retention), (9, retention)]
    );
    let sql = &format!("SELECT {}.enqueue('plain', '{{\"number\":4}}')", rig.options.schema);
    let error = client.query_one(sql, &[]).await.unwrap_err();
    let error = error.as_db_error().unwrap();
    assert_eq!(
        (error.code().code(), error.message()),
        ("53400", "the queue default is full: 2 jobs wait in it")
    );
    try_reserve(&rig.tenure).await;
    let again = rig.tenure.enqueue(Plain { number: 5 }).unique_key("another").await.unwrap();
    assert!(matches!(again, Accepted::New(_)), "what was refused has left no key");
    client.query_one(sql, &[]).await.unwrap();
}

#[tokio::test]
async fn a_batch_lives_or_dies_with_the_transaction() {
    let rig = rig();
    let mut client = rig.client().await;
    let many = || (0..2_000).map(|number| Draft::of(&Plain { number }));
    let mut tx = client.transaction().await.unwrap();
    assert_eq!(rig.tenure.enqueue_all_within(many(), &mut tx).await.unwrap().len(), 2_000);
    tx.rollback().await.unwrap();
    let counted = async || rig.tenure.counts().await.unwrap().iter().map(|count| count.jobs).sum::<u64>();
    assert_eq!(counted().await, 0);
    let mut tx = client.transaction().await.unwrap();
    assert!(rig.tenure.enqueue_all_within([], &mut tx).await.unwrap().is_empty());
    let accepted = rig.tenure.enqueue_all_within(many(), &mut tx).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(counted().await, 2_000);
    for number in [0, 999, 1_999] {
        let job = rig.tenure.jobs().get(accepted[number].id()).await.unwrap();
        assert_eq!(
            job.args.as_bytes(),
            format!("{{\"number\":{number}}}").as_bytes(),
            "each has its own args"
        );
    }
}

#[tokio::test]
async fn a_batch_in_a_transaction_says_of_each_job_what_became_of_it_or_which_was_refused() {
    let rig = rig();
    let tenure = &rig.tenure;
    let holder = tenure.enqueue(Plain { number: 1 }).unique_key("k").await.unwrap().id();
    let mut client = rig.client().await;
    let mut tx = client.transaction().await.unwrap();
    let drafts = [
        Draft::of(&Plain { number: 2 }),
        Draft::of(&Plain { number: 3 }).unique_key("k"),
        Draft::of(&Plain { number: 4 }).queue("post"),
    ];
    let accepted = tenure.enqueue_all_within(drafts, &mut tx).await.unwrap();
    assert!(
        matches!(accepted[..], [Accepted::New(_), Accepted::Existing(id), Accepted::New(_)] if id == holder)
    );
    let reject = Draft::of(&Plain { number: 6 }).unique_by(Only::one("k").or_reject());
    let refused = tenure.enqueue_all_within([Draft::of(&Plain { number: 5 }), reject], &mut tx).await;
    let told =
        matches!(refused, Err(Error::Refused { index: 1, refusal: Refusal::KeyHeld(id) }) if id == holder);
    assert!(told, "{refused:?}");
    tx.rollback().await.unwrap();
    assert_eq!(ids_of(tenure).await, [1], "nothing else is there");
}

#[tokio::test]
async fn a_batch_in_a_transaction_knows_its_own_jobs_and_those_that_are_there() {
    let rig = rig();
    let tenure = &rig.tenure;
    let mut client = rig.client().await;
    let there = tenure.enqueue(Plain { number: 1 }).await.unwrap().id();
    let id = tenure.new_id();
    let draft = |number, id| Draft::of(&Plain { number }).id(id);
    let mut tx = client.transaction().await.unwrap();
    let accepted =
        tenure.enqueue_all_within([draft(2, id), draft(2, id), draft(1, there)], &mut tx).await.unwrap();
    assert_eq!(accepted, [Accepted::New(id), Accepted::Repeated(id), Accepted::Repeated(there)]);
    let taken = tenure.enqueue_all_within([draft(3, there)], &mut tx).await.unwrap_err();
    let is_taken = matches!(taken, Error::Refused { index: 0, refusal: Refusal::IdTaken(id) } if id == there);
    assert!(is_taken, "{taken}");
    tx.commit().await.unwrap();
    assert_eq!(ids_of(tenure).await, [1, 2]);
}

/// As after the promotion of a replica that has not heard of what was made last.
#[tokio::test]
async fn a_lane_that_the_database_has_forgotten_is_not_relied_on() {
    let rig = rig();
    let mut client = rig.client().await;
    rig.tenure.enqueue(Plain { number: 1 }).await.unwrap();
    assert_eq!(ids_of(&rig.tenure).await, [1]);
    let forget = format!("UPDATE {}.lane SET kind = 'another'", rig.options.schema);
    client.batch_execute(&forget).await.unwrap();
    let mut tx = client.transaction().await.unwrap();
    let id = rig.tenure.enqueue(Plain { number: 2 }).within(&mut tx).await.unwrap().id();
    tx.commit().await.unwrap();
    let job = rig.another().jobs().get(id).await.unwrap();
    assert_eq!(job.kind.as_str(), "plain");
}

/// One host that never looks by itself hears of what a transaction has left behind, also when that lasts for a while.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_that_stays_open_for_a_while_is_heard_of_when_it_commits() {
    let rig = rig();
    let other = rig.another();
    let mut client = rig.client().await;
    let mut due = other.store().due();
    let mut tx = client.transaction().await.unwrap();
    rig.tenure.enqueue_all_within([Draft::of(&Plain { number: 1 })], &mut tx).await.unwrap();
    SystemClock.sleep(Duration::from_secs(2)).await;
    due.borrow_and_update();
    tx.commit().await.unwrap();
    let heard = tokio::select! {
        biased;
        changed = due.changed() => changed.is_ok(),
        () = SystemClock.sleep(Duration::from_secs(60)) => false,
    };
    assert!(heard);
}

/// A place in another queue is none in this one.
#[tokio::test]
async fn who_takes_the_place_of_a_job_of_another_queue_needs_room_in_a_transaction_as_well() {
    let rig = rig();
    let terms = tenure::QueueTerms { max_depth: Some(1), ..tenure::QueueTerms::default() };
    let edit = tenure::QueueEdit { terms: Some(terms), ..tenure::QueueEdit::default() };
    rig.tenure.queues().agree("default", edit).await.unwrap();
    let only = || tenure::Only::one("once").or_replace();
    let old = rig.tenure.enqueue(Plain { number: 1 }).queue("post").unique_by(only()).await.unwrap();
    let there = rig.tenure.enqueue(Plain { number: 2 }).await.unwrap();
    let mut client = rig.client().await;
    let mut tx = client.transaction().await.unwrap();
    let refused =
        rig.tenure.enqueue(Plain { number: 3 }).unique_by(only()).within(&mut tx).await.unwrap_err();
    assert!(matches!(refused, Error::Refused { refusal: Refusal::QueueFull { most: 1 }, .. }), "{refused}");
    tx.commit().await.unwrap();
    let waits = rig.tenure.jobs().get(old.id()).await.unwrap();
    assert!(!waits.state.is_finished(), "what is refused replaces nothing");
    rig.tenure.jobs().cancel(there.id(), Duration::ZERO, "").await.unwrap();
    let mut tx = client.transaction().await.unwrap();
    let new = rig.tenure.enqueue(Plain { number: 3 }).unique_by(only()).within(&mut tx).await.unwrap();
    assert!(matches!(new, Accepted::Replaced { old: replaced, .. } if replaced == old.id()), "{new:?}");
    tx.commit().await.unwrap();
}

const OLD: &str = "old:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const NEW: &str = "new:/wECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

#[tokio::test]
async fn a_job_that_is_repeated_in_a_transaction_after_a_change_of_keys_is_recognized() {
    let rig = rig();
    let with = |lines: &[&str]| {
        let keys = Keyring::parse(&lines.join("\n")).unwrap();
        let store = SealedStore::new(Arc::clone(&rig.store) as Arc<dyn Store>, keys);
        Tenure::on(Arc::new(store), Chance::seeded(7))
    };
    let (old, new) = (with(&[OLD]), with(&[NEW, OLD]));
    let draft = |id, number| Draft::of(&Plain { number }).id(id);
    let (plain, sealed, other) = (old.new_id(), old.new_id(), old.new_id());
    rig.tenure.enqueue_draft(draft(plain, 1)).await.unwrap();
    old.enqueue_draft(draft(sealed, 2)).await.unwrap();
    let mut client = rig.client().await;
    let mut tx = client.transaction().await.unwrap();
    let jobs = [draft(other, 3), draft(sealed, 2), draft(plain, 1)];
    let accepted = new.enqueue_all_within(jobs, &mut tx).await.unwrap();
    assert_eq!(accepted, [Accepted::New(other), Accepted::Repeated(sealed), Accepted::Repeated(plain)]);
    let again = new.enqueue_draft(draft(sealed, 2)).within(&mut tx).await.unwrap();
    assert_eq!(again, Accepted::Repeated(sealed));
    tx.commit().await.unwrap();
    let stored = rig.store.job(other).await.unwrap().unwrap();
    assert!(stored.args.as_bytes().starts_with(b"{\"$sealed\":\""), "a new job is encrypted");
    let mut tx = client.transaction().await.unwrap();
    let refused = new.enqueue_draft(draft(sealed, 9)).within(&mut tx).await.unwrap_err();
    assert!(matches!(refused, Error::Refused { refusal: Refusal::IdTaken(_), .. }), "{refused}");
}
