//! Sending, room, and looking.

use tenure::{Clock, Error, StateName};
use tenure_core::limits;

use crate::common::{self, fleet::fleet};
use crate::services::writer::book::{Entry, SECOND, Shared, mailbox, one_by_one, send, up_to, writing};

#[tokio::test]
async fn a_full_mailbox_refuses_or_lets_wait() {
    let (fleet, book) = (fleet(), Shared::default());
    let (tenure, _) = fleet.handle(9).await;
    let mailbox = mailbox(&tenure).limit(3);
    send(&mailbox, 0..3).await;
    let full = mailbox.try_send(&Entry { number: 9 }).await.unwrap().unwrap_err();
    assert_eq!((full.depth, full.limit), (3, 3));
    assert_eq!(full.to_string(), "the mailbox is full: it has 3 messages and its limit is 3");

    let waiting = tokio::spawn({
        let mailbox = mailbox.clone();
        async move { mailbox.send(&Entry { number: 3 }).await }
    });
    fleet.pass(SECOND * 5).await;
    assert!(!waiting.is_finished());
    assert_eq!(mailbox.depth().await.unwrap(), 3);
    let writer = writing(&fleet, 1, &book, one_by_one()).await;
    fleet.until("it was sent", async || waiting.is_finished()).await;
    waiting.await.unwrap().unwrap();
    fleet.until("all is written", async || book.all().len() == 4).await;
    assert_eq!(book.all(), up_to(4));
    mailbox.try_send(&Entry { number: 4 }).await.unwrap().unwrap();
    writer.stop().await.1.unwrap();
}

/// Who sends looks and then puts in: others may find the same room in between.
#[tokio::test]
async fn senders_exceed_the_limit_at_most_by_what_the_others_of_them_send_meanwhile() {
    const SENDERS: u64 = 6;
    const LIMIT: u64 = 10;
    let rig = common::sqlite();
    let tenure = rig.tenure.clone().as_app("fleet", "program").await.unwrap();
    let mailbox = mailbox(&tenure).limit(LIMIT);
    let all_at_once = async || {
        let sends = (0..SENDERS).map(|number| {
            let mailbox = mailbox.clone();
            tokio::spawn(async move { mailbox.try_send(&Entry { number }).await.unwrap() })
        });
        let sends: Vec<_> = sends.collect();
        let mut stored = 0;
        for sent in sends {
            stored += u64::from(sent.await.unwrap().is_ok());
        }
        stored
    };
    // One by one there is no room to find twice.
    for number in 0..LIMIT - 1 {
        mailbox.try_send(&Entry { number }).await.unwrap().unwrap();
    }
    let mut expected = LIMIT - 1;
    for _ in 0..5 {
        expected += all_at_once().await;
        let depth = mailbox.depth().await.unwrap();
        assert_eq!(depth, expected);
        assert!((LIMIT..LIMIT + SENDERS).contains(&depth), "{depth}");
    }
    let full = mailbox.try_send(&Entry { number: 9 }).await.unwrap().unwrap_err();
    assert_eq!((full.depth, full.limit), (mailbox.depth().await.unwrap(), LIMIT));
}

/// The name that a complaint counts is the one that its user gave.
#[tokio::test]
async fn the_name_of_a_writer_is_refused_with_the_bytes_that_are_left_for_it() {
    let (tenure, _) = fleet().handle(9).await;
    let longest = limits::NAME_BYTES - "writer.fleet.".len();
    assert!(tenure.writer(&"x".repeat(longest)).is_ok());
    let told = tenure.writer(&"x".repeat(longest + 1)).unwrap_err().to_string();
    let counted = format!("writer: {} bytes; expected 1 to {longest} characters of", longest + 1);
    assert!(told.starts_with(&counted), "{told}");
    let told = tenure.writer("a b").unwrap_err().to_string();
    assert!(told.starts_with("writer: invalid character ' '"), "{told}");
}

