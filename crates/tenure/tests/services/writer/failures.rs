//! Messages that cannot be written.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use tenure::{
    AtLast, Backoff, Cause, ChangeOutcome, Clock, Duty, Failed, Message, RetryPolicy, StateName, Worker,
};

use crate::common::fleet::fleet;
use crate::services::writer::book::{
    Entry, LEASE, SECOND, Shared, mailbox, one_by_one, send, up_to, writing,
};

fn three_tries() -> RetryPolicy {
    RetryPolicy { backoff: Backoff::Fixed(SECOND * 5), max_attempts: 3, ..RetryPolicy::default() }
}

/// A message that fails is tried again in its place: those behind it wait.
#[tokio::test]
async fn a_message_that_fails_is_tried_again_before_those_behind_it() {
    let (fleet, book) = (fleet(), Shared::default());
    let (tenure, _) = fleet.handle(9).await;
    let mailbox = mailbox(&tenure);
    book.bad.lock().unwrap().push(2);
    send(&mailbox, 0..5).await;
    let writer = writing(&fleet, 1, &book, one_by_one().retry(three_tries())).await;
    fleet.pass(SECOND * 7).await;
    assert_eq!(book.all(), [0, 1]);
    book.bad.lock().unwrap().clear();
    fleet.until("all is written", async || book.all().len() == 5).await;
    assert_eq!(book.all(), up_to(5));
    writer.stop().await.1.unwrap();
    assert_eq!(mailbox.info().await.unwrap().parked, 0);
}

/// O-3: a message that fails for ever is parked after its tries, with the reason, and the next ones come.
#[tokio::test]
async fn a_message_that_fails_for_ever_is_parked_and_the_next_ones_come() {
    let (fleet, book) = (fleet(), Shared::default());
    let (tenure, _) = fleet.handle(9).await;
    let mailbox = mailbox(&tenure);
    book.bad.lock().unwrap().push(1);
    send(&mailbox, [0]).await;
    let bad = mailbox.send(&Entry { number: 1 }).await.unwrap();
    send(&mailbox, 2..5).await;
    let writer = writing(&fleet, 1, &book, one_by_one().retry(three_tries())).await;
    let waited = fleet.until("the others are written", async || book.all().len() == 4).await;
    assert_eq!(book.all(), [0, 2, 3, 4]);
    assert!((SECOND * 10..SECOND * 14).contains(&waited), "two rests of five seconds: {waited:?}");
    let job = tenure.jobs().get(bad).await.unwrap();
    assert_eq!((job.state.name(fleet.clock.now()), job.attempt), (StateName::Failed, 3));
    assert_eq!(job.failure.unwrap().message, "entry 1 cannot be written");
    let info = mailbox.info().await.unwrap();
    assert_eq!((info.parked, info.depth), (1, 0));

    // A person has mended the cause.
    book.bad.lock().unwrap().clear();
    assert_eq!(tenure.jobs().redo(bad).await.unwrap(), ChangeOutcome::Done);
    fleet.until("it is written", async || book.all().ends_with(&[1])).await;
    writer.stop().await.1.unwrap();
}

/// A message that is done again holds up nobody, and is not skipped either.
#[tokio::test]
async fn a_message_that_is_done_again_comes_between_the_others() {
    let (fleet, book) = (fleet(), Shared::default());
    let (tenure, _) = fleet.handle(9).await;
    let mailbox = mailbox(&tenure);
    let first = mailbox.send(&Entry { number: 0 }).await.unwrap();
    let writer = writing(&fleet, 1, &book, one_by_one().batch(3)).await;
    fleet.until("it is written", async || book.all() == [0]).await;
    *book.takes.lock().unwrap() = SECOND;
    send(&mailbox, 1..10).await;
    tenure.jobs().redo(first).await.unwrap();
    fleet.until("all is written", async || book.all().len() == 11).await;
    let rest: Vec<u64> = book.all()[1..].iter().copied().filter(|number| *number != 0).collect();
    assert_eq!(rest, (1..10).collect::<Vec<_>>());
    writer.stop().await.1.unwrap();
}

