//! Probes: rare things that have to happen now and then, or the simulation proves nothing about them.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{Cause, Fence, JobId};
use tenure_store::{Accepted, ChangeOutcome, Refusal, Settled};

use crate::history::{Changing, Entry, Renewed, Row, What, Who, Why};

/// Something that has to happen in some seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each has its sentence")]
pub enum Probe {
    LateSettlementFenced,
    SettlementRepeated,
    SettlementOfRemovedJob,
    TakenAfterSilence,
    HandlersOverlap,
    RenewalAfterLapse,
    RenewalLost,
    LateReportFenced,
    DeafHandlerCancelled,
    GivenBackUnbegun,
    GivenBackWhileStopping,
    UniqueConflictReturned,
    UniqueConflictRefused,
    UniqueConflictReplaced,
    UnknownEnqueueRepeated,
    Redone,
    RedoRefusedForKey,
    DeletedByOperator,
    EndedByLapse,
    StoreClockSteppedDuringLease,
    CrashedAtWork,
    FrozenAtWork,
    CutOffAtWork,
    BelieverStopped,
    Panicked,
    TimedOut,
    Undecodable,
    Pruned,
    LateRequestOfDeadHost,
}

impl Probe {
    /// All of them.
    pub const ALL: [Self; 29] = [
        Self::LateSettlementFenced,
        Self::SettlementRepeated,
        Self::SettlementOfRemovedJob,
        Self::TakenAfterSilence,
        Self::HandlersOverlap,
        Self::RenewalAfterLapse,
        Self::RenewalLost,
        Self::LateReportFenced,
        Self::DeafHandlerCancelled,
        Self::GivenBackUnbegun,
        Self::GivenBackWhileStopping,
        Self::UniqueConflictReturned,
        Self::UniqueConflictRefused,
        Self::UniqueConflictReplaced,
        Self::UnknownEnqueueRepeated,
        Self::Redone,
        Self::RedoRefusedForKey,
        Self::DeletedByOperator,
        Self::EndedByLapse,
        Self::StoreClockSteppedDuringLease,
        Self::CrashedAtWork,
        Self::FrozenAtWork,
        Self::CutOffAtWork,
        Self::BelieverStopped,
        Self::Panicked,
        Self::TimedOut,
        Self::Undecodable,
        Self::Pruned,
        Self::LateRequestOfDeadHost,
    ];

    /// What happens.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Self::LateSettlementFenced => "a late settlement was fenced off",
            Self::SettlementRepeated => "a settlement was repeated after its reply was lost",
            Self::SettlementOfRemovedJob => "a settlement came for a job that had been removed",
            Self::TakenAfterSilence => "a job was taken from a holder that was silent past its lease",
            Self::HandlersOverlap => "two handlers of one job were at work at once",
            Self::RenewalAfterLapse => "a renewal after the lapse was refused",
            Self::RenewalLost => "a renewal learned that the job is somebody else's",
            Self::LateReportFenced => "a late report was fenced off",
            Self::DeafHandlerCancelled => "a job was cancelled whose handler did not listen",
            Self::GivenBackUnbegun => "a job that was reserved ahead was given back",
            Self::GivenBackWhileStopping => "a job at work was given back because its host stopped",
            Self::UniqueConflictReturned => "a unique conflict named the job that is there",
            Self::UniqueConflictRefused => "a unique conflict refused a batch",
            Self::UniqueConflictReplaced => "a unique conflict replaced a waiting job",
            Self::UnknownEnqueueRepeated => "an enqueueing of unknown outcome was repeated and stored once",
            Self::Redone => "a finished job was done again",
            Self::RedoRefusedForKey => "a redo was refused because another job holds the key",
            Self::DeletedByOperator => "an operator deleted a job",
            Self::EndedByLapse => "a lapse ended a job whose attempts were spent",
            Self::StoreClockSteppedDuringLease => "the store's clock stepped while a job was held",
            Self::CrashedAtWork => "a host crashed with handlers at work",
            Self::FrozenAtWork => "a host froze with handlers at work",
            Self::CutOffAtWork => "a host was cut off with handlers at work",
            Self::BelieverStopped => "a handler was told that it has lost its job",
            Self::Panicked => "a handler panicked",
            Self::TimedOut => "a handler took longer than its timeout",
            Self::Undecodable => "args could not be read",
            Self::Pruned => "finished jobs were pruned",
            Self::LateRequestOfDeadHost => "a request of a dead host arrived",
        }
    }
}

/// How often each probe was hit, and what is needed to know it.
#[derive(Debug, Default)]
pub(crate) struct Probes {
    pub(crate) hits: BTreeMap<Probe, u64>,
    at_work: BTreeMap<u64, BTreeSet<(Who, Fence)>>,
    held: BTreeMap<u64, (Who, Fence)>,
    begun: BTreeSet<(u64, Fence)>,
    known: BTreeMap<JobId, Vec<Cause>>,
    dead: BTreeSet<Who>,
    stopping: BTreeSet<Who>,
}

