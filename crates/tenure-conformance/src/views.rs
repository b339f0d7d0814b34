//! What looking promises: single jobs, listings, queues and their pause switch.

use tenure_core::{Args, Condition, Due, Name, NewJob, StateName, Terms, limits};

use super::given::{Given, ids, ids_of, kind, minutes, much_metadata, queue, seconds};
use super::{Test, test};
use tenure_store::{Change, Cursor, Fault, Filter, ListedBy, Order, PageAsk, QueueInfo, Selection, Values};

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(a_job_that_is_not_there_is_not_found),
        test(a_listing_goes_from_the_newest_to_the_oldest_unless_asked_otherwise),
        test(a_listing_goes_on_behind_its_cursor_in_both_orders),
        test(a_page_has_at_least_one_job_and_at_most_the_limit),
        test(a_listing_of_an_empty_store_is_at_its_end),
        test(a_listing_is_stable_while_jobs_come_and_go),
        test(a_cursor_stays_good_when_its_job_is_deleted),
        test(a_filter_means_states_as_they_are_now),
        test(a_filter_means_one_of_its_queues),
        test(a_filter_means_one_of_its_kinds),
        test(a_filter_means_all_of_its_tags),
        test(a_filter_means_a_span_of_acceptance),
        test(a_filter_means_what_all_its_parts_mean),
        test(a_filter_means_one_of_its_ids),
        test(a_filter_means_what_its_conditions_say),
        test(a_filtered_listing_goes_on_in_pages),
        test(a_listing_without_values_has_the_same_jobs),
        test(a_listing_reaches_what_lies_behind_many_others),
        test(a_search_in_large_args_ends_its_page_early),
        test(a_search_among_jobs_with_much_metadata_ends_its_page_early),
        test(a_search_that_needs_no_args_does_not_end_early_because_of_them),
        test(every_queue_that_was_ever_named_is_listed_by_name),
        test(a_queue_tells_since_when_its_longest_waiting_job_is_due),
        test(nothing_has_waited_in_a_queue_for_longer_than_it_is_there),
        test(pausing_is_answered_with_whether_it_changed_anything),
        test(a_queue_may_be_paused_before_it_has_jobs),
        test(what_runs_goes_on_in_a_paused_queue),
        test(a_paused_queue_still_takes_jobs_in),
    ]
}

async fn a_job_that_is_not_there_is_not_found(given: Given) {
    given.enqueue("mail", 1).await;
    assert_eq!(given.store.job(given.id()).await.unwrap(), None);
}

async fn a_listing_goes_from_the_newest_to_the_oldest_unless_asked_otherwise(given: Given) {
    let jobs = given.enqueue("mail", 3).await;
    let ask = PageAsk { at_most: 9, ..PageAsk::default() };
    let newest_first = [jobs[2], jobs[1], jobs[0]];
    assert_eq!(ids_of(&given.store.jobs(ask.clone()).await.unwrap().jobs), newest_first);
    let ask = PageAsk { order: Order::OldestFirst, ..ask };
    assert_eq!(ids_of(&given.store.jobs(ask).await.unwrap().jobs), jobs);
}

async fn a_listing_goes_on_behind_its_cursor_in_both_orders(given: Given) {
    let mut jobs = given.enqueue("mail", 7).await;
    for page in [1, 2, 3, 7, 8] {
        assert_eq!(ids_of(&given.list(Filter::default(), Order::OldestFirst, page).await), jobs);
    }
    jobs.reverse();
    for page in [1, 2, 3, 7, 8] {
        assert_eq!(ids_of(&given.list(Filter::default(), Order::NewestFirst, page).await), jobs);
    }
    let ask = PageAsk { after: Some(Cursor::behind(5)), at_most: 2, ..PageAsk::default() };
    let page = given.store.jobs(ask).await.unwrap();
    assert_eq!(page.jobs.iter().map(|job| job.seq).collect::<Vec<_>>(), [4, 3]);
    assert_eq!(page.next, Some(Cursor::behind(3)));
}

