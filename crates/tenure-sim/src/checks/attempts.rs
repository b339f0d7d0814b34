//! Attempts and deliveries are counted and bounded.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{Fence, JobId, Next, Why};
use tenure_store::{ChangeOutcome, Settled};

use super::Check;
use crate::history::{Changing, Entry, What};

/// No attempt above the limit starts, and each grant counts exactly one delivery, so that none is
/// made behind the back of the history. Nothing but a grant spends one: not waiting, whatever for.
#[derive(Default)]
pub(super) struct Attempts {
    deliveries: BTreeMap<u64, u32>,
    attempts: BTreeMap<u64, u32>,
    places: BTreeMap<JobId, u64>,
    begun: BTreeSet<(u64, Fence)>,
    /// Messages: what writes them is no handler.
    messages: BTreeSet<u64>,
}

impl Check for Attempts {
    fn rule(&self) -> &'static str {
        "attempts are bounded"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        for row in entry.what.rows() {
            self.places.insert(row.id, row.seq);
            let granted = self.attempts.get(&row.seq).copied().unwrap_or(0);
            if row.attempt > granted {
                return Err(format!("#{} has spent {} attempts, of {granted} granted", row.seq, row.attempt));
            }
        }
        if let What::Changed { id, change: Changing::Redo, outcome: ChangeOutcome::Done } = &entry.what {
            let seq = self.places.get(id);
            seq.map(|seq| self.attempts.remove(seq));
        }
        if let What::Began { seq, fence, .. } = &entry.what {
            self.begun.insert((*seq, *fence));
        }
        if let What::Settled {
            seq,
            fence,
            next: Next::Wait { why: Why::Retry, .. },
            answer: Settled::Done(_),
            ..
        } = &entry.what
            && !self.begun.contains(&(*seq, *fence))
            && !self.messages.contains(seq)
        {
            return Err(format!("an attempt of #{seq} was spent, though its handler never began"));
        }
        let What::Granted(grant) = &entry.what else { return Ok(()) };
        if grant.queue.as_str().starts_with("writer.") {
            self.messages.insert(grant.seq);
        }
        if grant.attempt > grant.max_attempts {
            return Err(format!("#{} began attempt {} of {}", grant.seq, grant.attempt, grant.max_attempts));
        }
        let before = self.deliveries.insert(grant.seq, grant.delivery).unwrap_or(0);
        if grant.delivery != before + 1 {
            return Err(format!("delivery {} of #{} came after {before}", grant.delivery, grant.seq));
        }
        let before = self.attempts.insert(grant.seq, grant.attempt).unwrap_or(0);
        // The same number comes again when the last one was given back.
        if grant.attempt == before || grant.attempt == before + 1 {
            return Ok(());
        }
        Err(format!("attempt {} of #{} came after {before}", grant.attempt, grant.seq))
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::{H0, at, fence, grant, id, row, second, succeeded, verdict, waiting};
    use super::*;
    use crate::history::{Grant, Row};

    fn granted(attempt: u32, delivery: u32) -> Entry {
        let What::Granted(made) = grant(1, 9) else { unreachable!() };
        let fence = fence(u64::from(delivery));
        at(1, H0, What::Granted(Grant { attempt, delivery, fence, until: second(9), ..made }))
    }

    fn says(history: impl IntoIterator<Item = Entry>) -> Result<(), String> {
        verdict(Attempts::default(), history)
    }

    #[test]
    fn an_attempt_above_the_limit_is_found() {
        assert!(says([granted(1, 1), granted(2, 2), granted(3, 3), granted(4, 4)]).is_err());
    }

    #[test]
    fn a_grant_that_nobody_saw_is_found() {
        assert!(says([granted(1, 1), granted(2, 3)]).is_err());
        assert!(says([granted(1, 1), granted(3, 2)]).is_err());
    }

    #[test]
    fn an_attempt_that_was_spent_by_waiting_is_found() {
        let waits = |attempt| at(2, H0, What::Row(Row { attempt, ..row(1, waiting()) }));
        assert!(says([waits(1)]).is_err());
        assert!(says([granted(1, 1), waits(2)]).is_err());
        assert_eq!(says([waits(0), granted(1, 1), waits(1), waits(0)]), Ok(()));
    }

    #[test]
    fn attempts_that_were_given_back_or_asked_for_are_accepted() {
        let redo = What::Changed { id: id(1), change: Changing::Redo, outcome: ChangeOutcome::Done };
        let good = [
            granted(1, 1),
            granted(1, 2),
            granted(2, 3),
            at(2, H0, What::Row(row(1, succeeded(2)))),
            at(3, H0, redo),
            granted(1, 4),
        ];
        assert_eq!(says(good), Ok(()));
    }
}
