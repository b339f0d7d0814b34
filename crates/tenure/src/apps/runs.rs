//! Runs of triggered apps: asking for one, counting what it has lost, and keeping no more than the last ones.

use std::time::Duration;

use serde_json::{Value, json};
use tenure_core::{Attempt, AttemptEnd, Job, JobId, Keep, Key, Kind, Name, Retention, StateName};
use tenure_store::{Accepted, Filter, Order, PageAsk, TimerOutcome, Values};

use super::asking::{Apps, Info, NEWEST};
use super::offer::{Offer, Sort, Standing, kind_of};
use crate::{Draft, Error, Only};

/// Hosts that a run may lose; with the next one it has failed, for what kills its host would kill all of them. No failure
/// of its program is counted here, and none of these as one of its program.
pub const LOST_HOSTS: u32 = 3;
/// A run that has ended is kept for so long, whatever is said of their number: who waits for its end has to find it.
const READABLE: Duration = Duration::from_secs(60);
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
    /// Name of the client that the job belongs to ([`Draft::owner`]).
    pub owner: Option<String>,
}

/// What became of a wish to run an app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Began {
    /// Its job is there.
    New(JobId),
    /// Nothing was changed: this run has not ended.
    Busy(JobId),
    /// Nothing was changed: somebody has stopped it.
    Stopped,
    /// Nothing was changed: no host that offers it can run it, and this is why.
    Wrong(String),
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
    /// A job for a run of this app, tried as often as its offer says, [hosts that were lost](Self::lost_hosts) not counted.
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
        if info.is_stopped() {
            return Ok(Began::Stopped);
        }
        if let Some(why) = info.wrong() {
            return Ok(Began::Wrong(why.to_owned()));
        }
        let mut trigger = self.tenure.timers().trigger(&kind).raw_args(&wanted.args());
        if let Some(id) = wanted.id {
            trigger = trigger.id(id);
        }
        if let Some(owner) = &wanted.owner {
            trigger = trigger.owner(owner);
        }
        match trigger.await? {
            TimerOutcome::Triggered(id) => return Ok(Began::New(id)),
            TimerOutcome::Busy(id) => return Ok(Began::Busy(id)),
            // It may have begun before the program had a timer; the queue knows whether it is the same wish.
            TimerOutcome::IdTaken(_)
            | TimerOutcome::NotFound
            | TimerOutcome::Done
            | TimerOutcome::Backfilled { .. } => {}
        }
        let Some(offer) = info.offer() else { return Ok(Began::NotOffered) };
        if let Some(began) = self.no_room(&kind, offer, wanted.id).await? {
            return Ok(began);
        }
        let mut draft = beside_timer(self.draft(name, offer.attempts, &wanted.args())?, &kind, offer)?;
        if let Some(id) = wanted.id {
            draft = draft.id(id);
        }
        if let Some(owner) = &wanted.owner {
            draft = draft.owner(owner);
        }
        match self.tenure.enqueue_draft(draft).await? {
            Accepted::New(id) | Accepted::Repeated(id) | Accepted::Replaced { id, .. } => Ok(Began::New(id)),
            Accepted::Existing(id) => Ok(Began::Busy(id)),
        }
    }

    /// What is answered if as many runs as may be there have not ended, whoever has asked for them.
    async fn no_room(
        &self,
        kind: &str,
        offer: &Offer,
        wanted: Option<JobId>,
    ) -> Result<Option<Began>, Error> {
        let most = usize::try_from(offer.at_once).unwrap_or(usize::MAX).min(tenure_core::limits::OPEN_JOBS);
        let filter = Filter {
            kinds: vec![Kind::new(kind)?],
            states: vec![StateName::Scheduled, StateName::Queued, StateName::Blocked, StateName::Running],
            ..Filter::default()
        };
        let ask = PageAsk { filter, order: Order::OldestFirst, at_most: most, ..PageAsk::default() };
        let there = self.tenure.jobs().page(ask).await?.jobs;
        let Some(first) = there.first().filter(|_| there.len() >= most) else { return Ok(None) };
        // Asked for again under its id, it is there already, even if it has ended.
        let Some(id) = wanted else { return Ok(Some(Began::Busy(first.id))) };
        match self.tenure.jobs().get(id).await {
            Ok(job) if job.kind.as_str() == kind => Ok(Some(Began::New(id))),
            Ok(_) | Err(Error::NotFound(_)) => Ok(Some(Began::Busy(first.id))),
            Err(error) => Err(error),
        }
    }

    /// How many hosts a run has lost since it was last wished for: they were silent past their lease while they ran it. Each
    /// has counted as an attempt of its job, and none of them is a failure of its program.
    ///
    /// # Errors
    /// A fault.
    pub async fn lost_hosts(&self, run: JobId) -> Result<u32, Error> {
        Ok(lost(&self.tenure.jobs().attempts(run).await?))
    }

    /// Deletes the ended jobs of a triggered app that are older than its last runs. Keeps jobs that have not ended, or did so
    /// within the last minute. Returns the number of deleted jobs.
    ///
    /// Jobs for which [`is_run`] is false do not count as runs. They are deleted beyond the same number.
    ///
    /// # Errors
    /// A fault.
    pub async fn forget_runs_but(&self, name: &str, last: usize) -> Result<usize, Error> {
        let filter = Filter {
            kinds: vec![Kind::new(&self.kind(name)?)?],
            states: vec![StateName::Succeeded, StateName::Failed, StateName::Cancelled],
            ..Filter::default()
        };
        let (mut left, mut after, mut forgotten) = ([last; 2], None, 0);
        let over = self.tenure.now().before(READABLE);
        loop {
            let ask = PageAsk {
                filter: filter.clone(),
                order: NEWEST,
                after: after.take(),
                at_most: LOOKED_AT,
                values: Values::Omitted,
                ..PageAsk::default()
            };
            let page = self.tenure.jobs().page(ask).await?;
            let is_over = |job: &&Job| job.state.ended().is_some_and(|at| at < over);
            let is_old = |job: &&Job| {
                // Forged jobs must not push runs out of the history.
                let left = &mut left[usize::from(is_run(job))];
                let is_old = *left == 0;
                *left = left.saturating_sub(1);
                is_old
            };
            let old: Vec<JobId> = page.jobs.iter().filter(is_old).filter(is_over).map(|job| job.id).collect();
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

impl Info {
    /// Whether it runs nowhere: somebody has stopped it, or each of its hosts is stopped by its own environment.
    fn is_stopped(&self) -> bool {
        let is_off = |state: Standing| state == Standing::Stopped;
        let everywhere = !self.hosts.is_empty() && self.hosts.iter().all(|host| is_off(host.offer.state));
        self.stopped.is_some() || (self.sort == Sort::Triggered && everywhere)
    }

    /// Why none of its hosts can run it; `None` if one can, or if nobody offers it.
    fn wrong(&self) -> Option<&str> {
        let is_wrong = |offer: &Offer| offer.state == Standing::Wrong;
        let nowhere = self.hosts.iter().all(|host| is_wrong(&host.offer));
        self.hosts.first().filter(|_| nowhere).map(|host| host.offer.detail.as_str())
    }

    /// What is offered of it, by a host that can run it if there is one.
    fn offer(&self) -> Option<&Offer> {
        let mut offers = self.hosts.iter().map(|host| &host.offer);
        let first = offers.clone().next();
        offers.find(|offer| offer.state != Standing::Wrong).or(first)
    }
}

/// A job that is wished for without a timer shares the keys of those that a timer brings: it may get one, have had one until
/// now, or get other policies, and no two of its runs overlap that may not.
fn beside_timer(draft: Draft, kind: &str, offer: &Offer) -> Result<Draft, Error> {
    let key = Key::of_timer(&Name::new("timer", kind)?);
    let draft = draft.limited(key.as_str(), offer.at_once.max(1));
    Ok(if offer.at_once > 1 { draft } else { draft.ordered(key.as_str()).unique_by(Only::of_kind()) })
}

/// Returns `true` if [`Apps::run`] or the app's own schedule created this job. The keys of such a job limit concurrent runs,
/// and no client can set them.
#[must_use]
pub fn is_run(job: &Job) -> bool {
    let Ok(name) = Name::new("timer", job.kind.as_str()) else { return false };
    let is_of_timer = job.terms.slot.as_ref().is_some_and(|slot| slot.timer == name);
    is_of_timer || job.terms.limit.as_ref().is_some_and(|limit| limit.key == Key::of_timer(&name))
}

/// The lost ones among the attempts of a job, the oldest first, since it was last done anew. Of very many the last are known.
fn lost(attempts: &[Attempt]) -> u32 {
    let (mut lost, mut later) = (0, u32::MAX);
    for attempt in attempts.iter().rev() {
        let Some((_, end)) = attempt.ended else {
            later = attempt.attempt;
            continue;
        };
        let has_ended_the_job = match end {
            AttemptEnd::Succeeded | AttemptEnd::Failed | AttemptEnd::Cancelled => true,
            AttemptEnd::Retried | AttemptEnd::Snoozed | AttemptEnd::Released | AttemptEnd::Lost => false,
        };
        // A job that is done anew counts from one again.
        if has_ended_the_job || attempt.attempt > later {
            break;
        }
        later = attempt.attempt;
        lost += u32::from(end == AttemptEnd::Lost);
    }
    lost
}
