//! One writer after the other: where the next one goes on, and what becomes of one that does not know that it
//! is none any more.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tenure::{
    Chance, Duty, Failed, Faults, Kinds, Message, Order, PageAsk, QueueName, Reserve, RetryPolicy, Verdict,
    Want, Worker,
};

use crate::common::fleet::{Instance, fleet};
use crate::common::host;
use crate::services::writer::book::{
    Entry, LEASE, SECOND, Shared, mailbox, one_by_one, send, up_to, writing,
};

/// The next one goes on exactly where the one before stopped: nothing is written twice, nothing left out.
#[tokio::test]
async fn a_writer_that_stops_hands_over_in_the_middle() {
    let (fleet, book) = (fleet(), Shared::default());
    let (tenure, _) = fleet.handle(9).await;
    *book.takes.lock().unwrap() = SECOND / 2;
    send(&mailbox(&tenure), 0..300).await;
    let mut running = Some(writing(&fleet, 1, &book, one_by_one().batch(3)).await);
    for seed in 2..=6 {
        fleet.pass(SECOND * 2).await;
        let next = writing(&fleet, seed, &book, one_by_one().batch(3)).await;
        fleet.pass(SECOND).await;
        let before = book.all().len();
        running.replace(next).unwrap().stop().await.1.unwrap();
        let waited = fleet.until("the next one writes", async || book.all().len() > before + 3).await;
        assert!(waited <= SECOND * 3, "{waited:?}");
    }
    fleet.until("all is written", async || book.all().len() >= 300).await;
    assert_eq!(book.all(), up_to(300));
    running.unwrap().stop().await.1.unwrap();
}

/// S-10: after a crash the next one goes on when what the dead one held is over.
#[tokio::test]
async fn a_writer_that_dies_is_followed_after_its_lease_in_the_same_order() {
    let (fleet, book) = (fleet(), Shared::default());
    let (tenure, _) = fleet.handle(9).await;
    *book.takes.lock().unwrap() = SECOND / 2;
    send(&mailbox(&tenure), 0..40).await;
    let first = writing(&fleet, 1, &book, one_by_one().batch(5)).await;
    let second = writing(&fleet, 2, &book, one_by_one().batch(5)).await;
    fleet.until("it writes", async || book.all().len() >= 12).await;
    first.kill();
    let before = book.all().len();
    let waited = fleet.until("the next one writes", async || book.all().len() > before).await;
    assert!(waited <= LEASE + SECOND * 3, "{waited:?}");
    fleet.until("all is written", async || book.once().len() == 40).await;
    assert_eq!(book.once(), up_to(40));
    second.stop().await.1.unwrap();
}

/// W-R1, M-2: a writer that was suspended and goes on is refused by whoever keeps the greatest fence.
#[tokio::test]
async fn a_writer_that_was_suspended_is_refused_when_it_goes_on() {
    /// Is suspended before its first entry, until somebody wakes it.
    async fn suspended(
        duty: Duty<(Shared, Arc<tokio::sync::Notify>)>,
        messages: Vec<Message<Entry>>,
    ) -> Result<(), Failed> {
        let (book, wake) = duty.app();
        wake.notified().await;
        messages.into_iter().try_for_each(|message| book.write(message.body.number, duty.fence()))
    }
    let (fleet, book, wake) = (fleet(), Shared::default(), Arc::new(tokio::sync::Notify::new()));
    let (tenure, _) = fleet.handle(9).await;
    send(&mailbox(&tenure), 0..6).await;
    let first = fleet
        .start(1, (Arc::clone(&book), Arc::clone(&wake)), |worker: Worker<_>| {
            worker.stop_grace(SECOND * 3600).writer(one_by_one().batch(3), suspended)
        })
        .await;
    fleet.until("it has messages", async || mailbox(&tenure).info().await.unwrap().in_work == 3).await;
    // Nothing of it reaches the store any more; it goes on all the same, and was given a long grace.
    first.way.down(true);
    let second = writing(&fleet, 2, &book, one_by_one().batch(2)).await;
    fleet.until("the next one has written all", async || book.all().len() == 6).await;
    wake.notify_one();
    fleet.until("the first one was refused", async || book.refused.load(Ordering::SeqCst) == 1).await;
    assert_eq!(book.all(), up_to(6));
    first.way.down(false);
    fleet.pass(LEASE * 3).await;
    assert_eq!(book.all(), up_to(6), "what it settles late changes nothing");
    assert_eq!(mailbox(&tenure).depth().await.unwrap(), 0);
    second.stop().await.1.unwrap();
    first.kill();
}

