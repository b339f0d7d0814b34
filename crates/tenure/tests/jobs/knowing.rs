//! Knowing what happens: waiting, events, explaining, and changing all that a filter means.

use std::time::Duration;

use crate::common::{LEASE, Plain, host, rigs};
use tenure::{
    Accepted, ChangeOutcome, Clock, Draft, End, Error, Failed, Filter, Happening, JobId, Kind, Order,
    PageAsk, Reason, Run, StateName, Tally, Worker,
};
use tenure_core::{Serves, Verdict};

const HOUR: Duration = Duration::from_secs(3600);

/// The clock stands still, so a wait that polled would never end.
#[tokio::test]
async fn waiting_for_an_end_does_not_poll() {
    for rig in rigs() {
        let id = rig.tenure.enqueue(Plain { number: 3 }).await.unwrap().id();
        let waiting = tokio::spawn({
            let tenure = rig.tenure.clone();
            async move { tenure.wait(id).await.unwrap() }
        });
        crate::common::settle_down().await;
        let reserved = rig.reserve_one(host(1)).await;
        crate::common::settle_down().await;
        assert!(!waiting.is_finished());
        rig.settle(reserved, Verdict::Succeeded(None)).await;
        assert_eq!(waiting.await.unwrap().end, End::Succeeded, "{}", rig.name);
        assert!(matches!(rig.tenure.wait(JobId::new(rig.clock.now(), 1)).await, Err(Error::NotFound(_))));
    }
}

/// When another program has written, the job is looked at a moment later: by the clock, which stands still.
#[tokio::test]
async fn an_end_is_heard_also_while_another_look_is_put_off() {
    let rig = crate::common::sqlite();
    let other = rig.same_file();
    let id = rig.tenure.enqueue(Plain { number: 3 }).await.unwrap().id();
    let waiting = tokio::spawn({
        let tenure = rig.tenure.clone();
        async move { tenure.wait(id).await.unwrap() }
    });
    crate::common::settle_down().await;
    let mut others = rig.store.others();
    other.enqueue(Plain { number: 4 }).await.unwrap();
    others.recv().await.unwrap();
    crate::common::settle_down().await;
    let mut reserved = rig.reserve_all(host(1)).await;
    rig.settle(reserved.remove(0), Verdict::Succeeded(None)).await;
    assert_eq!(waiting.await.unwrap().end, End::Succeeded);
}

