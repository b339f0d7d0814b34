//! What hints and events promise: nothing that anybody may rely on, but they do come.

use std::sync::Arc;

use tenure_core::{Due, JobId, Keep, Name, Progress, RecordKey, StateName, Ttl, Verdict};
use tokio::sync::broadcast::Receiver;
use tokio::sync::watch;

use super::given::{Given, TTL, decide, failed, held, kind, minutes, queue, retry_at, seconds, want};
use super::keyed::{after, key, limited, ordered};
use super::wishes::{acquire_for, break_within, forget, leave, queue_up, renew};
use super::{Test, test};
use tenure_store::{Change, Event, Happening, Only, ParkedClaim, Put, Report, Writes, park};

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(enqueueing_hints_that_something_is_due),
        test(a_parked_claim_is_sent_with_the_next_notification),
        test(a_parked_claim_that_is_taken_back_is_not_sent),
        test(settling_to_wait_again_hints_that_something_is_due),
        test(a_lapse_hints_that_something_is_due),
        test(changes_hint_that_something_is_due),
        test(resuming_a_queue_hints_that_something_is_due),
        test(an_end_that_others_waited_for_hints_that_something_is_due),
        test(an_end_of_which_nobody_has_the_good_hints_at_nothing),
        test(a_limit_that_is_set_hints_that_something_is_due),
        test(cancelling_a_running_job_hints_at_it),
        test(a_record_that_asks_hints_at_it_once_it_is_written),
        test(giving_a_lease_back_hints_that_it_is_free),
        test(breaking_a_lease_hints_at_it_to_its_holder_and_to_who_waits),
        test(making_a_lease_end_sooner_hints_at_it),
        test(what_frees_no_lease_hints_at_nothing),
        test(the_life_of_a_job_is_told_in_order),
        test(a_lapse_is_told),
        test(what_people_change_is_told),
        test(an_event_tells_which_job_it_is_about),
        test(a_failure_is_told_with_what_went_wrong),
        test(what_was_refused_or_changed_nothing_is_not_told),
        test(pruning_is_not_told),
    ]
}

/// Makes the call, which has to hint at something.
async fn hints<T>(hint: watch::Receiver<u64>, call: impl Future<Output = T>) -> T {
    let answer = call.await;
    assert!(hint.has_changed().unwrap(), "nothing was hinted at");
    answer
}

async fn enqueueing_hints_that_something_is_due(given: Given) {
    hints(given.store.due(), given.enqueue("mail", 2)).await;
    hints(given.store.due(), given.put(given.due_in("mail", minutes(1)))).await;
}

fn parked(given: &Given) -> ParkedClaim {
    park(&given.store, given.ask(vec![want("mail", 3)], 3))
}

async fn a_parked_claim_is_sent_with_the_next_notification(given: Given) {
    let due = given.store.due();
    let claim = parked(&given);
    given.enqueue("mail", 2).await;
    let sent = claim.take_back().expect("it was sent");
    assert_eq!(sent.calls, *due.borrow());
    assert_eq!(sent.sent, given.store.clock().moment());
    let granted = sent.answer.await.unwrap().jobs;
    assert_eq!(granted.len(), 2);
    assert!(given.reserve("mail", 3).await.is_empty());
    // The claim was sent once.
    given.enqueue("mail", 1).await;
    assert_eq!(given.reserve("mail", 3).await.len(), 1);
}

async fn a_parked_claim_that_is_taken_back_is_not_sent(given: Given) {
    assert!(parked(&given).take_back().is_none());
    drop(parked(&given));
    given.enqueue("mail", 2).await;
    assert_eq!(given.reserve("mail", 3).await.len(), 2);
}

async fn settling_to_wait_again_hints_that_something_is_due(given: Given) {
    for verdict in
        [Verdict::Released, retry_at(Due::Now), retry_at(Due::In(minutes(1))), Verdict::Snoozed(Due::Now)]
    {
        let reserved = given.running().await;
        hints(given.store.due(), given.settle(reserved, verdict)).await;
        given.change_matching(Change::Delete, tenure_store::Filter::default()).await;
    }
}

async fn a_lapse_hints_that_something_is_due(given: Given) {
    given.running().await;
    given.pass(TTL);
    hints(given.store.due(), given.tend()).await;
}

async fn changes_hint_that_something_is_due(given: Given) {
    let finished = given.succeeded().await;
    let waiting = given.put(given.due_in("mail", minutes(1))).await;
    hints(given.store.due(), given.change(finished, Change::Redo)).await;
    hints(given.store.due(), given.change(waiting, Change::Reschedule(Due::Now))).await;
    hints(given.store.due(), given.change(waiting, Change::Move(queue("post")))).await;
}

