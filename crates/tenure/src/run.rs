//! What a handler knows of its attempt, and can tell about it.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tenure_core::{Fence, Invalid, Job as JobRecord, JobId, Output, Progress, TimerSlot, Timestamp};
use tenure_sqlite::rusqlite::Connection;
use tenure_sqlite::{CheckInError, check_job};

use crate::worker::{Control, Reports, Waiter};
use crate::{Moment, Pass, Tenure};

/// An attempt that begins so soon after its job was enqueued is not past due for that.
const IN_TIME: Duration = Duration::from_secs(60);

/// The reason for which an attempt must stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stopping {
    /// The job was cancelled.
    Cancelled {
        /// The reason, for people.
        reason: String,
        /// Time at which the job is taken from this host if the handler has not stopped.
        deadline: Timestamp,
    },
    /// This host has lost the job, or may have lost it. Its writes are rejected.
    Lost,
    /// The host is shutting down; the job will be released.
    HostStops,
    /// This host has lost the lease that makes the job a singleton. Another attempt may run.
    SingletonLost,
    /// The attempt has exceeded its timeout.
    TimedOut,
}

/// One attempt, as its handler sees it. Cloning it is cheap.
pub struct Run<App> {
    inner: Arc<Inner<App>>,
}

struct Inner<App> {
    app: Arc<App>,
    tenure: Tenure,
    job: Arc<JobRecord>,
    control: Arc<Control>,
    reports: Arc<Reports>,
    singleton: OnceLock<Pass>,
}

impl<App> Run<App> {
    pub(crate) fn new(
        app: Arc<App>,
        tenure: Tenure,
        job: Arc<JobRecord>,
        control: Arc<Control>,
        reports: Arc<Reports>,
    ) -> Self {
        let singleton = OnceLock::new();
        Self { inner: Arc::new(Inner { app, tenure, job, control, reports, singleton }) }
    }

    /// It runs under this lease as well.
    pub(crate) fn under(&self, pass: Pass) {
        let _ = self.inner.singleton.set(pass);
    }

    /// Returns the record of this attempt that notes its handler's waits for other jobs.
    pub(crate) fn waiter(&self) -> Waiter {
        let Inner { tenure, job, control, .. } = &*self.inner;
        Waiter::new(Arc::clone(control), Arc::clone(job), Arc::clone(tenure.store()))
    }

    /// Returns the lease of a singleton, if the kind is one.
    #[must_use]
    pub fn singleton(&self) -> Option<&Pass> {
        self.inner.singleton.get()
    }

    /// Returns the application state.
    #[must_use]
    pub fn app(&self) -> &App {
        &self.inner.app
    }

    /// Returns the store handle, for instance to enqueue more jobs.
    #[must_use]
    pub fn tenure(&self) -> &Tenure {
        &self.inner.tenure
    }

    /// Returns the job as it was when it was claimed.
    #[must_use]
    pub fn job(&self) -> &JobRecord {
        &self.inner.job
    }

    /// Returns the job ID. It is the same in every attempt, so it can serve as an idempotency key.
    #[must_use]
    pub fn id(&self) -> JobId {
        self.inner.job.id
    }

    /// Returns the run of the timer that enqueued this job: its scheduled time, its actual time, and whether it is
    /// past due. `None` if the job does not come from a timer.
    #[must_use]
    pub fn slot(&self) -> Option<&TimerSlot> {
        self.inner.job.terms.slot.as_ref()
    }

    /// Returns the delay between the scheduled time and the grant of this attempt. It includes waiting in line,
    /// earlier attempts and jitter, but not the time in a worker that prefetches jobs. `None` if the job does not
    /// come from a timer. [`TimerSlot::lateness`] is the delay of the enqueue.
    #[must_use]
    pub fn lateness(&self) -> Option<Duration> {
        self.slot().map(|slot| self.began().since(slot.awaited()))
    }

    /// Returns `true` if the job comes from a timer and is past due: its run was missed and caught up, or stands for
    /// earlier missed runs, or this attempt began more than a minute after the enqueue.
    #[must_use]
    pub fn is_past_due(&self) -> bool {
        self.slot().is_some_and(|slot| slot.past_due || self.began().since(slot.fired) > IN_TIME)
    }

    fn began(&self) -> Timestamp {
        self.inner.job.started.unwrap_or(self.inner.job.created)
    }

