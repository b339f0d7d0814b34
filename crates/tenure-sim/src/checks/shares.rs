//! Nobody in a queue waits behind all that somebody else has brought.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{Key, Next, QueueName};
use tenure_store::Settled;

use super::Check;
use crate::history::{Changing, Entry, What};

/// Rounds that may be under way or just begun when a job joins.
const SLACK: u64 = 2;

/// While a job waits in line, the jobs of any one other share key are granted at most so often as its own
/// key has turns before it, and a few times more: however many of them wait.
///
/// It looks at a queue in which all jobs have the same kind and priority. In one where somebody changed the
/// places of jobs it does not look any more.
#[derive(Default)]
pub(super) struct Shares {
    keys: BTreeMap<u64, Key>,
    /// Of each key: turns that were wanted, and turns that were had.
    turns: BTreeMap<(QueueName, Key), (u64, u64)>,
    /// Jobs that want their turn.
    joined: BTreeSet<u64>,
    queues: BTreeMap<u64, QueueName>,
    waiting: BTreeMap<u64, Waiting>,
    disturbed: bool,
}

/// A job that waits for its first grant.
struct Waiting {
    allowed: u64,
    passed_by: BTreeMap<Key, BTreeSet<u64>>,
}

impl Check for Shares {
    fn rule(&self) -> &'static str {
        "nobody waits behind all that somebody else brought"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        if let Some((seq, terms)) = entry.what.newly_stored()
            && let Some(share) = &terms.share
        {
            self.keys.entry(seq).or_insert_with(|| share.clone());
        }
        if let What::Changed { change: Changing::Place | Changing::Redo, .. } | What::StoreStepped(_) =
            &entry.what
        {
            self.disturbed = true;
            self.waiting.clear();
        }
        if let What::Changed { .. } = &entry.what {
            // It may be gone, or wait no longer.
            self.forget_gone(entry);
        }
        for row in entry.what.rows() {
            if self.keys.contains_key(&row.seq) && !self.queues.contains_key(&row.seq) {
                self.join(row.seq, &row.queue, row.delivery == 0);
            }
            if row.end().is_some() {
                self.waiting.remove(&row.seq);
            }
        }
        if let What::Settled { seq, next: Next::Wait { .. }, answer: Settled::Done(_), .. } = &entry.what
            && let Some(queue) = self.queues.get(seq).cloned()
        {
            self.join(*seq, &queue, false);
        }
        let What::Granted(grant) = &entry.what else { return Ok(()) };
        self.granted(grant.seq, grant.delivery, &grant.queue)
    }
}

impl Shares {
    fn join(&mut self, seq: u64, queue: &QueueName, is_first: bool) {
        let Some(key) = self.keys.get(&seq).cloned() else { return };
        self.queues.insert(seq, queue.clone());
        let (wanted, had) = self.turns.entry((queue.clone(), key)).or_default();
        *wanted += u64::from(self.joined.insert(seq));
        if is_first && !self.disturbed {
            let allowed = wanted.saturating_sub(*had) + SLACK;
            self.waiting.insert(seq, Waiting { allowed, passed_by: BTreeMap::new() });
        }
    }

    fn granted(&mut self, seq: u64, delivery: u32, queue: &QueueName) -> Result<(), String> {
        self.waiting.remove(&seq);
        let Some(key) = self.keys.get(&seq).cloned() else { return Ok(()) };
        // One that was taken from a silent holder comes back without a turn of its own.
        let had = u64::from(self.joined.remove(&seq));
        self.turns.entry((queue.clone(), key.clone())).or_default().1 += had;
        // What was given back comes again in the present round, beside the turn of its key.
        if delivery > 1 {
            return Ok(());
        }
        for (waits, waiting) in &mut self.waiting {
            if self.queues.get(waits) != Some(queue) || self.keys.get(waits) == Some(&key) {
                continue;
            }
            let passed = waiting.passed_by.entry(key.clone()).or_default();
            passed.insert(seq);
            if passed.len() as u64 > waiting.allowed {
                let own = self.keys.get(waits);
                return Err(format!(
                    "#{waits} of {own:?} waits, while {} jobs of {key} were granted: {passed:?}",
                    passed.len()
                ));
            }
        }
        Ok(())
    }

    fn forget_gone(&mut self, entry: &Entry) {
        let What::Changed { change: Changing::Delete, .. } = &entry.what else { return };
        // Whose id it is is not known here, so all that wait are looked at no longer.
        self.waiting.clear();
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::Terms;

    use super::super::made::{H0, at, grant_of, id, row, stored_as, verdict, waiting};
    use super::*;
    use tenure_store::ChangeOutcome;

    fn says(history: impl IntoIterator<Item = Entry>) -> Result<(), String> {
        verdict(Shares::default(), history)
    }

    fn joins(seq: u64, tenant: &str) -> [Entry; 2] {
        let terms = Terms { share: Some(tenant.parse().unwrap()), ..Terms::default() };
        let mut first = row(seq, waiting());
        first.delivery = 0;
        [at(1, H0, stored_as(seq, terms)), at(1, H0, What::Row(first))]
    }

    fn grants(seqs: impl IntoIterator<Item = u64>) -> impl Iterator<Item = Entry> {
        seqs.into_iter().map(|seq| at(2, H0, grant_of(seq)))
    }

    /// A hundred of one, then two of another.
    fn line() -> impl Iterator<Item = Entry> {
        let many = (1..=100).flat_map(|seq| joins(seq, "big"));
        many.chain((101..=102).flat_map(|seq| joins(seq, "small")))
    }

    #[test]
    fn somebody_who_waits_behind_all_others_is_found() {
        assert!(says(line().chain(grants(1..=100))).is_err());
        assert!(says(line().chain(grants(1..=4))).is_err());
        assert!(says(line().chain(grants([1, 101])).chain(grants(2..=5))).is_err());
    }

    #[test]
    fn turns_are_accepted() {
        assert_eq!(says(line().chain(grants([1, 101, 2, 102])).chain(grants(3..=100))), Ok(()));
        assert_eq!(says(line().chain(grants([1, 2, 101, 3, 4, 102]))), Ok(()));
    }

    #[test]
    fn what_one_brought_itself_is_waited_for() {
        assert_eq!(says(line().chain(grants([101, 102])).chain(grants(1..=100))), Ok(()));
    }

    #[test]
    fn a_line_in_which_somebody_changed_places_is_accepted() {
        let moved = What::Changed { id: id(1), change: Changing::Place, outcome: ChangeOutcome::Done };
        assert_eq!(says(line().chain([at(2, H0, moved)]).chain(grants(1..=100))), Ok(()));
    }
}
