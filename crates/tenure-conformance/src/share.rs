//! What share keys promise: the tenants of a queue take turns, however much each has.

use std::collections::BTreeMap;

use tenure_core::{Due, IfFailed, JobId, NewJob, Reason, StateName, Terms, Verdict};

use super::given::{Given, TTL, cancel_within, ids, minutes, priority, queue, retry_at, seconds};
use super::keyed::{after, limited, shared};
use super::{Test, test};
use tenure_store::{Change, ChangeOutcome, Filter};

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(tenants_of_one_queue_take_turns),
        test(a_tenant_with_a_thousand_jobs_keeps_one_with_ten_waiting_for_ten_rounds),
        test(a_million_behind_one_tenant_are_no_reason_to_wait),
        test(within_a_round_the_longest_due_goes_first),
        test(jobs_without_a_share_key_are_one_more_tenant),
        test(a_queue_without_share_keys_is_one_line),
        test(jobs_that_came_before_the_first_share_key_are_served_before_the_second_round),
        test(who_comes_late_joins_the_present_round),
        test(who_enqueues_one_job_at_a_time_gets_no_more_than_its_turn),
        test(a_priority_comes_before_the_turns),
        test(an_urgent_job_of_a_backlog_takes_nobody_s_round),
        test(who_cancels_a_backlog_has_its_rounds_back),
        test(a_job_that_is_given_back_or_lapsed_is_served_in_the_present_round),
        test(a_job_that_is_given_back_comes_before_no_earlier_job_of_the_present_round),
        test(a_job_that_is_tried_again_joins_behind_the_others_of_its_tenant),
        test(kinds_of_one_queue_share_the_rounds),
        test(each_queue_has_its_own_rounds),
        test(a_job_that_is_moved_joins_the_rounds_there),
        test(a_job_that_is_moved_to_where_nobody_shares_is_like_any_other_there),
        test(scheduled_jobs_join_when_they_come_due),
        test(jobs_that_come_due_in_one_turn_join_in_the_order_in_which_they_were_due),
        test(a_job_whose_others_have_ended_joins_before_those_that_come_due_in_the_same_turn),
        test(a_tenant_without_room_in_its_limit_keeps_its_rounds),
        test(a_share_key_is_no_limit),
        test(what_comes_before_a_job_is_told_by_the_rounds),
    ]
}

/// Who was served, in order, one job a turn.
async fn served(given: &Given, turns: usize) -> String {
    let mut order = String::new();
    for _ in 0..turns {
        let Some(reserved) = given.reserve("mail", 1).await.pop() else { break };
        order.push_str(reserved.job().terms.share.as_ref().map_or("-", |key| key.as_str()));
        given.succeed(reserved).await;
    }
    order
}

async fn put(given: &Given, tenant: &str, count: usize) -> Vec<JobId> {
    given.put_on("mail", &shared(tenant), count).await
}

async fn tenants_of_one_queue_take_turns(given: Given) {
    put(&given, "a", 4).await;
    put(&given, "b", 2).await;
    put(&given, "c", 3).await;
    assert_eq!(served(&given, 99).await, "abcabcaca");
}

/// L5
async fn a_tenant_with_a_thousand_jobs_keeps_one_with_ten_waiting_for_ten_rounds(given: Given) {
    let many: Vec<NewJob> = (0..1_000).map(|_| given.on_terms("mail", shared("many"))).collect();
    given.enqueue_all(many).await;
    given.pass(minutes(5));
    let few = put(&given, "few", 10).await;
    let mut places = BTreeMap::new();
    for place in 0..25 {
        let reserved = given.take("mail").await;
        places.insert(reserved.job().id, place);
        given.succeed(reserved).await;
    }
    let waited: Vec<usize> = few.iter().map(|id| places[id]).collect();
    assert_eq!(waited, [1, 3, 5, 7, 9, 11, 13, 15, 17, 19]);
}

async fn a_million_behind_one_tenant_are_no_reason_to_wait(given: Given) {
    put(&given, "a", 50).await;
    assert_eq!(served(&given, 20).await, "a".repeat(20));
    put(&given, "b", 4).await;
    assert_eq!(served(&given, 7).await, "bababab", "it joins the present round");
}

async fn within_a_round_the_longest_due_goes_first(given: Given) {
    let at = |seconds_ago: u64| Due::At(given.now().before(seconds(seconds_ago)));
    for (tenant, due) in [("a", at(1)), ("a", at(9)), ("b", at(5)), ("c", at(7))] {
        given.put(NewJob { due, ..given.on_terms("mail", shared(tenant)) }).await;
    }
    assert_eq!(served(&given, 9).await, "cbaa");
}

async fn jobs_without_a_share_key_are_one_more_tenant(given: Given) {
    put(&given, "a", 3).await;
    given.enqueue("mail", 3).await;
    put(&given, "b", 1).await;
    assert_eq!(served(&given, 9).await, "a-ba-a-");
}