async fn a_page_has_at_least_one_job_and_at_most_the_limit(given: Given) {
    given.enqueue("mail", limits::PAGE_JOBS + 1).await;
    let page = async |at_most| given.store.jobs(PageAsk { at_most, ..PageAsk::default() }).await.unwrap();
    assert_eq!(page(0).await.jobs.len(), 1);
    let full = page(usize::MAX).await;
    assert_eq!(full.jobs.len(), limits::PAGE_JOBS);
    assert!(full.next.is_some());
}

async fn a_listing_of_an_empty_store_is_at_its_end(given: Given) {
    let page = given.store.jobs(PageAsk { at_most: 9, ..PageAsk::default() }).await.unwrap();
    assert_eq!((page.jobs, page.next), (vec![], None));
}

/// T143
async fn a_listing_without_values_has_the_same_jobs(given: Given) {
    given.enqueue("post", 3).await;
    given.succeeded().await;
    for by in [ListedBy::Acceptance, ListedBy::End] {
        let ask = PageAsk { by, ..PageAsk::default() };
        let whole = given.store.jobs(ask.clone()).await.unwrap();
        let page = given.store.jobs(PageAsk { values: Values::Omitted, ..ask }).await.unwrap();
        assert!(page.jobs.iter().all(|job| job.args.as_bytes().is_empty() && job.output.is_none()));
        assert_eq!(page, whole.with(Values::Omitted), "{by:?}");
    }
}

async fn a_listing_is_stable_while_jobs_come_and_go(given: Given) {
    let jobs = given.enqueue("mail", 6).await;
    let ask = PageAsk { at_most: 2, ..PageAsk::default() };
    let first = given.store.jobs(ask.clone()).await.unwrap();
    given.enqueue("mail", 3).await;
    given.change(jobs[5], Change::Delete).await;
    given.change(jobs[2], Change::Delete).await;
    let second = given.store.jobs(PageAsk { after: first.next, ..ask }).await.unwrap();
    assert_eq!(ids_of(&first.jobs), [jobs[5], jobs[4]]);
    assert_eq!(ids_of(&second.jobs), [jobs[3], jobs[1]], "none twice, none left out");
}

async fn a_cursor_stays_good_when_its_job_is_deleted(given: Given) {
    let jobs = given.enqueue("mail", 4).await;
    let ask = PageAsk { at_most: 2, order: Order::OldestFirst, ..PageAsk::default() };
    let first = given.store.jobs(ask.clone()).await.unwrap();
    given.change(jobs[1], Change::Delete).await;
    let second = given.store.jobs(PageAsk { after: first.next, ..ask }).await.unwrap();
    assert_eq!(ids_of(&second.jobs), [jobs[2], jobs[3]]);
}

async fn found(given: &Given, filter: Filter) -> Vec<u64> {
    given.list(filter, Order::OldestFirst, 2).await.iter().map(|job| job.seq).collect()
}

async fn a_filter_means_states_as_they_are_now(given: Given) {
    given.succeeded().await;
    given.fail(given.running().await).await;
    let cancelled = given.put(given.new_job("mail")).await;
    given.cancel(cancelled).await;
    given.running().await;
    given.enqueue("mail", 1).await;
    given.put(given.due_in("mail", minutes(1))).await;
    let of = |states: &[StateName]| found(&given, Filter { states: states.to_vec(), ..Filter::default() });
    assert_eq!(of(&[StateName::Succeeded]).await, [1]);
    assert_eq!(of(&[StateName::Failed]).await, [2]);
    assert_eq!(of(&[StateName::Cancelled]).await, [3]);
    assert_eq!(of(&[StateName::Running]).await, [4]);
    assert_eq!(of(&[StateName::Queued]).await, [5]);
    assert_eq!(of(&[StateName::Scheduled]).await, [6]);
    assert_eq!(of(&[StateName::Scheduled, StateName::Succeeded, StateName::Running]).await, [1, 4, 6]);
    given.pass(minutes(1));
    assert_eq!(of(&[StateName::Queued]).await, [5, 6], "a job that has come due is queued, swept or not");
    assert_eq!(of(&[StateName::Scheduled]).await, [0_u64; 0]);
}

