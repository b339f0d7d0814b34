//! What can be done with jobs. Batches everywhere.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{
    CancelRequest, Due, Edit, Fence, HostId, JobId, Kind, LogLine, NewJob, Priority, Progress, QueueName,
    Reserved, Settlement, StateName, Timestamp,
};

use crate::{Answer, Cursor, Filter, Rewrite};

/// The life of jobs.
///
/// Jobs come in checked against the limits. Each call takes effect wholly or, if it faults, not at
/// all or unknown ([`crate::Fault::Unknown`]); repeating a call whose outcome is unknown is harmless.
pub trait Jobs {
    /// Stores a batch, or nothing of it. What is acknowledged survives. A job may wait for jobs that are
    /// there and for earlier ones of its batch. A job that says nothing of its own takes what its queue says. A queue
    /// whose depth is bounded never takes more jobs from this call than may wait in it; one that takes the place of a
    /// waiting job comes in all the same, and so do the jobs of timers.
    fn enqueue(&self, batch: Vec<NewJob>) -> Answer<'_, Enqueued>;

    /// Grants due jobs to a holder: of each wanted queue in the order of (priority, round, due, acceptance),
    /// the queues in the order of the wants. A job whose lease has lapsed is due again. No limit is ever
    /// exceeded, and of the jobs of an ordering key one runs at a time, in their order.
    fn reserve(&self, ask: Reserve) -> Answer<'_, Reservation>;

    /// Extends reservations that have not lapsed, and tells the holder what it has lost and what it
    /// shall stop.
    fn renew(&self, ask: Renew) -> Answer<'_, Vec<Renewal>>;

    /// Ends reservations, each under its own fence, then reserves. One round trip.
    fn settle(&self, settlements: Vec<Settlement>, then: Option<Reserve>) -> Answer<'_, Turn>;

    /// Keeps progress and log lines of running attempts, each under its own fence.
    fn report(&self, reports: Vec<Report>) -> Answer<'_, Vec<Reported>>;

    /// Replaces stored values of jobs with another form, such as under another key, and returns for each if it was
    /// replaced. A value is replaced only if it is still the one that the caller has read. The values mean the same, so
    /// no fencing token is needed, and nothing else about the job changes. At most
    /// [`limits::REWRITES`](tenure_core::limits::REWRITES) values.
    fn rewrite(&self, rewrites: Vec<Rewrite>) -> Answer<'_, Vec<bool>>;

    /// Changes the selected jobs, each by itself; a bounded number of them.
    fn change(&self, change: Change, selection: Selection) -> Answer<'_, Changed>;

    /// Takes a bounded step of what time alone brings: ends that others wait for, lapsed reservations, jobs
    /// that came due, limits that have room again, finished jobs whose retention is over, hosts that fell
    /// silent, lapsed leases of which the ledger does not tell yet (in the order of their instants and
    /// names). Correctness needs none of it. Those that join a line by it do so in this order, and those
    /// that came due by due time and acceptance: it decides about their rounds, where share keys do.
    fn tend(&self) -> Answer<'_, Tended>;
}

/// What came of enqueueing a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Enqueued {
    /// All of it is durable; one answer a job, in order.
    Stored(Vec<Accepted>),
    /// Nothing of it was stored, because of this job.
    Refused {
        /// Its place in the batch.
        index: usize,
        /// Why.
        refusal: Refusal,
    },
}

/// The result of enqueueing one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepted {
    /// The job was stored.
    New(JobId),
    /// The same job had been enqueued before under the same ID.
    Repeated(JobId),
    /// Another job holds the unique key; this is its ID.
    Existing(JobId),
    /// The job replaced a waiting one, which was cancelled.
    Replaced {
        /// The new job.
        id: JobId,
        /// The cancelled job.
        old: JobId,
    },
}

impl Accepted {
    /// Returns the ID of the stored or existing job.
    #[must_use]
    pub fn id(self) -> JobId {
        match self {
            Self::New(id) | Self::Repeated(id) | Self::Existing(id) | Self::Replaced { id, .. } => id,
        }
    }
}

/// The reason for which a job was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The ID belongs to a job with another kind or other args.
    IdTaken(JobId),
    /// This job holds the unique key.
    KeyHeld(JobId),
    /// This dependency does not exist.
    NoSuchJob(JobId),
    /// The queue has reached its maximum depth.
    QueueFull {
        /// The maximum depth.
        most: u64,
    },
}

/// Who wants which jobs.
#[derive(Debug, Clone, PartialEq)]
pub struct Reserve {
    /// The holder.
    pub holder: HostId,
    /// For how long at first.
    pub ttl: Duration,
    /// From which queues, the first served first.
    pub wants: Vec<Want>,
    /// How many in all.
    pub at_most: usize,
}

/// What is wanted of one queue.
#[derive(Debug, Clone, PartialEq)]
pub struct Want {
    /// The queue.
    pub queue: QueueName,
    /// Of which kinds. A job of another kind is left for a worker that knows it.
    pub kinds: Kinds,
    /// How many.
    pub at_most: usize,
}

/// Which kinds a worker takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kinds {
    /// Any.
    All,
    /// Only these.
    Only(Arc<[Kind]>),
}

impl Kinds {
    /// Whether a job of this kind is taken.
    #[must_use]
    pub fn take(&self, kind: &Kind) -> bool {
        match self {
            Self::All => true,
            Self::Only(kinds) => kinds.contains(kind),
        }
    }
}

