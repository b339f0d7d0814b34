//! What happened, as those saw it who are not the system under test: the history that is checked.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{
    Cause, End, Fence, JobId, Key, Kind, LeaseAct, LeaseId, LeaseName, LeaseOutcome, LedgerEntry, Limit,
    Name, NewTimer, Next, QueueName, SlotRecord, State, Terms, Timer, TimerSlot, Timestamp,
};
use tenure_store::{
    Accepted, ChangeOutcome, Count, LimitInfo, Refusal, Settled, TimerAct, TimerOutcome, TimerSet,
};

/// One host in one of its lives, or the world around the hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// Whoever makes the weather.
    World,
    /// A host.
    Host {
        /// Which.
        number: usize,
        /// Its how-manieth life: 0, 1, …
        life: u32,
    },
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// When, by the time that passes for all.
    pub at: Duration,
    /// When, by the store's clock.
    pub store_now: Timestamp,
    /// Who did it.
    pub who: Who,
    /// What.
    pub what: What,
}

/// What happened. Jobs are named by their place in the order of acceptance.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// A client is about to ask for a job, for the first time.
    Asks {
        /// Its number among all asks.
        ask: u64,
        /// The id that it gives the job, if it gives one.
        id: Option<JobId>,
    },
    /// A client was told that a job is stored.
    Told {
        /// The ask.
        ask: u64,
        /// What it was told.
        accepted: Accepted,
    },
    /// A client that waited for a job was told that it has ended.
    Waited {
        /// The job, as the client was told.
        row: Row,
    },
    /// The store accepted a job.
    Stored {
        /// The ask that its args name.
        ask: u64,
        /// Its place, if it is there.
        seq: Option<u64>,
        /// The terms that were asked for: the store's own record of them may be wrong.
        terms: Arc<Terms>,
        /// How.
        accepted: Accepted,
    },
    /// The store refused a batch.
    Refused(Refusal),
    /// The store granted a job.
    Granted(Grant),
    /// The store answered a renewal.
    Renewed {
        /// The job.
        seq: u64,
        /// The ownership.
        fence: Fence,
        /// The answer.
        answer: Renewed,
    },
    /// The store answered a settlement.
    Settled {
        /// The job.
        seq: u64,
        /// The ownership.
        fence: Fence,
        /// What should come of it.
        next: Next,
        /// The answer.
        answer: Settled,
        /// The fence that the job had after that.
        fence_then: Option<Fence>,
    },
    /// The store answered a report.
    Reported {
        /// The job.
        seq: u64,
        /// The ownership.
        fence: Fence,
        /// Whether it was kept.
        kept: bool,
    },
    /// The store answered a change.
    Changed {
        /// The job.
        id: JobId,
        /// What was wanted.
        change: Changing,
        /// The answer.
        outcome: ChangeOutcome,
    },
    /// The store answered that a queue is paused or not.
    Paused {
        /// The queue.
        queue: QueueName,
        /// Whether it is.
        paused: bool,
    },
    /// The store answered that a limit key has this limit from now on, or what its jobs say.
    LimitSet {
        /// The key.
        key: Key,
        /// The limit.
        limit: Option<Limit>,
    },
    /// The store answered that a queue has this limit from now on.
    QueueLimitSet {
        /// The queue.
        queue: QueueName,
        /// The limit.
        limit: Limit,
    },
    /// The store removed finished jobs.
    Pruned(usize),
    /// The store answered a wish about a lease.
    Leased(Leased),
    /// The store did something with timers.
    Timed(Timed),
    /// Somebody is about to ask for a job of a timer beside its schedule, under this id, whatever comes of it.
    Triggers(Name, JobId),
    /// What the ledger tells beyond what it told before.
    Ledger(Vec<LedgerEntry>),
    /// Somebody wrote to what a lease guards.
    Effect {
        /// The lease.
        name: LeaseName,
        /// The acquisition that the writer named.
        id: LeaseId,
        /// The ownership that the writer named.
        fence: Fence,
        /// Whether the write was taken.
        taken: bool,
    },
    /// A job was looked at in the store.
    Row(Row),
    /// At the instant of a grant the jobs were looked at that share a key or a limited queue with what was
    /// granted, and those that it waited for.
    Beside(Vec<Row>),
    /// All jobs in the store were looked at.
    Audit {
        /// All of them.
        rows: Vec<Row>,
        /// The counters at the same instant.
        counts: Vec<Count>,
        /// The limits at the same instant.
        limits: Vec<LimitInfo>,
    },
    /// A handler began.
    Began {
        /// The job.
        seq: u64,
        /// The ownership.
        fence: Fence,
        /// In which queue of its worker.
        queue: QueueName,
        /// Slots of that queue.
        slots: usize,
        /// Slots of the worker.
        all_slots: usize,
    },
    /// A handler at work believes that it holds its job.
    Believes {
        /// The job.
        seq: u64,
        /// The ownership.
        fence: Fence,
    },
    /// A handler at work knows that it has lost its job.
    KnowsLost {
        /// The job.
        seq: u64,
        /// The ownership.
        fence: Fence,
    },
    /// Work under a lease that the library holds.
    Work {
        /// The lease.
        name: LeaseName,
        /// The ownership.
        fence: Fence,
        /// How it stands.
        stands: Stands,
    },
    /// The single writer begins to write messages.
    Writes {
        /// Its lease.
        name: LeaseName,
        /// Its ownership of that.
        fence: Fence,
        /// The messages.
        seqs: Vec<u64>,
        /// The messages that came before the first of them and have not ended.
        before: Vec<u64>,
    },
    /// A handler ended or was dropped.
    Left {
        /// The job.
        seq: u64,
        /// The ownership.
        fence: Fence,
        /// Its queue.
        queue: QueueName,
        /// Whether it came to its end.
        done: bool,
    },
    /// A host sent a request.
    Called(&'static str),
    /// A host was given a fault instead of an answer, or an answer so late that it may be useless.
    Faulted(&'static str),
    /// A host began or ceased to be in a state in which it cannot be expected to hold anything.
    Trouble {
        /// Which.
        why: Why,
        /// Whether it begins.
        begins: bool,
    },
    /// The store's clock stepped by so many microseconds.
    StoreStepped(i64),
    /// A worker was told to stop.
    StopAsked {
        /// How long it may take.
        within: Duration,
    },
    /// A worker ended.
    Stopped {
        /// Whether it ended as it should.
        well: bool,
    },
    /// No more faults from here on.
    Healed,
    /// Everything should be done by now; this is not.
    Over {
        /// Jobs that have not ended, with the reason that the library gives.
        unfinished: Vec<(u64, String)>,
        /// Leases that somebody still waits for.
        waited: Vec<LeaseName>,
        /// Leases that are still held, though all who could hold one have gone.
        held: Vec<LeaseName>,
    },
}

/// Something that was done with timers, and what is new of their slots since.
#[derive(Debug, Clone, PartialEq)]
pub struct Timed {
    /// What was done.
    pub doing: TimerDoing,
    /// The records that are new: timer by timer, each in the order of its slots.
    pub slots: Vec<SlotSeen>,
}

/// What was done with timers.
#[derive(Debug, Clone, PartialEq)]
pub enum TimerDoing {
    /// What was ripe was decided.
    Fires,
    /// Timers were set.
    Sets {
        /// Which, and what came of each.
        timers: Vec<(Arc<NewTimer>, TimerSet)>,
        /// Whether a program starts that declares them.
        starts: bool,
    },
    /// Somebody wanted something of a timer.
    Changes {
        /// Which.
        name: Name,
        /// What.
        act: TimerAct,
        /// The answer.
        outcome: TimerOutcome,
    },
    /// Nothing: all timers and all records were looked at.
    Looks {
        /// The timers.
        timers: Vec<Timer>,
    },
}

/// A record of a slot, when it was seen first.
#[derive(Debug, Clone, PartialEq)]
pub struct SlotSeen {
    /// The record.
    pub record: SlotRecord,
    /// Its job as it lies in the store.
    pub job: Option<Row>,
    /// The jobs that the timer had brought before and that have not ended.
    pub unfinished: Vec<JobId>,
}

/// How work under a lease stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stands {
    /// It begins.
    Begins,
    /// It goes on, and believes that the lease is held.
    Believes,
    /// It knows that the lease is lost.
    KnowsLost,
    /// The holder lets go of the lease.
    LetsGo,
    /// It has ended, or was dropped.
    Ends,
}

