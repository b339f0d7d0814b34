//! A job on its way to the store.

mod keys;
mod names;
mod timed;

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{
    AppId, Args, Due, Invalid, JobId, Kind, LimitKey, Name, NewJob, Priority, QueueName, Retention,
    RetryPolicy, Terms, Timestamp, delay_of, limits,
};

use crate::singleton::line_of;
use crate::trace::in_current;
use crate::{Error, Job, Only, Singleton};

/// A job to enqueue, with all its options.
///
/// An invalid option is reported, with the name of the field, when the job is enqueued.
#[derive(Debug)]
#[must_use = "a draft does nothing until it is enqueued"]
pub struct Draft {
    kind: Result<Kind, Invalid>,
    args: Result<Vec<u8>, serde_json::Error>,
    queue: Result<QueueName, Invalid>,
    priority: Result<Priority, Invalid>,
    id: Option<JobId>,
    due: Due,
    terms: Terms,
    only: Option<Only>,
    singleton: Option<Singleton>,
    even_if_failed: bool,
    wrong: Option<Invalid>,
}

impl Draft {
    /// Creates a job of a typed kind.
    pub fn of<J: Job>(job: &J) -> Self {
        // Changed where it lies: it is large, and many are made one after the other.
        let mut draft = Self::new(J::KIND, J::QUEUE, serde_json::to_vec(job));
        draft.set_terms(J::terms());
        draft.singleton = J::singleton();
        draft.refuse_silent_loss::<J>();
        draft
    }

    /// Creates a job of a kind that is known by name only.
    pub fn raw(kind: &str, args: &serde_json::Value) -> Self {
        Self::new(kind, QueueName::DEFAULT, serde_json::to_vec(args))
    }

    /// Creates a job of a kind that is known by name only, from args as JSON text, which is stored byte for byte.
    pub fn encoded(kind: &str, args: Vec<u8>) -> Self {
        Self::new(kind, QueueName::DEFAULT, Ok(args))
    }

    /// JSON has no NaN and no infinity: they are written as `null`, and the handler could not read its
    /// args. That is told here, while somebody can still do something about it.
    fn refuse_silent_loss<J: Job>(&mut self) {
        if let Ok(args) = &self.args
            && std::str::from_utf8(args).is_ok_and(|text| text.contains("null"))
            && let Err(error) = serde_json::from_slice::<J>(args)
        {
            let found = format!("a value that cannot be read back ({error}), such as NaN");
            self.wrong = Some(Invalid::new("args", found, "a JSON value"));
        }
    }

    fn new(kind: &str, queue: &str, args: Result<Vec<u8>, serde_json::Error>) -> Self {
        Self {
            kind: names::kind(kind),
            args,
            queue: names::queue(queue),
            priority: Ok(Priority::default()),
            id: None,
            due: Due::Now,
            terms: Terms::default(),
            only: None,
            singleton: None,
            even_if_failed: false,
            wrong: None,
        }
    }

    /// Delays the job, by the store's clock.
    pub fn after(mut self, delay: Duration) -> Self {
        self.due = Due::In(delay);
        self
    }

    /// Sets the due time; a time in the past means now.
    pub fn at(mut self, due: Timestamp) -> Self {
        self.due = Due::At(due);
        self
    }

    /// Sets the queue.
    pub fn queue(mut self, name: &str) -> Self {
        self.queue = names::queue(name);
        self
    }

    /// Sets the priority among the due jobs of its queue: −100 (first) to 100 (last); default 0.
    pub fn priority(mut self, number: i64) -> Self {
        self.priority = Priority::new(number);
        self
    }

    /// Limits the number of attempts; overrides the retry policy.
    pub fn attempts(mut self, most: u32) -> Self {
        self.terms.attempts = Some(most);
        self
    }

