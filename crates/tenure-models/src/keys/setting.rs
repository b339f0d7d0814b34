//! How large a model of keys is, and which bug is planted in it.

use tenure_core::Head;

use super::{Bug, MOST_JOBS, Probe, Promise};
use crate::job::{self, Saying};

/// What a search of the states of jobs with one key ranges over. Every number is a bound, and the search is complete
/// within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// How many jobs share the key, up to [`MOST_JOBS`].
    pub jobs: usize,
    /// In how many ticks each of them is due, in the order of their acceptance.
    pub dues: [u8; MOST_JOBS],
    /// What they share.
    pub key: Shared,
    /// How each of them is held, tried again and cancelled.
    pub each: job::Setting,
    /// The bug that is planted, if one is.
    pub bug: Option<Bug>,
}

/// What jobs share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shared {
    /// A limit: so many run at once.
    Limit {
        /// How many.
        most: u32,
    },
    /// An ordering key, and what each of them does to those behind it while it waits for an instant.
    Order {
        /// In the order of their acceptance.
        heads: [Head; MOST_JOBS],
    },
}

impl Setting {
    /// Three jobs, of which two run at once.
    #[must_use]
    pub fn limit() -> Self {
        Self {
            jobs: 3,
            dues: [0, 0, 1, 0],
            key: Shared::Limit { most: 2 },
            each: job::Setting {
                lease: 1,
                deliveries: 2,
                sayings: &[Saying::Succeeded],
                ..job::Setting::small()
            },
            bug: None,
        }
    }

    /// Three jobs that run one after the other; what a waiting one does to the others is told for each.
    #[must_use]
    pub fn order(heads: [Head; MOST_JOBS]) -> Self {
        let limit = Self::limit();
        let each = job::Setting { sayings: &[Saying::Succeeded, Saying::Retry], ..limit.each };
        Self { key: Shared::Order { heads }, each, ..limit }
    }

    /// The searches of every test run. Cancelling is in the one of both kinds.
    #[must_use]
    pub fn usual() -> Vec<(&'static str, Self)> {
        let mixed = [Head::StepAside, Head::Block, Head::StepAside, Head::Block];
        let blocks = Self::order([Head::Block; MOST_JOBS]);
        let undisturbed = job::Setting { grace: None, ..blocks.each };
        vec![
            ("a limit", Self::limit()),
            ("an ordering key that blocks", Self { each: undisturbed, ..blocks }),
            ("an ordering key of both kinds", Self::order(mixed)),
        ]
    }

    /// Searches that take minutes.
    #[must_use]
    pub fn large() -> Vec<(&'static str, Self)> {
        vec![("an ordering key that blocks", Self::order([Head::Block; MOST_JOBS]))]
    }

    /// Searches that take an hour.
    #[must_use]
    pub fn deep() -> Vec<(&'static str, Self)> {
        let mixed = [Head::StepAside, Head::Block, Head::StepAside, Head::Block];
        let limit = Self::limit();
        let retried = job::Setting { sayings: &[Saying::Succeeded, Saying::Retry], ..limit.each };
        let order = Self::order(mixed);
        vec![
            ("a limit, and jobs that are tried again", Self { each: retried, ..limit }),
            ("a limit with four jobs", Self { jobs: MOST_JOBS, ..limit }),
            ("an ordering key that steps aside", Self::order([Head::StepAside; MOST_JOBS])),
            (
                "an ordering key with long leases",
                Self { each: job::Setting { lease: 2, ..order.each }, ..order },
            ),
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
        let mut probes = vec![Probe::SlotCameBack, Probe::StaleSettlementRefused, Probe::AllEnded];
        match self.key {
            Shared::Limit { .. } => probes.extend([Probe::LimitFull, Probe::CameDueWithoutRoom]),
            Shared::Order { heads } => {
                let heads = &heads[..self.jobs];
                probes.push(Probe::WaitedForItsTurn);
                if self.each.grace.is_some() {
                    probes.push(Probe::TurnPassedByCancelling);
                }
                if heads.contains(&Head::Block) {
                    probes.push(Probe::HeadBlocked);
                }
                if heads.contains(&Head::StepAside) {
                    probes.push(Probe::SteppedAside);
                }
            }
        }
        probes
    }

    /// Whether a promise is asked for: with a bug planted, only those that the bug is planted for.
    #[must_use]
    pub fn asks_for(&self, promise: Promise) -> bool {
        self.bug.is_none_or(|bug| bug.breaks().contains(&promise))
    }
}