/// Why a host cannot be expected to hold what it was granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// It crashed.
    Crashed,
    /// It is frozen.
    Frozen,
    /// It cannot reach the store.
    CutOff,
    /// Its worker is stopping.
    Stops,
}

/// A grant.
#[derive(Debug, Clone, PartialEq)]
pub struct Grant {
    /// The job.
    pub seq: u64,
    /// The number of the ownership.
    pub fence: Fence,
    /// Which attempt.
    pub attempt: u32,
    /// Which grant.
    pub delivery: u32,
    /// Attempts that are allowed.
    pub max_attempts: u32,
    /// From which queue.
    pub queue: QueueName,
    /// Until when, by the store's clock.
    pub until: Timestamp,
}

/// A wish about a lease, and its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Leased {
    /// The lease.
    pub name: LeaseName,
    /// The wish.
    pub act: LeaseAct,
    /// The answer.
    pub outcome: LeaseOutcome,
}

/// What a renewal was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewed {
    /// Held until then.
    Until(Timestamp),
    /// It had lapsed.
    Lapsed,
    /// It is not this holder's.
    Lost,
}

/// What somebody wanted changed, without its details.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changing {
    /// Its end, with so much grace.
    Cancel(Duration),
    /// To do it again.
    Redo,
    /// To remove it.
    Delete,
    /// Its queue, priority or due instant.
    Place,
}

