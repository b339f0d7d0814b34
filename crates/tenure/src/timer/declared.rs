//! Timers that a worker declares.

use std::collections::BTreeSet;

use tenure_core::{Invalid, Kind, NewTimer};

use super::draft::TimerDraft;
use super::when::When;
use crate::worker::Settings;
use crate::{Error, Job, Tenure, UnknownKinds, Worker};

impl<App: Send + Sync + 'static> Worker<App> {
    /// Declares a timer: a schedule that enqueues this job for each run. The timer is stored when the worker starts.
    /// From then on every running worker of the store, this one or another, enqueues its jobs.
    ///
    /// ```no_run
    /// # use serde::{Deserialize, Serialize};
    /// # use tenure::{Failed, Job, Run, Tenure, Worker};
    /// # #[derive(Default, Serialize, Deserialize)] struct Report {}
    /// # impl Job for Report { const KIND: &'static str = "report"; type Output = (); }
    /// # async fn report(_: Run<()>, _: Report) -> Result<(), Failed> { Ok(()) }
    /// # async fn example(tenure: Tenure) -> Result<(), tenure::Error> {
    /// use tenure::when::cron;
    ///
    /// Worker::new(&tenure, ())
    ///     .queue("default", 8)
    ///     .job(report)
    ///     .timer("nightly", cron("0 0 2 * * *").zone("Europe/Copenhagen"), Report::default)
    ///     .run(tenure::shutdown_signal())
    ///     .await?;
    /// # Ok(()) }
    /// ```
    ///
    /// A timer that is no longer declared stays until it is removed ([`crate::Timers::remove`]), because another
    /// program may have declared it.
    pub fn timer<J: Job>(self, name: &str, when: impl Into<When>, job: impl FnOnce() -> J) -> Self {
        self.timer_with(TimerDraft::new(name, when, &job()))
    }

    /// Declares a timer with options.
    pub fn timer_with(mut self, timer: TimerDraft) -> Self {
        self.timers.push(timer);
        self
    }
}

/// The checked timers of a worker that handles these kinds.
pub(crate) fn declared(
    drafts: Vec<TimerDraft>,
    tenure: &Tenure,
    known: &[Kind],
    settings: &Settings,
) -> Result<Vec<NewTimer>, Error> {
    let (mut timers, mut names) = (Vec::new(), BTreeSet::new());
    for draft in drafts {
        let runs_here = !draft.runs_elsewhere;
        let timer = draft.finish(tenure)?;
        if !names.insert(timer.name.clone()) {
            let twice = format_args!("{}, twice", timer.name);
            return Err(Invalid::new("timer", twice, "each timer once").into());
        }
        if runs_here {
            check_runs_here(&timer, known, settings)?;
        }
        timers.push(timer);
    }
    Ok(timers)
}

/// A job that nobody runs is what is forgotten most easily.
fn check_runs_here(timer: &NewTimer, known: &[Kind], settings: &Settings) -> Result<(), Error> {
    let (name, kind, queue) = (&timer.name, &timer.job.kind, &timer.job.queue);
    let refuse =
        |what: String| Err(Error::Settings(format!("timer {name} {what}, or mark it with runs_elsewhere")));
    if !known.contains(kind) && settings.unknown == UnknownKinds::Leave {
        return refuse(format!(
            "enqueues jobs of kind {kind}, which this worker does not handle; add a handler with Worker::job"
        ));
    }
    if settings.queues.iter().all(|served| served.name != *queue) {
        return refuse(format!(
            "enqueues jobs into queue {queue}, which this worker does not serve; add it with Worker::queue"
        ));
    }
    Ok(())
}
