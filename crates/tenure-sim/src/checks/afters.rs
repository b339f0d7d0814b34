//! A job that waits for others starts after them, or not at all.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{AfterJobs, End, IfFailed, JobId};
use tenure_store::{Accepted, ChangeOutcome};

use super::Check;
use crate::history::{Changing, Entry, Row, What};

/// A job starts only after all that it waits for have ended, and if it minds, have succeeded. Only what
/// somebody wanted cancelled is cancelled, or what waits for something that ended badly or is gone.
#[derive(Default)]
pub(super) struct Afters {
    waits: BTreeMap<u64, AfterJobs>,
    places: BTreeMap<JobId, u64>,
    succeeded: BTreeSet<JobId>,
    ended_badly: BTreeSet<JobId>,
    gone: BTreeSet<JobId>,
    cancelled: BTreeSet<JobId>,
    granted: Vec<u64>,
    unexplained: Vec<(JobId, u64)>,
    /// Jobs that were done again.
    again: BTreeSet<u64>,
}

impl Check for Afters {
    fn rule(&self) -> &'static str {
        "a job starts after those it waits for"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        if let Some((seq, terms)) = entry.what.newly_stored() {
            self.waits.extend(terms.after.clone().map(|after| (seq, after)));
        }
        if let What::Stored { accepted: Accepted::Replaced { old, .. }, .. } = &entry.what {
            self.cancelled.insert(*old);
        }
        if let What::Changed { id, change, outcome } = &entry.what {
            self.changed(*id, *change, *outcome);
        }
        for row in entry.what.rows() {
            self.places.insert(row.id, row.seq);
            self.look(row);
        }
        if let What::Granted(grant) = &entry.what {
            self.granted.push(grant.seq);
        }
        if let What::Beside(_) = &entry.what {
            // What was looked at beside a grant has been taken note of by now.
            let granted = std::mem::take(&mut self.granted);
            return granted.into_iter().try_for_each(|seq| self.may_start(seq));
        }
        if let What::Audit { .. } = &entry.what {
            // Now every end has been looked at, also of what ended by time alone.
            let unexplained = std::mem::take(&mut self.unexplained);
            return unexplained.into_iter().try_for_each(|(id, seq)| self.may_be_cancelled(id, seq));
        }
        Ok(())
    }
}

impl Afters {
    fn changed(&mut self, id: JobId, change: Changing, outcome: ChangeOutcome) {
        if (change, outcome) == (Changing::Redo, ChangeOutcome::Done) {
            // A job that is done again does not wait again.
            self.again.extend(self.places.get(&id));
            // It had ended, and nobody may have looked at how.
            self.ended_badly.insert(id);
        }
        let set = match (change, outcome) {
            (Changing::Cancel(_), ChangeOutcome::Done | ChangeOutcome::Asked) => &mut self.cancelled,
            (Changing::Delete, ChangeOutcome::Done) => &mut self.gone,
            _ => return,
        };
        set.insert(id);
    }

    fn may_start(&self, seq: u64) -> Result<(), String> {
        let Some(after) = self.waits.get(&seq).filter(|_| !self.again.contains(&seq)) else { return Ok(()) };
        let has_ended = |id: &JobId| {
            let badly = self.ended_badly.contains(id) || self.gone.contains(id);
            self.succeeded.contains(id) || (badly && after.if_failed == IfFailed::Run)
        };
        match after.jobs.iter().find(|id| !has_ended(id)) {
            Some(id) => Err(format!("#{seq} started before {id} had ended as it has to")),
            None => Ok(()),
        }
    }

    fn look(&mut self, row: &Row) {
        let Some((_, end)) = row.end() else { return };
        let is_new = match end {
            End::Succeeded => self.succeeded.insert(row.id),
            End::Failed | End::Cancelled => self.ended_badly.insert(row.id),
        };
        if is_new && end == End::Cancelled {
            self.unexplained.push((row.id, row.seq));
        }
    }

