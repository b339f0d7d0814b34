//! What ordering keys and limit keys cost: the same jobs drained without keys and with a thousand of them.

use std::sync::Arc;

use tenure::{Draft, Key, LimitKey, OrderingKey, Tenure, Terms};

use super::figure::{Figure, Round, median, rounded};
use super::ground::Ground;
use super::meter::{Meter, bounded};
use super::noop::{NoOp, drain};
use super::sizes::Sizes;
use crate::exit::Failure;

const LOAD: usize = 10_000;

/// Which keys the jobs have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keys {
    None,
    /// Those of one key run one at a time, in order.
    Ordering,
    /// Those of one key run one at a time.
    Limit,
}

impl Keys {
    const ALL: [Self; 3] = [Self::None, Self::Ordering, Self::Limit];

    fn figure(self) -> &'static str {
        match self {
            Self::None => "drain_plain",
            Self::Ordering => "drain_ordered",
            Self::Limit => "drain_limited",
        }
    }

    /// The terms of a job with the key of this number.
    fn terms(self, number: usize) -> Result<Terms, tenure::Error> {
        let key = Key::new("key", &format!("customer-{number}"))?;
        Ok(match self {
            Self::None => Terms::default(),
            Self::Ordering => {
                Terms { ordering: Some(OrderingKey { key, head: tenure::Head::Block }), ..Terms::default() }
            }
            Self::Limit => Terms { limit: Some(LimitKey { key, most: Some(1) }), ..Terms::default() },
        })
    }
}

/// Jobs without keys and with them, in turn. Only the draining is measured.
pub(crate) async fn measure(ground: &Ground, sizes: &Sizes) -> Result<Vec<Figure>, Failure> {
    let facts = ground.facts()?;
    let mut rounds = Keys::ALL.map(|_| Vec::new());
    for _ in 0..sizes.rounds {
        for (keys, rounds) in Keys::ALL.into_iter().zip(&mut rounds) {
            rounds.push(bounded(keys.figure(), round(ground, sizes, keys)).await?);
        }
        ground.clear();
    }
    let [plain, ..] = &rounds;
    let figures = Keys::ALL.into_iter().zip(&rounds).map(|(keys, rounds)| {
        let figure = Figure::of(keys.figure(), rounds).with("slots", sizes.slots).with_all(&facts);
        if keys == Keys::None {
            return figure;
        }
        // Each round is compared with the plain one beside it: what the machine does meanwhile meets both.
        let ratio = |of: fn(&Round) -> f64| {
            median(plain.iter().zip(rounds).map(|(plain, keyed)| of(keyed) / of(plain))).map(rounded)
        };
        figure
            .with("keys", sizes.keys)
            .with("speed_ratio_to_plain", ratio(|round| round.jobs as f64 / round.spent.seconds))
            .with("cpu_ratio_to_plain", ratio(Round::cpu_us_per_job))
    });
    Ok(figures.collect())
}

async fn round(ground: &Ground, sizes: &Sizes, keys: Keys) -> Result<Round, Failure> {
    let tenure = ground.open(None).await?;
    enqueue(&tenure, sizes, keys).await?;
    let meter = Meter::start();
    drain(&tenure, sizes.jobs, sizes.slots).await?;
    let spent = meter.spent();
    tenure.close().await?;
    Ok(Round { jobs: sizes.jobs, spent, more: Vec::new() })
}

/// Enqueues all jobs, the keys in turn.
async fn enqueue(tenure: &Tenure, sizes: &Sizes, keys: Keys) -> Result<(), tenure::Error> {
    let terms = (0..sizes.keys).map(|number| keys.terms(number)).collect::<Result<Arc<[Terms]>, _>>()?;
    let mut drafts =
        (0..sizes.jobs).map(|job| Draft::of(&NoOp::sent(0)).terms(terms[job % terms.len()].clone()));
    loop {
        let batch: Vec<Draft> = drafts.by_ref().take(LOAD).collect();
        if batch.is_empty() {
            return Ok(());
        }
        tenure.enqueue_all(batch).await?;
    }
}
