//! Handmade rows: the checker accepts the correct ones, and finds the mistake in each of the wrong ones.

mod made;

use std::time::Duration;

use tenure_core::{
    AfterJobs, Block, End, Fence, JobId, Keep, LeaseState, Limit, Phase, QueueName, Retention, State,
    StateName, Terms, Unique, What, Why, Window,
};

use libtest_mimic::Trial;

use super::{Checker, Rows, Since};
use crate::own;
use made::{at, good, grant, id, lease, occurrence, schedule, set, waiting};

pub fn tests() -> Vec<Trial> {
    vec![
        own(right_rows_are_accepted_once_and_again),
        own(a_counter_that_is_not_decremented_or_not_there_is_found),
        own(a_queue_that_is_missing_or_hides_its_oldest_job_is_found),
        own(a_fence_that_is_given_twice_or_goes_back_is_found),
        own(a_place_that_is_given_twice_is_found),
        own(a_finished_job_that_comes_back_or_is_kept_too_short_is_found),
        own(a_turn_of_two_jobs_or_of_none_is_found),
        own(a_line_of_an_ordering_key_in_the_wrong_order_is_found),
        own(a_room_that_is_not_given_back_is_found),
        own(a_limit_that_is_exceeded_or_has_a_number_of_no_job_is_found),
        own(places_in_line_that_are_taken_twice_or_out_of_order_are_found),
        own(a_line_without_share_keys_that_is_out_of_order_is_found),
        own(a_job_that_waits_for_the_wrong_jobs_is_found),
        own(a_unique_key_without_its_job_or_of_another_is_found),
        own(a_lease_whose_state_fence_or_history_is_wrong_is_found),
        own(an_occurrence_that_is_skipped_or_decided_twice_is_found),
        own(surroundings_that_are_made_up_are_found),
        own(a_lapsed_job_is_no_longer_held_but_counts_as_running),
        own(a_job_that_came_due_may_count_as_scheduled_until_a_turn_finds_it),
    ]
}

/// Spoils correct rows, and asserts that a finding of the checker contains these words.
fn assert_found(words: &str, spoil: impl FnOnce(&mut Rows)) {
    let mut rows = good();
    spoil(&mut rows);
    let findings = Checker::default().judge(rows, Since::OneCall);
    assert!(findings.iter().any(|finding| finding.contains(words)), "{words}: {findings:#?}");
}

/// Changes correct rows after a first look, and asserts that a finding of the second look contains these words.
fn assert_found_after(words: &str, change: impl FnOnce(&mut Rows)) {
    let (mut checker, mut rows) = (Checker::default(), good());
    assert_eq!(checker.judge(rows.clone(), Since::OneCall), Vec::<String>::new());
    change(&mut rows);
    let findings = checker.judge(rows, Since::OneCall);
    assert!(findings.iter().any(|finding| finding.contains(words)), "{words}: {findings:#?}");
}

fn right_rows_are_accepted_once_and_again() {
    let mut checker = Checker::default();
    for _ in 0..2 {
        assert_eq!(checker.judge(good(), Since::OneCall), Vec::<String>::new());
    }
}

fn a_counter_that_is_not_decremented_or_not_there_is_found() {
    assert_found("counters", |rows| rows.counts[0].jobs += 1);
    assert_found("counters", |rows| rows.counts.truncate(1));
    assert_found("is zero", |rows| rows.counts[0].jobs = 0);
    assert_found("count as queued", |rows| {
        rows.counts.iter_mut().filter(|count| count.state == StateName::Queued).for_each(|count| {
            count.state = StateName::Scheduled;
        });
    });
    assert_found("totals", |rows| rows.rest.as_mut().unwrap().totals.jobs += 1);
}

fn a_queue_that_is_missing_or_hides_its_oldest_job_is_found() {
    assert_found("is not there", |rows| rows.queues.clear());
    assert_found("oldest due", |rows| rows.queues[0].oldest_due = None);
    assert_found("oldest due", |rows| rows.queues[0].oldest_due = Some(at(51)));
}

fn a_fence_that_is_given_twice_or_goes_back_is_found() {
    assert_found("below the floor", |rows| rows.jobs[0].fence = Fence::from_number(9));
    assert_found("fence without a grant", |rows| rows.jobs[3].fence = Fence::from_number(12));
    assert_found("attempts", |rows| {
        let attempts = &mut rows.around.get_mut(&1).unwrap().attempts;
        attempts.insert(0, attempts[0].clone());
    });
    assert_found_after("after grant", |rows| rows.jobs[5].fence = Fence::from_number(10));
    assert_found_after("after grant", |rows| grant(&mut rows.jobs[0]));
}

