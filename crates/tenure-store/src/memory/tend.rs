//! What time alone brings, in bounded steps.

use std::collections::BTreeSet;

use tenure_core::{Timestamp, lapse, limits};

use super::rows::Rows;
use super::step::Step;
use crate::Tended;

impl Rows {
    /// Takes one bounded step of all that time alone brings.
    pub fn tend(&mut self, now: Timestamp) -> Tended {
        let (lapsed, due) = self.sweep(now);
        let pruned = self.prune(now);
        self.forget_lost_hosts(now);
        self.keys.forget_ended(now, limits::PRUNE_JOBS);
        let leases_left = self.leases.notice(self.epoch, now);
        let records_left = self.records.prune(now);
        let more = leases_left
            || records_left
            || [&self.held, &self.later, &self.kept]
                .into_iter()
                .any(|index| !passed(index, now, 1).is_empty())
            || self.limits.grow.first().is_some_and(|(at, _)| *at <= now)
            || self.waits.has_news();
        Tended { lapsed, due, pruned, more }
    }

    /// Notices what has ended that others waited for, takes jobs from holders that fell silent or did not
    /// stop, finds out what came due and which limits have room again; answers how many jobs were taken, and
    /// how many need not wait any more.
    pub fn sweep(&mut self, now: Timestamp) -> (usize, usize) {
        let noticed = self.notice_ended(now, limits::SWEEP_ROWS);
        let overheld = passed(&self.held, now, limits::SWEEP_ROWS);
        for seq in &overheld {
            let transition = self.jobs.get(seq).and_then(|row| lapse(&row.job, self.epoch, now));
            if let Some(transition) = transition {
                self.write(*seq, Step::Became(Box::new(transition)), now);
            }
        }
        let due = passed(&self.later, now, limits::SWEEP_ROWS);
        due.iter().for_each(|seq| self.write(*seq, Step::CameDue, now));
        self.notice_room(now, limits::SWEEP_ROWS);
        (overheld.len(), noticed + due.len())
    }

    fn prune(&mut self, now: Timestamp) -> usize {
        let expired = passed(&self.kept, now, limits::PRUNE_JOBS);
        let (needed, gone): (Vec<u64>, Vec<u64>) =
            expired.into_iter().partition(|seq| self.waits.is_needed(*seq));
        needed.iter().for_each(|seq| self.write(*seq, Step::KeptOn, now));
        gone.iter().for_each(|seq| self.write(*seq, Step::Pruned, now));
        gone.len()
    }
}

/// The first of an index by instants whose instant has passed.
fn passed(index: &BTreeSet<(Timestamp, u64)>, now: Timestamp, at_most: usize) -> Vec<u64> {
    index.range(..=(now, u64::MAX)).take(at_most).map(|(_, seq)| *seq).collect()
}