    /// Sets the retry policy.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.terms.retry = Some(policy);
        self
    }

    /// Limits the run time of one attempt.
    pub fn timeout(mut self, most: Duration) -> Self {
        self.terms.timeout = Some(most);
        self
    }

    /// Sets how long the job is kept after it has ended.
    pub fn retain(mut self, retention: Retention) -> Self {
        self.terms.retention = retention;
        self
    }

    /// Adds a tag for search.
    pub fn tag(mut self, tag: &str) -> Self {
        match Name::new("tag", tag) {
            Ok(tag) => self.terms.tags.push(tag),
            Err(wrong) => self.wrong = self.wrong.or(Some(wrong)),
        }
        self
    }

    /// Adds a metadata entry, which Tenure stores and does not interpret.
    pub fn meta(mut self, key: &str, value: &str) -> Self {
        self.terms.meta.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Sets the name of the client that the job belongs to. Over HTTP, a token that may only enqueue sees just the jobs of its
    /// own name.
    pub fn owner(mut self, name: &str) -> Self {
        self.terms.owner = Some(name.to_owned());
        self
    }

    /// Returns the name of the client that the job belongs to, if one was set.
    #[must_use]
    pub fn owner_name(&self) -> Option<&str> {
        self.terms.owner.as_deref()
    }

    /// Sets the job ID. Enqueueing the same job under the same ID again stores nothing more. An ID of version 8 is
    /// refused, because such IDs are [derived](Self::derived_id).
    pub fn id(mut self, id: JobId) -> Self {
        if let Err(wrong) = id.chosen("id") {
            self.wrong.get_or_insert(wrong);
        }
        self.id = Some(id);
        self
    }

    /// Sets a job ID that the program [derives](JobId::derived), such as the ID of a child job from that of its parent.
    /// Clients cannot take such IDs, so never pass one that a client sent.
    pub fn derived_id(mut self, id: JobId) -> Self {
        self.id = Some(id);
        self
    }

    /// Returns the kind and the args as they would be stored, as far as they are valid.
    #[must_use]
    pub fn kind_and_args(&self) -> (Option<&Kind>, Option<&[u8]>) {
        (self.kind.as_ref().ok(), self.args.as_deref().ok())
    }

    /// Returns the metadata entry with this key.
    #[must_use]
    pub fn note(&self, key: &str) -> Option<&str> {
        self.terms.meta.get(key).map(String::as_str)
    }

    /// Entries of the metadata.
    pub(crate) fn notes(&self) -> usize {
        self.terms.meta.len()
    }

    /// Returns the job ID, if one was set.
    #[must_use]
    pub fn given_id(&self) -> Option<JobId> {
        self.id
    }

    /// Returns the queue; `None` if its name is invalid.
    #[must_use]
    pub fn queue_name(&self) -> Option<&QueueName> {
        self.queue.as_ref().ok()
    }

    /// Keeps out other jobs of this kind with the same args, until this one has ended.
    pub fn unique(self) -> Self {
        self.unique_by(Only::same_args())
    }

    /// Keeps out other jobs of this kind with the same key, until this one has ended. A constant key keeps out all
    /// other jobs that use it, so include the value that makes the job unique.
    pub fn unique_key(self, key: impl Into<String>) -> Self {
        self.unique_by(Only::one(key))
    }

    /// Makes the job unique within a scope.
    pub fn unique_by(mut self, only: Only) -> Self {
        self.only = Some(only);
        self
    }

    /// Replaces all terms of the kind.
    pub fn terms(mut self, terms: Terms) -> Self {
        self.set_terms(terms);
        self
    }

    fn set_terms(&mut self, terms: Terms) {
        if let Some(limit) = &terms.limit {
            self.check_limit_key(limit.key.as_str());
        }
        self.terms = terms;
    }

    /// Waits in a line that Tenure itself names.
    pub(crate) fn line(mut self, limit: Option<LimitKey>) -> Self {
        self.terms.limit = limit;
        self
    }

    /// The checked job, enqueued by this app in the trace of the current task; `id` counts if its user gave none.
    pub(crate) fn finish(self, id: JobId, app: Option<&AppId>) -> Result<NewJob, Error> {
        in_current(self).finish_untraced(id, app)
    }

    fn finish_untraced(self, id: JobId, app: Option<&AppId>) -> Result<NewJob, Error> {
        if let Some(wrong) = self.wrong {
            return Err(wrong.into());
        }
        let args = self.args.map_err(|source| Error::Json { what: "args", source })?;
        if let Due::In(delay) = self.due {
            delay_of("delay", delay)?;
        }
        let mut job = NewJob {
            id: self.id.unwrap_or(id),
            kind: self.kind?,
            queue: self.queue?,
            args: Args::new(args)?,
            priority: self.priority?,
            due: self.due,
            terms: default_terms(),
        };
        let mut terms = self.terms;
        if let Some(only) = self.only {
            terms.unique = Some(only.of(&job)?);
        }
        if let Some(singleton) = &self.singleton {
            let line = line_of(singleton, app, &job)?;
            terms.limit = terms.limit.or(line);
        }
        if !terms.are_default() {
            job.terms = Arc::new(terms);
        }
        job.check()?;
        Ok(job)
    }
}

/// The checked jobs of a batch.
pub(crate) fn finish_all(
    drafts: impl IntoIterator<Item = Draft>,
    app: Option<&AppId>,
    mut next_id: impl FnMut() -> JobId,
) -> Result<Vec<NewJob>, Error> {
    let mut batch = Vec::new();
    let mut bytes = 0_usize;
    for (index, draft) in drafts.into_iter().enumerate() {
        if index == limits::BATCH_JOBS {
            return Err(Invalid::new(
                "jobs",
                format_args!("more than {} jobs", limits::BATCH_JOBS),
                format_args!("at most {} per batch", limits::BATCH_JOBS),
            )
            .into());
        }
        let id = next_id();
        let job = draft.finish(id, app).map_err(|error| error.in_item(index))?;
        bytes = bytes.saturating_add(job.args.as_bytes().len());
        if bytes > limits::BATCH_BYTES {
            return Err(Invalid::new(
                "jobs",
                "total size of args",
                format_args!("at most {} bytes per batch", limits::BATCH_BYTES),
            )
            .into());
        }
        batch.push(job);
    }
    Ok(batch)
}

/// Most jobs share the default terms; one allocation serves them all.
fn default_terms() -> Arc<Terms> {
    static DEFAULT: std::sync::OnceLock<Arc<Terms>> = std::sync::OnceLock::new();
    Arc::clone(DEFAULT.get_or_init(Arc::default))
}