#[tokio::test]
async fn a_wait_for_a_failed_job_says_what_went_wrong() {
    for rig in rigs() {
        let id = rig.tenure.enqueue(Plain { number: 3 }).await.unwrap().id();
        let waiting = rig.tenure.clone();
        Worker::new(&rig.tenure, ())
            .queue("default", 1)
            .job(|_: Run<()>, _: Plain| async move { Err::<u64, _>(Failed::for_good("no such user")) })
            .run(async move {
                let told = waiting.wait_for::<Plain>(id).await.unwrap_err().to_string();
                assert!(told.contains("no such user"), "{told}");
            })
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn events_tell_the_life_of_a_job_in_order() {
    for rig in rigs() {
        let mut events = rig.tenure.events();
        let id = rig.tenure.enqueue(Plain { number: 3 }).await.unwrap().id();
        let reserved = rig.reserve_one(host(1)).await;
        rig.tenure.jobs().cancel(id, HOUR, "enough").await.unwrap();
        rig.settle(reserved, Verdict::Released).await;
        rig.tenure.jobs().redo(id).await.unwrap();
        rig.tenure.jobs().delete(id).await.unwrap();
        let mut told = Vec::new();
        while told.len() < 6 {
            told.push(events.recv().await.unwrap().what.clone());
        }
        let cancelled =
            Happening::Became { state: StateName::Cancelled, failure: Some("cancelled: enough".into()) };
        let queued = Happening::Became { state: StateName::Queued, failure: None };
        let expected = [
            Happening::Enqueued,
            Happening::Started { attempt: 1 },
            Happening::AskedToStop,
            cancelled,
            queued,
            Happening::Deleted,
        ];
        assert_eq!(told, expected, "{}", rig.name);
    }
}

/// The first question of every tracker: why is nothing running?
#[tokio::test]
async fn explain_names_the_one_reason() {
    for rig in rigs() {
        let explain = async |id| rig.tenure.explain(id).await.unwrap();
        let id = rig.tenure.enqueue(Plain { number: 1 }).await.unwrap().id();
        assert!(matches!(explain(id).await, Reason::QueueNotServed { .. }), "{}", rig.name);

        let serves = |kinds: &[&str], slots| Serves {
            queue: tenure::QueueName::default(),
            kinds: Some(kinds.iter().map(|kind| Kind::new(kind).unwrap()).collect()),
            slots,
            all_waiting: false,
        };
        rig.store.announce(host(1), "a", 1, &[serves(&["other"], 1)], LEASE).await.unwrap();
        assert!(matches!(explain(id).await, Reason::KindNotServed { .. }));
        rig.store.announce(host(1), "a", 1, &[serves(&["plain"], 1)], LEASE).await.unwrap();
        assert_eq!(explain(id).await, Reason::Next { ahead: 0 });

        let second = rig.tenure.enqueue(Plain { number: 2 }).await.unwrap().id();
        assert_eq!(explain(second).await, Reason::Next { ahead: 1 });
        rig.tenure.queues().pause("default").await.unwrap();
        assert!(matches!(explain(second).await, Reason::QueuePaused { .. }));
        assert!(rig.reserve_all(host(1)).await.is_empty(), "the claim agrees");
        rig.tenure.queues().resume("default").await.unwrap();

        let later = rig.tenure.enqueue(Plain { number: 3 }).after(HOUR).await.unwrap().id();
        assert!(matches!(explain(later).await, Reason::DueLater { .. }));
        let running = rig.reserve_all(host(1)).await;
        assert!(matches!(explain(id).await, Reason::Running { cancelling: false, .. }));
        let third = rig.tenure.enqueue(Plain { number: 4 }).await.unwrap().id();
        let Reason::SlotsFull { slots: 1, elsewhere: 0, running: holders, waiting: false } =
            explain(third).await
        else {
            panic!("slots are full")
        };
        assert_eq!(holders, [id, second], "{}", rig.name);

        for reserved in running {
            let failure = tenure::Failure::new(tenure::Cause::Error, "card reader busy");
            rig.settle(reserved, Verdict::Retry { failure, due: None }).await;
        }
        let told = explain(id).await.to_string();
        assert!(told.contains("attempt 1 failed") && told.contains("card reader busy"), "{told}");
        rig.tenure.jobs().cancel(id, HOUR, "x").await.unwrap();
        assert!(matches!(explain(id).await, Reason::Finished { end: End::Cancelled, .. }));
        // Silence of the only host is seen after its announcement has run out.
        rig.clock.advance(LEASE);
        assert!(matches!(explain(third).await, Reason::QueueNotServed { .. }), "{}", rig.name);
    }
}

/// More than one bounded step: all are changed, each once, even if a change makes it match again.
#[tokio::test]
async fn a_change_reaches_all_that_the_filter_means() {
    for rig in rigs() {
        rig.tenure
            .enqueue_all((0..2_500).map(|number| Draft::of(&Plain { number }).queue("a")))
            .await
            .unwrap();
        rig.tenure.enqueue_all((0..10).map(|number| Draft::of(&Plain { number }).queue("b"))).await.unwrap();
        let in_queue =
            |name: &str| Filter { queues: vec![tenure::QueueName::new(name).unwrap()], ..Filter::default() };
        let jobs = rig.tenure.jobs();
        let done = |done| Tally { done, ..Tally::default() };
        assert_eq!(jobs.reprioritise_all(in_queue("a"), 5).await.unwrap(), done(2_500), "{}", rig.name);
        assert_eq!(jobs.move_all(in_queue("a"), "b").await.unwrap(), done(2_500));
        let cancelled = jobs.cancel_all(in_queue("b"), HOUR, "all of it").await.unwrap();
        assert_eq!(cancelled, done(2_510));
        assert_eq!(
            jobs.cancel_all(in_queue("b"), HOUR, "again").await.unwrap(),
            Tally { already: 2_510, ..Tally::default() }
        );
        assert_eq!(jobs.redo_all(in_queue("b")).await.unwrap(), done(2_510));
        assert_eq!(jobs.delete_all(in_queue("b")).await.unwrap(), done(2_510));
        assert!(rig.tenure.counts().await.unwrap().is_empty(), "{}", rig.name);
    }
}

/// T143: pages are stable while jobs are added and removed.
#[tokio::test]
async fn pages_are_stable_while_jobs_come_and_go() {
    for rig in rigs() {
        let enqueue = async |count: u64| {
            let drafts = (0..count).map(|number| Draft::of(&Plain { number }));
            rig.tenure.enqueue_all(drafts).await.unwrap().into_iter().map(Accepted::id).collect::<Vec<_>>()
        };
        let old = enqueue(250).await;
        let mut seen = Vec::new();
        let mut after = None;
        loop {
            let ask = PageAsk { order: Order::NewestFirst, after, at_most: 40, ..PageAsk::default() };
            let page = rig.tenure.jobs().page(ask).await.unwrap();
            seen.extend(page.jobs.iter().map(|job| job.id));
            enqueue(7).await;
            rig.tenure.jobs().delete(seen[0]).await.unwrap();
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        seen.reverse();
        assert_eq!(seen, old, "{}: what was there at the start is seen once", rig.name);
    }
}

#[tokio::test]
async fn changes_to_a_job_that_is_not_there_or_not_so_are_answered() {
    for rig in rigs() {
        let jobs = rig.tenure.jobs();
        let nobody = JobId::new(rig.clock.now(), 9);
        assert_eq!(jobs.cancel(nobody, HOUR, "x").await.unwrap(), ChangeOutcome::NotFound);
        assert!(matches!(jobs.get(nobody).await, Err(Error::NotFound(_))));
        let id = rig.tenure.enqueue(Plain { number: 1 }).await.unwrap().id();
        assert_eq!(jobs.redo(id).await.unwrap(), ChangeOutcome::RefusedUnfinished);
        let reserved = rig.reserve_one(host(1)).await;
        assert_eq!(jobs.delete(id).await.unwrap(), ChangeOutcome::RefusedRunning);
        assert_eq!(jobs.move_to(id, "b").await.unwrap(), ChangeOutcome::RefusedRunning);
        rig.settle(reserved, Verdict::Succeeded(None)).await;
        assert_eq!(jobs.reprioritise(id, 1).await.unwrap(), ChangeOutcome::RefusedFinished);
        let told = jobs.cancel(id, HOUR, &"x".repeat(5_000)).await.unwrap_err().to_string();
        assert!(told.starts_with("reason: 5000 bytes"), "{told}");
    }
}
