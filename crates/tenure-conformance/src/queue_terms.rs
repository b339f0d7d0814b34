//! What the terms of a queue promise, and what changes them.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{
    IfFailed, Keep, Limit, NewJob, OnConflict, Policies, QueueAgreed, QueueTerms, Retention, RetryPolicy,
    StateName, Terms, Window,
};

use super::given::{Given, host, minutes, queue, seconds};
use super::keyed::after;
use super::races::{CALLERS, all_at_once, both};
use super::{Test, race, test};
use tenure_store::{
    Accepted, Enqueued, QueueEdit, QueueEdited, QueueInfo, QueueRemoved, QueueSeen, Refusal, Store,
};

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(in_a_queue_of_bounded_depth_no_more_jobs_wait_than_may),
        test(jobs_that_run_or_have_ended_take_no_room),
        test(a_batch_that_does_not_fit_into_a_queue_is_refused_whole),
        test(a_full_queue_does_not_refuse_what_is_there_already),
        test(a_job_that_takes_the_place_of_a_waiting_one_needs_no_room),
        test(a_job_that_takes_the_place_of_one_of_another_queue_needs_room),
        test(the_jobs_of_a_timer_come_into_a_full_queue),
        test(a_depth_below_what_waits_keeps_what_waits),
        race(of_many_who_enqueue_at_once_no_more_come_in_than_may_wait),
        test(a_job_takes_from_its_queue_what_it_does_not_say),
        test(an_edit_says_what_was_agreed_before_and_keeps_what_it_does_not_say),
        test(an_edit_of_what_is_not_as_it_was_seen_does_nothing),
        race(of_many_who_edit_the_same_queue_as_they_saw_it_one_does),
        race(a_pause_is_never_undone_by_an_edit_that_did_not_see_it),
        test(a_queue_in_which_a_job_is_kept_is_not_removed),
        test(a_removed_queue_is_a_new_one_when_it_is_named_again),
        race(a_queue_is_never_gone_while_a_job_is_in_it),
    ]
}

fn deep(most: u64) -> QueueTerms {
    QueueTerms { max_depth: Some(most), ..QueueTerms::default() }
}

fn hour() -> Retention {
    Retention::always(Keep::For(Duration::from_secs(3600)))
}

async fn agree(given: &Given, terms: QueueTerms) -> QueueEdited {
    let edit = QueueEdit { terms: Some(terms), ..QueueEdit::default() };
    given.store.edit_queue(&queue("mail"), edit).await.unwrap()
}

async fn mail(store: &dyn Store) -> Option<QueueInfo> {
    store.queues().await.unwrap().into_iter().find(|queue| queue.name.as_str() == "mail")
}

impl Given {
    async fn offered(&self, queue: &str) -> Option<Refusal> {
        match self.enqueue_all(vec![self.new_job(queue)]).await {
            Enqueued::Refused { index: 0, refusal } => Some(refusal),
            Enqueued::Refused { index, .. } => panic!("job {index} of one"),
            Enqueued::Stored(_) => None,
        }
    }
}

async fn in_a_queue_of_bounded_depth_no_more_jobs_wait_than_may(given: Given) {
    agree(&given, deep(4)).await;
    let first = given.put(given.new_job("mail")).await;
    given.put(given.due_in("mail", minutes(60))).await;
    given.put(given.on_terms("mail", after(&[first], IfFailed::Cancel))).await;
    given.put(given.of_kind("mail", "print")).await;
    let blocked = given.due_in("mail", minutes(5));
    assert_eq!(given.offered("mail").await, Some(Refusal::QueueFull { most: 4 }));
    let refused = Enqueued::Refused { index: 0, refusal: Refusal::QueueFull { most: 4 } };
    assert_eq!(given.enqueue_all(vec![blocked.clone()]).await, refused);
    assert!(!given.is_there(blocked.id).await, "what is refused is not stored");
    assert_eq!(given.offered("post").await, None, "another queue is not bounded");
}

