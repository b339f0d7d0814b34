//! A unique key has one unfinished job.

use std::collections::BTreeMap;

use tenure_core::{UniqueKey, Window};

use super::Check;
use crate::history::{Entry, Row, What};

/// No two unfinished jobs hold the same key until their end.
#[derive(Default)]
pub(super) struct UniqueKeys;

impl Check for UniqueKeys {
    fn rule(&self) -> &'static str {
        "a unique key has one unfinished job"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        let What::Audit { rows, .. } = &entry.what else { return Ok(()) };
        let mut holders: BTreeMap<UniqueKey, u64> = BTreeMap::new();
        for row in rows {
            let Some(key) = held(row) else { continue };
            if let Some(other) = holders.insert(key, row.seq) {
                return Err(format!("#{other} and #{} hold the same key and neither has ended", row.seq));
            }
        }
        Ok(())
    }
}

/// The key that a job holds as long as it has not ended.
fn held(row: &Row) -> Option<UniqueKey> {
    match row.unique {
        Some((key, Window::WhileUnfinished)) if row.end().is_none() => Some(key),
        Some((_, Window::WhileUnfinished | Window::For(_))) | None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::{H0, at, row, succeeded, verdict, waiting};
    use super::*;

    fn keyed(seq: u64, key: u8, mut of: Row) -> Row {
        of.seq = seq;
        of.unique = Some((UniqueKey([key; 16]), Window::WhileUnfinished));
        of
    }

    fn says(rows: Vec<Row>) -> Result<(), String> {
        verdict(UniqueKeys, [at(1, H0, What::Audit { rows, counts: Vec::new() })])
    }

    #[test]
    fn a_key_with_two_unfinished_jobs_is_found() {
        assert!(says(vec![keyed(1, 7, row(1, waiting())), keyed(2, 7, row(2, waiting()))]).is_err());
        let running = tenure_core::State::Running {
            holder: tenure_core::HostId::from_bytes([0; 16]),
            until: tenure_core::Timestamp::LAST,
            due: tenure_core::Timestamp::EPOCH,
        };
        assert!(says(vec![keyed(1, 7, row(1, running)), keyed(2, 7, row(2, waiting()))]).is_err());
    }

    #[test]
    fn other_keys_and_ended_jobs_are_accepted() {
        let rows = vec![
            keyed(1, 7, row(1, succeeded(1))),
            keyed(2, 7, row(2, waiting())),
            keyed(3, 8, row(3, waiting())),
        ];
        assert_eq!(says(rows), Ok(()));
    }
}
