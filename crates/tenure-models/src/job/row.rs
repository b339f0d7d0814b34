//! The row of a job, with instants as what is left until them.

use tenure_core::{Block, End};

/// The row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Row {
    /// Where the job stands.
    pub place: Place,
    /// Attempts spent, the running one included.
    pub attempt: u16,
    /// Grants so far.
    pub delivery: u16,
    /// The number of its last ownership.
    pub fence: u16,
    /// If somebody wants it to stop: how many ticks its holder still has.
    pub cancel: Option<u8>,
}

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// It waits, for so many ticks at least.
    Waiting {
        /// Ticks.
        due: u8,
    },
    /// It waits for something else than time.
    Blocked {
        /// For what.
        on: Block,
        /// Ticks until it was to be due.
        due: u8,
    },
    /// A host has it.
    Running {
        /// Which.
        host: u8,
        /// How many ticks are left; none if it has lapsed.
        left: u8,
    },
    /// It has ended.
    Finished(End),
}

/// What a host knows of its grant: what the proof of it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Own {
    /// The number of the ownership.
    pub fence: u16,
    /// Which attempt it is.
    pub attempt: u16,
    /// Which grant it is; this tells one ownership from another even if a bug gives both the same fence.
    pub delivery: u16,
}

/// What a host says of its run, without the particulars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Saying {
    /// The job is done.
    Succeeded,
    /// It cannot be done.
    Failed,
    /// Try again.
    Retry,
    /// Call again later.
    Snoozed,
    /// Given back.
    Released,
    /// It stopped because somebody asked.
    Cancelled,
}

impl Row {
    /// A job that was just accepted, due in so many ticks.
    #[must_use]
    pub fn accepted(due: u8) -> Self {
        Self { place: Place::Waiting { due }, attempt: 0, delivery: 0, fence: 0, cancel: None }
    }

    /// The row so many ticks later.
    #[must_use]
    pub fn later(mut self, ticks: u8) -> Self {
        match &mut self.place {
            Place::Waiting { due } | Place::Blocked { due, .. } => *due = due.saturating_sub(ticks),
            Place::Running { left, .. } => *left = left.saturating_sub(ticks),
            Place::Finished(_) => {}
        }
        self.cancel = self.cancel.map(|left| left.saturating_sub(ticks));
        self
    }

    /// Takes the holder's name off the row; answers it.
    pub fn forget_host(&mut self) -> Option<u8> {
        let Place::Running { host, .. } = &mut self.place else { return None };
        Some(std::mem::take(host))
    }

    /// Whether it has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        matches!(self.place, Place::Finished(_))
    }

    /// Whether a host has it, as far as anybody has noticed.
    #[must_use]
    pub fn is_running(&self) -> bool {
        matches!(self.place, Place::Running { .. })
    }

    /// Whether this is the present ownership.
    #[must_use]
    pub fn is_owned_under(&self, own: Own) -> bool {
        self.is_running() && self.delivery == own.delivery
    }
}

impl Saying {
    /// All.
    pub const ALL: [Self; 6] =
        [Self::Succeeded, Self::Failed, Self::Retry, Self::Snoozed, Self::Released, Self::Cancelled];

    /// All that handlers say whether or not they were asked to stop.
    pub const OF_RUNS: [Self; 5] =
        [Self::Succeeded, Self::Failed, Self::Retry, Self::Snoozed, Self::Released];

    /// Whether an attempt that ends so is given back, not spent.
    #[must_use]
    pub fn gives_back(self) -> bool {
        match self {
            Self::Snoozed | Self::Released => true,
            Self::Succeeded | Self::Failed | Self::Retry | Self::Cancelled => false,
        }
    }
}

impl Ord for Place {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Place {
    fn key(self) -> (u8, u8, u8) {
        match self {
            Self::Waiting { due } => (0, due, 0),
            Self::Blocked { on, due } => (1, due, on as u8),
            Self::Running { host, left } => (2, left, host),
            Self::Finished(end) => (3, end as u8, 0),
        }
    }
}
