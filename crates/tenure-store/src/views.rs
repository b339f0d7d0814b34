//! Looking: never through a lock, a scan or a count of all jobs.

use std::fmt;

use serde::Serialize;
use tenure_core::{
    Args, Attempt, Job, JobId, Key, Kind, Limit, LogLine, Meter, QueueAgreed, QueueName, QueueTerms,
    Standing, StateName, Timestamp,
};

use crate::{Answer, Cursor, Fault, FaultCause, Filter, ListedBy, Order, Sizes};

/// A request for a page of jobs.
#[derive(Debug, Clone, PartialEq)]
pub struct PageAsk {
    /// The jobs.
    pub filter: Filter,
    /// The sort key.
    pub by: ListedBy,
    /// The sort order.
    pub order: Order,
    /// Position to continue after, in a listing with the same sort key; `None` for the start.
    pub after: Option<Cursor>,
    /// Maximum number of jobs.
    pub at_most: usize,
    /// Args and results: read, or omitted.
    pub values: Values,
}

/// The args and results of listed jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Values {
    /// They are read.
    #[default]
    Read,
    /// They are empty. A caller that only counts jobs spares the store their bytes.
    Omitted,
}

impl Default for PageAsk {
    /// The newest hundred of all jobs.
    fn default() -> Self {
        Self {
            filter: Filter::default(),
            by: ListedBy::default(),
            order: Order::default(),
            after: None,
            at_most: 100,
            values: Values::default(),
        }
    }
}

/// A page of jobs.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// The jobs. If no index serves the filter, a page may be short or empty although more follow.
    pub jobs: Vec<Job>,
    /// Jobs that cannot be read and that the filter does not rule out; see [`PAGE_UNREADABLE`](tenure_core::limits::PAGE_UNREADABLE).
    pub unreadable: Vec<UnreadableJob>,
    /// Position of the next page; `None` at the end.
    pub next: Option<Cursor>,
    /// Number of rows that the store examined for the page. A page may end after few rows if they are large.
    pub examined: usize,
}

/// A job with a row that this program cannot read. All other jobs are unaffected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnreadableJob {
    /// Its place in the order of acceptance.
    pub seq: u64,
    /// Its ID, if that can be read.
    pub id: Option<JobId>,
    /// Its queue, if that can be read.
    pub queue: Option<QueueName>,
    /// Its kind, if that can be read.
    pub kind: Option<Kind>,
    /// The column that cannot be read, and the reason. The text may quote stored data.
    pub reason: String,
}

impl Page {
    /// Returns the page with these values.
    #[must_use]
    pub fn with(mut self, values: Values) -> Self {
        if values == Values::Omitted {
            for job in &mut self.jobs {
                (job.args, job.output) = (Args::stored(b""), None);
            }
        }
        self
    }

    /// Returns the page, unless it has an unreadable job: for callers that must not pass over any job.
    ///
    /// # Errors
    /// The first job of the page that cannot be read.
    pub fn complete(self) -> Result<Self, Fault> {
        match self.unreadable.first() {
            Some(unreadable) => {
                Err(Fault::Unavailable(format!("{}: {unreadable}", FaultCause::UnreadableData.as_str())))
            }
            None => Ok(self),
        }
    }
}

impl fmt::Display for UnreadableJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.id {
            Some(id) => write!(f, "job {id}: {}", self.reason),
            None => write!(f, "job number {}: {}", self.seq, self.reason),
        }
    }
}

/// The number of jobs of one kind in one queue and state, from maintained counters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Count {
    /// The queue.
    pub queue: QueueName,
    /// The kind.
    pub kind: Kind,
    /// The state.
    pub state: StateName,
    /// The number of jobs.
    pub jobs: u64,
}

/// A queue as shown to users.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QueueInfo {
    /// Its name.
    pub name: QueueName,
    /// `true` if it is paused.
    pub paused: bool,
    /// Due time of its oldest due job, or its arrival in the queue if that is later; `None` if no job is due.
    pub oldest_due: Option<Timestamp>,
    /// The limit on its running jobs and starts.
    pub limit: Limit,
    /// The maximum number of waiting jobs, and the defaults of jobs that set none.
    pub terms: QueueTerms,
}

impl QueueInfo {
    /// What was agreed about it.
    #[must_use]
    pub fn agreed(&self) -> QueueAgreed {
        QueueAgreed { paused: self.paused, limit: self.limit, terms: self.terms.clone() }
    }
}

/// What is to become of a queue. What is not said stays.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct QueueEdit {
    /// How it has to be for that.
    pub seen: QueueSeen,
    /// Whether it hands out no jobs.
    pub paused: Option<bool>,
    /// The limit of all its jobs together.
    pub limit: Option<Limit>,
    /// How many jobs may wait in it, and what holds for those that say nothing of their own.
    pub terms: Option<QueueTerms>,
}

/// How a queue has to be for something to be done with it.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum QueueSeen {
    /// Anyhow, or not at all.
    #[default]
    Anything,
    /// There has to be none of this name.
    Absent,
    /// So it has to be agreed.
    As(QueueAgreed),
}

/// What came of an edit.
#[derive(Debug, Clone, PartialEq)]
pub enum QueueEdited {
    /// It is so now.
    Done {
        /// What was agreed before; `None` if there was no queue of this name.
        before: Option<QueueAgreed>,
    },
    /// It is not as it was seen: so it is agreed, or there is none if `None`. Nothing was done.
    Otherwise(Option<QueueAgreed>),
}

/// What came of removing a queue.
#[derive(Debug, Clone, PartialEq)]
pub enum QueueRemoved {
    /// It is gone, and what was agreed about it.
    Done,
    /// There are jobs in it, waiting, running or ended.
    NotEmpty,
    /// It is not as it was seen: so it is agreed, or there is none if `None`.
    Otherwise(Option<QueueAgreed>),
}

