//! Every job ends once.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{End, JobId, Next, StateName, Timestamp};
use tenure_store::{ChangeOutcome, Settled};

use super::Check;
use crate::history::{Changing, Entry, Row, What};

/// An end never changes and no ended job is granted, unless somebody asked for it to be done again.
/// A settlement that was written and ends the job is how the job ended.
#[derive(Default)]
pub(super) struct Ends {
    ended: BTreeMap<u64, (Timestamp, End)>,
    // An id may come back after its job was removed; a place does not.
    places: BTreeMap<JobId, u64>,
    removed: BTreeSet<u64>,
    settled: BTreeMap<u64, End>,
}

impl Check for Ends {
    fn rule(&self) -> &'static str {
        "every job ends once"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        if let What::Changed { id, change, outcome: ChangeOutcome::Done } = &entry.what {
            self.changed(*id, *change);
        }
        if let What::Granted(grant) = &entry.what {
            self.settled.remove(&grant.seq);
            let end = self.ended.get(&grant.seq);
            return end
                .map_or(Ok(()), |end| Err(format!("#{} had ended as {end:?} and was granted", grant.seq)));
        }
        if let What::Settled { seq, next, answer: Settled::Done(state), .. } = &entry.what {
            if !fits(*next, *state) {
                return Err(format!("#{seq} was settled as {next:?} and became {state}"));
            }
            self.settled.extend(end_of(*state).map(|end| (*seq, end)));
        }
        if let What::Waited { row } = &entry.what
            && row.end().is_none()
        {
            return Err(format!("a wait for #{} was over before it had ended", row.seq));
        }
        entry.what.rows().iter().try_for_each(|row| self.look(row))
    }
}

impl Ends {
    fn changed(&mut self, id: JobId, change: Changing) {
        let Some(seq) = self.places.get(&id).copied() else { return };
        match change {
            Changing::Redo => {
                self.ended.remove(&seq);
            }
            Changing::Delete => {
                self.removed.insert(seq);
            }
            Changing::Cancel(_) | Changing::Place => {}
        }
    }

    fn look(&mut self, row: &Row) -> Result<(), String> {
        self.places.insert(row.id, row.seq);
        if self.removed.contains(&row.seq) {
            return Err(format!("#{} was removed and is there again", row.seq));
        }
        let end = row.end();
        if let Some(settled) = self.settled.remove(&row.seq)
            && end.map(|(_, end)| end) != Some(settled)
        {
            return Err(format!("#{} was settled as {settled:?} and is {:?}", row.seq, row.state));
        }
        match (self.ended.get(&row.seq), end) {
            (Some(before), _) if Some(*before) != end => {
                Err(format!("#{} had ended as {before:?} and is {:?}", row.seq, row.state))
            }
            (Some(_), _) | (None, None) => Ok(()),
            (None, Some(end)) => {
                self.ended.insert(row.seq, end);
                Ok(())
            }
        }
    }
}

/// Whether a settlement may come to this. A wish to cancel that came in between turns all but a
/// success into a cancellation.
fn fits(next: Next, state: StateName) -> bool {
    match next {
        Next::Succeed => state == StateName::Succeeded,
        Next::Fail => matches!(state, StateName::Failed | StateName::Cancelled),
        Next::Cancel => state == StateName::Cancelled,
        Next::Wait { .. } => matches!(
            state,
            StateName::Queued | StateName::Scheduled | StateName::Blocked | StateName::Cancelled
        ),
    }
}

fn end_of(state: StateName) -> Option<End> {
    match state {
        StateName::Scheduled | StateName::Queued | StateName::Blocked | StateName::Running => None,
        StateName::Succeeded => Some(End::Succeeded),
        StateName::Failed => Some(End::Failed),
        StateName::Cancelled => Some(End::Cancelled),
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::State;

    use super::super::made::{H0, H1, at, fence, grant, id, row, second, succeeded, verdict, waiting};
    use super::*;

    fn says(history: impl IntoIterator<Item = Entry>) -> Result<(), String> {
        verdict(Ends::default(), history)
    }

    #[test]
    fn an_end_that_changes_is_found() {
        let failed = State::Finished { at: second(9), end: End::Failed };
        let ended = at(1, H0, What::Row(row(1, succeeded(1))));
        assert!(says([ended.clone(), at(9, H0, What::Row(row(1, failed)))]).is_err());
        assert!(says([ended.clone(), at(9, H0, What::Row(row(1, waiting())))]).is_err());
        assert!(says([ended, at(9, H1, grant(2, 30))]).is_err());
    }

    #[test]
    fn a_wait_that_is_over_too_soon_is_found() {
        assert!(says([at(1, H0, What::Waited { row: row(1, waiting()) })]).is_err());
    }

    #[test]
    fn a_settlement_that_is_not_there_is_found() {
        let answer = Settled::Done(StateName::Succeeded);
        let settled =
            What::Settled { seq: 1, fence: fence(1), next: Next::Succeed, answer, fence_then: None };
        assert!(says([at(1, H0, settled), at(1, H0, What::Row(row(1, waiting())))]).is_err());
        let answer = Settled::Done(StateName::Failed);
        let other = What::Settled { seq: 1, fence: fence(1), next: Next::Succeed, answer, fence_then: None };
        assert!(says([at(1, H0, other)]).is_err());
    }

    #[test]
    fn a_removed_job_that_is_back_is_found() {
        let delete = What::Changed { id: id(1), change: Changing::Delete, outcome: ChangeOutcome::Done };
        let there = What::Row(row(1, waiting()));
        assert!(says([at(1, H0, there.clone()), at(2, H0, delete), at(3, H0, there)]).is_err());
    }

    #[test]
    fn an_end_and_a_redo_are_accepted() {
        let redo = What::Changed { id: id(1), change: Changing::Redo, outcome: ChangeOutcome::Done };
        let ended = What::Row(row(1, succeeded(1)));
        let good = [
            at(1, H0, ended.clone()),
            at(2, H0, ended),
            at(3, H1, redo),
            at(4, H0, What::Row(row(1, waiting()))),
        ];
        assert_eq!(says(good), Ok(()));
    }
}