async fn a_queue_without_share_keys_is_one_line(given: Given) {
    let jobs = given.enqueue("mail", 3).await;
    let before = Due::At(given.now().before(seconds(1)));
    let first = given.put(NewJob { due: before, ..given.new_job("mail") }).await;
    given.enqueue("post", 1).await;
    put(&given, "a", 0).await;
    assert_eq!(ids(&given.grab(&["mail"]).await), [first, jobs[0], jobs[1], jobs[2]]);
}

async fn jobs_that_came_before_the_first_share_key_are_served_before_the_second_round(given: Given) {
    given.enqueue("mail", 3).await;
    put(&given, "a", 2).await;
    given.enqueue("mail", 2).await;
    assert_eq!(served(&given, 99).await, "---a-a-");
}

async fn who_comes_late_joins_the_present_round(given: Given) {
    put(&given, "a", 9).await;
    put(&given, "b", 9).await;
    assert_eq!(served(&given, 6).await, "ababab");
    put(&given, "c", 2).await;
    assert_eq!(served(&given, 7).await, "cabcaba", "it makes up for nothing that it missed");
}

async fn who_enqueues_one_job_at_a_time_gets_no_more_than_its_turn(given: Given) {
    put(&given, "a", 5).await;
    let mut order = String::new();
    for _ in 0..8 {
        put(&given, "b", 1).await;
        order.push_str(&served(&given, 1).await);
        if order.ends_with('b') {
            continue;
        }
        order.push_str(&served(&given, 1).await);
    }
    assert_eq!(order.replace("ab", ""), "bbb", "after the last of the other it is alone: {order}");
}

async fn a_priority_comes_before_the_turns(given: Given) {
    put(&given, "a", 2).await;
    put(&given, "b", 1).await;
    let urgent = given.on_terms("mail", shared("a"));
    given.put(NewJob { priority: priority(-5), ..urgent.clone() }).await;
    let lazy = NewJob { priority: priority(5), ..given.on_terms("mail", shared("c")) };
    given.put(lazy).await;
    assert_eq!(served(&given, 9).await, "aabac");
}

async fn an_urgent_job_of_a_backlog_takes_nobody_s_round(given: Given) {
    put(&given, "a", 20).await;
    given.put(NewJob { priority: priority(-5), ..given.on_terms("mail", shared("a")) }).await;
    assert_eq!(served(&given, 1).await, "a");
    put(&given, "b", 2).await;
    assert_eq!(served(&given, 5).await, "ababa", "the urgent one counts among the urgent only");
}

async fn who_cancels_a_backlog_has_its_rounds_back(given: Given) {
    put(&given, "a", 30).await;
    given.change_matching(cancel_within(seconds(0)), Filter::default()).await;
    put(&given, "b", 3).await;
    put(&given, "a", 3).await;
    assert_eq!(served(&given, 9).await, "bababa");
}

async fn a_job_that_is_given_back_or_lapsed_is_served_in_the_present_round(given: Given) {
    let jobs = put(&given, "a", 3).await;
    put(&given, "b", 3).await;
    let first = given.take("mail").await;
    assert_eq!(served(&given, 2).await, "ba");
    given.release(first).await;
    let again = given.take("mail").await;
    assert_eq!(again.job().id, jobs[0], "it is older than the other of its round");
    given.pass(TTL);
    assert_eq!(given.take("mail").await.job().id, jobs[0]);
    assert_eq!(served(&given, 9).await, "bab");
}

async fn a_job_that_is_given_back_comes_before_no_earlier_job_of_the_present_round(given: Given) {
    let back = put(&given, "a", 1).await[0];
    let running = given.take("mail").await;
    let before = Due::At(given.now().before(seconds(5)));
    for tenant in ["b", "b", "c"] {
        given.put(NewJob { due: before, ..given.on_terms("mail", shared(tenant)) }).await;
    }
    assert_eq!(served(&given, 3).await, "bcb", "the second round is the present one");
    given.put(NewJob { due: before, ..given.on_terms("mail", shared("d")) }).await;
    assert_eq!(running.job().id, back);
    given.release(running).await;
    assert_eq!(served(&given, 9).await, "da");
}

async fn a_job_that_is_tried_again_joins_behind_the_others_of_its_tenant(given: Given) {
    let jobs = put(&given, "a", 3).await;
    put(&given, "b", 2).await;
    let first = given.take("mail").await;
    assert_eq!(first.job().id, jobs[0]);
    given.settle(first, retry_at(Due::Now)).await;
    assert_eq!(served(&given, 4).await, "baba");
    assert_eq!(given.take("mail").await.job().id, jobs[0]);
}

async fn kinds_of_one_queue_share_the_rounds(given: Given) {
    for kind in ["send", "print", "send", "print"] {
        given.put(given.keyed("mail", kind, shared("a"))).await;
    }
    given.put(given.keyed("mail", "fold", shared("b"))).await;
    given.put(given.keyed("mail", "print", shared("b"))).await;
    assert_eq!(served(&given, 9).await, "ababaa");
    // A kind that nobody serves keeps its rounds, and holds up nobody.
    let (send, print) = (given.keyed("mail", "send", shared("c")), given.keyed("mail", "print", shared("c")));
    let (send, print) = (given.put(send).await, given.put(print).await);
    assert_eq!(given.reserve_kind("mail", "print").await.job().id, print);
    assert_eq!(given.reserve_kind("mail", "send").await.job().id, send);
}

