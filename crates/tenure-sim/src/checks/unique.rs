//! A unique key has one unfinished job.

use std::collections::BTreeMap;

use tenure_core::{Unique, UniqueKey, Window};

use super::Check;
use crate::history::{Entry, What};

/// No two unfinished jobs were asked for with the same key that is held until the end.
#[derive(Default)]
pub(super) struct UniqueKeys {
    asked: BTreeMap<u64, UniqueKey>,
}

impl Check for UniqueKeys {
    fn rule(&self) -> &'static str {
        "a unique key has one unfinished job"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        if let Some((seq, terms)) = entry.what.newly_stored()
            && let Some(Unique { key, window: Window::WhileUnfinished, .. }) = terms.unique
        {
            self.asked.insert(seq, key);
        }
        let What::Audit { rows, .. } = &entry.what else { return Ok(()) };
        let mut holders = BTreeMap::new();
        for row in rows.iter().filter(|row| row.end().is_none()) {
            let Some(key) = self.asked.get(&row.seq) else { continue };
            if let Some(other) = holders.insert(key, row.seq) {
                return Err(format!("#{other} and #{} hold the same key and neither has ended", row.seq));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::{OnConflict, Terms};

    use super::super::made::{H0, at, audit, row, stored_as, succeeded, verdict, waiting};
    use super::*;
    use crate::history::Row;

    fn stored(seq: u64, key: u8) -> Entry {
        let (window, on_conflict) = (Window::WhileUnfinished, OnConflict::Return);
        let unique = Some(Unique { key: UniqueKey([key; 16]), window, on_conflict });
        at(1, H0, stored_as(seq, Terms { unique, ..Terms::default() }))
    }

    fn says(asked: impl IntoIterator<Item = Entry>, rows: Vec<Row>) -> Result<(), String> {
        let audit = at(2, H0, audit(rows));
        verdict(UniqueKeys::default(), asked.into_iter().chain([audit]))
    }

    #[test]
    fn a_key_with_two_unfinished_jobs_is_found() {
        let waiting = || vec![row(1, waiting()), row(2, waiting())];
        assert!(says([stored(1, 7), stored(2, 7)], waiting()).is_err());
        let running = tenure_core::State::Running {
            holder: tenure_core::HostId::from_bytes([0; 16]),
            until: tenure_core::Timestamp::LAST,
            due: tenure_core::Timestamp::EPOCH,
        };
        assert!(says([stored(1, 7), stored(2, 7)], vec![row(1, running), waiting().remove(1)]).is_err());
    }

    #[test]
    fn other_keys_and_ended_jobs_are_accepted() {
        let rows = vec![row(1, succeeded(1)), row(2, waiting()), row(3, waiting())];
        assert_eq!(says([stored(1, 7), stored(2, 7), stored(3, 8)], rows), Ok(()));
    }
}