impl Probes {
    pub(crate) fn hit(&mut self, probe: Probe) {
        *self.hits.entry(probe).or_default() += 1;
    }

    /// Takes note of what happened.
    pub(crate) fn see(&mut self, entry: &Entry) {
        if self.dead.contains(&entry.who) && is_request(&entry.what) {
            self.hit(Probe::LateRequestOfDeadHost);
        }
        self.see_jobs(entry);
        self.see_world(entry);
    }

    fn see_jobs(&mut self, entry: &Entry) {
        if let What::Granted(grant) = &entry.what
            && self.held.insert(grant.seq, (entry.who, grant.fence)).is_some()
        {
            self.hit(Probe::TakenAfterSilence);
        }
        if let What::Renewed { answer, .. } = &entry.what {
            match answer {
                Renewed::Until(_) => {}
                Renewed::Lapsed => self.hit(Probe::RenewalAfterLapse),
                Renewed::Lost => self.hit(Probe::RenewalLost),
            }
        }
        if let What::Settled { seq, fence, next, answer, .. } = &entry.what {
            self.settled(entry.who, (*seq, *fence), *next, *answer);
        }
        if let What::Reported { kept: false, .. } = &entry.what {
            self.hit(Probe::LateReportFenced);
        }
        if let What::Began { seq, fence, .. } = &entry.what {
            self.begun.insert((*seq, *fence));
            let at_work = self.at_work.entry(*seq).or_default();
            at_work.insert((entry.who, *fence));
            if at_work.len() > 1 {
                self.hit(Probe::HandlersOverlap);
            }
        }
        if let What::Left { seq, fence, .. } = &entry.what
            && let Some(at_work) = self.at_work.get_mut(seq)
        {
            at_work.remove(&(entry.who, *fence));
        }
        entry.what.rows().iter().for_each(|row| self.row(row));
    }

    fn see_world(&mut self, entry: &Entry) {
        if let What::Stored { accepted, .. } = &entry.what {
            match accepted {
                Accepted::New(_) => {}
                Accepted::Repeated(_) => self.hit(Probe::UnknownEnqueueRepeated),
                Accepted::Existing(_) => self.hit(Probe::UniqueConflictReturned),
                Accepted::Replaced { .. } => self.hit(Probe::UniqueConflictReplaced),
            }
        }
        if let What::Refused(Refusal::KeyHeld(_)) = &entry.what {
            self.hit(Probe::UniqueConflictRefused);
        }
        if let What::Changed { change, outcome, .. } = &entry.what {
            match (change, outcome) {
                (Changing::Redo, ChangeOutcome::Done) => self.hit(Probe::Redone),
                (Changing::Redo, ChangeOutcome::RefusedKeyHeld(_)) => self.hit(Probe::RedoRefusedForKey),
                (Changing::Delete, ChangeOutcome::Done) => self.hit(Probe::DeletedByOperator),
                (Changing::Cancel(_) | Changing::Redo | Changing::Delete | Changing::Place, _) => {}
            }
        }
        if let What::Pruned(jobs) = &entry.what
            && *jobs > 0
        {
            self.hit(Probe::Pruned);
        }
        if let What::StoreStepped(_) = &entry.what
            && !self.held.is_empty()
        {
            self.hit(Probe::StoreClockSteppedDuringLease);
        }
        if let What::StopAsked { .. } = &entry.what {
            self.stopping.insert(entry.who);
        }
        if let What::Trouble { why, begins: true } = &entry.what {
            self.trouble(entry.who, *why);
        }
    }

    fn settled(&mut self, who: Who, owned: (u64, Fence), next: tenure_core::Next, answer: Settled) {
        match answer {
            Settled::Done(_) => {
                self.held.remove(&owned.0);
                let is_release = is_release(next);
                if is_release && !self.begun.contains(&owned) {
                    self.hit(Probe::GivenBackUnbegun);
                } else if is_release && self.stopping.contains(&who) {
                    self.hit(Probe::GivenBackWhileStopping);
                }
            }
            Settled::Repeated => self.hit(Probe::SettlementRepeated),
            Settled::Fenced => self.hit(Probe::LateSettlementFenced),
            Settled::Gone => self.hit(Probe::SettlementOfRemovedJob),
        }
    }

    fn row(&mut self, row: &Row) {
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
            Cause::Deaf => self.hit(Probe::DeafHandlerCancelled),
            Cause::Panic => self.hit(Probe::Panicked),
            Cause::TimedOut => self.hit(Probe::TimedOut),
            Cause::Undecodable => self.hit(Probe::Undecodable),
            Cause::Lost if row.end().is_some() => self.hit(Probe::EndedByLapse),
            Cause::Lost
            | Cause::Error
            | Cause::Unstorable
            | Cause::UnknownKind
            | Cause::Cancelled
            | Cause::Deliveries => {}
        }
    }

    fn trouble(&mut self, who: Who, why: Why) {
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
            self.hit(probe);
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