async fn each_queue_has_its_own_rounds(given: Given) {
    given.put_on("post", &shared("a"), 9).await;
    put(&given, "b", 1).await;
    put(&given, "a", 1).await;
    assert_eq!(served(&given, 9).await, "ba");
}

async fn a_job_that_is_moved_joins_the_rounds_there(given: Given) {
    put(&given, "a", 3).await;
    put(&given, "b", 3).await;
    let moved = given.put_on("post", &shared("a"), 2).await;
    given.change(moved[0], Change::Move(queue("mail"))).await;
    assert_eq!(served(&given, 99).await, "abababa");
    assert_eq!(given.state(moved[1]).await, StateName::Queued);
}

async fn a_job_that_is_moved_to_where_nobody_shares_is_like_any_other_there(given: Given) {
    put(&given, "a", 1).await;
    let jobs = given.enqueue("mail", 4).await;
    for job in &jobs[1..] {
        assert_eq!(given.change(*job, Change::Move(queue("post"))).await, ChangeOutcome::Done);
    }
    assert_eq!(given.change(jobs[2], Change::Reprioritise(priority(-1))).await, ChangeOutcome::Done);
    assert_eq!(given.cancel(jobs[1]).await, ChangeOutcome::Done);
    assert_eq!(ids(&given.grab(&["post"]).await), [jobs[2], jobs[3]]);
}

async fn scheduled_jobs_join_when_they_come_due(given: Given) {
    for tenant in ["a", "a", "b"] {
        let due = Due::In(seconds(5));
        given.put(NewJob { due, ..given.on_terms("mail", shared(tenant)) }).await;
    }
    put(&given, "a", 2).await;
    given.pass(seconds(5));
    given.tend().await;
    // The scheduled ones of `a` come behind the two that were there, though they were accepted before.
    assert_eq!(served(&given, 9).await, "abaaa");
}

async fn jobs_that_come_due_in_one_turn_join_in_the_order_in_which_they_were_due(given: Given) {
    for (tenant, due_in) in [("-", 6), ("-", 4), ("a", 5), ("-", 7), ("b", 8)] {
        let terms = if tenant == "-" { Terms::default() } else { shared(tenant) };
        given.put(NewJob { due: Due::In(seconds(due_in)), ..given.on_terms("mail", terms) }).await;
    }
    given.pass(seconds(9));
    // The first came before there were shares. Of the others without a key each has a round of its own.
    assert_eq!(served(&given, 9).await, "-a-b-");
}

async fn a_job_whose_others_have_ended_joins_before_those_that_come_due_in_the_same_turn(given: Given) {
    let before = given.enqueue("post", 1).await;
    let terms = Terms { share: shared("a").share, ..after(&before, IfFailed::Cancel) };
    given.put(given.on_terms("mail", terms)).await;
    for (tenant, due_in) in [("-", 4), ("-", 5), ("b", 6)] {
        let terms = if tenant == "-" { Terms::default() } else { shared(tenant) };
        given.put(NewJob { due: Due::In(seconds(due_in)), ..given.on_terms("mail", terms) }).await;
    }
    let awaited = given.take("post").await;
    given.pass(seconds(7));
    given.succeed(awaited).await;
    // It was the first with a share key, so each of those without one has a round.
    assert_eq!(served(&given, 9).await, "a-b-");
}

async fn a_tenant_without_room_in_its_limit_keeps_its_rounds(given: Given) {
    let terms = Terms { limit: limited(Some(1)).limit, ..shared("a") };
    let slow = given.put_on("mail", &terms, 3).await;
    put(&given, "b", 6).await;
    let running = given.take("mail").await;
    assert_eq!(running.job().id, slow[0]);
    assert_eq!(served(&given, 4).await, "bbbb", "it holds up nobody");
    given.succeed(running).await;
    assert_eq!(served(&given, 4).await, "aabb", "and takes nothing from what it had to wait for");
}

async fn a_share_key_is_no_limit(given: Given) {
    put(&given, "a", 5).await;
    put(&given, "b", 5).await;
    let granted = given.grab(&["mail"]).await;
    assert_eq!(granted.len(), 10);
    for reserved in granted {
        assert_eq!(given.settle_to(reserved, Verdict::Released).await, StateName::Queued);
    }
}

async fn what_comes_before_a_job_is_told_by_the_rounds(given: Given) {
    given.serve(&["mail"]).await;
    put(&given, "a", 5).await;
    let late = put(&given, "b", 2).await;
    assert_eq!(given.why(late[0]).await, Reason::Next { ahead: 1 });
    assert_eq!(given.why(late[1]).await, Reason::Next { ahead: 3 });
    given.succeed(given.take("mail").await).await;
    assert_eq!(given.why(late[1]).await, Reason::Next { ahead: 2 });
}