async fn a_filter_means_one_of_its_queues(given: Given) {
    for name in ["mail", "post", "mail", "fax"] {
        given.enqueue(name, 1).await;
    }
    let of = |names: &[&str]| {
        found(&given, Filter { queues: names.iter().map(|name| queue(name)).collect(), ..Filter::default() })
    };
    assert_eq!(of(&["mail"]).await, [1, 3]);
    assert_eq!(of(&["mail", "fax"]).await, [1, 3, 4]);
    assert_eq!(of(&["MAIL"]).await, [0_u64; 0]);
}

async fn a_filter_means_one_of_its_kinds(given: Given) {
    for name in ["send", "print", "send", "fold"] {
        given.put(given.of_kind("mail", name)).await;
    }
    let of = |names: &[&str]| {
        found(&given, Filter { kinds: names.iter().map(|name| kind(name)).collect(), ..Filter::default() })
    };
    assert_eq!(of(&["send"]).await, [1, 3]);
    assert_eq!(of(&["fold", "print"]).await, [2, 4]);
    assert_eq!(of(&["sen"]).await, [0_u64; 0]);
}

fn tags(names: &[&str]) -> Vec<Name> {
    names.iter().map(|name| Name::new("tag", name).unwrap()).collect()
}

async fn a_filter_means_all_of_its_tags(given: Given) {
    for names in [&["eu", "slow"][..], &["eu"], &[], &["slow", "big", "eu"]] {
        given.put(given.on_terms("mail", Terms { tags: tags(names), ..Terms::default() })).await;
    }
    let of = |names: &[&str]| found(&given, Filter { tags: tags(names), ..Filter::default() });
    assert_eq!(of(&["eu"]).await, [1, 2, 4]);
    assert_eq!(of(&["eu", "slow"]).await, [1, 4]);
    assert_eq!(of(&["e"]).await, [0_u64; 0]);
}

async fn a_filter_means_a_span_of_acceptance(given: Given) {
    let start = given.now();
    for _ in 0..4 {
        given.enqueue("mail", 1).await;
        given.pass(seconds(10));
    }
    let (from, before) = (Some(start.after(seconds(10))), Some(start.after(seconds(30))));
    let of = |created_from, created_before| {
        found(&given, Filter { created_from, created_before, ..Filter::default() })
    };
    assert_eq!(of(from, before).await, [2, 3], "the first instant counts, the last does not");
    assert_eq!(of(from, None).await, [2, 3, 4]);
    assert_eq!(of(None, before).await, [1, 2, 3]);
}

async fn a_filter_means_what_all_its_parts_mean(given: Given) {
    for (queue, kind) in [("mail", "send"), ("mail", "print"), ("post", "send"), ("post", "print")] {
        given.put(given.of_kind(queue, kind)).await;
        given.put(NewJob { due: Due::In(minutes(1)), ..given.of_kind(queue, kind) }).await;
    }
    let filter = Filter {
        states: vec![StateName::Scheduled],
        queues: vec![queue("post")],
        kinds: vec![kind("send"), kind("print")],
        ..Filter::default()
    };
    assert_eq!(found(&given, filter).await, [6, 8]);
}

async fn a_filtered_listing_goes_on_in_pages(given: Given) {
    for index in 0..20 {
        given.enqueue(if index % 3 == 0 { "post" } else { "mail" }, 1).await;
    }
    let filter = Filter { queues: vec![queue("post")], ..Filter::default() };
    for order in [Order::OldestFirst, Order::NewestFirst] {
        let mut seqs: Vec<u64> =
            given.list(filter.clone(), order, 3).await.iter().map(|job| job.seq).collect();
        if order == Order::NewestFirst {
            seqs.reverse();
        }
        assert_eq!(seqs, [1, 4, 7, 10, 13, 16, 19]);
    }
}

