//! Asking for a job of a timer beside its schedule.

use std::future::IntoFuture;
use std::pin::Pin;

use tenure_core::{Args, Invalid, JobId, Timer};
use tenure_store::{TimerAct, TimerOutcome};

use super::client::{Timers, args_of};
use crate::{Error, Job};

/// A job of a timer about to be enqueued outside its schedule: set options, then `.await` it.
#[derive(Debug)]
#[must_use = "nothing is enqueued until this is awaited"]
pub struct Trigger<'a> {
    timers: Timers<'a>,
    name: String,
    id: Option<JobId>,
    /// Of which kind its jobs have to be, so that they understand the args.
    kind: Option<&'static str>,
    args: Result<Option<Args>, Error>,
    owner: Option<String>,
}

impl<'a> Trigger<'a> {
    pub(super) fn new(timers: Timers<'a>, name: &str) -> Self {
        Self { timers, name: name.to_owned(), id: None, kind: None, args: Ok(None), owner: None }
    }

    /// Replaces the args, for a job of the same kind; another kind is refused.
    pub fn args<J: Job>(mut self, job: &J) -> Self {
        self.kind = Some(J::KIND);
        self.args = args_of(job).map(Some);
        self
    }

    /// Replaces the args, whatever the kind.
    pub fn raw_args(mut self, args: &serde_json::Value) -> Self {
        self.kind = None;
        self.args = Args::new(args.to_string().into_bytes()).map(Some).map_err(Error::from);
        self
    }

    /// Sets the job ID; repeating the call with it enqueues nothing more. An ID that belongs to another job is
    /// refused ([`TimerOutcome::IdTaken`]), and one of version 8 is invalid, because such IDs are [derived](JobId::derived).
    pub fn id(mut self, id: JobId) -> Self {
        self.id = Some(id);
        self
    }

    /// Sets the name of the client that the job belongs to ([`crate::Draft::owner`]).
    pub fn owner(mut self, name: &str) -> Self {
        self.owner = Some(name.to_owned());
        self
    }

    async fn ask(self) -> Result<TimerOutcome, Error> {
        let given = self.id.map(|id| id.chosen("id")).transpose()?;
        if let Some(kind) = self.kind {
            match self.timers.get(&self.name).await {
                Err(Error::NoTimer(_)) => return Ok(TimerOutcome::NotFound),
                timer => check_kind(&timer?, kind)?,
            }
        }
        // It is drawn once: what is repeated because its outcome was unknown is the same request.
        let id = given.unwrap_or_else(|| self.timers.tenure().new_id());
        self.timers.change(&self.name, TimerAct::Trigger { id, args: self.args?, owner: self.owner }).await
    }
}

fn check_kind(timer: &Timer, kind: &str) -> Result<(), Invalid> {
    let own = &timer.agreed.job.kind;
    let found = format_args!("args of a job of kind {kind}");
    if own.as_str() == kind { Ok(()) } else { Err(Invalid::new("args", found, format_args!("kind {own}"))) }
}

impl<'a> IntoFuture for Trigger<'a> {
    type Output = Result<TimerOutcome, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.ask())
    }
}
