//! Probes: rare things that have to happen now and then, or the simulation proves nothing about them.

mod jobs;
mod keys;
mod leases;
mod timers;

use std::collections::BTreeMap;

use crate::history::Entry;

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
    LeaseTakenOver,
    LeaseBroken,
    LeaseRenewedLate,
    LeaseLapseRefused,
    KeptBackInLine,
    LeftTheLine,
    StaleOwnerRefused,
    StaleWriteRefused,
    WorkUnderLostLease,
    LetGoUnderWork,
    BlockedByJobs,
    BlockedByOrder,
    BlockedByLimit,
    SteppedAside,
    SpoiltByAnother,
    SlotBackByLapse,
    LimitChanged,
    TurnsTaken,
    WriterSucceeded,
    MessageTriedAgain,
    SingletonMoved,
    SlotFired,
    SlotFiredLate,
    SlotAfterLongOutage,
    SlotCoalesced,
    SlotSkippedBusy,
    SlotSkippedMissed,
    SlotSkippedTooMany,
    SlotSkippedTooLate,
    SlotSkippedPaused,
    SlotSkippedEdited,
    FiredByAnother,
    EditedWhileDue,
    EditedBehindTheClock,
    OutdatedTimer,
    RanOnStart,
    TimerTriggered,
    TriggerRefused,
    SlotBackfilled,
    TimerRemoved,
}

impl Probe {
    /// All of them.
    pub const ALL: [Self; 69] = [
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
        Self::LeaseTakenOver,
        Self::LeaseBroken,
        Self::LeaseRenewedLate,
        Self::LeaseLapseRefused,
        Self::KeptBackInLine,
        Self::LeftTheLine,
        Self::StaleOwnerRefused,
        Self::StaleWriteRefused,
        Self::WorkUnderLostLease,
        Self::LetGoUnderWork,
        Self::BlockedByJobs,
        Self::BlockedByOrder,
        Self::BlockedByLimit,
        Self::SteppedAside,
        Self::SpoiltByAnother,
        Self::SlotBackByLapse,
        Self::LimitChanged,
        Self::TurnsTaken,
        Self::WriterSucceeded,
        Self::MessageTriedAgain,
        Self::SingletonMoved,
        Self::SlotFired,
        Self::SlotFiredLate,
        Self::SlotAfterLongOutage,
        Self::SlotCoalesced,
        Self::SlotSkippedBusy,
        Self::SlotSkippedMissed,
        Self::SlotSkippedTooMany,
        Self::SlotSkippedTooLate,
        Self::SlotSkippedPaused,
        Self::SlotSkippedEdited,
        Self::FiredByAnother,
        Self::EditedWhileDue,
        Self::EditedBehindTheClock,
        Self::OutdatedTimer,
        Self::RanOnStart,
        Self::TimerTriggered,
        Self::TriggerRefused,
        Self::SlotBackfilled,
        Self::TimerRemoved,
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
            Self::LeaseTakenOver => "a lease was taken over that had lapsed or been broken",
            Self::LeaseBroken => "a lease was broken while somebody held it",
            Self::LeaseRenewedLate => "a lease was renewed late, and nobody had taken it",
            Self::LeaseLapseRefused => "a holder was refused because its lease had lapsed",
            Self::KeptBackInLine => "somebody was kept back for those who came before",
            Self::LeftTheLine => "a place in line was left",
            Self::StaleOwnerRefused => "somebody who had lost a lease was refused as its owner",
            Self::StaleWriteRefused => "a late write to what a lease guards was refused",
            Self::WorkUnderLostLease => "work under a lease went on after it had lost it",
            Self::LetGoUnderWork => "a lease was let go of while work under it ran",
            Self::BlockedByJobs => "a job was blocked by others that had to end first",
            Self::BlockedByOrder => "a job was blocked by its ordering key",
            Self::BlockedByLimit => "a job was blocked by its limit",
            Self::SteppedAside => "a job stepped aside, and another of its key ran",
            Self::SpoiltByAnother => "a job was cancelled because one that it waited for ended badly",
            Self::SlotBackByLapse => "a slot of a full limit came back by a lapse",
            Self::LimitChanged => "a limit was changed while jobs had its key",
            Self::TurnsTaken => "a job of one share key went before an earlier one of another",
            Self::WriterSucceeded => "another host went on with the messages of the single writer",
            Self::MessageTriedAgain => "a message was tried again in its place",
            Self::SingletonMoved => "a singleton went on on another host",
            Self::SlotFired => "a slot of a timer got its job",
            Self::SlotFiredLate => "a slot was fired late, after an outage",
            Self::SlotAfterLongOutage => "a slot was decided after an outage of minutes",
            Self::SlotCoalesced => "slots were coalesced into a later one",
            Self::SlotSkippedBusy => "a slot was skipped because an earlier job had not ended",
            Self::SlotSkippedMissed => "slots were skipped because they had been missed",
            Self::SlotSkippedTooMany => "slots were skipped because too many had been missed",
            Self::SlotSkippedTooLate => "slots were skipped because they were too late",
            Self::SlotSkippedPaused => "slots were skipped because their timer was paused",
            Self::SlotSkippedEdited => "slots were skipped because their schedule was changed",
            Self::FiredByAnother => "a host came for a slot that another host had just fired",
            Self::EditedWhileDue => "a timer was given another schedule while a slot was due",
            Self::EditedBehindTheClock => {
                "a timer was given another schedule after its clock had been put back"
            }
            Self::OutdatedTimer => "an older version of the program declared a timer in vain",
            Self::RanOnStart => "a timer fired because a program started",
            Self::TimerTriggered => "a job of a timer was asked for beside its schedule",
            Self::TriggerRefused => "a job of a timer was refused because others had not ended",
            Self::SlotBackfilled => "a job of a slot that had passed was asked for",
            Self::TimerRemoved => "a timer was removed while others fired",
        }
    }
}

/// How often each probe was hit.
#[derive(Debug, Default)]
pub(crate) struct Hits(pub(crate) BTreeMap<Probe, u64>);

impl Hits {
    fn hit(&mut self, probe: Probe) {
        *self.0.entry(probe).or_default() += 1;
    }
}

/// All that is needed to know when a probe is hit.
#[derive(Debug, Default)]
pub(crate) struct Probes {
    pub(crate) hits: Hits,
    jobs: jobs::JobProbes,
    leases: leases::LeaseProbes,
    keys: keys::KeyProbes,
    timers: timers::TimerProbes,
}

impl Probes {
    pub(crate) fn hit(&mut self, probe: Probe) {
        self.hits.hit(probe);
    }

    /// Takes note of what happened.
    pub(crate) fn see(&mut self, entry: &Entry) {
        self.jobs.see(entry, &mut self.hits);
        self.leases.see(entry, &mut self.hits);
        self.keys.see(entry, &mut self.hits);
        self.timers.see(entry, &mut self.hits);
    }
}
