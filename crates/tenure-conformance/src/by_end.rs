//! What a listing by ends promises.

use tenure_core::{JobId, Reserved, RetryPolicy, StateName, Verdict};
use tenure_store::{Change, Cursor, Filter, ListedBy, Order, PageAsk, Selection};

use super::given::{Given, ids_of, pages, queue, seconds};
use super::{Test, test};

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(a_listing_by_ends_holds_what_has_ended_in_that_order),
        test(what_ended_at_the_same_instant_is_listed_by_its_acceptance),
        test(a_listing_by_ends_goes_on_behind_its_cursor),
        test(a_listing_by_ends_is_stable_while_jobs_end_and_are_removed),
        test(a_filter_means_a_span_of_ends_in_every_listing),
        test(what_is_done_again_has_not_ended),
        test(a_listing_by_ends_passes_what_is_not_meant_and_what_was_removed_however_many),
        test(the_cursor_of_a_listing_is_the_same_after_a_way_through_text),
    ]
}

/// Two ended at each second: one that succeeded and one that failed, the later accepted first.
async fn ended(given: &Given, pairs: usize) -> Vec<JobId> {
    given.enqueue("mail", pairs * 2).await;
    let mut held = given.reserve("mail", pairs * 2).await;
    let mut ended = Vec::new();
    while let (Some(later), Some(earlier)) = (held.pop(), held.pop()) {
        given.clock.advance(seconds(1));
        ended.extend([earlier.job().id, later.job().id]);
        given.succeed(later).await;
        given.fail(earlier).await;
    }
    ended
}

fn by_end(order: Order) -> PageAsk {
    PageAsk { by: ListedBy::End, order, at_most: 100, ..PageAsk::default() }
}

async fn a_listing_by_ends_holds_what_has_ended_in_that_order(given: Given) {
    let mut ended = ended(&given, 3).await;
    given.enqueue("mail", 2).await;
    assert_eq!(ids_of(&pages(&*given.store, by_end(Order::OldestFirst)).await), ended);
    ended.reverse();
    assert_eq!(ids_of(&pages(&*given.store, by_end(Order::NewestFirst)).await), ended);
}

async fn what_ended_at_the_same_instant_is_listed_by_its_acceptance(given: Given) {
    let jobs = given.enqueue("mail", 600).await;
    let mut held = given.reserve("mail", 600).await;
    while !held.is_empty() {
        let some = held.split_off(held.len() - 200);
        let settle =
            |reserved: Reserved| reserved.settle(Verdict::Succeeded(None), &RetryPolicy::default(), 0.5);
        given.store.settle(some.into_iter().map(settle).collect(), None).await.unwrap();
    }
    for page in [7, 256, 1_000] {
        let ask = PageAsk { at_most: page, ..by_end(Order::OldestFirst) };
        assert_eq!(ids_of(&pages(&*given.store, ask).await), jobs, "{page} a page");
    }
    let newest: Vec<JobId> = jobs.into_iter().rev().collect();
    assert_eq!(ids_of(&pages(&*given.store, by_end(Order::NewestFirst)).await), newest);
}

async fn a_listing_by_ends_goes_on_behind_its_cursor(given: Given) {
    let mut ended = ended(&given, 4).await;
    for page in [1, 2, 3, 8, 9] {
        let ask = PageAsk { at_most: page, ..by_end(Order::OldestFirst) };
        assert_eq!(ids_of(&pages(&*given.store, ask).await), ended);
    }
    ended.reverse();
    for page in [1, 2, 3, 8, 9] {
        let ask = PageAsk { at_most: page, ..by_end(Order::NewestFirst) };
        assert_eq!(ids_of(&pages(&*given.store, ask).await), ended);
    }
}

