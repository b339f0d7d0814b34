//! Bugs that are planted on purpose: the simulation has to find each of them within 150 seeds.

mod broken;

use std::sync::Arc;

use broken::{Broken, Bug};
use tenure_sim::Setup;
use tenure_store::Store;

const SEEDS: u64 = 150;

/// The first seed that finds the bug, and the rule that it breaks.
fn found(plant: fn(Arc<dyn Store>) -> Arc<dyn Store>) -> Option<(u64, &'static str)> {
    (0..SEEDS).find_map(|seed| {
        let violation = Setup { plant, ..Setup::of(seed) }.run().violation?;
        Some((seed, violation.rule))
    })
}

/// Asserts that a bug is found as a breach of one of these rules.
fn assert_found(plant: fn(Arc<dyn Store>) -> Arc<dyn Store>, rules: &[&str]) {
    let (seed, rule) = found(plant).expect("no seed finds it");
    assert!(
        rules.iter().any(|expected| rule.starts_with(expected)),
        "seed {seed} found another rule: {rule}"
    );
}

const ONE_SETTLEMENT: &str = "one settlement a fence";
const ONE_HOLDER: &str = "one holder at a time";
const KEPT: &str = "nothing acknowledged is lost";
const ENDS: &str = "every job ends once";
const FENCES: &str = "fences grow";
const ATTEMPTS: &str = "attempts are bounded";

#[test]
fn a_settlement_under_any_fence_is_found() {
    assert_found(|store| Arc::new(Broken::new(store, Bug::AnyFenceSettles)), &[ONE_SETTLEMENT, ENDS]);
}

#[test]
fn a_forgotten_job_is_found() {
    assert_found(|store| Arc::new(Broken::new(store, Bug::ForgetsJobs)), &[KEPT]);
}

#[test]
fn a_second_grant_is_found() {
    assert_found(|store| Arc::new(Broken::new(store, Bug::GrantsTwice)), &[FENCES]);
}

#[test]
fn a_settlement_that_is_done_twice_is_found() {
    assert_found(|store| Arc::new(Broken::new(store, Bug::DoneTwice)), &[ONE_SETTLEMENT, ENDS]);
}

#[test]
fn a_fence_that_does_not_grow_is_found() {
    assert_found(|store| Arc::new(Broken::new(store, Bug::FenceStands)), &[FENCES]);
}

#[test]
fn a_renewal_that_renews_nothing_is_found() {
    assert_found(|store| Arc::new(Broken::new(store, Bug::RenewsNothing)), &[ONE_HOLDER, ONE_SETTLEMENT]);
}

#[test]
fn a_finished_job_that_is_rescued_is_found() {
    assert_found(|store| Arc::new(Broken::new(store, Bug::RescuesFinished)), &[ENDS]);
}

#[test]
fn an_enqueueing_that_makes_two_jobs_is_found() {
    assert_found(|store| Arc::new(Broken::new(store, Bug::EnqueuesTwice)), &[KEPT]);
}

#[test]
fn a_counter_that_is_off_is_found() {
    assert_found(|store| Arc::new(Broken::new(store, Bug::Miscounts)), &["counters equal a recount"]);
}

#[test]
fn a_key_that_is_not_unique_is_found() {
    assert_found(|store| Arc::new(Broken::new(store, Bug::NothingIsUnique)), &["a unique key"]);
}

#[test]
fn a_pause_that_pauses_nothing_is_found() {
    assert_found(|store| Arc::new(Broken::new(store, Bug::PausesNothing)), &["a paused queue"]);
}

#[test]
fn a_job_that_is_held_back_is_found() {
    assert_found(|store| Arc::new(Broken::new(store, Bug::Starves)), &["everything ends once nothing"]);
}

#[test]
fn a_stale_report_that_is_kept_is_found() {
    assert_found(|store| Arc::new(Broken::new(store, Bug::KeepsStaleReports)), &[ONE_SETTLEMENT]);
}

#[test]
fn a_settlement_that_is_not_written_is_found() {
    assert_found(
        |store| Arc::new(Broken::new(store, Bug::LosesSettlements)),
        &[ENDS, ONE_SETTLEMENT, ATTEMPTS],
    );
}
