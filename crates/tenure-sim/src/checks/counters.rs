//! Counters equal a recount.

use std::collections::BTreeMap;

use tenure_core::{Kind, QueueName, StateName, Timestamp};
use tenure_store::Count;

use super::Check;
use crate::history::{Entry, Row, What};

/// The maintained counters say what a recount says. Whether a waiting job is due counts from when
/// somebody looked, so waiting jobs are taken together.
#[derive(Default)]
pub(super) struct Counters;

type Sort = (QueueName, Kind, StateName);

impl Check for Counters {
    fn rule(&self) -> &'static str {
        "counters equal a recount"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        let What::Audit { rows, counts, .. } = &entry.what else { return Ok(()) };
        let (recount, counters) = (recount(rows), merged(counts));
        if recount == counters {
            return Ok(());
        }
        Err(format!("counters {counters:?}, recount {recount:?}"))
    }
}

fn recount(rows: &[Row]) -> BTreeMap<Sort, u64> {
    let mut counted = BTreeMap::new();
    for row in rows {
        let state = row.state.name(Timestamp::LAST);
        *counted.entry((row.queue.clone(), row.kind.clone(), state)).or_default() += 1;
    }
    counted
}

fn merged(counts: &[Count]) -> BTreeMap<Sort, u64> {
    let mut merged = BTreeMap::new();
    for count in counts {
        let state = match count.state {
            StateName::Scheduled | StateName::Queued => StateName::Queued,
            StateName::Blocked
            | StateName::Running
            | StateName::Succeeded
            | StateName::Failed
            | StateName::Cancelled => count.state,
        };
        *merged.entry((count.queue.clone(), count.kind.clone(), state)).or_default() += count.jobs;
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::super::made::{H0, at, row, succeeded, verdict, waiting};
    use super::*;

    fn count(state: StateName, jobs: u64) -> Count {
        Count { queue: QueueName::default(), kind: Kind::new("work").unwrap(), state, jobs }
    }

    fn says(counts: Vec<Count>) -> Result<(), String> {
        let rows = vec![row(1, waiting()), row(2, waiting()), row(3, succeeded(1))];
        verdict(Counters, [at(1, H0, What::Audit { rows, counts, limits: Vec::new() })])
    }

    #[test]
    fn a_counter_that_is_off_and_one_that_is_missing_are_found() {
        assert!(says(vec![count(StateName::Queued, 3), count(StateName::Succeeded, 1)]).is_err());
        assert!(says(vec![count(StateName::Queued, 2)]).is_err());
        assert!(says(vec![count(StateName::Queued, 2), count(StateName::Failed, 1)]).is_err());
    }

    #[test]
    fn counters_that_are_right_are_accepted() {
        let counts =
            vec![count(StateName::Scheduled, 1), count(StateName::Queued, 1), count(StateName::Succeeded, 1)];
        assert_eq!(says(counts), Ok(()));
    }
}