/// Messages are due before all time, so that nothing but their number decides which comes first.
#[tokio::test]
async fn the_queue_of_a_mailbox_tells_since_when_its_oldest_message_waits() {
    let fleet = fleet();
    let (tenure, _) = fleet.handle(9).await;
    let mailbox = mailbox(&tenure);
    let sent = fleet.clock.now();
    send(&mailbox, [0]).await;
    fleet.pass(SECOND * 10).await;
    send(&mailbox, [1]).await;
    assert_eq!(tenure.queues().list().await.unwrap()[0].oldest_due, Some(sent));
}

#[tokio::test]
async fn many_messages_go_in_together_or_not_at_all() {
    let fleet = fleet();
    let (tenure, _) = fleet.handle(9).await;
    let mailbox = mailbox(&tenure).limit(10);
    let entries: Vec<Entry> = (0..11).map(|number| Entry { number }).collect();
    let error = mailbox.send_all(&entries).await.unwrap_err();
    assert!(matches!(&error, Error::Invalid(wrong) if wrong.field == "messages"), "{error}");
    assert_eq!(mailbox.depth().await.unwrap(), 0);
    assert_eq!(mailbox.send_all(&entries[..10]).await.unwrap().len(), 10);
    assert_eq!(mailbox.depth().await.unwrap(), 10);
}

#[tokio::test]
async fn a_mailbox_tells_its_depth_its_oldest_message_and_who_writes() {
    let (fleet, book) = (fleet(), Shared::default());
    let (tenure, _) = fleet.handle(9).await;
    let mailbox = mailbox(&tenure);
    let empty = mailbox.info().await.unwrap();
    assert_eq!((empty.depth, empty.oldest, empty.paused, empty.writer), (0, None, false, None));

    let sent = fleet.clock.now();
    send(&mailbox, [0]).await;
    fleet.pass(SECOND * 10).await;
    send(&mailbox, [1, 2]).await;
    let info = mailbox.info().await.unwrap();
    assert_eq!((info.depth, info.in_work, info.oldest), (3, 0, Some(sent)));

    *book.takes.lock().unwrap() = SECOND * 5;
    let writer = writing(&fleet, 1, &book, one_by_one().batch(2)).await;
    fleet.pass(SECOND).await;
    let info = mailbox.info().await.unwrap();
    assert_eq!((info.depth, info.in_work, info.parked, info.oldest), (3, 2, 0, Some(sent)));
    let lease = info.writer.unwrap().lease;
    assert_eq!(lease.held.unwrap().by.who, "instance 1");
    assert_eq!(lease.name.as_str(), "writer/fleet/ledger");
    writer.stop().await.1.unwrap();
}

/// Why a message is not written is what `explain` says of any job.
#[tokio::test]
async fn explain_tells_why_a_message_is_not_written() {
    let (fleet, book) = (fleet(), Shared::default());
    let (tenure, _) = fleet.handle(9).await;
    let mailbox = mailbox(&tenure);
    let id = mailbox.send(&Entry { number: 0 }).await.unwrap();
    let told = tenure.explain(id).await.unwrap().to_string();
    assert!(told.contains("no live worker serves queue writer.fleet.ledger"), "{told}");
    mailbox.pause().await.unwrap();
    let writer = writing(&fleet, 1, &book, one_by_one()).await;
    fleet.pass(SECOND * 3).await;
    let told = tenure.explain(id).await.unwrap().to_string();
    assert!(told.contains("is paused"), "{told}");
    assert!(mailbox.info().await.unwrap().paused);
    mailbox.resume().await.unwrap();
    fleet.until("it is written", async || book.all() == [0]).await;
    let job = tenure.jobs().get(id).await.unwrap();
    assert_eq!(job.state.name(fleet.clock.now()), StateName::Succeeded);
    writer.stop().await.1.unwrap();
}

/// Whoever sends to it would wait for ever.
#[tokio::test]
async fn a_mailbox_without_any_room_is_a_mistake_and_not_full() {
    let fleet = fleet();
    let (tenure, _) = fleet.handle(9).await;
    let mailbox = mailbox(&tenure).limit(0);
    let entry = Entry { number: 1 };
    for error in [mailbox.send(&entry).await.unwrap_err(), mailbox.try_send(&entry).await.unwrap_err()] {
        assert!(matches!(&error, Error::Invalid(wrong) if wrong.field == "mailbox.limit"), "{error}");
    }
}
