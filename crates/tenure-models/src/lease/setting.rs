//! How large a model of leases is, and which bug is planted in it.

use super::{Bug, Probe, Promise};

/// What a search of the leases' states ranges over. Every number is a bound, and the search is complete within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// Programs that want the name, up to [`super::MOST_PARTIES`].
    pub parties: usize,
    /// For how many ticks the name is taken at a time.
    pub lease: u8,
    /// How many of those a holder does not believe in.
    pub kept_back: u8,
    /// By how many ticks a party's clock may go wrong in the time of one lease.
    pub drift: u8,
    /// How often the name is granted.
    pub grants: u8,
    /// How many requests are under way at once, those included that nobody waits for any more.
    pub in_flight: usize,
    /// How many of them nobody waits for any more.
    pub late: usize,
    /// How many effects are under way at once.
    pub effects: usize,
    /// Whether somebody breaks leases.
    pub breaks: bool,
    /// By how many ticks the store's clock steps forward or back, whenever it likes. It does not if zero.
    pub clock_steps: u8,
    /// When the name can be taken from a silent holder.
    pub takeover: Takeover,
    /// The bug that is planted, if one is.
    pub bug: Option<Bug>,
}

/// When a name can be taken from a silent holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takeover {
    /// When its time is over by the store's clock.
    ByStoreTime,
    /// When the one who takes it has seen by its own clock that nobody renewed it for as long as a lease lasts.
    /// The product does not offer this; the model shows what it would bring.
    Observed,
}

impl Setting {
    /// Three parties and nothing out of the ordinary: what other settings are changes of.
    #[must_use]
    pub fn small() -> Self {
        Self {
            parties: 3,
            lease: 3,
            kept_back: 1,
            drift: 1,
            grants: 3,
            in_flight: 2,
            late: 1,
            effects: 1,
            breaks: false,
            clock_steps: 0,
            takeover: Takeover::ByStoreTime,
            bug: None,
        }
    }

    /// Three parties that watch before they take over, whatever the store's clock does.
    #[must_use]
    pub fn watched() -> Self {
        let setting = Self::small();
        Self {
            lease: 4,
            kept_back: 2,
            late: 0,
            effects: 0,
            clock_steps: 2,
            takeover: Takeover::Observed,
            ..setting
        }
    }

    /// The searches of every test run: each is about one of the [`Self::large`], with less time or fewer grants or parties.
    #[must_use]
    pub fn usual() -> Vec<(&'static str, Self)> {
        let small = Self::small();
        let calm = Self { late: 0, effects: 2, drift: 0, kept_back: 0, grants: 2, lease: 2, ..small };
        vec![
            ("all together", Self { lease: 2, ..small }),
            ("long leases", Self { lease: 5, effects: 0, grants: 2, ..small }),
            (
                "many late requests",
                Self { parties: 2, late: 2, in_flight: 3, drift: 0, kept_back: 0, effects: 0, ..small },
            ),
            ("many effects", Self { lease: 2, late: 0, effects: 2, ..small }),
            ("broken leases", Self { breaks: true, ..calm }),
            ("broken leases and drift", Self { lease: 2, late: 0, effects: 0, breaks: true, ..small }),
            ("the store's clock steps", Self { clock_steps: 2, ..calm }),
            ("watched takeovers", Self { lease: 3, ..Self::watched() }),
        ]
    }

    /// Searches that take minutes.
    #[must_use]
    pub fn large() -> Vec<(&'static str, Self)> {
        let small = Self::small();
        let calm = Self { late: 0, effects: 2, drift: 0, kept_back: 0, grants: 2, ..small };
        vec![
            ("all together", small),
            ("long leases", Self { lease: 5, effects: 0, ..small }),
            (
                "many late requests",
                Self { late: 2, in_flight: 3, drift: 0, kept_back: 0, effects: 0, ..small },
            ),
            ("many effects", Self { late: 0, effects: 2, ..small }),
            ("broken leases", Self { breaks: true, ..calm }),
            ("broken leases and drift", Self { late: 0, effects: 0, breaks: true, ..small }),
            ("the store's clock steps", Self { clock_steps: 2, ..calm }),
            ("watched takeovers", Self::watched()),
        ]
    }

    /// Searches that take an hour.
    #[must_use]
    pub fn deep() -> Vec<(&'static str, Self)> {
        let small = Self::small();
        vec![
            ("all together, four grants", Self { grants: 4, ..small }),
            ("all together, long leases", Self { lease: 5, ..small }),
            ("many late requests and drift", Self { late: 2, in_flight: 3, ..small }),
            ("many effects and drift", Self { effects: 2, ..small }),
            ("broken leases and late requests", Self { breaks: true, ..small }),
            ("the store's clock steps, and drift", Self { clock_steps: 2, late: 0, effects: 2, ..small }),
            ("watched takeovers and effects", Self { effects: 1, ..Self::watched() }),
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

    /// For how many ticks of its own clock a holder believes, counted from the sending of its last good request.
    #[must_use]
    pub fn trust(&self) -> u8 {
        let forgotten = match self.bug {
            Some(Bug::KeepsBackTooLittle) => 1,
            Some(Bug::KeepsBackForOneClock) => self.drift,
            Some(_) | None => 0,
        };
        (self.lease + forgotten).saturating_sub(self.kept_back)
    }

    /// Whether one believer at most is promised. A store's clock that steps takes the promise away, unless whoever
    /// takes over has watched for itself.
    #[must_use]
    pub fn promises_one_believer(&self) -> bool {
        self.clock_steps == 0 || self.takeover == Takeover::Observed
    }

    /// What has to occur in a search of this size.
    #[must_use]
    pub fn probes(&self) -> Vec<Probe> {
        let mut probes =
            vec![Probe::HandedOver, Probe::TakenOver, Probe::LearnsOfItsGrant, Probe::AnswerTooLate];
        if self.late > 0 {
            probes.extend([Probe::GhostGranted, Probe::LeftWhatItHad]);
            probes.extend([Probe::StaleReleaseRefused, Probe::LostRenewalRefused]);
        }
        if self.effects > 0 {
            probes.push(Probe::StaleEffectRefused);
        }
        if self.effects > 1 {
            probes.push(Probe::StaleEffectRefusedOutside);
        }
        if self.drift > 0 {
            probes.push(Probe::SlowBeliever);
        }
        if self.breaks {
            probes.extend([Probe::BelievesThoughBroken, Probe::BrokenRenewalRefused]);
        }
        match self.takeover {
            Takeover::ByStoreTime => {
                probes.extend([Probe::TakenOverDuringRenewal, Probe::LateRenewalRefused]);
            }
            Takeover::Observed => probes.extend([Probe::WatcherTookOver, Probe::WatcherRefused]),
        }
        if !self.promises_one_believer() {
            probes.push(Probe::TwoBelieversByClock);
        }
        probes
    }

    /// Whether a promise is asked for: with a bug planted, only those that the bug is planted for.
    #[must_use]
    pub fn asks_for(&self, promise: Promise) -> bool {
        self.bug.is_none_or(|bug| bug.breaks().contains(&promise))
    }
}