async fn a_listing_by_ends_is_stable_while_jobs_end_and_are_removed(given: Given) {
    let first = ended(&given, 3).await;
    let ask = PageAsk { at_most: 3, ..by_end(Order::OldestFirst) };
    let page = given.store.jobs(ask.clone()).await.unwrap();
    assert_eq!(ids_of(&page.jobs), first[..3]);
    given.store.change(Change::Delete, Selection::Ids(first[1..4].to_vec())).await.unwrap();
    let more = ended(&given, 1).await;
    let rest = given.store.jobs(PageAsk { after: page.next, at_most: 100, ..ask }).await.unwrap();
    assert_eq!(ids_of(&rest.jobs), [&first[4..], &more].concat());
    assert_eq!(rest.next, None);
}

async fn a_filter_means_a_span_of_ends_in_every_listing(given: Given) {
    let ended = ended(&given, 4).await;
    let at = given.store.job(ended[2]).await.unwrap().and_then(|job| job.state.ended()).unwrap();
    let filter =
        Filter { ended_from: Some(at), ended_before: Some(at.after(seconds(2))), ..Filter::default() };
    for order in [Order::OldestFirst, Order::NewestFirst] {
        for (by, page) in [(ListedBy::End, 1), (ListedBy::End, 50), (ListedBy::Acceptance, 50)] {
            let ask = PageAsk { filter: filter.clone(), by, order, at_most: page, ..PageAsk::default() };
            let mut found = ids_of(&pages(&*given.store, ask).await);
            if by == ListedBy::End && order == Order::OldestFirst {
                assert_eq!(found, ended[2..6]);
            }
            found.sort();
            let mut expected = ended[2..6].to_vec();
            expected.sort();
            assert_eq!(found, expected, "{by:?} {order:?}");
        }
    }
    let failed = Filter { states: vec![StateName::Failed], queues: vec![queue("mail")], ..filter };
    let ask = PageAsk { filter: failed, ..by_end(Order::OldestFirst) };
    assert_eq!(pages(&*given.store, ask).await.len(), 2);
}

async fn what_is_done_again_has_not_ended(given: Given) {
    let ended = ended(&given, 2).await;
    given.store.change(Change::Redo, Selection::Ids(ended[1..3].to_vec())).await.unwrap();
    assert_eq!(ids_of(&pages(&*given.store, by_end(Order::OldestFirst)).await), [ended[0], ended[3]]);
}

async fn a_listing_by_ends_passes_what_is_not_meant_and_what_was_removed_however_many(given: Given) {
    let few = given.enqueue("few", 2).await;
    for reserved in given.reserve("few", 2).await {
        given.clock.advance(seconds(1));
        given.succeed(reserved).await;
    }
    let many = given.enqueue("many", 600).await;
    given.clock.advance(seconds(1));
    let held = given.reserve("many", 600).await;
    let settle = |reserved: Reserved| reserved.settle(Verdict::Succeeded(None), &RetryPolicy::default(), 0.5);
    given.store.settle(held.into_iter().map(settle).collect(), None).await.unwrap();
    let filter = Filter { queues: vec![queue("few")], ..Filter::default() };
    let ask = PageAsk { filter, ..by_end(Order::NewestFirst) };
    let found = given.store.jobs(ask).await.unwrap();
    assert_eq!(ids_of(&found.jobs), [few[1], few[0]], "those that are not meant are in between");
    given.store.change(Change::Delete, Selection::Ids(many)).await.unwrap();
    let found = given.store.jobs(by_end(Order::NewestFirst)).await.unwrap();
    assert_eq!(ids_of(&found.jobs), [few[1], few[0]], "those that were removed are in between");
}

async fn the_cursor_of_a_listing_is_the_same_after_a_way_through_text(given: Given) {
    ended(&given, 2).await;
    let ask = PageAsk { at_most: 1, ..by_end(Order::OldestFirst) };
    let cursor = given.store.jobs(ask).await.unwrap().next.unwrap();
    assert_eq!(cursor.to_string().parse::<Cursor>().unwrap(), cursor);
    assert!(cursor.is_of(ListedBy::End) && !cursor.is_of(ListedBy::Acceptance));
    assert!(["e1", "e.", "ex.1", "e1.x", "e-1.1"].iter().all(|bad| bad.parse::<Cursor>().is_err()));
}