/// A person may give a message another priority: it loses its place, and holds up nobody.
#[tokio::test]
async fn a_message_of_another_priority_comes_when_it_is_handed_out() {
    let (fleet, book) = (fleet(), Shared::default());
    let (tenure, _) = fleet.handle(9).await;
    let mailbox = mailbox(&tenure);
    let mut ids = Vec::new();
    for number in 0..8 {
        ids.push(mailbox.send(&Entry { number }).await.unwrap());
    }
    tenure.jobs().reprioritise(ids[1], 50).await.unwrap();
    tenure.jobs().reprioritise(ids[6], -50).await.unwrap();
    *book.takes.lock().unwrap() = SECOND;
    for batch in [1, 3] {
        let writer = writing(&fleet, batch, &book, one_by_one().batch(usize::try_from(batch).unwrap())).await;
        let wanted = if batch == 1 { 4 } else { 8 };
        fleet.until("they are written", async || book.all().len() >= wanted).await;
        writer.stop().await.1.unwrap();
    }
    assert_eq!(book.all(), [6, 0, 2, 3, 4, 5, 7, 1]);
}

/// The other choice: nothing is written out of order, so nothing at all, until a person has looked.
#[tokio::test]
async fn a_writer_may_pause_its_mailbox_rather_than_go_on_without_a_message() {
    let (fleet, book) = (fleet(), Shared::default());
    let (tenure, _) = fleet.handle(9).await;
    let mailbox = mailbox(&tenure);
    book.bad.lock().unwrap().push(1);
    send(&mailbox, 0..4).await;
    let pausing = || one_by_one().batch(2).retry(three_tries()).at_last(AtLast::Pause);
    let first = writing(&fleet, 1, &book, pausing()).await;
    let second = writing(&fleet, 2, &book, pausing()).await;
    fleet.until("it is paused", async || mailbox.info().await.unwrap().paused).await;
    fleet.pass(SECOND * 100).await;
    assert_eq!(book.all(), [0]);
    let info = mailbox.info().await.unwrap();
    assert_eq!((info.depth, info.parked, info.in_work), (3, 0, 0));

    // Whoever takes over is as patient.
    first.stop().await.1.unwrap();
    fleet.pass(SECOND * 100).await;
    assert_eq!(book.all(), [0]);

    // Resumed too early, it pauses again after one more try.
    mailbox.resume().await.unwrap();
    fleet.until("it is paused again", async || mailbox.info().await.unwrap().paused).await;
    book.bad.lock().unwrap().clear();
    mailbox.resume().await.unwrap();
    fleet.until("all is written", async || book.all().len() == 4).await;
    assert_eq!(book.all(), up_to(4));
    second.stop().await.1.unwrap();
}

/// A batch that fails says nothing about which of its messages is to blame.
#[tokio::test]
async fn a_batch_that_fails_is_taken_one_by_one() {
    let (fleet, book) = (fleet(), Shared::default());
    let (tenure, _) = fleet.handle(9).await;
    let mailbox = mailbox(&tenure);
    book.bad.lock().unwrap().push(3);
    let entries: Vec<Entry> = (0..20).map(|number| Entry { number }).collect();
    let ids = mailbox.send_all(&entries).await.unwrap();
    let writer = writing(&fleet, 1, &book, one_by_one().batch(8).retry(three_tries())).await;
    fleet.until("the others are written", async || book.all().len() == 19).await;
    let expected: Vec<u64> = (0..20).filter(|number| *number != 3).collect();
    assert_eq!(book.all(), expected);
    assert_eq!(book.batches.lock().unwrap()[..2], [8, 1]);
    assert_eq!(*book.batches.lock().unwrap().iter().max().unwrap(), 8, "and then in batches again");
    for (number, id) in ids.into_iter().enumerate() {
        let attempts = tenure.jobs().get(id).await.unwrap().attempt;
        assert_eq!(attempts, if number == 3 { 3 } else { 1 }, "message {number}");
    }
    writer.stop().await.1.unwrap();
}

/// T098: what cannot be read is parked at once with the reason; its batch goes on without it.
#[tokio::test]
async fn a_message_that_cannot_be_read_is_parked() {
    let (fleet, book) = (fleet(), Shared::default());
    let (tenure, _) = fleet.handle(9).await;
    let mailbox = mailbox(&tenure);
    send(&mailbox, 0..2).await;
    let odd = mailbox.send(&json!({ "figure": "seven" })).await.unwrap();
    send(&mailbox, 2..4).await;
    let writer = writing(&fleet, 1, &book, one_by_one().batch(10)).await;
    fleet.until("the others are written", async || book.all().len() == 4).await;
    assert_eq!(book.all(), up_to(4));
    let failure = tenure.jobs().get(odd).await.unwrap().failure.unwrap();
    assert_eq!(failure.cause, Cause::Undecodable);
    writer.stop().await.1.unwrap();
}