fn a_place_that_is_given_twice_is_found() {
    assert_found("one place", |rows| rows.jobs[1].seq = 1);
    assert_found("one ID", |rows| rows.jobs[1].id = id(1));
    assert_found("behind the last place", |rows| rows.rest.as_mut().unwrap().last_seq = 6);
    assert_found_after("given before", |rows| rows.jobs[3].id = id(99));
    assert_found_after("went back", |rows| rows.rest.as_mut().unwrap().last_seq = 5);
}

fn a_finished_job_that_comes_back_or_is_kept_too_short_is_found() {
    assert_found("retention", |rows| rows.jobs[5].expires = Some(at(61)));
    assert_found("retention", |rows| rows.jobs[0].expires = Some(at(61)));
    assert_found("retention", |rows| {
        set(&mut rows.jobs[5], |terms| terms.retention = Retention::always(Keep::Forever));
    });
    assert_found_after("had ended", |rows| rows.jobs[5].state = waiting(50));
}

fn a_turn_of_two_jobs_or_of_none_is_found() {
    assert_found("at once", |rows| rows.jobs[1].state = waiting(50));
    assert_found("waits for it", |rows| {
        rows.jobs[0].state = State::Finished { at: at(99), end: End::Failed };
    });
    assert_found("turn of cart by #2", |rows| rows.around_of(2).turn.as_mut().unwrap().of = Some(id(2)));
    assert_found("turn of cart by #2", |rows| rows.around_of(2).turn.as_mut().unwrap().ahead = 0);
    assert_found("turn of #4", |rows| {
        rows.around_of(4).turn = rows.around[&1].standing.as_ref().unwrap().turn
    });
}

fn a_line_of_an_ordering_key_in_the_wrong_order_is_found() {
    assert_found_after("before #2", |rows| {
        rows.jobs[0].state = State::Finished { at: at(99), end: End::Failed };
        let (mut new, ordering) = (rows.jobs[3].clone(), rows.jobs[1].terms.ordering.clone());
        (new.seq, new.id) = (8, id(8));
        set(&mut new, |terms| terms.ordering = ordering);
        rows.add(new, 2);
    });
}

fn a_room_that_is_not_given_back_is_found() {
    assert_found("limit smtp: running", |rows| rows.limits[0].meter.running = 2);
    assert_found("limit smtp: blocked", |rows| rows.limits[0].blocked = 0);
    assert_found("are queued", |rows| rows.limits[0].queued = 1);
    assert_found("is not there", |rows| rows.limits.clear());
    assert_found("room for 2", |rows| rows.limits[0].meter.limit = Limit::of(3));
    assert_found("room for 0", |rows| {
        let limit = rows.jobs[0].terms.limit.clone();
        set(&mut rows.jobs[3], |terms| terms.limit = limit);
    });
    assert_found("limit of #3: running", |rows| {
        rows.around_of(3).limit.as_mut().unwrap().meter.running = 0;
    });
}

fn a_limit_that_is_exceeded_or_has_a_number_of_no_job_is_found() {
    assert_found_after("2 run, 1 may", |rows| {
        rows.jobs[2].state = rows.jobs[0].state;
        grant(&mut rows.jobs[2]);
    });
    assert_found_after("2 run, 1 may", |rows| {
        rows.queues[0].limit = Limit::of(1);
        rows.jobs[3].state = rows.jobs[0].state;
        grant(&mut rows.jobs[3]);
    });
    assert_found_after("its jobs say", |rows| rows.limits[0].meter.limit = Limit::of(7));
}

fn places_in_line_that_are_taken_twice_or_out_of_order_are_found() {
    assert_found("places in line", |rows| rows.around_of(5).ahead = 0);
    assert_found("order of priority", |rows| {
        rows.jobs[4].priority = tenure_core::Priority::new(-1).unwrap();
    });
    assert_found("which is not due", |rows| rows.around_of(1).ahead = 1);
    assert_found_after("those that stay in line", |rows| {
        rows.around_of(4).ahead = 1;
        rows.around_of(5).ahead = 0;
    });
    assert_found_after("the same share key", |rows| {
        let mut new = rows.jobs[3].clone();
        (new.seq, new.id) = (8, id(8));
        rows.add(new, 1);
        rows.around_of(5).ahead = 2;
    });
}

fn a_line_without_share_keys_that_is_out_of_order_is_found() {
    assert_found_after("the line of post is", |rows| {
        for place in [3, 4] {
            set(&mut rows.jobs[place], |terms| terms.share = None);
            rows.jobs[place].queue = QueueName::new("post").unwrap();
        }
        rows.queues[0].name = QueueName::new("post").unwrap();
        rows.around_of(4).ahead = 1;
        rows.around_of(5).ahead = 0;
    });
}