async fn jobs_that_run_or_have_ended_take_no_room(given: Given) {
    agree(&given, deep(1)).await;
    let reserved = given.running().await;
    let reserved_too = given.running().await;
    given.put(given.new_job("mail")).await;
    given.succeed(reserved).await;
    given.fail(reserved_too).await;
    assert_eq!(given.offered("mail").await, Some(Refusal::QueueFull { most: 1 }));
    given.take("mail").await;
    assert_eq!(given.offered("mail").await, None);
}

async fn a_batch_that_does_not_fit_into_a_queue_is_refused_whole(given: Given) {
    agree(&given, deep(3)).await;
    given.enqueue("mail", 1).await;
    let batch = vec![
        given.new_job("mail"),
        given.new_job("post"),
        given.of_kind("mail", "print"),
        given.new_job("post"),
        given.new_job("mail"),
    ];
    let refused = Enqueued::Refused { index: 4, refusal: Refusal::QueueFull { most: 3 } };
    assert_eq!(given.enqueue_all(batch.clone()).await, refused);
    assert_eq!(given.all().await.len(), 1);
    assert!(matches!(given.enqueue_all(batch[..4].to_vec()).await, Enqueued::Stored(_)));
}

async fn a_full_queue_does_not_refuse_what_is_there_already(given: Given) {
    agree(&given, deep(2)).await;
    let job = given.new_job("mail");
    given.put(job.clone()).await;
    let holder = given.put(given.only(7, Window::WhileUnfinished, OnConflict::Return)).await;
    assert_eq!(given.offered("mail").await, Some(Refusal::QueueFull { most: 2 }));
    assert_eq!(given.offer(job.clone()).await, Accepted::Repeated(job.id));
    let second = given.only(7, Window::WhileUnfinished, OnConflict::Return);
    assert_eq!(given.offer(second).await, Accepted::Existing(holder));
}

async fn a_job_that_takes_the_place_of_a_waiting_one_needs_no_room(given: Given) {
    agree(&given, deep(1)).await;
    let old = given.put(given.only(7, Window::WhileUnfinished, OnConflict::Replace)).await;
    let new = given.only(7, Window::WhileUnfinished, OnConflict::Replace);
    let id = new.id;
    assert_eq!(given.offer(new).await, Accepted::Replaced { id, old });
    assert_eq!(given.offered("mail").await, Some(Refusal::QueueFull { most: 1 }));
}

async fn a_job_that_takes_the_place_of_one_of_another_queue_needs_room(given: Given) {
    agree(&given, deep(1)).await;
    let in_queue = |name: &str, key: u8| NewJob {
        queue: queue(name),
        ..given.only(key, Window::WhileUnfinished, OnConflict::Replace)
    };
    let old = given.put(in_queue("post", 7)).await;
    given.put(given.new_job("mail")).await;
    let full = Enqueued::Refused { index: 0, refusal: Refusal::QueueFull { most: 1 } };
    assert_eq!(given.enqueue_all(vec![in_queue("mail", 7)]).await, full);
    assert!(!given.job(old).await.state.is_finished(), "what is refused replaces nothing");
    given.take("mail").await;
    let new = in_queue("mail", 7);
    let id = new.id;
    assert_eq!(given.offer(new).await, Accepted::Replaced { id, old });
    assert_eq!(given.offered("mail").await, Some(Refusal::QueueFull { most: 1 }));
    // Whoever leaves the queue gives up its place, also to one of the same batch; and so does one of the batch itself.
    let batch = vec![in_queue("post", 7), in_queue("mail", 8), in_queue("post", 8), given.new_job("mail")];
    assert!(matches!(given.enqueue_all(batch).await, Enqueued::Stored(_)));
    assert_eq!(given.offered("mail").await, Some(Refusal::QueueFull { most: 1 }));
}

