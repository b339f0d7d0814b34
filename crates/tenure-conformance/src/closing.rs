//! What a store as a whole promises, up to its close.

use tenure_core::{AppId, Fence, Limit};

use super::given::{Given, TTL, cancel_within, decide, held, host, minutes, queue, want};
use super::keyed::key;
use super::wishes::{acquire, leave, name, queue_up, wish};
use super::{Test, test};
use tenure_store::{
    Clock, Fault, LeasesAsk, LedgerAsk, PageAsk, Renew, Report, Selection, SlotsAsk, TimerAct, TimerEdit,
    TimerSeen, TimersAsk,
};

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(a_store_goes_by_the_clock_it_was_given),
        test(a_store_describes_itself_in_a_few_words),
        test(a_store_begins_empty),
        test(after_the_close_every_call_is_a_fault),
        test(after_the_close_its_hints_can_still_be_asked_for),
    ]
}

async fn a_store_goes_by_the_clock_it_was_given(given: Given) {
    given.pass(minutes(7));
    assert_eq!(given.store.clock().now(), given.clock.now());
    let id = given.put(given.new_job("mail")).await;
    assert_eq!(given.job(id).await.created, given.clock.now());
}

async fn a_store_describes_itself_in_a_few_words(given: Given) {
    let words = given.store.about().place;
    assert!(!words.trim().is_empty() && words.len() < 500 && !words.contains('\n'), "{words:?}");
}

async fn a_store_begins_empty(given: Given) {
    given.enqueue("mail", 2).await;
    let other = given.anew(2).await;
    assert_eq!(other.all().await, []);
    assert_eq!(other.store.counts().await.unwrap(), []);
    other.store.close().await.unwrap();
}

async fn after_the_close_every_call_is_a_fault(given: Given) {
    let reserved = given.running().await;
    let (id, ownership, mail) = (reserved.job().id, held(&reserved), queue("mail"));
    let store = &given.store;
    store.close().await.unwrap();
    let closed = |answer: Result<(), Fault>| assert_eq!(answer, Err(Fault::Closed));
    closed(store.enqueue(vec![given.new_job("mail")]).await.map(drop));
    closed(store.reserve(given.ask(vec![want("mail", 1)], 1)).await.map(drop));
    closed(store.renew(Renew { ttl: TTL, held: vec![ownership] }).await.map(drop));
    closed(store.settle(vec![decide(reserved, tenure_core::Verdict::Released)], None).await.map(drop));
    closed(store.report(vec![Report { held: ownership, progress: None, lines: vec![] }]).await.map(drop));
    closed(store.change(cancel_within(TTL), Selection::Ids(vec![id])).await.map(drop));
    closed(store.tend().await.map(drop));
    closed(store.announce(given.holder, "web-1", 1, &[], TTL).await);
    closed(store.retire(given.holder).await);
    closed(store.hosts().await.map(drop));
    let app = AppId::new("mail").unwrap();
    closed(store.claim_app(&app, "mail", given.holder).await.map(drop));
    closed(store.apps().await.map(drop));
    let timer = super::timers::timer("a", "every 1h", tenure_core::Policies::default());
    closed(store.set_timers(vec![timer.clone()], Some(host(1))).await.map(drop));
    closed(store.fire(1).await.map(drop));
    closed(store.change_timer(&timer.name, TimerAct::Resume).await.map(drop));
    let edit = TimerEdit::Act(TimerAct::Resume);
    closed(store.edit_timer(&timer.name, TimerSeen::Never, edit).await.map(drop));
    closed(store.timer(&timer.name).await.map(drop));
    closed(store.timers(TimersAsk::default()).await.map(drop));
    closed(store.slots(SlotsAsk::default()).await.map(drop));
    closed(store.prune_slots(given.now()).await.map(drop));
    closed(store.lease(vec![wish("x", acquire(1))]).await.map(drop));
    closed(store.lease(vec![wish("x", queue_up(1, TTL))]).await.map(drop));
    closed(store.lease(vec![wish("x", leave(1))]).await.map(drop));
    closed(store.lease_info(&name("x")).await.map(drop));
    closed(store.leases(LeasesAsk::default()).await.map(drop));
    closed(store.ledger(LedgerAsk::default()).await.map(drop));
    closed(store.prune_ledger(given.now()).await.map(drop));
    closed(store.job(id).await.map(drop));
    closed(store.jobs(PageAsk::default()).await.map(drop));
    closed(store.attempts(id).await.map(drop));
    closed(store.logs(id, (0, 0), 1).await.map(drop));
    closed(store.counts().await.map(drop));
    closed(store.queues().await.map(drop));
    closed(store.standing(id).await.map(drop));
    closed(store.set_paused(&mail, true).await.map(drop));
    closed(store.set_queue_limit(&mail, Limit::of(1)).await.map(drop));
    closed(store.limits(None, 1).await.map(drop));
    closed(store.set_limit(&key("smtp"), Some(Limit::of(1))).await);
    closed(store.set_limit(&key("smtp"), None).await);
    closed(store.rest().await.map(drop));
    closed(store.unreadable(1).await.map(drop));
    closed(store.keys_held(None, 1).await.map(drop));
    closed(store.records_kept(None, 1).await.map(drop));
    closed(store.entries_kept(None, 1).await.map(drop));
    closed(store.begin_copy().await.map(drop));
    closed(store.take_in(Vec::new()).await);
    closed(store.close().await);
    assert!(ownership.fence > Fence::NONE);
}

async fn after_the_close_its_hints_can_still_be_asked_for(given: Given) {
    given.store.close().await.unwrap();
    for hint in [given.store.due(), given.store.asked(), given.store.freed()] {
        assert!(!hint.has_changed().unwrap());
    }
    assert!(given.store.events().is_empty() && given.store.others().is_empty());
    assert!(!given.store.about().place.is_empty());
}