    fn may_be_cancelled(&self, id: JobId, seq: u64) -> Result<(), String> {
        let is_bad = |id: &JobId| self.ended_badly.contains(id) || self.gone.contains(id);
        let spoilt = self
            .waits
            .get(&seq)
            .is_some_and(|after| after.if_failed == IfFailed::Cancel && after.jobs.iter().any(is_bad));
        if spoilt || self.cancelled.contains(&id) {
            return Ok(());
        }
        Err(format!("#{seq} was cancelled, which nobody wanted"))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tenure_core::{State, Terms};

    use super::super::made::{
        H0, at, audit, grant_of, id, row, running, second, stored_as, succeeded, verdict, waiting,
    };
    use super::*;

    fn says(history: impl IntoIterator<Item = Entry>) -> Result<(), String> {
        let audit = at(99, H0, audit(Vec::new()));
        verdict(Afters::default(), history.into_iter().chain([audit]))
    }

    /// Job 3 waits for jobs 1 and 2.
    fn waits(if_failed: IfFailed) -> Entry {
        let after = Some(AfterJobs { jobs: vec![id(1), id(2)], if_failed });
        at(1, H0, stored_as(3, Terms { after, ..Terms::default() }))
    }

    fn looked(seq: u64, state: State) -> Entry {
        at(2, H0, What::Row(row(seq, state)))
    }

    fn starts(others: [State; 2]) -> [Entry; 2] {
        let [first, other] = others;
        let rows = vec![row(1, first), row(2, other), row(3, running())];
        [at(9, H0, grant_of(3)), at(9, H0, What::Beside(rows))]
    }

    fn ended(end: End) -> State {
        State::Finished { at: second(2), end }
    }

    #[test]
    fn a_start_before_the_last_has_ended_is_found() {
        for if_failed in [IfFailed::Cancel, IfFailed::Run] {
            let history = [waits(if_failed)].into_iter();
            assert!(says(history.chain(starts([succeeded(2), waiting()]))).is_err());
        }
    }

    #[test]
    fn a_start_though_one_has_failed_is_found() {
        let history = || [waits(IfFailed::Cancel)].into_iter();
        assert!(says(history().chain(starts([succeeded(2), ended(End::Failed)]))).is_err());
        let delete = What::Changed { id: id(2), change: Changing::Delete, outcome: ChangeOutcome::Done };
        let gone =
            [at(2, H0, delete), at(9, H0, grant_of(3)), at(9, H0, What::Beside(vec![row(1, succeeded(2))]))];
        assert!(says(history().chain(gone)).is_err());
    }

    #[test]
    fn a_cancelling_that_nobody_wanted_is_found() {
        assert!(says([looked(1, ended(End::Cancelled))]).is_err());
        assert!(says([waits(IfFailed::Cancel), looked(3, ended(End::Cancelled))]).is_err());
        let failed = looked(1, ended(End::Failed));
        assert!(says([waits(IfFailed::Run), failed, looked(3, ended(End::Cancelled))]).is_err());
    }

    #[test]
    fn a_start_after_all_is_accepted() {
        let history = || [waits(IfFailed::Cancel)].into_iter();
        assert_eq!(says(history().chain(starts([succeeded(2), succeeded(3)]))), Ok(()));
        // One that succeeded and was removed has succeeded.
        let gone = [looked(1, succeeded(2)), looked(2, succeeded(2))];
        let alone = [at(9, H0, grant_of(3)), at(9, H0, What::Beside(vec![row(3, running())]))];
        assert_eq!(says(history().chain(gone).chain(alone)), Ok(()));
    }

    #[test]
    fn a_start_of_one_that_does_not_mind_is_accepted() {
        let history = [waits(IfFailed::Run)].into_iter();
        assert_eq!(says(history.chain(starts([ended(End::Failed), succeeded(3)]))), Ok(()));
    }

    #[test]
    fn a_cancelling_that_is_wanted_or_follows_is_accepted() {
        let change = Changing::Cancel(Duration::ZERO);
        let cancel = at(1, H0, What::Changed { id: id(1), change, outcome: ChangeOutcome::Done });
        let cancelled = looked(1, ended(End::Cancelled));
        let follows = looked(3, ended(End::Cancelled));
        assert_eq!(says([waits(IfFailed::Cancel), cancel, cancelled, follows]), Ok(()));
    }
}
