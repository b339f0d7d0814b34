//! A timer on its way to the store.

use std::time::Duration;

use tenure_core::{CatchUp, Invalid, Name, NewTimer, OnEdit, Overlap, Policies};

use super::when::When;
use crate::{Draft, Error, Job, Tenure};

/// A timer to set or declare: name, schedule, job and options.
///
/// An invalid option is reported, with the name of the field, when the timer is set or when the declaring worker
/// starts.
///
/// ```
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize)] struct Report { month: u32 }
/// # impl tenure::Job for Report { const KIND: &'static str = "report"; type Output = (); }
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), tenure::Error> {
/// # let tenure = tenure::Tenure::open("memory:").await?;
/// use std::time::Duration;
/// use tenure::when::cron;
/// use tenure::{CatchUp, Overlap, TimerDraft};
///
/// let nightly = TimerDraft::new("nightly", cron("0 0 2 * * *").zone("Europe/Copenhagen"), &Report { month: 5 })
///     .catch_up(CatchUp::All { most: 3 })
///     .overlap(Overlap::QueueOne)
///     .max_lateness(Duration::from_secs(3600))
///     .job(|job| job.attempts(3).tag("accounting"));
/// tenure.timers().set(nightly).await?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "a timer does nothing until it is set or declared"]
pub struct TimerDraft {
    name: String,
    when: When,
    job: Draft,
    policies: Policies,
    revision: Option<u64>,
    pub(super) runs_elsewhere: bool,
}

impl TimerDraft {
    /// Creates a timer for jobs of a typed kind.
    pub fn new<J: Job>(name: &str, when: impl Into<When>, job: &J) -> Self {
        Self::of(name, when, Draft::of(job))
    }

    /// Creates a timer for jobs of a kind that is known by name only.
    pub fn raw(name: &str, when: impl Into<When>, kind: &str, args: &serde_json::Value) -> Self {
        Self::of(name, when, Draft::raw(kind, args))
    }

    /// Creates a timer for jobs like this draft.
    pub fn of(name: &str, when: impl Into<When>, job: Draft) -> Self {
        let (name, when, policies) = (name.to_owned(), when.into(), Policies::default());
        Self { name, when, job, policies, revision: None, runs_elsewhere: false }
    }

    fn agreed(mut self, change: impl FnOnce(&mut Policies)) -> Self {
        change(&mut self.policies);
        self
    }

    /// Sets the policy for missed runs; default [`CatchUp::One`] job for all of them.
    pub fn catch_up(self, catch_up: CatchUp) -> Self {
        self.agreed(|policies| policies.catch_up = catch_up)
    }

    /// Skips runs that are later than this, whatever the other policies say.
    pub fn max_lateness(self, most: Duration) -> Self {
        self.agreed(|policies| policies.max_lateness = Some(most))
    }

    /// Sets the policy for a run that is due while earlier jobs are unfinished; default: skip it.
    pub fn overlap(self, overlap: Overlap) -> Self {
        self.agreed(|policies| policies.overlap = overlap)
    }

    /// Sets the policy for past, undecided runs when the schedule changes; default: decide them by the old schedule.
    pub fn on_edit(self, on_edit: OnEdit) -> Self {
        self.agreed(|policies| policies.on_edit = on_edit)
    }

    /// Enqueues a job when a program that declares the timer starts, unless one was enqueued within the last minute.
    pub fn run_on_start(self) -> Self {
        self.agreed(|policies| policies.run_on_start = true)
    }

    /// Delays each run by up to this time; see [`When::jitter`].
    pub fn jitter(mut self, longest: Duration) -> Self {
        self.when = self.when.jitter(longest);
        self
    }

    /// Sets the queue of its jobs.
    pub fn queue(self, name: &str) -> Self {
        self.job(|job| job.queue(name))
    }

    /// Sets the priority of its jobs among the due jobs of their queue: −100 (first) to 100 (last).
    pub fn priority(self, number: i64) -> Self {
        self.job(|job| job.priority(number))
    }

    /// Sets other options of its jobs with the methods of [`Draft`], such as attempts, timeout, retention and tags.
    pub fn job(mut self, say: impl FnOnce(Draft) -> Draft) -> Self {
        self.job = say(self.job);
        self
    }

    /// Sets the version of this declaration, in place of the program's ([`crate::OpenOptions::revision`]): a lower
    /// version does not change what a higher one declared.
    pub fn revision(mut self, revision: u64) -> Self {
        self.revision = Some(revision);
        self
    }

    /// Declares that its jobs run in another program, so the declaring worker needs no handler for them.
    pub fn runs_elsewhere(mut self) -> Self {
        self.runs_elsewhere = true;
        self
    }

    /// The checked timer.
    pub(crate) fn finish(self, tenure: &Tenure) -> Result<NewTimer, Error> {
        let name = Name::new("timer", &self.name)?;
        let told = |error: Error| of_timer(&name, error);
        let timer = NewTimer {
            name: name.clone(),
            schedule: self.when.schedule().map_err(|bad| told(Invalid::from(bad).into()))?,
            job: self.job.finish_for_timer(tenure.app()).map_err(|error| told(of_job(error)))?,
            policies: self.policies,
            revision: self.revision.unwrap_or_else(|| tenure.revision()),
        };
        check_revision(timer.revision).map_err(|wrong| told(wrong.into()))?;
        timer.check().map_err(|wrong| told(wrong.into()))?;
        Ok(timer)
    }
}

/// Stores keep it as a number with a sign.
const GREATEST_REVISION: u64 = i64::MAX.unsigned_abs();

pub(crate) fn check_revision(revision: u64) -> Result<(), Invalid> {
    if revision <= GREATEST_REVISION {
        return Ok(());
    }
    Err(Invalid::new("revision", revision, format_args!("0 to {GREATEST_REVISION}")))
}

fn of_timer(name: &Name, error: Error) -> Error {
    prefixed(&format!("timer {name}: "), error)
}

fn of_job(error: Error) -> Error {
    prefixed("job.", error)
}

fn prefixed(prefix: &str, error: Error) -> Error {
    let Error::Invalid(Invalid { field, found, allowed }) = error else { return error };
    Invalid::new(format!("{prefix}{field}"), found, allowed).into()
}
