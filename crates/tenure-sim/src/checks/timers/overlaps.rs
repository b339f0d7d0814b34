//! Jobs of one timer do not run beside each other.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tenure_core::{JobId, Key, Name};

use super::super::Check;
use crate::history::{Changing, Entry, Timed, What};

/// Once a job of a line of a timer was granted whose jobs run one at a time, no handler of an earlier one believes that
/// it holds its job. A timer has two lines: that of its slots and that of its backfills. How many of both run at once,
/// and how many where some may, is checked with all limits.
#[derive(Default)]
pub(in super::super) struct Overlaps {
    lines: BTreeMap<u64, Line>,
    places: BTreeMap<JobId, u64>,
    /// The job of each line that was granted last.
    last: BTreeMap<Line, u64>,
    granted: BTreeMap<u64, Duration>,
    cancelled: BTreeSet<u64>,
    stepped: Option<Duration>,
}

/// The jobs of a timer that share an ordering key, or that have none.
type Line = (Name, Option<Key>);

impl Check for Overlaps {
    fn rule(&self) -> &'static str {
        "jobs of one timer run one at a time"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        match &entry.what {
            What::Timed(timed) => self.brought(timed),
            What::StoreStepped(_) => self.stepped = Some(entry.at),
            What::Changed { id, change: Changing::Cancel(_), .. } => {
                self.cancelled.extend(self.places.get(id));
            }
            What::Granted(grant) => {
                self.granted.insert(grant.seq, entry.at);
                if let Some(line) = self.lines.get(&grant.seq) {
                    self.last.insert(line.clone(), grant.seq);
                }
            }
            What::Believes { seq, .. } => return self.believes(*seq),
            _ => {}
        }
        Ok(())
    }
}

impl Overlaps {
    fn brought(&mut self, timed: &Timed) {
        for job in timed.slots.iter().filter_map(|seen| seen.job.as_ref()) {
            self.places.insert(job.id, job.seq);
            let runs_alone = job.terms.ordering.is_some() || job.terms.limit.is_none();
            if let Some(slot) = job.slot().filter(|_| runs_alone) {
                let key = job.terms.ordering.as_ref().map(|ordering| ordering.key.clone());
                self.lines.insert(job.seq, (slot.timer.clone(), key));
            }
        }
    }

    fn believes(&self, seq: u64) -> Result<(), String> {
        let Some(line) = self.lines.get(&seq) else { return Ok(()) };
        // A store whose clock steps takes early, and so does somebody who cancels: the fence is what protects then.
        if self.stepped >= self.granted.get(&seq).copied() || self.cancelled.contains(&seq) {
            return Ok(());
        }
        match self.last.get(line) {
            Some(last) if *last != seq => Err(format!(
                "a handler of #{seq} of {} believes that it holds it, but #{last} was granted",
                line.0
            )),
            Some(_) | None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::made::{H0, H1, at, fence, grant_of, verdict};
    use super::super::made::{fires, ran};
    use super::*;

    fn believes(secs: u64, seq: u64) -> Entry {
        at(secs, H0, What::Believes { seq, fence: fence(1) })
    }

    #[test]
    fn two_that_run_at_once_are_found() {
        let both = || [fires(5, [ran(5, 5)]), fires(10, [ran(10, 10)]), at(11, H0, grant_of(5))];
        let next = at(12, H1, grant_of(10));
        let bad = both().into_iter().chain([believes(11, 5), next.clone(), believes(13, 5)]);
        assert!(verdict(Overlaps::default(), bad).is_err());
        let good = both().into_iter().chain([believes(11, 5), next, believes(13, 10)]);
        assert_eq!(verdict(Overlaps::default(), good), Ok(()));
    }
}