async fn a_listing_reaches_what_lies_behind_many_others(given: Given) {
    let terms = Terms { tags: tags(&["eu"]), ..Terms::default() };
    let oldest = given.put(given.on_terms("mail", terms)).await;
    given.enqueue("mail", limits::PAGE_EXAMINED + 1).await;
    let filter = Filter { tags: tags(&["eu"]), ..Filter::default() };
    assert_eq!(ids_of(&given.list(filter, Order::NewestFirst, 10).await), [oldest]);
}

/// Otherwise one search would occupy the store for as long as it takes to read 10,000 jobs of the largest size.
async fn a_search_in_large_args_ends_its_page_early(given: Given) {
    let large = Args::new(format!("{{\"to\":\"{}\"}}", "x".repeat(200 * 1024)).into_bytes()).unwrap();
    let many = limits::PAGE_EXAMINED_BYTES / large.as_bytes().len() + 20;
    let batch = (0..many).map(|_| NewJob { args: large.clone(), ..given.new_job("mail") }).collect();
    let condition = Condition::Arg { path: vec!["to".to_owned()], value: "7".into() };
    // A store that encrypts args refuses to search them.
    if given.store.extras().encryption.is_some() {
        let filter = Filter { conditions: vec![condition], ..Filter::default() };
        let refused = given.store.jobs(PageAsk { filter, ..PageAsk::default() }).await;
        assert!(matches!(refused, Err(Fault::Broken(_))), "{refused:?}");
        return;
    }
    ends_its_page_early(&given, batch, condition, || given.new_job("mail")).await;
}

/// A store reads and parses the metadata of each job, also if no condition needs it.
async fn a_search_among_jobs_with_much_metadata_ends_its_page_early(given: Given) {
    let (large, many) = much_metadata();
    let batch = (0..many).map(|_| given.on_terms("mail", large.clone())).collect();
    let (key, value) = ("x".to_owned(), "1".to_owned());
    let few = Terms { meta: [(key.clone(), value.clone())].into(), ..Terms::default() };
    let condition = Condition::Meta { key, value };
    ends_its_page_early(&given, batch, condition, || given.on_terms("mail", few.clone())).await;
}

/// Stores a job that matches, many large ones that do not, and another that does.
async fn ends_its_page_early(
    given: &Given,
    large: Vec<NewJob>,
    condition: Condition,
    matching: impl Fn() -> NewJob,
) {
    let many = large.len();
    let first = given.put(matching()).await;
    given.enqueue_all(large).await;
    let last = given.put(matching()).await;
    let filter = Filter { conditions: vec![condition], ..Filter::default() };
    for order in [Order::NewestFirst, Order::OldestFirst] {
        let ask = PageAsk { filter: filter.clone(), order, at_most: 9, ..PageAsk::default() };
        let page = given.store.jobs(ask.clone()).await.unwrap();
        assert_eq!(ids_of(&page.jobs), [if order == Order::NewestFirst { last } else { first }]);
        assert!(page.next.is_some() && page.examined < many, "it looked at all {many} large jobs");
        let rest = given.store.jobs(PageAsk { after: page.next, ..ask }).await.unwrap();
        assert_eq!(ids_of(&rest.jobs), [if order == Order::NewestFirst { first } else { last }]);
        assert_eq!(rest.next, None);
    }
    let grace = minutes(1);
    given.change_matching(Change::Cancel { grace, reason: String::new() }, Filter::default()).await;
    let ask = PageAsk { filter: filter.clone(), by: ListedBy::End, at_most: 9, ..PageAsk::default() };
    let page = given.store.jobs(ask.clone()).await.unwrap();
    assert_eq!((ids_of(&page.jobs), page.next.is_some()), (vec![last], true));
    let rest = given.store.jobs(PageAsk { after: page.next, ..ask }).await.unwrap();
    assert_eq!((ids_of(&rest.jobs), rest.next), (vec![first], None));
    // A change goes on behind what it has examined, too.
    let steps = given.change_matching(Change::Delete, filter).await;
    let changed: Vec<_> = steps.iter().flat_map(|step| &step.outcomes).map(|(id, _)| *id).collect();
    assert_eq!((changed, steps.len() > 1), (vec![first, last], true));
}