async fn resuming_a_queue_hints_that_something_is_due(given: Given) {
    given.enqueue("mail", 1).await;
    given.store.set_paused(&queue("mail"), true).await.unwrap();
    hints(given.store.due(), given.store.set_paused(&queue("mail"), false)).await.unwrap();
}

async fn an_end_that_others_waited_for_hints_that_something_is_due(given: Given) {
    given.store.set_queue_limit(&queue("fax"), tenure_core::Limit::of(1)).await.unwrap();
    let (order, limit) = (ordered(tenure_core::Head::Block), limited(Some(1)));
    for (queue, terms) in [("mail", order), ("mail", limit), ("fax", tenure_core::Terms::default())] {
        given.put_on(queue, &terms, 2).await;
        for _ in 0..2 {
            let reserved = given.take(queue).await;
            if given.count(queue, StateName::Queued).await + given.count(queue, StateName::Blocked).await > 0
            {
                hints(given.store.due(), given.succeed(reserved)).await;
            } else {
                given.succeed(reserved).await;
            }
        }
    }
    let first = given.running().await;
    let waits = after(&[first.job().id], tenure_core::IfFailed::Cancel);
    given.put(given.on_terms("post", waits)).await;
    hints(given.store.due(), given.succeed(first)).await;
}

async fn an_end_of_which_nobody_has_the_good_hints_at_nothing(given: Given) {
    given.store.set_queue_limit(&queue("mail"), tenure_core::Limit::of(1)).await.unwrap();
    let terms = tenure_core::Terms { limit: limited(Some(1)).limit, ..ordered(tenure_core::Head::Block) };
    given.put_on("mail", &terms, 1).await;
    let reserved = given.take("mail").await;
    let hint = given.store.due();
    given.succeed(reserved).await;
    assert!(!hint.has_changed().unwrap(), "a call for nothing wakes every worker");
}

async fn a_limit_that_is_set_hints_that_something_is_due(given: Given) {
    let limit = tenure_core::Limit::of(1);
    hints(given.store.due(), given.store.set_queue_limit(&queue("mail"), limit)).await.unwrap();
    hints(given.store.due(), given.store.set_limit(&key("smtp"), Some(limit))).await.unwrap();
    hints(given.store.due(), given.store.set_limit(&key("smtp"), None)).await.unwrap();
}

async fn cancelling_a_running_job_hints_at_it(given: Given) {
    let reserved = given.running().await;
    hints(given.store.asked(), given.cancel(reserved.job().id)).await;
}

async fn a_record_that_asks_hints_at_it_once_it_is_written(given: Given) {
    let put = |only| Put {
        shelf: Name::new("shelf", "told").unwrap(),
        key: RecordKey::new("k").unwrap(),
        only,
        to: None,
    };
    let writes = |only, asks| Writes { records: vec![put(only)], asks, ..Writes::default() };
    let hint = given.store.asked();
    given.store.write_records(writes(Only::Any, false)).await.unwrap();
    given.store.write_records(writes(Only::Version(7), true)).await.unwrap();
    assert!(!hint.has_changed().unwrap(), "nobody was asked anything");
    hints(given.store.asked(), given.store.write_records(writes(Only::Any, true))).await.unwrap();
}

async fn giving_a_lease_back_hints_that_it_is_free(given: Given) {
    let mine = given.hold("x", 1).await;
    hints(given.store.freed(), given.give_back("x", mine)).await;
    given.hold("x", 1).await;
    hints(given.store.freed(), given.wish("x", leave(1))).await;
}

async fn breaking_a_lease_hints_at_it_to_its_holder_and_to_who_waits(given: Given) {
    for within in [Some(seconds(20)), Some(seconds(5)), Some(seconds(0))] {
        given.wish("x", acquire_for(1, Ttl::Endless)).await;
        let freed = given.store.freed();
        hints(given.store.asked(), given.wish("x", break_within(within))).await;
        assert!(freed.has_changed().unwrap(), "they were told that it has no end");
    }
}

/// They were told until when, and would sleep until then.
async fn making_a_lease_end_sooner_hints_at_it(given: Given) {
    given.hold_for("x", 1, Ttl::For(minutes(60))).await;
    hints(given.store.freed(), given.wish("x", acquire_for(1, Ttl::For(seconds(5))))).await;
}

async fn what_frees_no_lease_hints_at_nothing(given: Given) {
    let freed = given.store.freed();
    let mine = given.hold("x", 1).await;
    given.refusal("x", queue_up(2, TTL)).await;
    given.wish("x", renew(mine)).await;
    given.pass(seconds(1));
    given.wish("x", renew(mine)).await;
    given.wish("x", leave(2)).await;
    given.wish("x", leave(3)).await;
    given.refusal("x", forget()).await;
    given.pass(TTL);
    given.wish("x", forget()).await;
    assert!(!freed.has_changed().unwrap());
}

