//! Looking at timers and at the records of their slots, and pruning those.

use tenure_core::{CatchUp, Overlap, Policies, SlotRecord};

use super::super::given::{Given, minutes};
use super::super::{Test, test};
use super::{name, overlapping, timer};
use tenure_store::{Order, Pruned, SlotCursor, SlotPage, SlotsAsk, TimerAct, TimerPage, TimersAsk};

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(timers_are_listed_by_name_page_by_page),
        test(records_are_listed_by_slot_page_by_page),
        test(old_records_are_removed_in_bounded_steps),
        test(a_record_of_a_slot_long_past_is_kept_for_as_long_as_others),
    ]
}

async fn timers_are_listed_by_name_page_by_page(given: Given) {
    let names = ["b", "a.2", "a.1", "a-9", "c"];
    let timers = names.iter().map(|text| timer(text, "every 1h", Policies::default())).collect();
    given.store.set_timers(timers, None).await.unwrap();
    let page = async |prefix: &str, behind: Option<&str>, at_most| {
        let ask = TimersAsk { prefix: prefix.to_owned(), behind: behind.map(name), at_most };
        let TimerPage { timers, next, .. } = given.store.timers(ask).await.unwrap();
        let names: Vec<String> = timers.iter().map(|timer| timer.name().to_string()).collect();
        (names.join(" "), next.map(|next| next.to_string()))
    };
    assert_eq!(page("", None, 100).await, ("a-9 a.1 a.2 b c".to_owned(), None));
    assert_eq!(page("a.", None, 1).await, ("a.1".to_owned(), Some("a.1".to_owned())));
    assert_eq!(page("a.", Some("a.1"), 1).await, ("a.2".to_owned(), None));
    assert_eq!(page("", Some("a.2"), 2).await, ("b c".to_owned(), None));
    assert_eq!(page("x", None, 2).await, (String::new(), None));
}

async fn records_are_listed_by_slot_page_by_page(given: Given) {
    let policies = Policies { catch_up: CatchUp::All { most: 9 }, ..overlapping(Overlap::QueueAll) };
    let since = given.each_minute(policies).await;
    given.set(timer("b", "30 * * * * *", policies)).await;
    given.pass(minutes(3));
    given.fire().await;
    let second = |record: &SlotRecord| record.last.since(since).as_secs();
    let listed = async |ask: SlotsAsk| {
        let (mut all, mut behind) = (Vec::new(), None);
        loop {
            let ask = SlotsAsk { at_most: 2, behind, ..ask.clone() };
            let SlotPage { slots, next } = given.store.slots(ask).await.unwrap();
            assert!(slots.len() <= 2);
            assert_eq!(next.is_some() && !slots.is_empty(), next.is_some(), "no page is empty and goes on");
            all.extend(slots.iter().map(second));
            behind = next;
            if behind.is_none() {
                return all;
            }
        }
    };
    let ask = SlotsAsk { order: Order::OldestFirst, ..SlotsAsk::default() };
    assert_eq!(listed(ask.clone()).await, [30, 60, 90, 120, 150, 180]);
    assert_eq!(listed(SlotsAsk::default()).await, [180, 150, 120, 90, 60, 30]);
    let of_b = SlotsAsk { timer: Some(name("b")), ..ask.clone() };
    assert_eq!(listed(of_b).await, [30, 90, 150]);
    let (from, before) = (Some(since.after(minutes(1))), Some(since.after(minutes(2))));
    assert_eq!(listed(SlotsAsk { from, before, ..ask.clone() }).await, [60, 90]);
    let of_a = SlotsAsk { timer: Some(name("a")), from, before, ..SlotsAsk::default() };
    assert_eq!(listed(of_a).await, [60]);
    let third = given.records().await.get(2).map(SlotCursor::of);
    let behind = given.store.slots(SlotsAsk { behind: third, ..ask }).await.unwrap();
    assert_eq!(behind.slots.iter().map(second).collect::<Vec<_>>(), [120, 150, 180]);
}

async fn old_records_are_removed_in_bounded_steps(given: Given) {
    let policies = Policies { catch_up: CatchUp::All { most: 9 }, ..overlapping(Overlap::QueueAll) };
    let since = given.each_minute(policies).await;
    for _ in 0..9 {
        given.pass(minutes(1));
        given.fire().await;
    }
    let pruned = given.store.prune_slots(since.after(minutes(4))).await.unwrap();
    assert_eq!(pruned, Pruned { removed: 3, more: false });
    assert_eq!(given.told(since).await.first(), Some(&(4, 4, "ran")));
    assert_eq!(given.store.prune_slots(since).await.unwrap(), Pruned::default());
}

async fn a_record_of_a_slot_long_past_is_kept_for_as_long_as_others(given: Given) {
    let since = given.each_minute(overlapping(Overlap::QueueAll)).await;
    given.pass(minutes(60));
    let act = TimerAct::Backfill { from: since.after(minutes(1)), to: since.after(minutes(3)), again: false };
    given.store.change_timer(&name("a"), act).await.unwrap();
    let made = given.now();
    assert_eq!(given.store.prune_slots(made).await.unwrap(), Pruned::default());
    assert_eq!(given.told(since).await, [(1, 1, "ran"), (2, 2, "ran"), (3, 3, "ran")]);
    given.pass(minutes(1));
    let pruned = given.store.prune_slots(given.now()).await.unwrap();
    assert_eq!(pruned, Pruned { removed: 3, more: false });
}