/// The store need not read the args of a job that it passes over.
async fn a_search_that_needs_no_args_does_not_end_early_because_of_them(given: Given) {
    let large = Args::new(format!("\"{}\"", "x".repeat(200 * 1024)).into_bytes()).unwrap();
    let many = limits::PAGE_EXAMINED_BYTES / large.as_bytes().len() + 20;
    let batch = (0..many).map(|_| NewJob { args: large.clone(), ..given.new_job("mail") }).collect();
    given.enqueue_all(batch).await;
    let before = given.now();
    given.pass(seconds(1));
    let terms = std::sync::Arc::new(Terms { owner: Some("shop".to_owned()), ..Terms::default() });
    let wanted = given.put(NewJob { args: large.clone(), terms, ..given.new_job("mail") }).await;
    let conditions = vec![Condition::Owner("shop".to_owned())];
    given
        .change_matching(
            Change::Cancel { grace: minutes(1), reason: String::new() },
            Filter { created_from: Some(before), ..Filter::default() },
        )
        .await;
    let by_owner = Filter { conditions, ..Filter::default() };
    let by_time = Filter { created_from: Some(before.after(seconds(1))), ..Filter::default() };
    for filter in [by_owner, by_time] {
        for (by, order) in [
            (ListedBy::Acceptance, Order::NewestFirst),
            (ListedBy::Acceptance, Order::OldestFirst),
            (ListedBy::End, Order::OldestFirst),
        ] {
            let ask = PageAsk { filter: filter.clone(), by, order, ..PageAsk::default() };
            let page = given.store.jobs(ask).await.unwrap();
            assert_eq!((ids_of(&page.jobs), page.next), (vec![wanted], None), "{by:?} {order:?}");
            assert_eq!(page.jobs[0].args, large, "a job of the page has its args");
        }
    }
}

fn info(name: &str) -> QueueInfo {
    let (limit, terms) = (tenure_core::Limit::default(), tenure_core::QueueTerms::default());
    QueueInfo { name: queue(name), paused: false, oldest_due: None, limit, terms }
}

async fn every_queue_that_was_ever_named_is_listed_by_name(given: Given) {
    assert_eq!(given.store.queues().await.unwrap(), []);
    for name in ["post", "mail"] {
        let id = given.put(given.due_in(name, minutes(1))).await;
        given.change(id, Change::Delete).await;
    }
    given.store.set_paused(&queue("fax"), true).await.unwrap();
    let listed = [QueueInfo { paused: true, ..info("fax") }, info("mail"), info("post")];
    assert_eq!(given.store.queues().await.unwrap(), listed);
}

async fn a_queue_tells_since_when_its_longest_waiting_job_is_due(given: Given) {
    let start = given.now();
    given.put(given.due_in("mail", seconds(30))).await;
    given.put(given.due_in("mail", seconds(10))).await;
    given.put(given.due_in("post", seconds(90))).await;
    let oldest = async || given.store.queues().await.unwrap().remove(0).oldest_due;
    assert_eq!(oldest().await, None, "nothing is due");
    given.pass(seconds(60));
    given.tend().await;
    assert_eq!(oldest().await, Some(start.after(seconds(10))));
    given.take("mail").await;
    assert_eq!(oldest().await, Some(start.after(seconds(30))), "what runs does not wait");
    assert_eq!(given.store.queues().await.unwrap()[1], info("post"));
    given.take("mail").await;
    assert_eq!(oldest().await, None);
}

