//! A job, before and after it is stored.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    CancelRequest, Due, Failure, Fence, HostId, Invalid, JobId, Kind, Priority, Progress, QueueName, State,
    Terms, Timestamp, invalid, json, limits,
};

/// The args of a job: JSON text, stored byte for byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Args(Arc<[u8]>);

/// The output of a job that succeeded.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Output {
    /// The result as JSON text; empty if there is none.
    pub value: Vec<u8>,
    /// The path of the resource that the job created, such as `/stars/7`.
    pub place: Option<String>,
}

/// A job that somebody wants to be done.
#[derive(Debug, Clone, PartialEq)]
pub struct NewJob {
    /// Its identity. Enqueueing the same id twice stores one job.
    pub id: JobId,
    /// Its type.
    pub kind: Kind,
    /// Where it waits.
    pub queue: QueueName,
    /// What its handler is given.
    pub args: Args,
    /// Its place among the due jobs of its queue.
    pub priority: Priority,
    /// When it becomes visible.
    pub due: Due,
    /// All else that was agreed.
    pub terms: Arc<Terms>,
}

/// A job as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Job ID.
    pub id: JobId,
    /// Position in the order of acceptance.
    pub seq: u64,
    /// Kind.
    pub kind: Kind,
    /// Queue.
    pub queue: QueueName,
    /// Args.
    pub args: Args,
    /// Priority among the due jobs of its queue.
    pub priority: Priority,
    /// Creation time.
    pub created: Timestamp,
    /// All other terms.
    pub terms: Arc<Terms>,
    /// State.
    pub state: State,
    /// Number of attempts, including the running one.
    pub attempt: u32,
    /// Number of deliveries, including the running one.
    pub delivery: u32,
    /// Latest fencing token.
    pub fence: Fence,
    /// Current or last host.
    pub holder: Option<HostId>,
    /// Start of the current or last attempt.
    pub started: Option<Timestamp>,
    /// Pending cancellation request.
    pub cancel: Option<CancelRequest>,
    /// Progress of the current or last attempt.
    pub progress: Option<Progress>,
    /// Last error.
    pub failure: Option<Failure>,
    /// Output.
    pub output: Option<Output>,
    /// Time at which it may be removed. It moves on while unfinished jobs depend on it.
    pub expires: Option<Timestamp>,
}

impl Args {
    /// First characters of args that a store with encryption holds.
    pub const ENCRYPTED: &str = "{\"$sealed\":\"VE5SR";

    /// Accepts encoded arguments.
    ///
    /// # Errors
    /// Refuses more than the limit, nesting that a parser would choke on, bytes that are no text, and the form of
    /// encrypted args: no worker could decrypt it, so the job would wait forever.
    pub fn new(json: impl Into<Arc<[u8]>>) -> Result<Self, Invalid> {
        let json = json.into();
        json::check("args", &json, limits::ARGS_BYTES)?;
        if json.starts_with(Self::ENCRYPTED.as_bytes()) {
            return Err(Invalid::new("args", "the form of encrypted args", "args in plain JSON"));
        }
        Ok(Self(json))
    }

    /// What a store has; it was checked when it came in.
    #[must_use]
    pub fn stored(json: &[u8]) -> Self {
        Self(json.into())
    }

    /// The JSON text.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Output {
    /// Accepts an encoded result and the path of what was created.
    ///
    /// # Errors
    /// Refuses a result as [`Args::new`] does, and a path that is empty, too long or holds a control
    /// character.
    pub fn new(value: Vec<u8>, place: Option<String>) -> Result<Self, Invalid> {
        json::check("output", &value, limits::OUTPUT_BYTES)?;
        if value.starts_with(Args::ENCRYPTED.as_bytes()) {
            return Err(Invalid::new("output", "the form of an encrypted result", "a result in plain JSON"));
        }
        if let Some(place) = &place {
            invalid::at_most_bytes("place", place.len(), limits::PLACE_BYTES)?;
            let allowed = "a path such as /stars/7";
            if place.is_empty() {
                return Err(Invalid::new("place", "empty", allowed));
            }
            if let Some(odd) = place.chars().find(|c| c.is_control()) {
                return Err(Invalid::new("place", format_args!("invalid character {odd:?}"), allowed));
            }
        }
        Ok(Self { value, place })
    }
}

impl NewJob {
    /// Accepts a job within the limits.
    ///
    /// # Errors
    /// Names the first field that breaks its limit.
    pub fn check(&self) -> Result<(), Invalid> {
        self.due.check("due")?;
        self.terms.check()
    }

    /// Returns `true` if this job repeats `stored`: same kind, args and owner. The queue may differ, because `stored` may have
    /// been moved. Without the owner, another client could confirm a guess of the args.
    #[must_use]
    pub fn repeats(&self, stored: &Job) -> bool {
        self.kind == stored.kind && self.args == stored.args && self.terms.owner == stored.terms.owner
    }

    /// The job that a store keeps when it accepts this one.
    #[must_use]
    pub fn accepted(&self, seq: u64, now: Timestamp) -> Job {
        Job {
            id: self.id,
            seq,
            kind: self.kind.clone(),
            queue: self.queue.clone(),
            args: self.args.clone(),
            priority: self.priority,
            created: now,
            terms: Arc::clone(&self.terms),
            state: State::Waiting { due: self.due.at(now), why: crate::Why::Enqueued },
            attempt: 0,
            delivery: 0,
            fence: Fence::NONE,
            holder: None,
            started: None,
            cancel: None,
            progress: None,
            failure: None,
            output: None,
            expires: None,
        }
    }
}