async fn the_jobs_of_a_timer_come_into_a_full_queue(given: Given) {
    agree(&given, QueueTerms { retention: Some(hour()), ..deep(1) }).await;
    given.put(given.new_job("mail")).await;
    given.each_minute(Policies::default()).await;
    given.pass(seconds(61));
    assert_eq!(given.fire().await.jobs, 1);
    let brought = given.all().await.pop().unwrap();
    assert!(brought.terms.slot.is_some());
    assert_eq!(brought.terms.retention, hour(), "what it does not say, its queue says");
}

async fn a_depth_below_what_waits_keeps_what_waits(given: Given) {
    given.enqueue("mail", 3).await;
    agree(&given, deep(1)).await;
    assert_eq!(given.offered("mail").await, Some(Refusal::QueueFull { most: 1 }));
    assert_eq!(given.reserve("mail", 9).await.len(), 3);
    assert_eq!(given.offered("mail").await, None);
    agree(&given, QueueTerms::default()).await;
    given.enqueue("mail", 5).await;
}

async fn of_many_who_enqueue_at_once_no_more_come_in_than_may_wait(given: Given) {
    const MOST: usize = 40;
    // What each program may have remembered of the queue is out of date.
    given.enqueue("mail", 1).await;
    agree(&given, deep(MOST as u64)).await;
    let (mut stored, mut refused) = (1, 0);
    let batches = (0..CALLERS).map(|caller| {
        let one = |n: usize| {
            if (caller + n).is_multiple_of(3) {
                given.of_kind("mail", "print")
            } else {
                given.new_job("mail")
            }
        };
        (0..6).map(|n| vec![one(n)]).collect::<Vec<_>>()
    });
    let batches: Vec<_> = batches.collect();
    let results = all_at_once(CALLERS, |caller| {
        let (store, batches) = (Arc::clone(&given.store), batches[caller].clone());
        async move {
            let mut results = Vec::new();
            for batch in batches {
                results.push(store.enqueue(batch).await.unwrap());
            }
            results
        }
    })
    .await;
    for result in results.into_iter().flatten() {
        match result {
            Enqueued::Stored(_) => stored += 1,
            Enqueued::Refused { refusal, .. } => {
                assert_eq!(refusal, Refusal::QueueFull { most: MOST as u64 });
                refused += 1;
            }
        }
    }
    assert_eq!((stored, refused), (MOST, 6 * CALLERS + 1 - MOST));
    assert_eq!(given.count("mail", StateName::Queued).await, MOST as u64);
}

async fn a_job_takes_from_its_queue_what_it_does_not_say(given: Given) {
    let few = RetryPolicy { max_attempts: 2, ..RetryPolicy::default() };
    // A lane that is known already, and one that is not.
    given.enqueue("mail", 1).await;
    agree(&given, QueueTerms { retry: Some(few.clone()), retention: Some(hour()), ..QueueTerms::default() })
        .await;
    let own = RetryPolicy { max_attempts: 9, ..RetryPolicy::default() };
    let said = Terms { retry: Some(own.clone()), attempts: Some(7), ..Terms::default() };
    let jobs = [
        given.put(given.new_job("mail")).await,
        given.put(given.of_kind("mail", "print")).await,
        given.put(given.on_terms("mail", said)).await,
        given.put(given.new_job("post")).await,
    ];
    let mut found = Vec::new();
    for id in jobs {
        let terms = given.job(id).await.terms;
        found.push((terms.retry.clone(), terms.attempts, terms.retention));
    }
    let filled = (Some(few), None, hour());
    let other = (None, None, Retention::default());
    assert_eq!(found, [filled.clone(), filled, (Some(own), Some(7), hour()), other]);
}

