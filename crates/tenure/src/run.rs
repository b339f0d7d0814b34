//! What a handler knows of its attempt, and can tell about it.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tenure_core::{Fence, Invalid, Job as JobRecord, JobId, Output, Progress, TimerSlot, Timestamp};
use tenure_sqlite::rusqlite::Connection;
use tenure_sqlite::{CheckInError, check_job};

use crate::worker::{Control, Reports};
use crate::{Pass, Tenure};

/// An attempt that begins so soon after its job was enqueued is not past due for that.
const IN_TIME: Duration = Duration::from_secs(60);

/// Why an attempt shall stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stopping {
    /// Somebody cancelled the job.
    Cancelled {
        /// Why.
        reason: String,
        /// When the job is taken from this host if the handler has not stopped.
        deadline: Timestamp,
    },
    /// The job is not this host's any more, or may not be: what it writes now is refused.
    Lost,
    /// The host stops; the job is given back.
    HostStops,
    /// The lease that makes it a singleton is not this host's any more: another attempt may run.
    SingletonLost,
    /// The attempt has taken longer than its timeout.
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

    /// The lease that makes it a singleton, if its kind is one.
    #[must_use]
    pub fn singleton(&self) -> Option<&Pass> {
        self.inner.singleton.get()
    }

    /// The application's state.
    #[must_use]
    pub fn app(&self) -> &App {
        &self.inner.app
    }

    /// The handle on the store, to enqueue more jobs.
    #[must_use]
    pub fn tenure(&self) -> &Tenure {
        &self.inner.tenure
    }

    /// The job, as it was when it was reserved.
    #[must_use]
    pub fn job(&self) -> &JobRecord {
        &self.inner.job
    }

    /// The job's identity: the same in every attempt, so that an outside effect can be done once.
    #[must_use]
    pub fn id(&self) -> JobId {
        self.inner.job.id
    }

    /// The slot for which its timer enqueued it: the nominal instant, when that really was, and whether it is past due.
    /// `None` for a job that comes from no timer.
    #[must_use]
    pub fn slot(&self) -> Option<&TimerSlot> {
        self.inner.job.terms.slot.as_ref()
    }

    /// How much later than its slot the job was granted for this attempt: the wait in line, other attempts and the jitter
    /// included, but not what it waited in a worker that reserves jobs ahead. `None` for a job that comes from no timer. How late the job was enqueued is told by [`TimerSlot::lateness`].
    #[must_use]
    pub fn lateness(&self) -> Option<Duration> {
        self.slot().map(|slot| self.began().since(slot.awaited()))
    }

    /// Whether it comes from a timer and is past due: its slot was missed and brought later, or stands for earlier ones
    /// that were, or this attempt began more than a minute after the job was enqueued.
    #[must_use]
    pub fn is_past_due(&self) -> bool {
        self.slot().is_some_and(|slot| slot.past_due || self.began().since(slot.fired) > IN_TIME)
    }

    fn began(&self) -> Timestamp {
        self.inner.job.started.unwrap_or(self.inner.job.created)
    }

    /// Which attempt this is: 1, 2, …
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.inner.job.attempt
    }

    /// The number of this ownership, greater than that of every earlier attempt. A resource outside
    /// the store is safe from late writers if it refuses smaller ones, as a [`FenceGate`](crate::FenceGate)
    /// does.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.inner.job.fence
    }

    /// Whether the job is still this attempt's, by this host's own deadline. It turns false on time
    /// even if everything else hangs.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.inner.control.is_held()
    }

    /// Verifies in a transaction of one's own on the store's SQLite file that the job is still this attempt's.
    /// From then until the transaction has ended nobody else can take it: what is written in it is never
    /// written late.
    ///
    /// To be called before anything else in a transaction that began with `BEGIN IMMEDIATE`.
    ///
    /// # Errors
    /// Says why nothing may be written. Roll back, whatever it is.
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

    /// Why this attempt shall stop; `None` while it may go on.
    #[must_use]
    pub fn stopping(&self) -> Option<Stopping> {
        self.inner.control.stopping()
    }

    /// Resolves when this attempt shall stop.
    pub async fn stopped(&self) -> Stopping {
        self.inner.control.stopped().await
    }

    /// Waits so long by the injected clock, or until the attempt shall stop.
    ///
    /// # Errors
    /// Why it shall stop.
    pub async fn sleep(&self, span: Duration) -> Result<(), CutShort> {
        tokio::select! {
            biased;
            why = self.stopped() => Err(CutShort(why)),
            () = self.inner.control.nap(span) => Ok(()),
        }
    }

    /// Tells how far the attempt has come, from 0 to 1. Kept soon, not at once; the last one counts.
    ///
    /// # Errors
    /// Refuses NaN and what lies outside 0 to 1.
    pub fn progress(&self, fraction: f64, message: &str) -> Result<(), Invalid> {
        let progress = Progress::new(fraction, message)?;
        self.inner.reports.progress(&self.inner.control, progress);
        Ok(())
    }

    /// Logs a line for whoever looks at this job. Bounded in length and number.
    pub fn log(&self, line: &str) {
        let now = self.inner.tenure.now();
        self.inner.reports.line(&self.inner.control, self.inner.job.delivery, now, line);
    }

    /// Writes now what this attempt has told, and says whether the store has all of it. For whoever logs more in one go than
    /// is kept waiting: a thousand lines.
    pub async fn logged(&self) -> bool {
        self.inner.reports.flush(self.inner.tenure.store()).await;
        self.inner.reports.has_all_of(&self.inner.control)
    }

    /// Says where that lies which this job creates, such as `/stars/7`. It counts if the attempt succeeds.
    ///
    /// # Errors
    /// Refuses an empty or overlong path and control characters.
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

/// A wait was cut short because the attempt shall stop.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", words(.0))]
pub struct CutShort(pub Stopping);

fn words(why: &Stopping) -> String {
    match why {
        Stopping::Cancelled { reason, .. } => format!("cancelled: {reason}"),
        Stopping::Lost => "the job was lost to another host".to_owned(),
        Stopping::HostStops => "the host stops".to_owned(),
        Stopping::SingletonLost => "the lease of the singleton was lost".to_owned(),
        Stopping::TimedOut => "the attempt took too long".to_owned(),
    }
}
