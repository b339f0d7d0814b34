//! A state of the timer's model: its row, the records of its slots, its jobs, and the store's clock.

use super::setting::SLOTS;

/// Jobs: one a slot, and one that somebody asks for.
pub const JOBS: usize = SLOTS + 1;

/// All that matters for what can happen next. Instants are minutes since the timer was set; slot 1 is at minute 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct State {
    /// The store's clock.
    pub clock: u8,
    /// The timer.
    pub row: Row,
    /// The record of each slot.
    pub records: [Option<Kept>; SLOTS],
    /// The job of each slot, and the one that somebody asked for.
    pub jobs: [Option<Place>; JOBS],
    /// Behind which minute the slots are those of the second schedule, once there is one.
    pub second_from: Option<u8>,
    /// What a host has decided and not written; only where that is the bug.
    pub thought: Option<Thought>,
    /// The promise that the last step broke.
    pub broken: Option<Promise>,
}

/// The row of the timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Row {
    /// Its next slot.
    pub next: Option<u8>,
    /// The last slot that was decided.
    pub decided: Option<u8>,
    /// Jobs that it has open, a bit each.
    pub open: u8,
    /// Whether it is paused.
    pub is_paused: bool,
    /// Whether the second schedule is in force.
    pub is_second: bool,
}

/// What the record of a slot says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kept {
    /// It got a job.
    Ran,
    /// A later one stands for it.
    Coalesced,
    /// It was skipped.
    Skipped,
}

/// Where a job is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// It waits to be started, for the first time or again.
    Waiting {
        /// How often it may still be started.
        starts: u8,
    },
    /// A host has it.
    Running {
        /// How often it may still be started.
        starts: u8,
        /// Whether it is to stop.
        stops: bool,
    },
    /// It has ended.
    Ended,
}

/// What a host read of the timer, and when: it decides by that, and writes later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Thought {
    /// The clock.
    pub clock: u8,
    /// The row.
    pub row: Row,
    /// The jobs that had not ended, a bit each.
    pub unfinished: u8,
}

impl Place {
    /// Whether it has not ended.
    #[must_use]
    pub fn is_open(self) -> bool {
        self != Self::Ended
    }

    /// Whether a host has it.
    #[must_use]
    pub fn is_running(self) -> bool {
        matches!(self, Self::Running { .. })
    }
}

impl State {
    /// Whether the schedule that is in force at this minute has a slot there: the first has one each minute, the
    /// second one every other minute.
    #[must_use]
    pub fn is_slot(&self, minute: u8) -> bool {
        self.second_from.is_none_or(|from| minute <= from) || minute.is_multiple_of(2)
    }

    /// The record of a slot.
    #[must_use]
    pub fn record(&self, slot: u8) -> Option<Kept> {
        self.records.get(usize::from(slot).checked_sub(1)?).copied().flatten()
    }

    /// The jobs that have not ended, a bit each.
    #[must_use]
    pub fn unfinished(&self) -> u8 {
        let bits = self.jobs.iter().enumerate().filter(|(_, job)| job.is_some_and(Place::is_open));
        bits.fold(0, |bits, (number, _)| bits | 1 << number)
    }
}

/// What is promised about a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Promise {
    /// No slot is decided twice.
    OneRecord,
    /// Nothing is missed in silence.
    NothingMissed,
    /// Slots are those of the schedule.
    NoneInvented,
    /// Records and jobs tell the same.
    JobsAreRecorded,
    /// What is caught up with is what was agreed.
    CatchesUpAsAgreed,
    /// What stands for others is there.
    SomethingStandsForIt,
    /// There are no more jobs than there is room for.
    WithinTheRoom,
    /// Jobs do not run beside one another unless that was agreed.
    OneAtATime,
    /// A new job asks the earlier ones to stop, if that was agreed.
    EarlierOnesStop,
    /// The timer never falls silent.
    GoesOn,
}

impl Promise {
    /// All.
    pub const ALL: [Self; 10] = [
        Self::OneRecord,
        Self::NothingMissed,
        Self::NoneInvented,
        Self::JobsAreRecorded,
        Self::CatchesUpAsAgreed,
        Self::SomethingStandsForIt,
        Self::WithinTheRoom,
        Self::OneAtATime,
        Self::EarlierOnesStop,
        Self::GoesOn,
    ];

    /// The promise in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::OneRecord => "each slot is decided once",
            Self::NothingMissed => "each slot before the next one has a record",
            Self::NoneInvented => "whatever has a record is a slot of the schedule",
            Self::JobsAreRecorded => "a slot that ran has a job, and a job has a slot that ran",
            Self::CatchesUpAsAgreed => "no more and no older slots are caught up with than was agreed",
            Self::SomethingStandsForIt => "behind coalesced slots comes the one that stands for them",
            Self::WithinTheRoom => "there are no more jobs than there is room for",
            Self::OneAtATime => "no more jobs run at once than was agreed",
            Self::EarlierOnesStop => "a new job asks the earlier ones to stop, if that was agreed",
            Self::GoesOn => "all slots are decided as soon as one healthy host works",
        }
    }
}