async fn an_edit_says_what_was_agreed_before_and_keeps_what_it_does_not_say(given: Given) {
    assert_eq!(agree(&given, deep(3)).await, QueueEdited::Done { before: None });
    let mut agreed = QueueAgreed { terms: deep(3), ..QueueAgreed::default() };
    let edits = [
        QueueEdit { paused: Some(true), ..QueueEdit::default() },
        QueueEdit { limit: Some(Limit::of(7)), ..QueueEdit::default() },
        QueueEdit { terms: Some(deep(5)), paused: Some(false), ..QueueEdit::default() },
        QueueEdit::default(),
    ];
    for edit in edits {
        let after = edit.after(agreed.clone());
        let edited = given.store.edit_queue(&queue("mail"), edit).await.unwrap();
        assert_eq!(edited, QueueEdited::Done { before: Some(agreed) });
        assert_eq!(mail(&*given.store).await.unwrap().agreed(), after);
        agreed = after;
    }
    assert_eq!(agreed, QueueAgreed { paused: false, limit: Limit::of(7), terms: deep(5) });
}

async fn an_edit_of_what_is_not_as_it_was_seen_does_nothing(given: Given) {
    let set = |seen: QueueSeen, most: u64| {
        let store = Arc::clone(&given.store);
        let edit = QueueEdit { seen, terms: Some(deep(most)), limit: Some(Limit::of(1)), paused: Some(true) };
        async move { store.edit_queue(&queue("mail"), edit).await.unwrap() }
    };
    let unseen = QueueAgreed::default();
    assert_eq!(set(QueueSeen::As(unseen.clone()), 9).await, QueueEdited::Otherwise(None));
    assert_eq!(mail(&*given.store).await, None, "nor is it made by that");
    assert_eq!(set(QueueSeen::Absent, 3).await, QueueEdited::Done { before: None });
    let agreed = QueueAgreed { paused: true, limit: Limit::of(1), terms: deep(3) };
    assert_eq!(set(QueueSeen::Absent, 4).await, QueueEdited::Otherwise(Some(agreed.clone())));
    let late = QueueAgreed { paused: false, ..agreed.clone() };
    assert_eq!(set(QueueSeen::As(late), 4).await, QueueEdited::Otherwise(Some(agreed.clone())));
    assert_eq!(mail(&*given.store).await.unwrap().agreed(), agreed);
    assert_eq!(set(QueueSeen::As(agreed.clone()), 5).await, QueueEdited::Done { before: Some(agreed) });
}

async fn of_many_who_edit_the_same_queue_as_they_saw_it_one_does(given: Given) {
    let mut seen = QueueSeen::Absent;
    for round in 1..=5_u64 {
        let results = all_at_once(CALLERS, |caller| {
            let (store, seen) = (Arc::clone(&given.store), seen.clone());
            let terms = Some(deep(round * 100 + caller as u64));
            async move {
                let edit = QueueEdit { seen, terms, ..QueueEdit::default() };
                store.edit_queue(&queue("mail"), edit).await.unwrap()
            }
        })
        .await;
        let won = results.iter().filter(|result| matches!(result, QueueEdited::Done { .. })).count();
        let agreed = mail(&*given.store).await.unwrap().agreed();
        assert_eq!((won, agreed.terms.max_depth.unwrap() / 100), (1, round));
        seen = QueueSeen::As(agreed);
    }
}

async fn a_pause_is_never_undone_by_an_edit_that_did_not_see_it(given: Given) {
    agree(&given, deep(1)).await;
    for most in 2..40 {
        let seen = mail(&*given.store).await.unwrap().agreed();
        let edit = QueueEdit { seen: QueueSeen::As(seen), terms: Some(deep(most)), ..QueueEdit::default() };
        let (pausing, editing) = (Arc::clone(&given.store), Arc::clone(&given.store));
        let mail_queue = queue("mail");
        let (_, edited) =
            both(async move { pausing.set_paused(&queue("mail"), true).await.unwrap() }, async move {
                editing.edit_queue(&mail_queue, edit).await.unwrap()
            })
            .await;
        let now = mail(&*given.store).await.unwrap();
        assert!(now.paused, "it was paused, and the edit said nothing of that");
        assert_eq!(now.terms == deep(most), matches!(edited, QueueEdited::Done { .. }));
        given.store.set_paused(&queue("mail"), false).await.unwrap();
    }
}

