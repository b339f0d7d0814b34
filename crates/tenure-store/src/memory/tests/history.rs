//! Random histories: whatever was called, what is derived from the rows agrees with the rows.

use tenure_core::{AfterJobs, Head, IfFailed, Key, Limit, LimitKey, OrderingKey, Rate};

use super::*;
use crate::memory::rows::Rows;
use crate::memory::tests::gates::{assert_limits_are_kept, assert_turns_are_right};
use crate::{Chance, Filter};

/// Makes one random call.
async fn step(bench: &Bench, chance: &Chance, mine: &mut Vec<Reserved>, next: &mut u64) {
    match chance.below(11) {
        10 => set_limit(bench, chance).await,
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

async fn set_limit(bench: &Bench, chance: &Chance) {
    let rate = Rate::new(1 + chance.below(3) as u32, SECOND * 10);
    let limits = [
        Limit::of(1 + chance.below(3) as u32),
        Limit { most: None, rate: Some(rate) },
        Limit { most: Some(2), rate: Some(rate) },
    ];
    let limit = limits.get(chance.below(4) as usize).copied();
    if chance.below(3) == 0 {
        bench.store.set_queue_limit(&QueueName::default(), limit.unwrap_or_default()).await.unwrap();
        return;
    }
    bench.store.set_limit(&random_key(chance), limit).await.unwrap();
}

fn random_key(chance: &Chance) -> Key {
    ["a", "b", "c"][chance.below(3) as usize].parse().unwrap()
}

/// The keys that a job shares: none for one half of the jobs.
fn random_keys(chance: &Chance, last: u64) -> Terms {
    let mut terms = Terms::default();
    if chance.below(2) == 0 {
        return terms;
    }
    if chance.below(2) == 0 {
        let head = [Head::Block, Head::StepAside][chance.below(2) as usize];
        terms.ordering = Some(OrderingKey { key: random_key(chance), head });
    }
    if chance.below(2) == 0 {
        let most = (chance.below(2) == 0).then(|| 1 + chance.below(3) as u32);
        terms.limit = Some(LimitKey { key: random_key(chance), most });
    }
    terms.share = (chance.below(3) == 0).then(|| random_key(chance));
    if chance.below(3) == 0 {
        let jobs = (0..=chance.below(2)).map(|_| id(last.saturating_sub(chance.below(6)))).collect();
        let if_failed = [IfFailed::Cancel, IfFailed::Run][chance.below(2) as usize];
        terms.after = Some(AfterJobs { jobs, if_failed });
    }
    terms
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
        terms: Arc::new(Terms { unique, retry, retention, ..random_keys(chance, *next - 1) }),
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
    for (name, queue) in &rows.queues {
        let anew = &fresh.queues[name];
        assert_eq!((&queue.line, &queue.running), (&anew.line, &anew.running), "seed {seed}");
        assert_eq!(queue.oldest_due(), anew.oldest_due(), "seed {seed}");
    }
    assert_turns_are_right(rows, seed);
    assert_limits_are_kept(rows, bench.now(), seed);
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
