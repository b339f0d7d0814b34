//! In which order messages are written, when all is well.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tenure::{Clock, Error, StateName, Worker, Writer};

use crate::common::fleet::fleet;
use crate::common::memory;
use crate::services::writer::book::{
    Entry, SECOND, Shared, ledger, mailbox, one_by_one, send, up_to, write, writing,
};

#[tokio::test]
async fn messages_are_written_in_the_order_in_which_they_were_accepted() {
    let (fleet, book) = (fleet(), Shared::default());
    let (tenure, _) = fleet.handle(9).await;
    let (here, there) = (mailbox(&tenure), mailbox(&fleet.handle(8).await.0));
    send(&here, 0..5).await;
    let writer = writing(&fleet, 1, &book, one_by_one()).await;
    for number in (5..25).step_by(2) {
        send(&here, [number]).await;
        send(&there, [number + 1]).await;
    }
    fleet.until("all is written", async || book.all().len() == 25).await;
    assert_eq!(book.all(), up_to(25));
    assert!(book.batches.lock().unwrap().iter().all(|messages| *messages == 1));
    writer.stop().await.1.unwrap();
    assert_eq!(here.depth().await.unwrap(), 0);
}

/// The clock of the store may step back between two messages.
#[tokio::test]
async fn a_clock_that_steps_back_changes_no_order() {
    let (fleet, book) = (fleet(), Shared::default());
    let (tenure, _) = fleet.handle(9).await;
    let mailbox = mailbox(&tenure);
    for number in 0..10 {
        send(&mailbox, [number]).await;
        fleet.clock.step_to(fleet.clock.now().before(SECOND * 60));
    }
    let writer = writing(&fleet, 1, &book, one_by_one().batch(4)).await;
    fleet.until("all is written", async || book.all().len() == 10).await;
    assert_eq!(book.all(), up_to(10));
    writer.stop().await.1.unwrap();
}

#[tokio::test]
async fn a_backlog_is_written_in_batches() {
    let (fleet, book) = (fleet(), Shared::default());
    let (tenure, _) = fleet.handle(9).await;
    let entries: Vec<Entry> = (0..250).map(|number| Entry { number }).collect();
    mailbox(&tenure).send_all(&entries).await.unwrap();
    let writer = writing(&fleet, 1, &book, one_by_one().batch(100)).await;
    fleet.until("all is written", async || book.all().len() == 250).await;
    assert_eq!(book.all(), up_to(250));
    assert_eq!(*book.batches.lock().unwrap(), [100, 100, 50]);
    writer.stop().await.1.unwrap();
}

#[tokio::test]
async fn a_lone_message_is_written_soon() {
    let (fleet, book) = (fleet(), Shared::default());
    let (tenure, _) = fleet.handle(9).await;
    let writer = writing(&fleet, 1, &book, one_by_one()).await;
    fleet.pass(SECOND * 10).await;
    send(&mailbox(&tenure), [0]).await;
    let waited = fleet.until("it is written", async || !book.all().is_empty()).await;
    assert!(waited <= SECOND, "{waited:?}");
    writer.stop().await.1.unwrap();
}

/// One of many instances writes; the others stand by.
#[tokio::test]
async fn one_instance_at_a_time_writes() {
    let (fleet, book) = (fleet(), Shared::default());
    let (tenure, _) = fleet.handle(9).await;
    let writers = [
        writing(&fleet, 1, &book, one_by_one()).await,
        writing(&fleet, 2, &book, one_by_one()).await,
        writing(&fleet, 3, &book, one_by_one()).await,
    ];
    send(&mailbox(&tenure), 0..30).await;
    fleet.until("all is written", async || book.all().len() == 30).await;
    assert_eq!((book.all(), book.fences().len()), (up_to(30), 1));
    let info = mailbox(&tenure).info().await.unwrap();
    let writer = info.writer.unwrap();
    assert!(writer.lease.held.unwrap().by.who.starts_with("instance "));
    assert_eq!(writer.waiting, 2);
    for writer in writers {
        writer.stop().await.1.unwrap();
    }
    assert_eq!(mailbox(&tenure).info().await.unwrap().writer, None);
}

/// Two programs, or two writers, never meet in one mailbox.
#[tokio::test]
async fn writers_of_other_names_and_other_apps_have_mailboxes_of_their_own() {
    let (fleet, book) = (fleet(), Shared::default());
    let (tenure, _) = fleet.handle(9).await;
    let other = tenure.clone().as_app("other", "other program").await.unwrap();
    send(&mailbox(&tenure), [0]).await;
    send(&mailbox(&other), [7]).await;
    send(&tenure.writer("ledger.2").unwrap(), [8]).await;
    let writer = writing(&fleet, 1, &book, one_by_one()).await;
    fleet.pass(SECOND * 10).await;
    assert_eq!(book.all(), [0]);
    assert_eq!(mailbox(&other).depth().await.unwrap(), 1);
    send(&other.writer_of(tenure.app().unwrap(), "ledger").unwrap(), [1]).await;
    fleet.until("what came from elsewhere is written", async || book.all().len() == 2).await;
    writer.stop().await.1.unwrap();
}

/// A worker may write and serve queues as well, and stops both.
#[tokio::test]
async fn a_writer_runs_beside_queues() {
    use crate::common::Plain;
    let (fleet, book) = (fleet(), Shared::default());
    let (tenure, _) = fleet.handle(9).await;
    let both = |worker: Worker<Shared>| {
        let worker = worker.queue("default", 1);
        ledger(worker.job(async |_run, job: Plain| Ok(job.number)), one_by_one())
    };
    let instance = fleet.start(1, Arc::clone(&book), both).await;
    let job = tenure.enqueue(Plain { number: 7 }).await.unwrap().id();
    send(&mailbox(&tenure), 0..3).await;
    let ended = async || {
        let job = tenure.jobs().get(job).await.unwrap();
        book.all().len() == 3 && job.state.name(fleet.clock.now()) == StateName::Succeeded
    };
    fleet.until("both are done", ended).await;
    assert!(instance.stop().await.0 < SECOND);
}

#[tokio::test]
async fn mistakes_are_told_before_anything_is_written() {
    let (fleet, book) = (fleet(), Shared::default());
    let (tenure, _) = fleet.handle(9).await;
    let told = async |writer: Writer| {
        let worker = Worker::new(&tenure, Arc::clone(&book)).writer(writer, write);
        worker.run(std::future::pending::<()>()).await.unwrap_err().to_string()
    };
    for batch in [0, 1_001] {
        let told = told(one_by_one().batch(batch)).await;
        assert!(told.contains("writer.batch") && told.contains("1 to 1000"), "{told}");
    }
    let lease = told(one_by_one().lease(SECOND / 2)).await;
    assert!(lease.contains("writer.lease"), "{lease}");
    for name in ["", "a/b", "naïve", "a b"] {
        assert!(told(Writer::new(name)).await.contains("writer"), "{name:?}");
        assert!(matches!(tenure.writer(name), Err(Error::Invalid(_))), "{name:?}");
    }
    let nameless = memory().tenure;
    assert!(matches!(nameless.writer("ledger"), Err(Error::NoApp { .. })));
    let worker = Worker::new(&nameless, Arc::clone(&book)).writer(one_by_one(), write);
    let error = worker.run(std::future::pending::<()>()).await.unwrap_err();
    assert!(matches!(&error, Error::NoApp { what, .. } if what == "writer ledger"), "{error}");
    assert_eq!(book.refused.load(Ordering::SeqCst), 0);
}
