//! Random histories: whatever is done to a store and to the reference, they answer the same.
//!
//! `TENURE_HISTORIES` says how many are tried and `TENURE_SEED` with which seed they begin: a history
//! that failed is had again with its seed and a number of 1.

use std::sync::Arc;

use super::generator::Generator;
use super::given::Given;
use super::operation::{Answered, Operation, Side};
use super::{Test, test};
use tenure_store::{Clock, ManualClock, MemoryStore};

/// Number of random histories of each sort in an ordinary run.
pub(super) const HISTORIES: u64 = 60;
/// Maximum number of random histories until everything that a test lists must have occurred.
pub(super) const MOST: u64 = 200;
pub(super) const STEPS: usize = 60;
/// After so many steps everything is looked at.
pub(super) const LOOKS: usize = 15;

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(every_history_goes_as_it_goes_with_the_reference),
        test(every_history_of_jobs_with_keys_goes_as_it_goes_with_the_reference),
        test(every_history_in_which_the_clock_is_put_back_goes_as_it_goes_with_the_reference),
        test(every_history_of_timers_goes_as_it_goes_with_the_reference),
        test(histories_of_jobs_with_keys_come_to_every_gate),
        test(histories_of_timers_come_to_all_that_becomes_of_a_slot),
        test(a_history_can_be_had_again),
    ]
}

async fn every_history_goes_as_it_goes_with_the_reference(given: Given) {
    compare_histories(&given, Generator::new).await;
}

async fn every_history_of_jobs_with_keys_goes_as_it_goes_with_the_reference(given: Given) {
    compare_histories(&given, Generator::with_keys).await;
}

async fn every_history_in_which_the_clock_is_put_back_goes_as_it_goes_with_the_reference(given: Given) {
    compare_histories(&given, Generator::with_a_clock_put_back).await;
}

async fn every_history_of_timers_goes_as_it_goes_with_the_reference(given: Given) {
    compare_histories(&given, Generator::with_timers).await;
}

async fn compare_histories(given: &Given, generator: fn(u64) -> Generator) {
    let first = number_from("TENURE_SEED").unwrap_or(1);
    let count = number_from("TENURE_HISTORIES").unwrap_or_else(|| given.histories());
    for seed in first..first.saturating_add(count) {
        let given = given.anew(seed).await;
        let mut tested = Side::new(given.store.clone(), given.clock.clone());
        let mut reference = Side::new(given.reference(), given.clock.clone());
        let mut generator = generator(seed);
        let mut naive = given.naive(seed);
        for step in 1..=STEPS {
            let operation = generator.draw(given.now(), &tested);
            let answer = tested.apply(&operation).await;
            // Time passes for both at once.
            if !matches!(operation, Operation::Pass(_) | Operation::PutBack(_)) {
                let expected = reference.apply(&operation).await;
                compare(seed, step, &operation, &answer, &expected);
            }
            if step % LOOKS != 0 && !naive.is_time(step) {
                continue;
            }
            let rows = tested.rows().await;
            if step % LOOKS == 0 {
                let answer = tested.look_at_all(&rows).await;
                let expected = reference.look_at_all(&reference.rows().await).await;
                for (answer, expected) in answer.iter().zip(&expected) {
                    assert_eq!(answer, expected, "history {seed}, after step {step}");
                }
                assert_eq!(
                    answer.len(),
                    expected.len(),
                    "history {seed}, step {step}: another number of jobs"
                );
            }
            naive.judge(rows, || format!("history {seed}, step {step}: {operation:#?}"));
        }
        given.store.close().await.unwrap();
    }
}

/// What the comparison is worth: the histories come to all that can become of jobs with keys.
async fn histories_of_jobs_with_keys_come_to_every_gate(_given: Given) {
    let words = [
        "Blocked { on: Jobs",
        "Blocked { on: Order",
        "Blocked { on: Limit",
        "NoSuchJob",
        "AfterJobs {",
        "Spoiled {",
        "which it depends on",
        "NotItsTurn {",
        "LimitFull { key: Some",
        "RateReached { key: Some",
        "BehindInLimit {",
        "LimitFull { key: None",
        "RateReached { key: None",
    ];
    assert_all_told(Generator::with_keys, &words).await;
}

/// And to all that can become of slots.
async fn histories_of_timers_come_to_all_that_becomes_of_a_slot(_given: Given) {
    let words = [
        "Ran {",
        "Coalesced",
        "Busy {",
        "Missed",
        "TooMany",
        "TooLate",
        "Paused",
        "Edited",
        "origin: Start",
        "origin: Trigger",
        "origin: Backfill",
        "past_due: true",
        "Outdated {",
        "Same",
        "Changed",
        "Triggered(",
        "Busy(",
        "Backfilled {",
        "the next run of timer",
        "Blocked { on: Order",
        "Blocked { on: Limit",
    ];
    assert_all_told(Generator::with_timers, &words).await;
}

/// The reference is asked: whatever store is tested answers the same.
async fn assert_all_told(generator: fn(u64) -> Generator, words: &[&str]) {
    let mut untold = words.to_vec();
    for seed in 1..=MOST {
        let mut told = String::new();
        let clock = ManualClock::new();
        let store = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
        let mut side = Side::new(store, clock.clone());
        let mut generator = generator(seed);
        for step in 1..=STEPS {
            let operation = generator.draw(clock.now(), &side);
            told.push_str(&side.apply(&operation).await.text);
            if step % LOOKS == 0 {
                told.push_str(&side.look_at_all(&side.rows().await).await.concat());
            }
        }
        untold.retain(|word| !told.contains(word));
        if untold.is_empty() {
            return;
        }
    }
    panic!("no history comes to {untold:?}");
}

pub(super) fn number_from(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect("a number is given"))
}

fn compare(seed: u64, step: usize, operation: &Operation, answer: &Answered, expected: &Answered) {
    let at = || format!("history {seed}, step {step}: {operation:#?}");
    assert!(answer.text == expected.text, "{}\nanswered {}\nexpected {}", at(), answer.text, expected.text);
    // In how long something is due is a hint that may be early; late, it would leave a due job lying.
    let early_enough = match (answer.due_in, expected.due_in) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(hint), Some(due)) => hint <= due,
    };
    assert!(early_enough, "{}\nhinted {:?}\nexpected {:?}", at(), answer.due_in, expected.due_in);
}

async fn a_history_can_be_had_again(given: Given) {
    for seed in 1..=5 {
        let (first, second) = (told(&given, seed).await, told(&given, seed).await);
        assert_eq!(first, second);
        assert_ne!(first, told(&given, seed + 100).await);
    }
}

async fn told(given: &Given, seed: u64) -> Vec<Answered> {
    let given = given.anew(seed).await;
    let mut side = Side::new(given.store.clone(), given.clock.clone());
    let mut generator = Generator::new(seed);
    let mut answers = Vec::new();
    for _ in 0..STEPS {
        let operation = generator.draw(given.now(), &side);
        answers.push(side.apply(&operation).await);
    }
    given.store.close().await.unwrap();
    answers
}