/// What was granted.
#[derive(Debug, PartialEq, Default)]
pub struct Reservation {
    /// The jobs, in the order in which they shall start.
    pub jobs: Vec<Reserved>,
    /// In how long the store expects something to become due or to have room. A hint: it may be early. How long and
    /// not when, since the caller may have another clock. It counts from when the store granted, so whoever waits
    /// counts it from when the request was sent: a late answer makes no later look.
    pub due_in: Option<Duration>,
}

/// One ownership, as its holder names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// The job.
    pub id: JobId,
    /// Its place in the order of acceptance: where its store finds it fastest.
    pub seq: u64,
    /// The number of the ownership.
    pub fence: Fence,
}

/// A wish to go on holding.
#[derive(Debug, Clone, PartialEq)]
pub struct Renew {
    /// For how long from now.
    pub ttl: Duration,
    /// What.
    pub held: Vec<Held>,
}

/// What came of one renewal.
#[derive(Debug, Clone, PartialEq)]
pub enum Renewal {
    /// It is held for longer.
    Held(Holds),
    /// It had lapsed before the renewal came; nobody has taken it yet, but it is not held any more.
    Lapsed,
    /// It is not this holder's: taken, settled, or gone.
    Lost,
}

/// An extended ownership.
#[derive(Debug, Clone, PartialEq)]
pub struct Holds {
    /// Until when, by the store's clock.
    pub until: Timestamp,
    /// A wish that the holder stop.
    pub cancel: Option<CancelRequest>,
}

/// What came of one settlement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// It is written. The job is in this state when all settlements of the call are written: one that waits
    /// again may be blocked.
    Done(StateName),
    /// This ownership had been settled before: the reply to that was lost, or it was sent twice.
    Repeated,
    /// The job was taken from this holder, which may write nothing about it any more.
    Fenced,
    /// There is no such job any more.
    Gone,
}

/// What came of settling and reserving in one round trip.
#[derive(Debug, PartialEq, Default)]
pub struct Turn {
    /// One answer a settlement, in order.
    pub settled: Vec<Settled>,
    /// What was granted after that.
    pub reservation: Reservation,
}

/// What a running attempt tells.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The ownership under which it is told.
    pub held: Held,
    /// How far it has come, if that is new.
    pub progress: Option<Progress>,
    /// What it logged. Lines that are there already are not kept twice; those without a number
    /// ([`LogLine::NEXT`]) are kept each time they are told, behind what is there.
    pub lines: Vec<LogLine>,
}

/// What came of one report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reported {
    /// It is kept, as far as the limits allow.
    Kept,
    /// The job is not this holder's any more; nothing was kept.
    Fenced,
}

/// What somebody wants changed.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// End it: at once if it waits; if it runs, its holder is asked and has the grace to stop.
    Cancel {
        /// How long the holder has.
        grace: Duration,
        /// Why.
        reason: String,
    },
    /// Do a finished job again, with all its attempts.
    Redo,
    /// Remove a job that is not running.
    Delete,
    /// Let a waiting job wait in another queue.
    Move(QueueName),
    /// Change a waiting job's place in line.
    Reprioritise(Priority),
    /// Change when a waiting job is due.
    Reschedule(Due),
    /// Change several things about a waiting job at once.
    Edit(Box<Edit>),
}

/// What else an [edit](Change::Edit) comes to beside its terms, one after the other. Its time comes last: what is due may be
/// claimed.
pub fn parts(edit: &Edit) -> impl Iterator<Item = Change> + use<> {
    let queue = edit.queue.clone().map(Change::Move);
    let parts = [queue, edit.priority.map(Change::Reprioritise), edit.due.map(Change::Reschedule)];
    parts.into_iter().flatten()
}

/// Which jobs a change is for.
#[allow(clippy::large_enum_variant, reason = "one is made for a call, and never many")]
#[derive(Debug, Clone, PartialEq)]
pub enum Selection {
    /// These.
    Ids(Vec<JobId>),
    /// A bounded number of those that the filter means, oldest first, behind the cursor.
    Matching {
        /// The filter.
        filter: Filter,
        /// Where to go on.
        after: Option<Cursor>,
    },
}

/// What came of a change.
#[derive(Debug, Clone, PartialEq)]
pub struct Changed {
    /// One answer a job.
    pub outcomes: Vec<(JobId, ChangeOutcome)>,
    /// Where to go on with a filter; `None` at its end.
    pub next: Option<Cursor>,
}

/// The result of changing one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeOutcome {
    /// Changed.
    Done,
    /// The job is running, and was asked to stop.
    Asked,
    /// The job was already in the requested state.
    Already,
    /// The job is running, and the change requires that it is not.
    RefusedRunning,
    /// The job has finished, and the change requires that it waits.
    RefusedFinished,
    /// The job has not finished, and only a finished job can be retried.
    RefusedUnfinished,
    /// Another job holds its unique key.
    RefusedKeyHeld(JobId),
    /// The job has changed since it was read.
    RefusedChanged,
    /// A row of the job cannot be read.
    RefusedUnreadable,
    /// The job does not exist.
    NotFound,
}

/// What a step of tending did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tended {
    /// Reservations taken from holders that fell silent or did not stop.
    pub lapsed: usize,
    /// Jobs that came due, and jobs that wait for no others any more: they go on, or are cancelled.
    pub due: usize,
    /// Finished jobs removed.
    pub pruned: usize,
    /// Whether a bound stopped it: call again.
    pub more: bool,
}
