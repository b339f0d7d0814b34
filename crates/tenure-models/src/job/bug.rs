//! Counterexamples that others made, or that somebody will want to make: each has to be found.

use super::{Promise, Setting};

/// A bug that can be planted in the model of jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// A settlement names the job alone, as in Oban #1496.
    SettlesById,
    /// A settlement asks whether the job runs, but not whose run it is, as in River.
    SettlesByState,
    /// Whoever looks for silent holders writes later what it decided, whatever happened since, as in River #1302.
    NoticesByHearsay,
    /// The same, met by a host that was granted the job meanwhile.
    TakesByHearsay,
    /// An attempt is counted when it fails, not when it begins: a job that kills its host is never counted.
    CountsFailuresOnly,
    /// A settlement asks for the fence, but not whether it has been written before.
    SettlesTwice,
    /// Taking a job from a silent holder leaves its fence as it is.
    LapseKeepsTheFence,
    /// Taking a job from a holder that did not stop leaves its fence as it is.
    CancelKeepsTheFence,
    /// A renewal names the job alone.
    RenewsById,
    /// Nobody looks for silent holders, as in Oban without its Lifeline.
    NeverNotices,
    /// A job whose holder fell silent waits again, however often that happened.
    LapseForgetsTheLimit,
    /// Giving back has no limit.
    GivesBackForEver,
    /// An effect names the job alone.
    EffectsById,
    /// The same, seen by what the effects are on.
    EffectsComeLate,
    /// A job that is to stop is tried again.
    ForgetsTheWish,
    /// The fence begins again at the first with each attempt that is asked for.
    RedoResetsTheFence,
}

impl Bug {
    /// All.
    pub const ALL: [Self; 16] = [
        Self::SettlesById,
        Self::SettlesByState,
        Self::NoticesByHearsay,
        Self::TakesByHearsay,
        Self::CountsFailuresOnly,
        Self::SettlesTwice,
        Self::LapseKeepsTheFence,
        Self::CancelKeepsTheFence,
        Self::RenewsById,
        Self::NeverNotices,
        Self::LapseForgetsTheLimit,
        Self::GivesBackForEver,
        Self::EffectsById,
        Self::EffectsComeLate,
        Self::ForgetsTheWish,
        Self::RedoResetsTheFence,
    ];

    /// The promises that it is planted for: it breaks one of them.
    #[must_use]
    pub fn breaks(self) -> &'static [Promise] {
        match self {
            Self::SettlesById => &[Promise::EndedIsFinal],
            Self::SettlesByState => &[Promise::SettledUnderThePresentFence],
            Self::NoticesByHearsay | Self::SettlesTwice => &[Promise::EndedIsFinal],
            Self::TakesByHearsay => &[Promise::OnlyTheSilentLose],
            Self::CountsFailuresOnly | Self::LapseForgetsTheLimit => &[Promise::AttemptsAreBounded],
            Self::LapseKeepsTheFence | Self::CancelKeepsTheFence => &[Promise::RepeatedIsTrue],
            Self::RenewsById => &[Promise::OwnerRenews],
            Self::NeverNotices => &[Promise::EndsOrStaysClaimable],
            Self::GivesBackForEver => &[Promise::DeliveriesAreBounded],
            Self::EffectsById => &[Promise::EffectsUnderThePresentFence],
            Self::EffectsComeLate => &[Promise::EffectsInOrder],
            Self::ForgetsTheWish => &[Promise::AskedToStopDoesNotWait],
            Self::RedoResetsTheFence => &[Promise::FencesGrow],
        }
    }

    /// A small search in which it shows.
    #[must_use]
    pub fn setting(self) -> Setting {
        let small = Setting::small();
        match self {
            Self::GivesBackForEver => Setting { attempts: 3, deliveries: 2, ..small },
            Self::RedoResetsTheFence => Setting { redos: 1, ..small },
            Self::EffectsComeLate => Setting { effects: 2, ..small },
            Self::SettlesById
            | Self::SettlesByState
            | Self::NoticesByHearsay
            | Self::TakesByHearsay
            | Self::CountsFailuresOnly
            | Self::SettlesTwice
            | Self::LapseKeepsTheFence
            | Self::CancelKeepsTheFence
            | Self::RenewsById
            | Self::NeverNotices
            | Self::LapseForgetsTheLimit
            | Self::EffectsById
            | Self::ForgetsTheWish => small,
        }
        .with(self)
    }
}