/// A request of a writer that lost the lease arrives while another one writes: what it takes out of the
/// middle is waited for, not overtaken, until it is given back or its time is over.
#[tokio::test]
async fn messages_that_a_late_request_takes_are_waited_for() {
    for gives_back in [true, false] {
        let (fleet, book) = (fleet(), Shared::default());
        let (tenure, _) = fleet.handle(9).await;
        *book.takes.lock().unwrap() = SECOND;
        send(&mailbox(&tenure), 0..12).await;
        let writer = writing(&fleet, 1, &book, one_by_one().batch(3)).await;
        fleet.until("it writes", async || mailbox(&tenure).info().await.unwrap().in_work == 3).await;
        let queue = QueueName::new("writer.fleet.ledger").unwrap();
        let want = Want { queue, kinds: Kinds::All, at_most: 2 };
        let ask = Reserve { holder: host(99), ttl: LEASE, wants: vec![want], at_most: 2 };
        let late = fleet.store.reserve(ask).await.unwrap().jobs;
        assert_eq!(late.len(), 2);
        fleet.pass(SECOND * 20).await;
        assert_eq!(book.all(), [0, 1, 2], "those behind them wait");
        let deliveries = async |number: usize| {
            let page = tenure.jobs().page(PageAsk { order: Order::OldestFirst, ..PageAsk::default() }).await;
            page.unwrap().jobs[number].delivery
        };
        assert!(deliveries(5).await <= 2, "they are not asked for again and again");
        if gives_back {
            let released =
                late.into_iter().map(|job| job.settle(Verdict::Released, &RetryPolicy::default(), 0.5));
            fleet.store.settle(released.collect(), None).await.unwrap();
        }
        let waited = fleet.until("all is written", async || book.all().len() == 12).await;
        assert_eq!(book.all(), up_to(12));
        assert!(waited <= if gives_back { SECOND * 6 } else { SECOND * 16 }, "{waited:?}");
        writer.stop().await.1.unwrap();
    }
}

/// Whatever befalls requests and hosts: entries come into the book in the order of their messages.
#[tokio::test]
async fn the_order_holds_through_lost_replies_late_requests_kills_and_stops() {
    for seed in 1..=12 {
        storm(seed).await;
    }
}

const MESSAGES: u64 = 60;

async fn storm(seed: u64) {
    let (fleet, book, chance) = (fleet(), Shared::default(), Chance::seeded(seed));
    let (tenure, _) = fleet.handle(1_000).await;
    let mailbox = mailbox(&tenure);
    *book.takes.lock().unwrap() = SECOND / 2;
    let faults = |seed| Faults {
        longest_delay: if chance.below(3) == 0 { LEASE * 2 } else { SECOND * 2 },
        ..Faults::some(seed)
    };
    let mut instances: Vec<Instance> = Vec::new();
    let mut started = 0;
    let mut sent = 0;
    for round in 0..400 {
        if instances.len() < 3 {
            started += 1;
            let batch = 1 + usize::try_from(chance.below(5)).unwrap();
            let instance = writing(&fleet, seed * 100 + started, &book, one_by_one().batch(batch)).await;
            instance.way.set(faults(seed * 1_000 + started));
            instances.push(instance);
        }
        if sent < MESSAGES && chance.below(2) == 0 {
            send(&mailbox, [sent]).await;
            sent += 1;
        }
        match chance.below(40) {
            0 => instances.swap_remove(0).kill(),
            1 if round > 10 => drop(instances.swap_remove(0).stop().await.1),
            2 => instances[0].way.down(true),
            3 => instances[0].way.down(false),
            _ => {}
        }
        fleet.pass(Duration::from_millis(200 + chance.below(2_000))).await;
    }
    send(&mailbox, sent..MESSAGES).await;
    for instance in &instances {
        instance.way.heal();
        instance.way.down(false);
    }
    fleet.until(&format!("seed {seed}: all is written"), async || book.once().len() as u64 == MESSAGES).await;
    assert_eq!(book.once(), up_to(MESSAGES), "seed {seed}");
    let fences = book.fences();
    assert!(fences.is_sorted(), "seed {seed}: {fences:?}");
    for instance in instances {
        instance.stop().await.1.unwrap();
    }
    let empty = async || mailbox.info().await.unwrap().depth == 0;
    fleet.until(&format!("seed {seed}: nothing is left"), empty).await;
    assert_eq!(mailbox.info().await.unwrap().parked, 0, "seed {seed}");
}
