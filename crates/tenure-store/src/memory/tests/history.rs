//! Random histories: whatever was called, what is derived from the rows agrees with the rows.

use super::*;
use crate::memory::rows::Rows;
use crate::{Chance, Filter};

/// Makes one random call.
async fn step(bench: &Bench, chance: &Chance, mine: &mut Vec<Reserved>, next: &mut u64) {
    match chance.below(10) {
        0..3 => {
            let batch = (0..=chance.below(3)).map(|_| random_job(chance, next)).collect();
            bench.store.enqueue(batch).await.unwrap();
        }
        3..5 => {
            let at_most = usize::try_from(chance.below(4)).unwrap();
            mine.extend(bench.turn(1, at_most).await.jobs);
        }
        5 | 6 if !mine.is_empty() => {
            let reserved = mine.swap_remove(usize::try_from(chance.below(mine.len() as u64)).unwrap());
            bench.settle(reserved, random_verdict(chance)).await;
        }
        5 | 6 => bench.clock.advance(SECOND),
        7 => {
            let ids = (0..3).map(|_| id(chance.below(*next + 1))).collect();
            bench.store.change(random_change(chance), Selection::Ids(ids)).await.unwrap();
        }
        8 => bench.clock.advance(SECOND * u32::try_from(chance.below(20)).unwrap()),
        9.. => drop(bench.store.tend().await.unwrap()),
    }
}

fn random_job(chance: &Chance, next: &mut u64) -> NewJob {
    *next += 1;
    let window = [Window::WhileUnfinished, Window::For(SECOND * 30)][chance.below(2) as usize];
    let on_conflict = [OnConflict::Return, OnConflict::Reject, OnConflict::Replace][chance.below(3) as usize];
    let key = UniqueKey([chance.below(4) as u8; 16]);
    let unique = (chance.below(2) == 0).then_some(Unique { key, window, on_conflict });
    let retry = Some(RetryPolicy { max_attempts: 3, max_deliveries: 5, ..RetryPolicy::default() });
    let retention = Retention::always(Keep::For(SECOND * 60));
    NewJob {
        kind: Kind::new(["mail", "report"][chance.below(2) as usize]).unwrap(),
        priority: Priority::new(i64::try_from(chance.below(3)).unwrap()).unwrap(),
        due: Due::In(SECOND * u32::try_from(chance.below(3) * chance.below(10)).unwrap()),
        terms: Arc::new(Terms { unique, retry, retention, ..Terms::default() }),
        ..job(*next)
    }
}

fn random_verdict(chance: &Chance) -> Verdict {
    let failure = tenure_core::Failure::new(tenure_core::Cause::Error, "no luck");
    match chance.below(5) {
        0 => Verdict::Succeeded(None),
        1 => Verdict::Failed(failure),
        2 => Verdict::Snoozed(Due::In(SECOND * 10)),
        3 => Verdict::Released,
        4.. => Verdict::Retry { failure, due: None },
    }
}

fn random_change(chance: &Chance) -> Change {
    match chance.below(6) {
        0 => Change::Cancel { grace: SECOND * 5, reason: "enough".to_owned() },
        1 => Change::Redo,
        2 => Change::Delete,
        3 => Change::Move(QueueName::new(["default", "other"][chance.below(2) as usize]).unwrap()),
        4 => Change::Reprioritise(Priority::new(i64::try_from(chance.below(3)).unwrap()).unwrap()),
        5.. => Change::Reschedule(Due::In(SECOND * u32::try_from(chance.below(2) * 10).unwrap())),
    }
}

/// Derives everything anew from the rows alone.
fn recounted(rows: &Rows) -> Rows {
    let mut fresh = Rows::default();
    for name in rows.queues.keys() {
        fresh.queue(name);
    }
    rows.jobs.values().for_each(|row| {
        fresh.index(row);
        fresh.places.insert(row.job.id, row.job.seq);
    });
    fresh
}

fn assert_in_step(bench: &Bench, seed: u64) {
    let open = bench.store.rows.lock().unwrap();
    let rows = open.as_ref().unwrap();
    let fresh = recounted(rows);
    assert_eq!(rows.counts, fresh.counts, "seed {seed}");
    assert_eq!(rows.places, fresh.places, "seed {seed}");
    assert_eq!(
        (&rows.later, &rows.held, &rows.kept),
        (&fresh.later, &fresh.held, &fresh.kept),
        "seed {seed}"
    );
    assert_eq!(format!("{:?}", rows.queues), format!("{:?}", fresh.queues), "seed {seed}");
    let now = bench.now();
    for row in rows.jobs.values().filter(|row| !row.job.state.is_finished()) {
        let Some(unique) = row.job.terms.unique else { continue };
        if unique.window == Window::WhileUnfinished {
            assert_eq!(rows.keys.holder(unique.key, now), Some(row.job.id), "seed {seed}");
        }
    }
}

#[tokio::test]
async fn counters_and_indexes_equal_a_recount_after_any_history() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..40 {
        let (bench, chance) = (bench(), Chance::seeded(seed));
        let (mut mine, mut next) = (Vec::new(), 0);
        for _ in 0..250 {
            step(&bench, &chance, &mut mine, &mut next).await;
            assert_in_step(&bench, seed);
        }
        seen.extend(bench.store.counts().await.unwrap().into_iter().map(|count| count.state));
    }
    assert_eq!(seen.len(), StateName::ALL.len(), "the histories reach every state: {seen:?}");
}

#[tokio::test]
async fn the_same_calls_give_the_same_answers() {
    let history = async || {
        let (bench, chance) = (bench(), Chance::seeded(11));
        let (mut mine, mut next) = (Vec::new(), 0);
        for _ in 0..500 {
            step(&bench, &chance, &mut mine, &mut next).await;
        }
        let ask = crate::PageAsk { filter: Filter::default(), at_most: 1_000, ..Default::default() };
        (bench.store.jobs(ask).await.unwrap(), bench.store.counts().await.unwrap())
    };
    assert_eq!(history().await, history().await);
}