async fn a_queue_in_which_a_job_is_kept_is_not_removed(given: Given) {
    let remove = |seen: QueueSeen| {
        let store = Arc::clone(&given.store);
        async move { store.remove_queue(&queue("mail"), seen).await.unwrap() }
    };
    assert_eq!(remove(QueueSeen::Anything).await, QueueRemoved::Otherwise(None));
    let id = given.put(given.new_job("mail")).await;
    assert_eq!(remove(QueueSeen::Anything).await, QueueRemoved::NotEmpty);
    let reserved = given.take("mail").await;
    assert_eq!(remove(QueueSeen::Anything).await, QueueRemoved::NotEmpty);
    given.succeed(reserved).await;
    assert_eq!(remove(QueueSeen::Anything).await, QueueRemoved::NotEmpty);
    given.change(id, tenure_store::Change::Delete).await;
    let other = QueueAgreed { paused: true, ..QueueAgreed::default() };
    let there = QueueRemoved::Otherwise(Some(QueueAgreed::default()));
    assert_eq!(remove(QueueSeen::As(other)).await, there);
    assert_eq!(remove(QueueSeen::As(QueueAgreed::default())).await, QueueRemoved::Done);
    assert_eq!(mail(&*given.store).await, None);
    assert_eq!(remove(QueueSeen::Anything).await, QueueRemoved::Otherwise(None));
}

async fn a_removed_queue_is_a_new_one_when_it_is_named_again(given: Given) {
    let all = QueueEdit {
        paused: Some(true),
        limit: Some(Limit::of(1)),
        terms: Some(deep(1)),
        ..QueueEdit::default()
    };
    let id = given.put(given.new_job("mail")).await;
    given.change(id, tenure_store::Change::Delete).await;
    for way in 0..4 {
        given.store.edit_queue(&queue("mail"), all.clone()).await.unwrap();
        let removed = given.store.remove_queue(&queue("mail"), QueueSeen::Anything).await.unwrap();
        assert_eq!((removed, mail(&*given.store).await), (QueueRemoved::Done, None));
        let jobs = match way {
            // By a kind that was in it before, by another, by what is agreed, and by a job that comes from elsewhere.
            0 => given.enqueue("mail", 2).await,
            1 => vec![given.put(given.of_kind("mail", "print")).await],
            2 => {
                given.store.set_queue_limit(&queue("mail"), Limit::default()).await.unwrap();
                Vec::new()
            }
            _ => {
                let moved = given.put(given.new_job("post")).await;
                given.change(moved, tenure_store::Change::Move(queue("mail"))).await;
                vec![moved]
            }
        };
        assert_eq!(mail(&*given.store).await.unwrap().agreed(), QueueAgreed::default(), "{way}");
        assert_eq!(given.reserve("mail", 9).await.len(), jobs.len(), "{way}");
        given.pass(minutes(1));
        while given.tend().await.more {}
        for id in jobs {
            given.change(id, tenure_store::Change::Delete).await;
        }
        assert_eq!(given.holder, host(1));
    }
}

async fn a_queue_is_never_gone_while_a_job_is_in_it(given: Given) {
    for round in 0..30 {
        let job = if round % 2 == 0 { given.new_job("mail") } else { given.of_kind("mail", "print") };
        let id = job.id;
        agree(&given, deep(9)).await;
        agree(&given, QueueTerms::default()).await;
        let (putting, removing) = (Arc::clone(&given.store), Arc::clone(&given.store));
        let (_, removed) = both(async move { putting.enqueue(vec![job]).await.unwrap() }, async move {
            removing.remove_queue(&queue("mail"), QueueSeen::Anything).await.unwrap()
        })
        .await;
        assert!(matches!(removed, QueueRemoved::Done | QueueRemoved::NotEmpty));
        assert!(mail(&*given.store).await.is_some(), "round {round}: {removed:?}");
        let reserved = given.take("mail").await;
        assert_eq!(reserved.job().id, id);
        given.succeed(reserved).await;
        given.change(id, tenure_store::Change::Delete).await;
    }
}