impl QueueSeen {
    /// Whether a queue is as it has to be, if this was agreed about it; `None` if there is none.
    #[must_use]
    pub fn is(&self, agreed: Option<&QueueAgreed>) -> bool {
        match self {
            Self::Anything => true,
            Self::Absent => agreed.is_none(),
            Self::As(seen) => agreed == Some(seen),
        }
    }
}

impl QueueEdited {
    /// Returns true if the edit was done and changed the queue.
    fn differed(self, is_different: impl FnOnce(QueueAgreed) -> bool) -> bool {
        match self {
            Self::Done { before } => is_different(before.unwrap_or_default()),
            Self::Otherwise(_) => false,
        }
    }
}

impl QueueEdit {
    /// What is agreed when this is done.
    #[must_use]
    pub fn after(&self, before: QueueAgreed) -> QueueAgreed {
        QueueAgreed {
            paused: self.paused.unwrap_or(before.paused),
            limit: self.limit.unwrap_or(before.limit),
            terms: self.terms.clone().unwrap_or(before.terms),
        }
    }
}

/// The limit of a limit key as shown to users. It exists while a job uses it or while it is set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LimitInfo {
    /// The key.
    pub key: Key,
    /// The limit and its usage.
    pub meter: Meter,
    /// `true` if it was set separately; otherwise it is the number of the latest job.
    pub set: bool,
    /// Number of queued jobs, for which there is room.
    pub queued: u64,
    /// Number of jobs blocked by the limit.
    pub blocked: u64,
}

/// A page of limits.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct LimitPage {
    /// Limits by key.
    pub limits: Vec<LimitInfo>,
    /// Key to continue after; `None` at the end.
    pub next: Option<Key>,
}

/// What there is to see.
pub trait Views {
    /// Returns a job. For an unreadable job, the fault has the cause [`FaultCause::UnreadableData`].
    fn job(&self, id: JobId) -> Answer<'_, Option<Job>>;

    /// A page of jobs. It looks at a bounded number of rows. A job that cannot be read hides no other.
    fn jobs(&self, ask: PageAsk) -> Answer<'_, Page>;

    /// The attempts of a job, oldest first, the running one included. The oldest make room for new
    /// ones beyond a limit.
    fn attempts(&self, id: JobId) -> Answer<'_, Vec<Attempt>>;

    /// Log lines of a job behind `(delivery, number)`, in order.
    fn logs(&self, id: JobId, behind: (u32, u32), at_most: usize) -> Answer<'_, Vec<LogLine>>;

    /// All counters that are not zero. A job counts as scheduled until a turn has found it due.
    fn counts(&self) -> Answer<'_, Vec<Count>>;

    /// Every queue that was ever named, and not removed since, by name.
    fn queues(&self) -> Answer<'_, Vec<QueueInfo>>;

    /// What surrounds a job: all that explains why it is not running.
    fn standing(&self, id: JobId) -> Answer<'_, Option<Standing>>;

    /// Pauses or resumes a queue. Returns true if that changed it. Running jobs continue.
    fn set_paused(&self, queue: &QueueName, paused: bool) -> Answer<'_, bool> {
        let edited = self.edit_queue(queue, QueueEdit { paused: Some(paused), ..QueueEdit::default() });
        Box::pin(async move { Ok(edited.await?.differed(|before| before.paused != paused)) })
    }

    /// Limits the jobs of a queue. Returns true if that changed it. Running jobs continue.
    fn set_queue_limit(&self, queue: &QueueName, limit: Limit) -> Answer<'_, bool> {
        let edited = self.edit_queue(queue, QueueEdit { limit: Some(limit), ..QueueEdit::default() });
        Box::pin(async move { Ok(edited.await?.differed(|before| before.limit != limit)) })
    }

    /// Changes what was agreed about a queue, in one step with the look at how it is. What runs goes on, and what waits
    /// stays, however many may wait from now on. A queue that is not there is made.
    fn edit_queue(&self, queue: &QueueName, edit: QueueEdit) -> Answer<'_, QueueEdited>;

    /// Removes a queue in which no job is, in one step with the look at how it is. It is there again, as a new one, as soon
    /// as somebody names it.
    fn remove_queue(&self, queue: &QueueName, seen: QueueSeen) -> Answer<'_, QueueRemoved>;

    /// Returns the limit of a key, if it is set or a job that has not ended has the key.
    fn limit(&self, key: &Key) -> Answer<'_, Option<LimitInfo>>;

    /// A page of limits, by key.
    fn limits(&self, behind: Option<Key>, at_most: usize) -> Answer<'_, LimitPage>;

    /// Sets the limit of a key, whatever its jobs say; or lets them say again.
    fn set_limit(&self, key: &Key, limit: Option<Limit>) -> Answer<'_, ()>;

    /// Returns the disk space that the store uses; nothing if it keeps nothing on disk.
    fn sizes(&self) -> Answer<'_, Sizes>;
}

#[cfg(test)]
mod tests {
    use tenure_core::Condition;

    use super::*;

    #[test]
    fn only_a_condition_on_args_needs_values() {
        let arg = Condition::Arg { path: vec!["card".to_owned()], value: "1".into() };
        let nested = Condition::Not(Box::new(Condition::OneOf(vec![Condition::Own, arg.clone()])));
        for (condition, values) in [
            (arg, Values::Read),
            (nested, Values::Read),
            (Condition::Owner("shop".to_owned()), Values::Omitted),
        ] {
            let filter = Filter { conditions: vec![condition], ..Filter::default() };
            assert_eq!(filter.values_needed(), values);
        }
    }
}
