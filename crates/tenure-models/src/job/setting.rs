//! How large a model of a job is, and which bug is planted in it.

use super::{Bug, Probe, Promise, Saying};

/// What a search of one job's states ranges over. Every number is a bound, and the search is complete within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// Hosts that want the job, up to [`super::MOST_HOSTS`].
    pub hosts: usize,
    /// For how many ticks it is taken at a time.
    pub lease: u8,
    /// How many ticks it waits before it is tried again.
    pub backoff: u8,
    /// Attempts that its terms allow.
    pub attempts: u16,
    /// Grants that its terms allow.
    pub deliveries: u16,
    /// How its handlers' runs may go.
    pub sayings: &'static [Saying],
    /// For how long a holder may go on when somebody cancels the job; nobody does if `None`.
    pub grace: Option<u8>,
    /// How often it is done again after its end.
    pub redos: u8,
    /// How many requests are under way at once, those included that nobody waits for any more.
    pub in_flight: usize,
    /// How many of them nobody waits for any more.
    pub late: usize,
    /// How many effects are under way at once.
    pub effects: usize,
    /// The bug that is planted, if one is.
    pub bug: Option<Bug>,
}

impl Setting {
    /// Three hosts and a job that is cancelled now and then: what other settings are changes of.
    #[must_use]
    pub fn small() -> Self {
        Self {
            hosts: 3,
            lease: 2,
            backoff: 1,
            attempts: 2,
            deliveries: 3,
            sayings: &[Saying::Succeeded, Saying::Retry, Saying::Released],
            grace: Some(1),
            redos: 0,
            in_flight: 2,
            late: 1,
            effects: 1,
            bug: None,
        }
    }

    /// The searches of every test run: each is about one of the [`Self::large`], with fewer hosts or grants.
    #[must_use]
    pub fn usual() -> Vec<(&'static str, Self)> {
        let small = Self::small();
        vec![
            ("all together, two grants", Self { deliveries: 2, ..small }),
            ("late requests", Self { hosts: 2, effects: 0, ..small }),
            ("effects", Self { hosts: 2, late: 0, ..small }),
            ("all verdicts", Self { sayings: &Saying::OF_RUNS, late: 0, effects: 0, ..small }),
            ("done again", Self { hosts: 2, redos: 1, late: 0, effects: 0, ..small }),
        ]
    }

    /// Searches that take minutes.
    #[must_use]
    pub fn large() -> Vec<(&'static str, Self)> {
        let small = Self::small();
        vec![
            ("late requests", Self { effects: 0, ..small }),
            ("effects", Self { late: 0, ..small }),
            ("all verdicts", Self { sayings: &Saying::OF_RUNS, late: 0, effects: 0, deliveries: 4, ..small }),
            ("done again", Self { redos: 1, late: 0, effects: 0, ..small }),
        ]
    }

    /// Searches that take an hour.
    #[must_use]
    pub fn deep() -> Vec<(&'static str, Self)> {
        let small = Self::small();
        vec![
            ("all together", small),
            ("all verdicts and late requests", Self { sayings: &Saying::OF_RUNS, effects: 0, ..small }),
            ("done again, with late requests", Self { redos: 1, effects: 0, ..small }),
            ("many effects", Self { effects: 2, late: 0, ..small }),
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

    /// What has to occur in a search of this size.
    #[must_use]
    pub fn probes(&self) -> Vec<Probe> {
        let mut probes = vec![
            Probe::Noticed,
            Probe::DoneByAnother,
            Probe::SettlementFenced,
            Probe::LateSettlementCounted,
            Probe::SettlementRepeated,
            Probe::StaleRenewalRefused,
            Probe::LapsedRenewalRefused,
            Probe::SilentTooOften,
        ];
        let says = |saying| self.sayings.contains(&saying);
        if says(Saying::Released) || says(Saying::Snoozed) {
            probes.push(Probe::GrantedTooOften);
        }
        if self.late > 0 {
            probes.push(Probe::GhostGranted);
        }
        if self.effects > 0 {
            probes.push(Probe::StaleEffectRefused);
        }
        if self.grace.is_some() {
            probes.extend([
                Probe::CancelledWaiting,
                Probe::TakenFromTheDeaf,
                Probe::ToldToStop,
                Probe::DoneThoughCancelled,
            ]);
        }
        if self.redos > 0 {
            probes.push(Probe::DoneAgain);
        }
        probes
    }

    /// Whether a promise is asked for: with a bug planted, only those that the bug is planted for.
    #[must_use]
    pub fn asks_for(&self, promise: Promise) -> bool {
        self.bug.is_none_or(|bug| bug.breaks().contains(&promise))
    }
}
