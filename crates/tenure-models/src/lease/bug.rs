//! Counterexamples that others made, or that somebody will want to make: each has to be found.

use super::{Promise, Setting};

/// A bug that can be planted in the model of leases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// The deadline counts from the arrival of the answer, not from the sending of the request.
    CountsFromTheAnswer,
    /// A holder keeps back less than its clock may be wrong.
    KeepsBackTooLittle,
    /// A holder believes until it is told otherwise.
    BelievesUntilTold,
    /// The holder's clock stands still while its machine sleeps.
    ClockSleepsWithTheMachine,
    /// The lease is given back while the work still runs.
    ReleasesBeforeTheWorkEnds,
    /// A renewal names the lease, but not the ownership.
    RenewsWithoutFence,
    /// A release names the lease, but not the ownership.
    ReleasesWithoutFence,
    /// The row goes with the release, and the count of its fences with it.
    DeletesTheRowOnRelease,
    /// The next fence is one more than the greatest of those that hold something.
    CountsLiveRowsOnly,
    /// An acquisition whose reply was lost is refused when it is repeated: its own first try stands in its way.
    RefusesItsOwnHolder,
    /// An acquisition that is repeated is granted anew, and the first grant is lost.
    GrantsTheSameTwice,
    /// Whoever has left comes back under the id with which it left: a late copy of its leaving takes what it has now.
    ComesBackUnderTheSameId,
    /// A renewal that comes too late counts if nobody came.
    RenewsWhatHasLapsed,
    /// A lease has no end.
    LastsForEver,
    /// An effect in the store names the party, but not the ownership.
    EffectsNameThePartyOnly,
    /// The resource does not look at fences.
    ResourceIgnoresFences,
    /// Whoever takes over trusts the store's clock, and one believer is promised all the same.
    TakesOverByStoreTime,
    /// Whoever takes over has watched the fence, but not whether it was renewed.
    WatchesTheFenceOnly,
    /// A holder keeps back for its own clock, but not for the one by which it is watched.
    KeepsBackForOneClock,
}

impl Bug {
    /// All.
    pub const ALL: [Self; 19] = [
        Self::CountsFromTheAnswer,
        Self::KeepsBackTooLittle,
        Self::BelievesUntilTold,
        Self::ClockSleepsWithTheMachine,
        Self::ReleasesBeforeTheWorkEnds,
        Self::RenewsWithoutFence,
        Self::ReleasesWithoutFence,
        Self::DeletesTheRowOnRelease,
        Self::CountsLiveRowsOnly,
        Self::RefusesItsOwnHolder,
        Self::GrantsTheSameTwice,
        Self::ComesBackUnderTheSameId,
        Self::RenewsWhatHasLapsed,
        Self::LastsForEver,
        Self::EffectsNameThePartyOnly,
        Self::ResourceIgnoresFences,
        Self::TakesOverByStoreTime,
        Self::WatchesTheFenceOnly,
        Self::KeepsBackForOneClock,
    ];

    /// The promises that it is planted for: it breaks one of them.
    #[must_use]
    pub fn breaks(self) -> &'static [Promise] {
        match self {
            Self::CountsFromTheAnswer
            | Self::KeepsBackTooLittle
            | Self::BelievesUntilTold
            | Self::ClockSleepsWithTheMachine
            | Self::ReleasesBeforeTheWorkEnds
            | Self::ComesBackUnderTheSameId
            | Self::TakesOverByStoreTime
            | Self::WatchesTheFenceOnly
            | Self::KeepsBackForOneClock => &[Promise::OneBeliever],
            Self::RenewsWithoutFence | Self::ReleasesWithoutFence => &[Promise::OwnerOnly],
            Self::CountsLiveRowsOnly => &[Promise::FencesGrow],
            Self::RefusesItsOwnHolder => &[Promise::NotInItsOwnWay],
            Self::GrantsTheSameTwice => &[Promise::OneGrant],
            Self::RenewsWhatHasLapsed => &[Promise::LapsedStaysLapsed],
            Self::LastsForEver => &[Promise::ComesFree],
            Self::EffectsNameThePartyOnly => &[Promise::EffectsUnderThePresentFence],
            Self::DeletesTheRowOnRelease | Self::ResourceIgnoresFences => &[Promise::EffectsInOrder],
        }
    }

    /// A small search in which it shows.
    #[must_use]
    pub fn setting(self) -> Setting {
        let small = Setting::small();
        let watched = Setting { parties: 2, late: 0, effects: 0, ..Setting::watched() };
        match self {
            Self::DeletesTheRowOnRelease | Self::ResourceIgnoresFences => Setting { effects: 2, ..small },
            Self::TakesOverByStoreTime | Self::WatchesTheFenceOnly | Self::KeepsBackForOneClock => watched,
            Self::CountsFromTheAnswer
            | Self::KeepsBackTooLittle
            | Self::BelievesUntilTold
            | Self::ClockSleepsWithTheMachine
            | Self::ReleasesBeforeTheWorkEnds
            | Self::RenewsWithoutFence
            | Self::ReleasesWithoutFence
            | Self::CountsLiveRowsOnly
            | Self::EffectsNameThePartyOnly
            | Self::RefusesItsOwnHolder
            | Self::GrantsTheSameTwice
            | Self::ComesBackUnderTheSameId
            | Self::RenewsWhatHasLapsed
            | Self::LastsForEver => small,
        }
        .with(self)
    }
}
