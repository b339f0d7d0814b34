//! How large a model of a timer is, and which bug is planted in it.

use std::time::Duration;

use tenure_core::{CatchUp, OnEdit, Overlap, Policies};

use super::{Bug, Probe, Promise};

/// Slots of the first schedule that a search ranges over, and minutes that the store's clock goes through.
pub const SLOTS: usize = 6;
/// The last minute, and the last slot.
pub const LAST: u8 = 6;

/// What a search of the states of a timer ranges over. Every number is a bound, and the search is complete within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// What was agreed.
    pub policies: Policies,
    /// How often a job is started before it is given up.
    pub starts: u8,
    /// Whether the store's clock steps, by two minutes either way.
    pub clock_steps: bool,
    /// Whether programs of a second version start, which declare another schedule.
    pub edits: bool,
    /// Whether people pause it and let it go on.
    pub pauses: bool,
    /// Whether somebody asks for a job, once.
    pub triggers: bool,
    /// The bug that is planted, if one is.
    pub bug: Option<Bug>,
}

impl Setting {
    /// What is agreed if nothing is: the latest of missed slots, and none beside another.
    #[must_use]
    pub fn latest() -> Self {
        Self {
            policies: Policies::default(),
            starts: 2,
            clock_steps: true,
            edits: true,
            pauses: true,
            triggers: false,
            bug: None,
        }
    }

    /// Up to two missed slots, of which one waits.
    #[must_use]
    pub fn queue() -> Self {
        let catch_up = CatchUp::All { most: 2 };
        let policies = Policies { catch_up, overlap: Overlap::QueueOne, ..Policies::default() };
        Self { policies, triggers: true, starts: 1, ..Self::latest() }
    }

    /// Two beside each other, none of them late by more than two minutes.
    #[must_use]
    pub fn beside() -> Self {
        let policies = Policies {
            catch_up: CatchUp::All { most: 3 },
            max_lateness: Some(Duration::from_secs(120)),
            overlap: Overlap::Allow { most: 2 },
            ..Policies::default()
        };
        Self { policies, starts: 1, ..Self::latest() }
    }

    /// Nothing is caught up with, each job takes the place of the one before, and edits drop what has passed.
    #[must_use]
    pub fn cancel() -> Self {
        let policies = Policies {
            catch_up: CatchUp::Skip,
            overlap: Overlap::CancelPrevious,
            on_edit: OnEdit::Drop,
            ..Policies::default()
        };
        Self { policies, starts: 1, ..Self::latest() }
    }

    /// The searches of every test run.
    #[must_use]
    pub fn usual() -> Vec<(&'static str, Self)> {
        vec![
            ("the latest of missed slots", Self::latest()),
            ("two missed slots, one waits", Self::queue()),
            ("two beside each other", Self::beside()),
            ("each takes the place of the one before", Self::cancel()),
        ]
    }

    /// Larger searches.
    #[must_use]
    pub fn deep() -> Vec<(&'static str, Self)> {
        let all = |setting| Self { starts: 2, pauses: true, triggers: true, ..setting };
        vec![
            ("the latest of missed slots, and triggers", all(Self::latest())),
            ("two missed slots, one waits, with all wishes", all(Self::queue())),
            ("two beside each other, with all wishes", all(Self::beside())),
            ("each takes the place of the one before, with all wishes", all(Self::cancel())),
        ]
    }

    /// The same with a bug planted.
    #[must_use]
    pub fn with(self, bug: Bug) -> Self {
        Self { bug: Some(bug), ..self }
    }

    /// Whether this bug is planted.
    #[must_use]
    pub fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    /// What has to occur in a search of this kind.
    #[must_use]
    pub fn probes(&self) -> Vec<Probe> {
        let mut probes = vec![Probe::SlotsWereMissed, Probe::HolderDied];
        if self.clock_steps {
            probes.push(Probe::ClockWentBack);
        }
        if self.edits {
            probes.extend([Probe::EditedLate, Probe::OldProgramStarted]);
        }
        let Policies { catch_up, max_lateness, overlap, .. } = self.policies;
        match overlap {
            Overlap::Skip | Overlap::QueueOne | Overlap::Allow { .. } => probes.push(Probe::SkippedBusy),
            Overlap::QueueAll => {}
            Overlap::CancelPrevious => probes.push(Probe::AskedToStop),
        }
        if catch_up == CatchUp::One {
            probes.push(Probe::StoodForOthers);
        }
        if catch_up == CatchUp::Skip || max_lateness.is_some() {
            probes.push(Probe::TooLate);
        }
        if self.pauses {
            probes.push(Probe::PassedInAPause);
        }
        if self.triggers {
            probes.push(Probe::Triggered);
        }
        probes
    }

    /// Whether a promise is asked for: with a bug planted, only those that the bug is planted for.
    #[must_use]
    pub fn asks_for(&self, promise: Promise) -> bool {
        self.bug.is_none_or(|bug| bug.breaks().contains(&promise))
    }
}
