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
use crate::{Error, Job, Only, Singleton};

/// A job on its way to the store: what it is and all that was said about it.
///
/// A mistake in it is told when it is enqueued, and names the field.
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
    /// A job of a typed kind.
    pub fn of<J: Job>(job: &J) -> Self {
        // Changed where it lies: it is large, and many are made one after the other.
        let mut draft = Self::new(J::KIND, J::QUEUE, serde_json::to_vec(job));
        draft.set_terms(J::terms());
        draft.singleton = J::singleton();
        draft.refuse_silent_loss::<J>();
        draft
    }

    /// A job of a kind known by name only.
    pub fn raw(kind: &str, args: &serde_json::Value) -> Self {
        Self::new(kind, QueueName::DEFAULT, serde_json::to_vec(args))
    }

    /// A job of a kind known by name only, with its args as JSON text, which is kept byte for byte.
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
            self.wrong = Some(Invalid::new("args", found, "what JSON can hold"));
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

    /// Due so long from now, by the store's clock.
    pub fn after(mut self, delay: Duration) -> Self {
        self.due = Due::In(delay);
        self
    }

    /// Due at this instant; at once if it has passed.
    pub fn at(mut self, due: Timestamp) -> Self {
        self.due = Due::At(due);
        self
    }

    /// Waits in this queue.
    pub fn queue(mut self, name: &str) -> Self {
        self.queue = names::queue(name);
        self
    }

    /// Its place among the due jobs of its queue: from −100 (first) to 100 (last); 0 is ordinary.
    pub fn priority(mut self, number: i64) -> Self {
        self.priority = Priority::new(number);
        self
    }

    /// Tried at most so often, whatever its policy says.
    pub fn attempts(mut self, most: u32) -> Self {
        self.terms.attempts = Some(most);
        self
    }

    /// Tried again by this policy.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.terms.retry = Some(policy);
        self
    }

    /// An attempt may take so long.
    pub fn timeout(mut self, most: Duration) -> Self {
        self.terms.timeout = Some(most);
        self
    }

    /// Kept so long after its end.
    pub fn retain(mut self, retention: Retention) -> Self {
        self.terms.retention = retention;
        self
    }

    /// A word to find it by.
    pub fn tag(mut self, tag: &str) -> Self {
        match Name::new("tag", tag) {
            Ok(tag) => self.terms.tags.push(tag),
            Err(wrong) => self.wrong = self.wrong.or(Some(wrong)),
        }
        self
    }

    /// A note that Tenure keeps and does not read.
    pub fn meta(mut self, key: &str, value: &str) -> Self {
        self.terms.meta.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Its identity. Enqueueing the same job under the same id again stores nothing more.
    pub fn id(mut self, id: JobId) -> Self {
        self.id = Some(id);
        self
    }

    /// Its kind and its args as they are stored, as far as they make sense.
    #[must_use]
    pub fn kind_and_args(&self) -> (Option<&Kind>, Option<&[u8]>) {
        (self.kind.as_ref().ok(), self.args.as_deref().ok())
    }

    /// The note under this key, if there is one.
    #[must_use]
    pub fn note(&self, key: &str) -> Option<&str> {
        self.terms.meta.get(key).map(String::as_str)
    }

    /// The id that it was given, if it was.
    #[must_use]
    pub fn given_id(&self) -> Option<JobId> {
        self.id
    }

    /// The queue in which it is to wait; `None` if that has no proper name.
    #[must_use]
    pub fn queue_name(&self) -> Option<&QueueName> {
        self.queue.as_ref().ok()
    }

    /// The only one of its scope.
    pub fn unique(mut self, only: impl Into<Only>) -> Self {
        self.only = Some(only.into());
        self
    }

    /// All terms at once, in place of those of its kind.
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

    /// The checked job, enqueued by this app; `id` counts if its user gave none.
    pub(crate) fn finish(self, id: JobId, app: Option<&AppId>) -> Result<NewJob, Error> {
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
                format_args!("at most {} in one batch", limits::BATCH_JOBS),
            )
            .into());
        }
        let id = next_id();
        let job = draft.finish(id, app).map_err(|error| error.in_item(index))?;
        bytes = bytes.saturating_add(job.args.as_bytes().len());
        if bytes > limits::BATCH_BYTES {
            return Err(Invalid::new(
                "jobs",
                "args of all jobs together",
                format_args!("at most {} bytes in one batch", limits::BATCH_BYTES),
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