fn a_job_that_waits_for_the_wrong_jobs_is_found() {
    assert_found("dependencies of #7", |rows| rows.around_of(7).after.clear());
    assert_found("dependencies of #4", |rows| rows.around_of(4).after.push(id(1)));
    assert_found("spoiled of #7", |rows| rows.around_of(7).spoiled_by = Some(id(1)));
    assert_found("needed by of #6", |rows| rows.around_of(6).needed_by.push(id(7)));
    assert_found_after("has not ended", |rows| rows.jobs[6].state = waiting(50));
    assert_found_after("has not ended", |rows| {
        let mut new = rows.jobs[3].clone();
        (new.seq, new.id) = (8, id(8));
        let after = Some(AfterJobs { jobs: vec![id(2)], if_failed: tenure_core::IfFailed::Run });
        set(&mut new, |terms| *terms = Terms { after, ..Terms::default() });
        rows.add(new, 2);
    });
}

fn a_unique_key_without_its_job_or_of_another_is_found() {
    let unique = |window| {
        let on_conflict = tenure_core::OnConflict::Return;
        Some(Unique { key: tenure_core::UniqueKey([7; 16]), window, on_conflict })
    };
    assert_found("unique key of", |rows| {
        set(&mut rows.jobs[3], |terms| terms.unique = unique(Window::WhileUnfinished))
    });
    assert_found("unique key of", |rows| {
        set(&mut rows.jobs[3], |terms| terms.unique = unique(Window::For(Duration::from_secs(500))));
    });
    assert_found("without an unfinished job", |rows| rows.hold([7; 16], JobId::from_bytes([9; 16])));
    assert_found("held twice", |rows| {
        rows.hold([7; 16], id(1));
        rows.hold([7; 16], id(1));
    });
}

fn a_lease_whose_state_fence_or_history_is_wrong_is_found() {
    assert_found("state of", |rows| rows.leases[0].state = LeaseState::Free);
    assert_found("below the floor", |rows| rows.leases[0].lease.fence = Fence::from_number(3));
    assert_found("and its history", |rows| rows.ledger[0].note.what = What::Released);
    assert_found("and its history", |rows| {
        rows.leases[0].lease.held.as_mut().unwrap().phase = Phase::Broken;
        rows.leases[0].state = LeaseState::Broken;
    });
    assert_found("were granted", |rows| {
        rows.ledger.push(rows.ledger[0].clone());
    });
    assert_found_after("granted again", |rows| {
        rows.leases[0].lease.held.as_mut().unwrap().since = at(100);
    });
    assert_found_after("fence after", |rows| rows.leases[0] = lease(11));
}

fn an_occurrence_that_is_skipped_or_decided_twice_is_found() {
    assert_found("by its rule", |rows| rows.timers[0] = schedule(Some(60), 125));
    assert_found("next occurrence", |rows| rows.timers[0] = schedule(Some(60), 180));
    assert_found("is decided", |rows| rows.timers[0] = schedule(Some(120), 120));
    assert_found("and one from", |rows| rows.slots.push(occurrence(60)));
    assert_found("is no job of schedule", |rows| rows.timers[0].open.push(id(1)));
    assert_found("is not the job of", |rows| {
        rows.slots[0].fate = tenure_core::Fate::Ran { job: id(1) };
    });
}

fn surroundings_that_are_made_up_are_found() {
    assert_found("pause of the queue", |rows| rows.around_of(4).paused = true);
    assert_found("meter of the queue", |rows| rows.around_of(4).queue.running = 0);
    assert_found("running jobs of #4", |rows| {
        let holder = rows.jobs[0].holder.unwrap();
        rows.around_of(4).running.push(tenure_core::AtWork { id: id(1), holder, elsewhere: false });
    });
    assert_found("job of #4", |rows| rows.around_of(4).job.attempt = 7);
    assert_found("view of #4", |rows| rows.around.get_mut(&4).unwrap().job = None);
}

fn a_lapsed_job_is_no_longer_held_but_counts_as_running() {
    let mut rows = good();
    let State::Running { holder, due, .. } = rows.jobs[0].state else { panic!("#1 runs") };
    rows.jobs[0].state = State::Running { holder, until: at(100), due };
    rows.around.clear();
    assert_eq!(Checker::default().judge(rows, Since::ManyCalls), Vec::<String>::new());
}

fn a_job_that_came_due_may_count_as_scheduled_until_a_turn_finds_it() {
    let mut rows = good();
    let blocked = State::Blocked { on: Block::Order, due: at(50), why: Why::Enqueued };
    assert_eq!(rows.jobs[1].state, blocked);
    rows.jobs[3].created = at(40);
    rows.counts.iter_mut().filter(|count| count.state == StateName::Queued).for_each(|count| count.jobs = 1);
    rows.count(StateName::Scheduled, 1);
    rows.around.clear();
    assert_eq!(Checker::default().judge(rows, Since::OneCall), Vec::<String>::new());
}