fn heard(events: &mut Receiver<Arc<Event>>) -> Vec<Arc<Event>> {
    std::iter::from_fn(|| events.try_recv().ok()).collect()
}

/// In words, so that a test can be read.
fn told(events: &mut Receiver<Arc<Event>>) -> Vec<String> {
    heard(events).iter().map(|event| words(&event.what)).collect()
}

fn words(what: &Happening) -> String {
    match what {
        Happening::Enqueued => "enqueued".to_owned(),
        Happening::Started { attempt } => format!("started {attempt}"),
        Happening::Progressed { fraction, message } => format!("progressed {fraction} {message}"),
        Happening::Became { state, .. } => format!("became {state}"),
        Happening::AskedToStop => "asked to stop".to_owned(),
        Happening::Deleted => "deleted".to_owned(),
    }
}

async fn the_life_of_a_job_is_told_in_order(given: Given) {
    let mut events = given.store.events();
    let id = given.put(given.new_job("mail")).await;
    given.settle(given.take("mail").await, retry_at(Due::In(seconds(5)))).await;
    given.pass(seconds(5));
    let reserved = given.take("mail").await;
    let progress = Some(Progress::new(0.5, "half").unwrap());
    given.store.report(vec![Report { held: held(&reserved), progress, lines: vec![] }]).await.unwrap();
    given.cancel(id).await;
    given.succeed(reserved).await;
    given.change(id, Change::Delete).await;
    let expected = [
        "enqueued",
        "started 1",
        "became scheduled",
        "started 2",
        "progressed 0.5 half",
        "asked to stop",
        "became succeeded",
        "deleted",
    ];
    assert_eq!(told(&mut events), expected);
}

async fn a_lapse_is_told(given: Given) {
    given.running().await;
    let mut events = given.store.events();
    given.pass(TTL);
    given.tend().await;
    assert_eq!(told(&mut events), ["became queued"]);
}

async fn what_people_change_is_told(given: Given) {
    let id = given.put(given.new_job("mail")).await;
    let mut events = given.store.events();
    given.change(id, Change::Reschedule(Due::In(minutes(1)))).await;
    given.cancel(id).await;
    given.change(id, Change::Redo).await;
    assert_eq!(told(&mut events), ["became scheduled", "became cancelled", "became queued"]);
}

async fn an_event_tells_which_job_it_is_about(given: Given) {
    let mut events = given.store.events();
    let job = given.of_kind("post", "print");
    given.put(job.clone()).await;
    let expected =
        Event { at: given.now(), id: job.id, kind: job.kind, queue: job.queue, what: Happening::Enqueued };
    assert_eq!(heard(&mut events).iter().map(|event| (**event).clone()).collect::<Vec<_>>(), [expected]);
}

async fn a_failure_is_told_with_what_went_wrong(given: Given) {
    let reserved = given.running().await;
    let mut events = given.store.events();
    given.settle(reserved, failed()).await;
    let event = heard(&mut events).remove(0);
    let Happening::Became { state: StateName::Failed, failure: Some(failure) } = &event.what else {
        panic!("{event:?}");
    };
    assert!(failure.contains("no such address"), "{failure}");
}

async fn what_was_refused_or_changed_nothing_is_not_told(given: Given) {
    let job = given.new_job("mail");
    given.put(job.clone()).await;
    let slow = given.take("mail").await;
    given.pass(TTL);
    let quick = given.take("mail").await;
    let settlement = decide(quick, Verdict::Succeeded(None));
    given.write(settlement.clone()).await;
    let mut events = given.store.events();
    given.offer(job.clone()).await;
    given.enqueue_all(vec![given.new_job("mail"), tenure_core::NewJob { kind: kind("print"), ..job }]).await;
    given.settle(slow, failed()).await;
    given.write(settlement.clone()).await;
    given.cancel(settlement.id()).await;
    given.cancel(JobId::from_bytes([7; 16])).await;
    given.reserve("mail", 9).await;
    given.tend().await;
    assert_eq!(told(&mut events), Vec::<String>::new());
}

async fn pruning_is_not_told(given: Given) {
    given.put(given.kept("mail", Keep::For(seconds(0)))).await;
    given.succeed(given.take("mail").await).await;
    let mut events = given.store.events();
    assert_eq!(given.tend().await.pruned, 1);
    assert_eq!(told(&mut events), Vec::<String>::new());
}
