//! Jobs that are done, and leases that are held, outside of this program, by those who ask through it.

mod leases;
mod line;
mod timers;

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{HostId, Job as JobRecord, Reserved, RetryPolicy, Settlement, Verdict};
use tenure_store::{Held, Renew, Renewal, Report, Reported, Reservation, Reserve, Settled};

use crate::until_known::until_known;
use crate::worker::failures;
use crate::{Error, Tenure};

pub use leases::{LeaseGrant, Leased};
pub(crate) use line::Lines;

/// What workers and holders outside of this program ask of the store through it.
///
/// Whoever offers this to others has to make sure that they are who was granted a job or a lease: a fence is a small
/// number, and can be guessed.
#[derive(Debug)]
pub struct Remote<'a> {
    tenure: &'a Tenure,
}

/// What was granted to a worker elsewhere.
#[derive(Debug, Default)]
pub struct Claimed {
    /// The jobs, in the order in which they shall start.
    pub jobs: Vec<Arc<JobRecord>>,
    /// In how long the store expects something to become due. A hint: it may be early.
    pub due_in: Option<Duration>,
}

/// How a worker elsewhere ended a job that it was granted.
#[derive(Debug)]
pub struct Ending {
    /// The job as it was granted: its fence is the one under which it is ended.
    pub job: Arc<JobRecord>,
    /// How it went.
    pub verdict: Verdict,
}

impl<'a> Remote<'a> {
    pub(crate) fn new(tenure: &'a Tenure) -> Self {
        Self { tenure }
    }

    /// An id for a worker elsewhere.
    #[must_use]
    pub fn draw_worker(&self) -> HostId {
        self.tenure.draw_host()
    }

    /// Holds jobs for so long from now; one answer each.
    ///
    /// # Errors
    /// A fault of the store.
    pub async fn renew(&self, ttl: Duration, jobs: &[Arc<JobRecord>]) -> Result<Vec<Renewal>, Error> {
        let held = jobs.iter().map(|job| held(job)).collect();
        Ok(self.tenure.store().renew(Renew { ttl, held }).await?)
    }

    /// Keeps progress and log lines; one answer each.
    ///
    /// # Errors
    /// A fault of the store.
    pub async fn report(&self, reports: Vec<Report>) -> Result<Vec<Reported>, Error> {
        Ok(self.tenure.store().report(reports).await?)
    }

    /// Ends jobs, each under its own fence, and then grants others. One answer for each end.
    ///
    /// # Errors
    /// A fault of the store. Ending the same again is harmless.
    pub async fn settle(
        &self,
        endings: Vec<Ending>,
        mut then: Option<Reserve>,
    ) -> Result<(Vec<Settled>, Claimed), Error> {
        // What a worker's own policy for a kind is, no worker elsewhere has said: the job's counts, or the usual one.
        let policy = RetryPolicy::default();
        let settle = |Ending { job, verdict }| {
            Reserved::granted(JobRecord::clone(&job)).settle(
                verdict,
                &policy,
                self.tenure.chance().fraction(),
            )
        };
        let jobs: Vec<Arc<JobRecord>> = endings.iter().map(|ending| Arc::clone(&ending.job)).collect();
        let settlements: Vec<Settlement> = endings.into_iter().map(settle).collect();
        // A claim is not repeated: it may have granted jobs, whose leases expire.
        let mut settle = || self.tenure.store().settle(settlements.clone(), then.take());
        let turn = match settlements.is_empty() {
            true => settle().await?,
            false => until_known(settle).await?,
        };
        let settled = || {
            let settled = jobs.iter().zip(&settlements).zip(&turn.settled);
            settled.map(|((job, settlement), settled)| (&**job, settlement, *settled))
        };
        let now = self.tenure.now();
        // A report that a client repeats was logged the first time.
        for (job, settlement, settled) in settled().filter(|(_, _, settled)| *settled != Settled::Repeated) {
            failures::log(job, || policy.clone(), (settlement, settled), now);
        }
        self.tenure.heap().settled(settled(), now);
        self.tenure.heap().granted(turn.reservation.jobs.iter().map(Reserved::job));
        Ok((turn.settled, Claimed::of(turn.reservation)))
    }

    /// Gives back what was granted to somebody who will not hear of it. No attempt is spent.
    pub async fn give_back(&self, claimed: Claimed) {
        let endings = claimed.jobs.into_iter().map(|job| Ending { job, verdict: Verdict::Released });
        let endings: Vec<Ending> = endings.collect();
        if endings.is_empty() {
            return;
        }
        if let Err(error) = self.settle(endings, None).await {
            tracing::warn!(%error, "failed to release undelivered jobs; their leases will expire");
        }
    }
}

impl Claimed {
    fn of(reservation: Reservation) -> Self {
        let jobs = reservation.jobs.into_iter().map(|reserved| reserved.shared()).collect();
        Self { jobs, due_in: reservation.due_in }
    }
}

/// The ownership of a job that was granted.
#[must_use]
pub fn held(job: &JobRecord) -> Held {
    Held { id: job.id, seq: job.seq, fence: job.fence }
}
