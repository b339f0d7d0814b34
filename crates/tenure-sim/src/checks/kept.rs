//! Nothing acknowledged is lost, and nothing is invented.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{JobId, Timestamp};
use tenure_store::{Accepted, ChangeOutcome, Refusal};

use super::Check;
use crate::history::{Changing, Entry, Row, What};

/// Every acknowledged job is in the store until somebody deletes it or its time of keeping is over;
/// every job in the store was asked for, and no ask makes two.
#[derive(Default)]
pub(super) struct Kept {
    asked: BTreeMap<u64, Option<JobId>>,
    made: BTreeMap<u64, JobId>,
    told: BTreeSet<JobId>,
    deleted: BTreeSet<JobId>,
    expiring: BTreeMap<JobId, Timestamp>,
    latest_store_now: Option<Timestamp>,
}

impl Check for Kept {
    fn rule(&self) -> &'static str {
        "nothing acknowledged is lost, nothing is invented"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        self.latest_store_now = self.latest_store_now.max(Some(entry.store_now));
        if let What::Asks { ask, id } = &entry.what {
            self.asked.insert(*ask, *id);
        }
        if let What::Told { accepted, .. } = &entry.what
            && !self.deleted.contains(&accepted.id())
        {
            self.told.insert(accepted.id());
        }
        if let What::Changed { id, change: Changing::Delete, outcome: ChangeOutcome::Done } = &entry.what {
            self.told.remove(id);
            // A reply may be on its way to a client while somebody else deletes the job.
            self.deleted.insert(*id);
            self.made.retain(|_, made| made != id);
        }
        if let What::Stored {
            ask, terms, accepted: Accepted::New(id) | Accepted::Replaced { id, .. }, ..
        } = &entry.what
        {
            if terms.slot.is_some() {
                // No ask but a timer made it: its slot tells whether it had to.
                return Ok(());
            }
            return self.stored(*ask, *id);
        }
        // Every id belongs to one ask, so whoever comes with an id that is there repeats itself.
        if let What::Refused(Refusal::IdTaken(id)) = &entry.what {
            return Err(format!("job {id} was enqueued again after an unknown outcome, and refused"));
        }
        if let What::Audit { rows, .. } = &entry.what {
            return self.audit(rows);
        }
        entry.what.rows().iter().for_each(|row| self.note(row));
        Ok(())
    }
}

impl Kept {
    fn stored(&mut self, ask: u64, id: JobId) -> Result<(), String> {
        match self.asked.get(&ask) {
            None => return Err(format!("job {id} names ask {ask}, which nobody made")),
            Some(Some(given)) if *given != id => {
                return Err(format!("ask {ask} gave the id {given}, but {id} was stored"));
            }
            Some(_) => {}
        }
        self.deleted.remove(&id);
        match self.made.insert(ask, id) {
            Some(before) if before != id => Err(format!("ask {ask} made two jobs: {before} and {id}")),
            Some(_) | None => Ok(()),
        }
    }

    fn note(&mut self, row: &Row) {
        match row.expires {
            Some(expires) => self.expiring.insert(row.id, expires),
            None => self.expiring.remove(&row.id),
        };
    }

    fn audit(&mut self, rows: &[Row]) -> Result<(), String> {
        let now = self.latest_store_now.unwrap_or(Timestamp::EPOCH);
        let ids: BTreeSet<JobId> = rows.iter().map(|row| row.id).collect();
        let may_be_gone = |id: &JobId| self.expiring.get(id).is_some_and(|expires| *expires <= now);
        if let Some(lost) = self.told.iter().find(|id| !ids.contains(id) && !may_be_gone(id)) {
            return Err(format!("job {lost} was acknowledged and is not there"));
        }
        if let Some(row) = rows.iter().find(|row| row.slot().is_none() && !self.asked.contains_key(&row.ask))
        {
            return Err(format!("nobody asked for #{}", row.seq));
        }
        rows.iter().for_each(|row| self.note(row));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::made::{H0, at, audit, id, row, second, succeeded, verdict, waiting};
    use super::*;

    fn asks() -> [Entry; 3] {
        let accepted = Accepted::New(id(1));
        [
            at(1, H0, What::Asks { ask: 1, id: None }),
            at(1, H0, stored(1, 1)),
            at(1, H0, What::Told { ask: 1, accepted }),
        ]
    }

    fn stored(ask: u64, seq: u64) -> What {
        What::Stored { ask, seq: Some(seq), terms: Arc::default(), accepted: Accepted::New(id(seq)) }
    }

    fn says(rest: impl IntoIterator<Item = Entry>) -> Result<(), String> {
        verdict(Kept::default(), asks().into_iter().chain(rest))
    }

    #[test]
    fn a_lost_job_is_found() {
        assert!(says([at(5, H0, audit(vec![]))]).is_err());
        let mut early = row(1, succeeded(2));
        early.expires = Some(second(60));
        assert!(says([at(2, H0, What::Row(early)), at(59, H0, audit(vec![]))]).is_err());
    }

    #[test]
    fn an_invented_job_is_found() {
        assert!(says([at(5, H0, audit(vec![row(1, waiting()), row(2, waiting())]))]).is_err());
        assert!(says([at(2, H0, stored(1, 2))]).is_err());
        assert!(says([at(2, H0, stored(7, 2))]).is_err());
    }

    #[test]
    fn a_repetition_that_is_refused_is_found() {
        assert!(says([at(2, H0, What::Refused(Refusal::IdTaken(id(1))))]).is_err());
    }

    #[test]
    fn kept_deleted_and_pruned_jobs_are_accepted() {
        assert_eq!(says([at(5, H0, audit(vec![row(1, waiting())]))]), Ok(()));
        let delete = What::Changed { id: id(1), change: Changing::Delete, outcome: ChangeOutcome::Done };
        assert_eq!(says([at(4, H0, delete), at(5, H0, audit(vec![]))]), Ok(()));
        let mut kept = row(1, succeeded(2));
        kept.expires = Some(second(60));
        assert_eq!(says([at(2, H0, What::Row(kept)), at(61, H0, audit(vec![]))]), Ok(()));
    }
}
