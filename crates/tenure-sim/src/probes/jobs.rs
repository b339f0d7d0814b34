//! Probes about jobs and the hosts that run them.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{Cause, Fence, JobId};
use tenure_store::{Accepted, ChangeOutcome, Refusal, Settled};

use super::{Hits, Probe};
use crate::history::{Changing, Entry, Renewed, Row, What, Who, Why};

/// What is needed to know when a probe about jobs and hosts is hit.
#[derive(Debug, Default)]
pub(super) struct JobProbes {
    at_work: BTreeMap<u64, BTreeSet<(Who, Fence)>>,
    held: BTreeMap<u64, (Who, Fence)>,
    begun: BTreeSet<(u64, Fence)>,
    known: BTreeMap<JobId, Vec<Cause>>,
    dead: BTreeSet<Who>,
    stopping: BTreeSet<Who>,
}

impl JobProbes {
    /// Takes note of what happened.
    pub(super) fn see(&mut self, entry: &Entry, hits: &mut Hits) {
        if self.dead.contains(&entry.who) && is_request(&entry.what) {
            hits.hit(Probe::LateRequestOfDeadHost);
        }
        self.see_jobs(entry, hits);
        self.see_world(entry, hits);
    }

    fn see_jobs(&mut self, entry: &Entry, hits: &mut Hits) {
        if let What::Granted(grant) = &entry.what
            && self.held.insert(grant.seq, (entry.who, grant.fence)).is_some()
        {
            hits.hit(Probe::TakenAfterSilence);
        }
        if let What::Renewed { answer, .. } = &entry.what {
            match answer {
                Renewed::Until(_) => {}
                Renewed::Lapsed => hits.hit(Probe::RenewalAfterLapse),
                Renewed::Lost => hits.hit(Probe::RenewalLost),
            }
        }
        if let What::Settled { seq, fence, next, answer, .. } = &entry.what {
            self.settled(hits, entry.who, (*seq, *fence), *next, *answer);
        }
        if let What::Reported { kept: false, .. } = &entry.what {
            hits.hit(Probe::LateReportFenced);
        }
        if let What::Began { seq, fence, .. } = &entry.what {
            self.begun.insert((*seq, *fence));
            let at_work = self.at_work.entry(*seq).or_default();
            at_work.insert((entry.who, *fence));
            if at_work.len() > 1 {
                hits.hit(Probe::HandlersOverlap);
            }
        }
        if let What::Left { seq, fence, .. } = &entry.what
            && let Some(at_work) = self.at_work.get_mut(seq)
        {
            at_work.remove(&(entry.who, *fence));
        }
        entry.what.rows().iter().for_each(|row| self.row(row, hits));
    }

    fn see_world(&mut self, entry: &Entry, hits: &mut Hits) {
        if let What::Stored { accepted, .. } = &entry.what {
            match accepted {
                Accepted::New(_) => {}
                Accepted::Repeated(_) => hits.hit(Probe::UnknownEnqueueRepeated),
                Accepted::Existing(_) => hits.hit(Probe::UniqueConflictReturned),
                Accepted::Replaced { .. } => hits.hit(Probe::UniqueConflictReplaced),
            }
        }
        if let What::Refused(Refusal::KeyHeld(_)) = &entry.what {
            hits.hit(Probe::UniqueConflictRefused);
        }
        if let What::Changed { change, outcome, .. } = &entry.what {
            match (change, outcome) {
                (Changing::Redo, ChangeOutcome::Done) => hits.hit(Probe::Redone),
                (Changing::Redo, ChangeOutcome::RefusedKeyHeld(_)) => hits.hit(Probe::RedoRefusedForKey),
                (Changing::Delete, ChangeOutcome::Done) => hits.hit(Probe::DeletedByOperator),
                (Changing::Cancel(_) | Changing::Redo | Changing::Delete | Changing::Place, _) => {}
            }
        }
        if let What::Pruned(jobs) = &entry.what
            && *jobs > 0
        {
            hits.hit(Probe::Pruned);
        }
        if let What::StoreStepped(_) = &entry.what
            && !self.held.is_empty()
        {
            hits.hit(Probe::StoreClockSteppedDuringLease);
        }
        if let What::StopAsked { .. } = &entry.what {
            self.stopping.insert(entry.who);
        }
        if let What::Trouble { why, begins: true } = &entry.what {
            self.trouble(entry.who, *why, hits);
        }
    }

    fn settled(
        &mut self,
        hits: &mut Hits,
        who: Who,
        owned: (u64, Fence),
        next: tenure_core::Next,
        answer: Settled,
    ) {
        match answer {
            Settled::Done(_) => {
                self.held.remove(&owned.0);
                let is_release = is_release(next);
                if is_release && !self.begun.contains(&owned) {
                    hits.hit(Probe::GivenBackUnbegun);
                } else if is_release && self.stopping.contains(&who) {
                    hits.hit(Probe::GivenBackWhileStopping);
                }
            }
            Settled::Repeated => hits.hit(Probe::SettlementRepeated),
            Settled::Fenced => hits.hit(Probe::LateSettlementFenced),
            Settled::Gone => hits.hit(Probe::SettlementOfRemovedJob),
        }
    }

    fn row(&mut self, row: &Row, hits: &mut Hits) {
        if row.end().is_some() {
            self.held.remove(&row.seq);
        }
        let Some(cause) = row.cause else { return };
        let known = self.known.entry(row.id).or_default();
        if known.contains(&cause) {
            return;
        }
        known.push(cause);
        match cause {
            Cause::Deaf => hits.hit(Probe::DeafHandlerCancelled),
            Cause::Panic => hits.hit(Probe::Panicked),
            Cause::TimedOut => hits.hit(Probe::TimedOut),
            Cause::Undecodable => hits.hit(Probe::Undecodable),
            Cause::Lost if row.end().is_some() => hits.hit(Probe::EndedByLapse),
            Cause::Lost
            | Cause::Error
            | Cause::Unstorable
            | Cause::UnknownKind
            | Cause::Cancelled
            | Cause::Deliveries => {}
        }
    }

    fn trouble(&mut self, who: Who, why: Why, hits: &mut Hits) {
        let works = self.at_work.values().flatten().any(|(at_work, _)| *at_work == who);
        if why == Why::Crashed {
            self.dead.insert(who);
            self.at_work.values_mut().for_each(|at_work| at_work.retain(|(of, _)| *of != who));
        }
        let probe = match why {
            Why::Crashed => Probe::CrashedAtWork,
            Why::Frozen => Probe::FrozenAtWork,
            Why::CutOff => Probe::CutOffAtWork,
            Why::Stops => return,
        };
        if works {
            hits.hit(probe);
        }
    }
}

fn is_release(next: tenure_core::Next) -> bool {
    matches!(next, tenure_core::Next::Wait { why: tenure_core::Why::Released, .. })
}

fn is_request(what: &What) -> bool {
    matches!(
        what,
        What::Granted(_)
            | What::Renewed { .. }
            | What::Settled { .. }
            | What::Stored { .. }
            | What::Changed { .. }
    )
}
