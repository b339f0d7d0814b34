//! Every search of the usual size, and every planted bug. The tests run beside one another, so each search has one
//! thread; with one thread a counterexample is the shortest there is.
#![allow(clippy::unwrap_used, reason = "a test may end at once")]

use tenure_models::{catalogue, job, keys, lease, timer};

const THREADS: usize = 1;

/// Searches a model of the usual size: every promise has to be kept, every probe seen, and the search not have become
/// a small one.
#[track_caller]
fn assert_kept(name: &str, at_least: usize) {
    let search = catalogue::usual().into_iter().find(|search| search.name == name).unwrap();
    let found = search.run(THREADS).unwrap();
    println!("{name}: {found}");
    assert!(found.is_good(), "{name}: {found}");
    assert!(found.states >= at_least, "{name} has shrunk: {found}");
}

/// T003, T004, T006, T007, T008, T009, T025: replies are lost and requests repeated, renewals and releases come late.
#[test]
#[ignore = "takes ten seconds: `cargo xtask test --long`"]
fn a_lease_keeps_its_promises_whatever_is_late_lost_repeated_or_slow() {
    assert_kept("leases: all together", 850_000);
}

#[test]
fn a_long_lease_with_a_drifting_clock_has_one_believer() {
    assert_kept("leases: long leases", 350_000);
}

#[test]
fn two_requests_that_nobody_waits_for_do_no_harm() {
    assert_kept("leases: many late requests", 370_000);
}

/// T009: each write of a holder that was paused is refused once its successor is there.
#[test]
fn effects_of_several_holders_come_in_order() {
    assert_kept("leases: many effects", 190_000);
}

/// T022: what is broken stays safe, though its holder may believe for a while.
#[test]
fn effects_stay_in_order_when_leases_are_broken() {
    assert_kept("leases: broken leases", 250_000);
}

#[test]
fn only_a_break_makes_two_believers() {
    assert_kept("leases: broken leases and drift", 140_000);
}

/// T021: clocks step, and no effect comes out of order.
#[test]
fn effects_stay_in_order_when_the_stores_clock_steps() {
    assert_kept("leases: the store's clock steps", 165_000);
}

/// T021: clocks step, and whoever takes over has watched by its own.
#[test]
#[ignore = "takes ten seconds: `cargo xtask test --long`"]
fn a_watched_takeover_leaves_one_believer_whatever_the_stores_clock_does() {
    assert_kept("leases: watched takeovers", 600_000);
}

#[test]
#[ignore = "takes ten seconds: `cargo xtask test --long`"]
fn a_job_keeps_its_promises_whatever_is_late_lost_or_repeated() {
    assert_kept("jobs: all together, two grants", 500_000);
}

#[test]
fn a_request_that_nobody_waits_for_does_a_job_no_harm() {
    assert_kept("jobs: late requests", 215_000);
}

#[test]
fn effects_of_a_job_come_in_the_order_of_its_grants() {
    assert_kept("jobs: effects", 300_000);
}

#[test]
fn every_verdict_leads_to_an_end_or_to_another_attempt() {
    assert_kept("jobs: all verdicts", 260_000);
}

#[test]
fn a_job_that_is_done_again_keeps_its_promises() {
    assert_kept("jobs: done again", 235_000);
}

#[test]
fn no_slot_of_a_limit_leaks_or_is_used_twice() {
    assert_kept("keys: a limit", 100_000);
}

#[test]
#[ignore = "takes ten seconds: `cargo xtask test --long`"]
fn a_head_that_blocks_keeps_its_turn_until_it_ends() {
    assert_kept("keys: an ordering key that blocks", 175_000);
}

#[test]
#[ignore = "takes ten seconds: `cargo xtask test --long`"]
fn jobs_of_one_key_run_one_at_a_time_whether_they_block_or_step_aside() {
    assert_kept("keys: an ordering key of both kinds", 1_200_000);
}

/// T055, T056, T057, T061: hosts start and stop at every point, clocks step, schedules are changed late.
#[test]
fn each_slot_of_a_timer_is_decided_once_whatever_restarts_clocks_edits_and_pauses_do() {
    assert_kept("timers: the latest of missed slots", 90_000);
}

#[test]
#[ignore = "takes ten seconds: `cargo xtask test --long`"]
fn slots_that_are_caught_up_with_wait_for_one_another_beside_a_triggered_job() {
    assert_kept("timers: two missed slots, one waits", 350_000);
}

#[test]
fn no_more_jobs_of_a_timer_run_beside_each_other_than_was_agreed_and_none_too_late() {
    assert_kept("timers: two beside each other", 120_000);
}

/// T059, T064: the next slot comes while the job of the one before still runs.
#[test]
fn a_job_of_a_timer_takes_the_place_of_the_one_before() {
    assert_kept("timers: each takes the place of the one before", 130_000);
}

#[test]
fn every_planted_bug_is_found_by_a_promise_that_it_breaks() {
    for planted in catalogue::planted() {
        let (name, breaks) = (planted.name.clone(), planted.breaks.clone());
        let found = planted.run(THREADS).unwrap();
        println!("\n{name}: {found}");
        let counterexample = found.counterexample.unwrap_or_else(|| panic!("{name} was not found"));
        assert!(breaks.contains(&counterexample.promise), "{name}: {counterexample}");
        assert!(!counterexample.path.is_empty(), "{name}");
    }
}

#[test]
#[ignore = "takes ten seconds: `cargo xtask test --long`"]
fn where_no_bug_is_planted_none_is_found() {
    for control in catalogue::controls() {
        // As deep as the deepest of the planted bugs lies.
        let found = control.run_to(14, THREADS).unwrap();
        println!("{found}");
        assert_eq!(found.counterexample, None);
    }
}

#[test]
fn every_promise_has_a_bug_planted_for_it() {
    let leases = lease::Bug::ALL.iter().flat_map(|bug| bug.breaks());
    let jobs = job::Bug::ALL.iter().flat_map(|bug| bug.breaks());
    let keys = keys::Bug::ALL.iter().flat_map(|bug| bug.breaks());
    let (leases, jobs, keys): (Vec<_>, Vec<_>, Vec<_>) = (leases.collect(), jobs.collect(), keys.collect());
    let timers: Vec<_> = timer::Bug::ALL.iter().flat_map(|bug| bug.breaks()).collect();
    lease::Promise::ALL.iter().for_each(|promise| assert!(leases.contains(&promise), "{promise:?}"));
    job::Promise::ALL.iter().for_each(|promise| assert!(jobs.contains(&promise), "{promise:?}"));
    keys::Promise::ALL.iter().for_each(|promise| assert!(keys.contains(&promise), "{promise:?}"));
    timer::Promise::ALL.iter().for_each(|promise| assert!(timers.contains(&promise), "{promise:?}"));
}
