//! Runs of triggered apps: asking for one, and keeping no more than the last ones.

use serde_json::{Value, json};
use tenure_core::{JobId, Keep, Kind, Retention, StateName};
use tenure_store::{Accepted, Filter, PageAsk, TimerOutcome};

use super::asking::{Apps, NEWEST};
use super::offer::{Sort, kind_of};
use crate::{Draft, Error, Only};

/// Hosts that a run may lose before it has failed: what kills its host would kill all of them.
const LOST_HOSTS: u32 = 2;
/// Ended runs that are looked at in one go.
const LOOKED_AT: usize = 200;

/// What is said of a run that somebody wishes.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Words that are put behind those of the app's command.
    pub arguments: Vec<String>,
    /// What the program reads in place of its arguments.
    pub input: Option<Value>,
    /// Who wishes it, for people.
    pub by: String,
    /// The id of its job; asking again under it begins nothing more.
    pub id: Option<JobId>,
}

/// What became of a wish to run an app.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Began {
    /// Its job is there.
    New(JobId),
    /// Nothing was changed: this run has not ended.
    Busy(JobId),
    /// Nothing was changed: somebody has stopped it.
    Stopped,
    /// Nobody offers such an app.
    NotOffered,
}

impl Wanted {
    /// The args of the job.
    fn args(&self) -> Value {
        match &self.input {
            Some(input) => input.clone(),
            None => json!({ "arguments": self.arguments, "by": self.by }),
        }
    }
}

impl Apps<'_> {
    /// A job for a run of this app, tried as often as its offer says, hosts that were lost not counted.
    ///
    /// # Errors
    /// A name that is none.
    pub fn draft(&self, name: &str, attempts: u32, args: &Value) -> Result<Draft, Error> {
        let kind = kind_of(&self.set, name)?;
        let draft = Draft::raw(kind.as_str(), args).queue(&self.set);
        let attempts = attempts.saturating_add(LOST_HOSTS).min(tenure_core::limits::MAX_ATTEMPTS);
        Ok(draft.attempts(attempts).retain(Retention::always(Keep::Forever)))
    }

    /// Runs a triggered app now, if it does not run already or may more than once. Nothing is changed if it cannot.
    ///
    /// # Errors
    /// Args beyond the limits, or a fault.
    pub async fn run(&self, name: &str, wanted: &Wanted) -> Result<Began, Error> {
        let kind = self.kind(name)?;
        let Some(info) = self.get(Sort::Triggered, name).await? else { return Ok(Began::NotOffered) };
        if info.stopped.is_some() {
            return Ok(Began::Stopped);
        }
        let mut trigger = self.tenure.timers().trigger(&kind).raw_args(&wanted.args());
        if let Some(id) = wanted.id {
            trigger = trigger.id(id);
        }
        match trigger.await? {
            TimerOutcome::Triggered(id) => return Ok(Began::New(id)),
            TimerOutcome::Busy(id) => return Ok(Began::Busy(id)),
            TimerOutcome::NotFound | TimerOutcome::Done | TimerOutcome::Backfilled { .. } => {}
        }
        let Some(offer) = info.hosts.first().map(|on_host| &on_host.offer) else {
            return Ok(Began::NotOffered);
        };
        let mut draft = self.draft(name, offer.attempts, &wanted.args())?;
        if offer.at_once == 1 {
            draft = draft.unique(Only::of_kind());
        }
        if let Some(id) = wanted.id {
            draft = draft.id(id);
        }
        match self.tenure.enqueue_draft(draft).await? {
            Accepted::New(id) | Accepted::Repeated(id) | Accepted::Replaced { id, .. } => Ok(Began::New(id)),
            Accepted::Existing(id) => Ok(Began::Busy(id)),
        }
    }

    /// Forgets ended runs of a triggered app but the last ones, the oldest first; what has not ended is never forgotten.
    /// Answers how many were.
    ///
    /// # Errors
    /// A fault.
    pub async fn forget_runs_but(&self, name: &str, last: usize) -> Result<usize, Error> {
        let filter = Filter {
            kinds: vec![Kind::new(&self.kind(name)?)?],
            states: vec![StateName::Succeeded, StateName::Failed, StateName::Cancelled],
            ..Filter::default()
        };
        let (mut left, mut after, mut forgotten) = (last, None, 0);
        loop {
            let ask = PageAsk {
                filter: filter.clone(),
                order: NEWEST,
                after: after.take(),
                at_most: LOOKED_AT,
                ..PageAsk::default()
            };
            let page = self.tenure.jobs().page(ask).await?;
            let old: Vec<JobId> = page.jobs.iter().skip(left).map(|job| job.id).collect();
            left = left.saturating_sub(page.jobs.len());
            if !old.is_empty() {
                forgotten += old.len();
                let ids = Filter { ids: old, ..Filter::default() };
                self.tenure.jobs().delete_all(ids).await?;
            }
            let Some(next) = page.next.filter(|_| forgotten < LOOKED_AT) else { return Ok(forgotten) };
            after = Some(next);
        }
    }
}