/// As the messages of a writer, which are due before all time.
async fn nothing_has_waited_in_a_queue_for_longer_than_it_is_there(given: Given) {
    let start = given.now();
    let past = |due| NewJob { due: tenure_core::Due::At(due), ..given.new_job("mail") };
    let first = given.put(past(tenure_core::Timestamp::EPOCH)).await;
    given.pass(seconds(5));
    given.put(past(tenure_core::Timestamp::EPOCH)).await;
    given.put(past(start.before(minutes(5)))).await;
    let oldest = async || given.store.queues().await.unwrap().remove(0).oldest_due;
    assert_eq!(oldest().await, Some(start));
    assert_eq!(given.take("mail").await.job().id, first);
    assert_eq!(oldest().await, Some(start.after(seconds(5))));
    given.clock.step_to(start);
    assert_eq!(oldest().await, Some(start), "nor for less than no time");
}

async fn pausing_is_answered_with_whether_it_changed_anything(given: Given) {
    given.enqueue("mail", 1).await;
    let mut answers = Vec::new();
    for paused in [false, true, true, false, false] {
        answers.push(given.store.set_paused(&queue("mail"), paused).await.unwrap());
        assert_eq!(given.store.queues().await.unwrap()[0].paused, paused);
    }
    assert_eq!(answers, [false, true, false, true, false]);
}

async fn a_queue_may_be_paused_before_it_has_jobs(given: Given) {
    assert!(given.store.set_paused(&queue("mail"), true).await.unwrap());
    let id = given.put(given.new_job("mail")).await;
    assert_eq!(given.reserve("mail", 9).await, []);
    given.store.set_paused(&queue("mail"), false).await.unwrap();
    assert_eq!(ids(&given.reserve("mail", 9).await), [id]);
}

async fn what_runs_goes_on_in_a_paused_queue(given: Given) {
    let reserved = given.running().await;
    given.store.set_paused(&queue("mail"), true).await.unwrap();
    let renewed = given.renew(super::given::held(&reserved), minutes(1)).await;
    assert!(matches!(renewed, tenure_store::Renewal::Held(_)), "{renewed:?}");
    given.succeed(reserved).await;
}

async fn a_paused_queue_still_takes_jobs_in(given: Given) {
    given.store.set_paused(&queue("mail"), true).await.unwrap();
    given.enqueue("mail", 3).await;
    assert_eq!(given.count("mail", StateName::Queued).await, 3);
}

async fn a_filter_means_one_of_its_ids(given: Given) {
    let jobs = given.enqueue("mail", 5).await;
    let ids = vec![jobs[3], given.id(), jobs[1], jobs[3]];
    let filter = Filter { ids, ..Filter::default() };
    assert_eq!(ids_of(&given.list(filter.clone(), Order::OldestFirst, 1).await), [jobs[1], jobs[3]]);
    assert_eq!(ids_of(&given.list(filter.clone(), Order::NewestFirst, 9).await), [jobs[3], jobs[1]]);
    let both = Filter { states: vec![StateName::Running], ..filter };
    assert!(given.list(both, Order::OldestFirst, 9).await.is_empty());
}

async fn a_filter_means_what_its_conditions_say(given: Given) {
    let jobs = given.enqueue("mail", 5).await;
    let id = jobs[2].to_string();
    let not = |condition| Condition::Not(Box::new(condition));
    let conditions = vec![not(Condition::IdBegins(id)), Condition::Attempt(0..=0)];
    let filter = Filter { conditions, ..Filter::default() };
    let expected = [jobs[0], jobs[1], jobs[3], jobs[4]];
    assert_eq!(ids_of(&given.list(filter.clone(), Order::OldestFirst, 2).await), expected);
    let selection = Selection::Matching { filter, after: None };
    let changed = given.store.change(Change::Delete, selection).await.unwrap();
    assert_eq!(changed.outcomes.len(), 4);
    assert!(given.store.job(jobs[2]).await.unwrap().is_some());
    let owned = given.on_terms("mail", Terms { owner: Some("shop".to_owned()), ..Terms::default() });
    let id = given.put(owned).await;
    let of =
        |owner: &str| Filter { conditions: vec![Condition::Owner(owner.to_owned())], ..Filter::default() };
    assert_eq!(ids_of(&given.list(of("shop"), Order::OldestFirst, 9).await), [id]);
    assert!(given.list(of("Shop"), Order::OldestFirst, 9).await.is_empty());
}
