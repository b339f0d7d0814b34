//! Counterexamples that others made, or that somebody will want to make: each has to be found.

use super::{Promise, Setting};

/// A bug that can be planted in the model of timers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// The next slot is written first, records and jobs in a second step.
    NextSlotFirst,
    /// The jobs are enqueued in a second step.
    JobsLater,
    /// Whoever fires writes later what it decided, whatever happened since.
    DecidesByHearsay,
    /// The slot of a job is the instant at which it was enqueued, as in many a `setInterval`.
    SlotIsNow,
    /// The schedule lives in the memory of a program, and begins anew when one starts, as in the ancestors.
    StartsFromNow,
    /// More than two missed slots are too many, and the timer stops, as the cron jobs of Kubernetes do at a hundred.
    GivesUp,
    /// Who changes the schedule does not decide what has passed.
    EditForgetsThePassed,
    /// Who ends a pause does not decide what passed in it.
    ResumeForgetsThePause,
    /// A job that waits to be started again is not counted among those that have not ended.
    CountsRunsOnly,
    /// The jobs of a timer have no ordering key: room was counted when they were enqueued.
    NoOrderingKey,
    /// A slot brings its job however late it is.
    ForgetsLateness,
    /// A program of an earlier version sets back what a later one declared.
    OldProgramWins,
    /// All missed slots are coalesced, and the last of them as well.
    CoalescesTheLast,
    /// Earlier jobs are not asked to stop.
    CancelsNobody,
}

impl Bug {
    /// All.
    pub const ALL: [Self; 14] = [
        Self::NextSlotFirst,
        Self::JobsLater,
        Self::DecidesByHearsay,
        Self::SlotIsNow,
        Self::StartsFromNow,
        Self::GivesUp,
        Self::EditForgetsThePassed,
        Self::ResumeForgetsThePause,
        Self::CountsRunsOnly,
        Self::NoOrderingKey,
        Self::ForgetsLateness,
        Self::OldProgramWins,
        Self::CoalescesTheLast,
        Self::CancelsNobody,
    ];

    /// The promises that it is planted for: it breaks one of them.
    #[must_use]
    pub fn breaks(self) -> &'static [Promise] {
        match self {
            Self::NextSlotFirst | Self::EditForgetsThePassed | Self::ResumeForgetsThePause => {
                &[Promise::NothingMissed]
            }
            Self::JobsLater => &[Promise::JobsAreRecorded],
            Self::DecidesByHearsay => &[Promise::OneRecord],
            Self::SlotIsNow | Self::StartsFromNow => &[Promise::NothingMissed, Promise::OneRecord],
            Self::GivesUp => &[Promise::GoesOn],
            Self::CountsRunsOnly => &[Promise::WithinTheRoom],
            Self::NoOrderingKey => &[Promise::OneAtATime],
            Self::ForgetsLateness => &[Promise::CatchesUpAsAgreed],
            Self::OldProgramWins => &[Promise::NoneInvented],
            Self::CoalescesTheLast => &[Promise::SomethingStandsForIt],
            Self::CancelsNobody => &[Promise::EarlierOnesStop],
        }
    }

    /// Whether deciding and writing are two steps.
    #[must_use]
    pub fn is_torn(self) -> bool {
        matches!(self, Self::NextSlotFirst | Self::JobsLater | Self::DecidesByHearsay)
    }

    /// A small search in which it shows.
    #[must_use]
    pub fn setting(self) -> Setting {
        let setting = match self {
            Self::NoOrderingKey => Setting::queue(),
            Self::ForgetsLateness => Setting::beside(),
            Self::CancelsNobody => Setting::cancel(),
            Self::NextSlotFirst
            | Self::JobsLater
            | Self::DecidesByHearsay
            | Self::SlotIsNow
            | Self::StartsFromNow
            | Self::GivesUp
            | Self::EditForgetsThePassed
            | Self::ResumeForgetsThePause
            | Self::CountsRunsOnly
            | Self::OldProgramWins
            | Self::CoalescesTheLast => Setting::latest(),
        };
        setting.with(self)
    }
}