    /// Returns the attempt number: 1, 2, …
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.inner.job.attempt
    }

    /// Returns the fencing token, which is greater than that of every earlier attempt. A resource outside the store
    /// is protected from late writers if it rejects smaller ones, as a [`FenceGate`](crate::FenceGate) does.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.inner.job.fence
    }

    /// Returns `true` while this attempt owns the job, by this host's own deadline. It turns false on time even if
    /// everything else hangs.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.inner.control.is_held()
    }

    /// Returns the time on this host's monotonic clock until which [`is_held`](Run::is_held) stays true unless the job is
    /// renewed, and the lease of its singleton with it. Pass it to a process that must not outlive the ownership.
    #[must_use]
    pub fn held_until(&self) -> Moment {
        let until = self.inner.control.trust().deadline;
        self.singleton().and_then(Pass::held_until).map_or(until, |pass| pass.min(until))
    }

    /// Checks, within your own transaction on the store's SQLite file, that this attempt still owns the job. Nobody
    /// else can take the job before the transaction ends, so its writes are never late.
    ///
    /// Call it first in a transaction that began with `BEGIN IMMEDIATE`.
    ///
    /// # Errors
    /// Returns why nothing may be written. Roll back on any error.
    pub fn check_in(&self, conn: &Connection) -> Result<(), CheckInError> {
        if !self.is_held() {
            return Err(CheckInError::Lost);
        }
        check_job(conn, &self.inner.control.held())
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn control(&self) -> &Control {
        &self.inner.control
    }

    /// Returns why this attempt must stop; `None` while it may continue.
    #[must_use]
    pub fn stopping(&self) -> Option<Stopping> {
        self.inner.control.stopping()
    }

    /// Resolves when this attempt must stop.
    pub async fn stopped(&self) -> Stopping {
        self.inner.control.stopped().await
    }

    /// Sleeps by the injected clock, or until the attempt must stop.
    ///
    /// # Errors
    /// Returns why the attempt must stop.
    pub async fn sleep(&self, span: Duration) -> Result<(), CutShort> {
        tokio::select! {
            biased;
            why = self.stopped() => Err(CutShort(why)),
            () = self.inner.control.nap(span) => Ok(()),
        }
    }

    /// Reports progress, from 0 to 1. It is stored soon, not at once; the latest report counts.
    ///
    /// # Errors
    /// Refuses NaN and values outside 0 to 1.
    pub fn progress(&self, fraction: f64, message: &str) -> Result<(), Invalid> {
        let progress = Progress::new(fraction, message)?;
        self.inner.reports.progress(&self.inner.control, progress);
        Ok(())
    }

    /// Appends a line to the job's log. Lines are limited in length and number.
    pub fn log(&self, line: &str) {
        let now = self.inner.tenure.now();
        self.inner.reports.line(&self.inner.control, self.inner.job.delivery, now, line);
    }

    /// Stores pending progress and log lines now, and returns whether the store has all of them. Call it if you log
    /// more than the buffer of 1,000 lines in one go.
    pub async fn logged(&self) -> bool {
        self.inner.reports.flush(self.inner.tenure.store()).await;
        self.inner.reports.has_all_of(&self.inner.control)
    }

    /// Sets the path of the resource that this job creates, such as `/stars/7`. It counts if the attempt succeeds.
    ///
    /// # Errors
    /// Refuses an empty or overlong path, and control characters.
    pub fn place(&self, path: &str) -> Result<(), Invalid> {
        Output::new(Vec::new(), Some(path.to_owned()))?;
        self.inner.control.set_place(path);
        Ok(())
    }
}

impl<App> Clone for Run<App> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<App> fmt::Debug for Run<App> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Run({} attempt {} fence {})", self.id(), self.attempt(), self.fence())
    }
}

/// A wait ended early because the attempt must stop.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", words(.0))]
pub struct CutShort(pub Stopping);

fn words(why: &Stopping) -> String {
    match why {
        Stopping::Cancelled { reason, .. } => format!("cancelled: {reason}"),
        Stopping::Lost => "the job was lost to another host".to_owned(),
        Stopping::HostStops => "the host is shutting down".to_owned(),
        Stopping::SingletonLost => "the lease of the singleton was lost".to_owned(),
        Stopping::TimedOut => "the attempt timed out".to_owned(),
    }
}
