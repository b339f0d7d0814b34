//! Probes about what jobs share.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{Block, Cause, Head, JobId, Key, State, Terms, Why};
use tenure_store::ChangeOutcome;

use super::{Hits, Probe};
use crate::history::{Changing, Entry, Row, What};

/// What is needed to know when a probe about keys is hit.
#[derive(Debug, Default)]
pub(super) struct KeyProbes {
    terms: BTreeMap<u64, Terms>,
    /// Jobs that wait for their first grant, with their share keys.
    waiting: BTreeMap<u64, Key>,
    /// Jobs that stepped aside.
    aside: BTreeSet<u64>,
    blocked: BTreeSet<u64>,
    cancelled: BTreeSet<JobId>,
    limits: BTreeSet<Key>,
    tried: BTreeSet<u64>,
}

impl KeyProbes {
    pub(super) fn see(&mut self, entry: &Entry, hits: &mut Hits) {
        if let Some((seq, terms)) = entry.what.newly_stored() {
            self.waiting.extend(terms.share.clone().map(|share| (seq, share)));
            self.terms.insert(seq, terms.clone());
        }
        match &entry.what {
            What::Changed { id, change: Changing::Cancel(_), outcome } if *outcome == ChangeOutcome::Done => {
                self.cancelled.insert(*id);
            }
            What::LimitSet { key, .. } if !self.limits.insert(key.clone()) => hits.hit(Probe::LimitChanged),
            What::Granted(grant) => {
                self.aside.remove(&grant.seq);
                self.granted(grant.seq, hits);
            }
            What::Writes { seqs, .. } => {
                let again = seqs.iter().filter(|seq| !self.tried.insert(**seq)).count();
                (0..again).for_each(|_| hits.hit(Probe::MessageTriedAgain));
            }
            What::Beside(rows) => self.beside(rows, hits),
            _ => {}
        }
        entry.what.rows().iter().for_each(|row| self.row(row, entry, hits));
    }

    fn granted(&mut self, seq: u64, hits: &mut Hits) {
        let Some(share) = self.waiting.remove(&seq) else { return };
        if self.waiting.range(..seq).any(|(_, other)| *other != share) {
            hits.hit(Probe::TurnsTaken);
        }
    }

    /// Right after a grant, all that share a key with what was granted.
    fn beside(&mut self, rows: &[Row], hits: &mut Hits) {
        let running: Vec<&Row> =
            rows.iter().filter(|row| matches!(row.state, State::Running { .. })).collect();
        let limited = |row: &Row| {
            self.terms.get(&row.seq).and_then(|terms| terms.limit.as_ref()).map(|limit| &limit.key)
        };
        for row in rows {
            let passed = self.aside.contains(&row.seq)
                && running.iter().any(|other| other.seq != row.seq && self.share_order(row.seq, other.seq));
            if passed {
                hits.hit(Probe::SteppedAside);
            }
            let lost = matches!(
                row.state,
                State::Waiting { why: Why::Lost, .. } | State::Blocked { why: Why::Lost, .. }
            );
            if lost && limited(row).is_some() && running.iter().any(|other| limited(other) == limited(row)) {
                hits.hit(Probe::SlotBackByLapse);
            }
        }
    }

    fn share_order(&self, seq: u64, other: u64) -> bool {
        let key = |seq| {
            self.terms.get(&seq).and_then(|terms| terms.ordering.as_ref()).map(|ordering| &ordering.key)
        };
        key(seq).is_some() && key(seq) == key(other)
    }

    fn row(&mut self, row: &Row, entry: &Entry, hits: &mut Hits) {
        let Some(terms) = self.terms.get(&row.seq) else { return };
        if row.end().is_some() {
            self.waiting.remove(&row.seq);
        }
        if let State::Blocked { on, .. } = row.state
            && self.blocked.insert(row.seq)
        {
            hits.hit(match on {
                Block::Jobs => Probe::BlockedByJobs,
                Block::Order => Probe::BlockedByOrder,
                Block::Limit => Probe::BlockedByLimit,
            });
        }
        if !matches!(row.state, State::Blocked { .. }) {
            self.blocked.remove(&row.seq);
        }
        let steps_aside = terms.ordering.as_ref().is_some_and(|ordering| ordering.head == Head::StepAside);
        if let State::Waiting { due, .. } = row.state
            && steps_aside
            && row.delivery > 0
            && due > entry.store_now
        {
            self.aside.insert(row.seq);
        }
        let spoilt = row.cause == Some(Cause::Cancelled) && terms.after.is_some() && row.end().is_some();
        if spoilt && self.cancelled.insert(row.id) {
            hits.hit(Probe::SpoiltByAnother);
        }
    }
}