/// A job as it lies in the store.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Its identity.
    pub id: JobId,
    /// Its place in the order of acceptance.
    pub seq: u64,
    /// The ask that its args name.
    pub ask: u64,
    /// Where it waits.
    pub queue: QueueName,
    /// Its kind.
    pub kind: Kind,
    /// Its state.
    pub state: State,
    /// The number of its last ownership.
    pub fence: Fence,
    /// Attempts spent.
    pub attempt: u32,
    /// Grants so far.
    pub delivery: u32,
    /// When it may be removed.
    pub expires: Option<Timestamp>,
    /// What last went wrong.
    pub cause: Option<Cause>,
    /// All else that was agreed.
    pub terms: Arc<Terms>,
}

impl Row {
    /// The slot of the timer that brought it, if one did.
    #[must_use]
    pub fn slot(&self) -> Option<&TimerSlot> {
        self.terms.slot.as_ref()
    }

    /// How it ended, if it has.
    #[must_use]
    pub fn end(&self) -> Option<(Timestamp, End)> {
        match self.state {
            State::Waiting { .. } | State::Blocked { .. } | State::Running { .. } => None,
            State::Finished { at, end } => Some((at, end)),
        }
    }
}

impl What {
    /// A job that is new, and its terms. Of one that was there already others count.
    pub(crate) fn newly_stored(&self) -> Option<(u64, &Terms)> {
        match self {
            Self::Stored {
                seq: Some(seq),
                terms,
                accepted: Accepted::New(_) | Accepted::Replaced { .. },
                ..
            } => Some((*seq, terms)),
            _ => None,
        }
    }

    /// The jobs that were looked at.
    pub(crate) fn rows(&self) -> &[Row] {
        match self {
            Self::Row(row) => std::slice::from_ref(row),
            Self::Beside(rows) | Self::Audit { rows, .. } => rows,
            _ => &[],
        }
    }

    /// Whether it tells something; idle requests are counted but not told.
    pub(crate) fn is_worth_a_line(&self) -> bool {
        !matches!(
            self,
            Self::Called(_)
                | Self::Believes { .. }
                | Self::Work { stands: Stands::Believes, .. }
                | Self::Audit { .. }
                | Self::Row(_)
                | Self::Beside(_)
                | Self::Ledger(_)
                | Self::Timed(Timed { doing: TimerDoing::Looks { .. }, .. })
        )
    }
}
