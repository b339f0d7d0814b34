//! Counterexamples that others made, or that somebody will want to make: each has to be found.

use tenure_core::Head;

use super::{Promise, Setting};

/// A bug that can be planted in the model of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// A slot comes back when its job is settled, but not when its holder fell silent.
    SlotFreedBySettlingOnly,
    /// A settlement that is refused gives a slot back all the same.
    SlotFreedByAnyone,
    /// A slot counts as free once the time of its holder is over, before anybody has noticed.
    SlotFreedByTime,
    /// The room is looked up before the grant, not in it.
    RoomSeenBefore,
    /// A job that comes due is handed out without being asked about its gates.
    ClaimsWhatCameDue,
    /// The turn goes on when the job that has it goes to wait, though it blocks those behind it.
    TurnPassesTooSoon,
    /// The turn goes on when the time of its holder is over, before anybody has noticed.
    TurnPassesByTime,
    /// A job that is cancelled while it waits keeps its turn.
    TurnStaysWithTheEnded,
    /// What an end makes room for is never told.
    EndsAreNotPassedOn,
    /// The turn goes to the job that is due first, not to the one that was accepted first.
    TurnGoesByDueTime,
}

impl Bug {
    /// All.
    pub const ALL: [Self; 10] = [
        Self::SlotFreedBySettlingOnly,
        Self::SlotFreedByAnyone,
        Self::SlotFreedByTime,
        Self::RoomSeenBefore,
        Self::ClaimsWhatCameDue,
        Self::TurnPassesTooSoon,
        Self::TurnPassesByTime,
        Self::TurnStaysWithTheEnded,
        Self::EndsAreNotPassedOn,
        Self::TurnGoesByDueTime,
    ];

    /// The promises that it is planted for: it breaks one of them.
    #[must_use]
    pub fn breaks(self) -> &'static [Promise] {
        match self {
            Self::SlotFreedBySettlingOnly | Self::SlotFreedByAnyone => &[Promise::SlotsAreCounted],
            Self::SlotFreedByTime | Self::RoomSeenBefore => &[Promise::WithinTheLimit],
            Self::ClaimsWhatCameDue | Self::TurnPassesByTime => &[Promise::OneAtATime],
            Self::TurnPassesTooSoon | Self::TurnGoesByDueTime => &[Promise::InOrder],
            Self::TurnStaysWithTheEnded => &[Promise::WaitsForAReason],
            Self::EndsAreNotPassedOn => &[Promise::AllEnd],
        }
    }

    /// A small search in which it shows.
    #[must_use]
    pub fn setting(self) -> Setting {
        let order = |head| Setting::order([head; super::MOST_JOBS]);
        let setting = match self {
            Self::SlotFreedBySettlingOnly
            | Self::SlotFreedByAnyone
            | Self::SlotFreedByTime
            | Self::RoomSeenBefore
            | Self::EndsAreNotPassedOn => Setting::limit(),
            Self::ClaimsWhatCameDue | Self::TurnPassesByTime => order(Head::StepAside),
            Self::TurnPassesTooSoon | Self::TurnStaysWithTheEnded => order(Head::Block),
            Self::TurnGoesByDueTime => Setting { dues: [1, 0, 0, 0], ..order(Head::Block) },
        };
        setting.with(self)
    }
}