/// Panics, waits of its own, and ends for good.
#[tokio::test]
async fn a_writer_may_panic_ask_for_time_and_give_up_on_a_message() {
    static TRIES: AtomicUsize = AtomicUsize::new(0);
    async fn moody(duty: Duty<Shared>, messages: Vec<Message<Entry>>) -> Result<(), Failed> {
        let number = messages[0].body.number;
        let try_of = |wanted: u64| number == wanted && TRIES.fetch_add(1, Ordering::SeqCst) == 0;
        match number {
            0 if try_of(0) => panic!("the pen broke"),
            1 if try_of(1) => return Err(Failed::snooze(SECOND * 30)),
            2 => return Err(Failed::for_good("not in this book")),
            _ => {}
        }
        TRIES.store(0, Ordering::SeqCst);
        duty.app().write(number, duty.fence())
    }
    let (fleet, book) = (fleet(), Shared::default());
    let (tenure, _) = fleet.handle(9).await;
    let mailbox = mailbox(&tenure);
    let mut ids = Vec::new();
    for number in 0..4 {
        ids.push(mailbox.send(&Entry { number }).await.unwrap());
    }
    let worker = |worker: Worker<Shared>| worker.writer(one_by_one(), moody);
    let writer = fleet.start(1, Arc::clone(&book), worker).await;
    fleet.until("the first is written", async || book.all() == [0]).await;
    let waited = fleet.until("the others are written", async || book.all().len() == 3).await;
    assert!((SECOND * 29..SECOND * 33).contains(&waited), "{waited:?}");
    assert_eq!(book.all(), [0, 1, 3]);
    let mut attempts = Vec::new();
    for id in &ids {
        attempts.push(tenure.jobs().get(*id).await.unwrap().attempt);
    }
    assert_eq!(attempts, [2, 1, 1, 1], "asking for time spends no attempt");
    let given_up = tenure.jobs().get(ids[2]).await.unwrap();
    assert_eq!(given_up.state.name(fleet.clock.now()), StateName::Failed);
    writer.stop().await.1.unwrap();
}

/// A message that kills its host is not tried for ever.
#[tokio::test]
async fn a_message_whose_hosts_all_die_is_parked() {
    let (fleet, book) = (fleet(), Shared::default());
    let (tenure, _) = fleet.handle(9).await;
    let mailbox = mailbox(&tenure);
    let killer = mailbox.send(&Entry { number: 0 }).await.unwrap();
    send(&mailbox, [1]).await;
    *book.takes.lock().unwrap() = SECOND * 3600;
    for seed in 1..=3 {
        let writer = writing(&fleet, seed, &book, one_by_one().retry(three_tries())).await;
        fleet
            .until("it is in work", async || {
                let job = tenure.jobs().get(killer).await.unwrap();
                u64::from(job.delivery) == seed && job.state.name(fleet.clock.now()) == StateName::Running
            })
            .await;
        writer.kill();
        fleet.pass(LEASE).await;
    }
    *book.takes.lock().unwrap() = SECOND / 10;
    let last = writing(&fleet, 4, &book, one_by_one().retry(three_tries())).await;
    fleet.until("the next one is written", async || book.all() == [1]).await;
    let job = tenure.jobs().get(killer).await.unwrap();
    assert_eq!(job.state.name(fleet.clock.now()), StateName::Failed);
    assert!(job.failure.unwrap().message.contains("failed after 3 attempts"));
    last.stop().await.1.unwrap();
}

/// A person may cancel the message that is in work; those behind it come.
#[tokio::test]
async fn a_message_that_is_cancelled_while_it_is_written_ends_and_the_next_one_comes() {
    let (fleet, book) = (fleet(), Shared::default());
    let (tenure, _) = fleet.handle(9).await;
    let mailbox = mailbox(&tenure);
    let slow = mailbox.send(&Entry { number: 0 }).await.unwrap();
    send(&mailbox, 1..3).await;
    *book.takes.lock().unwrap() = SECOND * 3600;
    let writer = writing(&fleet, 1, &book, one_by_one().batch(2)).await;
    fleet.until("it is in work", async || mailbox.info().await.unwrap().in_work == 2).await;
    *book.takes.lock().unwrap() = SECOND / 10;
    tenure.jobs().cancel(slow, SECOND * 10, "not needed").await.unwrap();
    fleet.until("the others are written", async || book.all().len() == 2).await;
    assert_eq!(book.all(), [1, 2]);
    let job = tenure.jobs().get(slow).await.unwrap();
    assert_eq!(job.state.name(fleet.clock.now()), StateName::Cancelled);
    writer.stop().await.1.unwrap();
}
