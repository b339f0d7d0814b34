//! What was granted to a worker that has not heard of it yet.

use std::time::Duration;

use tenure::{Claimed, Reserve, Tenure};
use tokio::runtime::Handle;

use crate::api::Api;
use crate::filling::weight;
use crate::memory::Loan;
use crate::problem::Problem;

/// Maximum bytes of args and metadata in one grant. A larger job is granted alone; the next claim gets the other jobs.
pub(super) const MOST_BYTES: usize = 8 * 1024 * 1024;
/// Bytes that each entry of a response counts as, in addition to the args and metadata of a job.
const ENTRY_BYTES: usize = 1024;
/// Jobs that are granted with one look, so that no more is read than four times what can be told.
pub(super) const PORTION: usize = 128;

/// The first portion of what is asked for: so many jobs at most.
pub(super) fn portion(ask: &Reserve, most: usize) -> Reserve {
    let mut portion = Reserve { at_most: most, ..ask.clone() };
    portion.wants.iter_mut().for_each(|want| want.at_most = want.at_most.min(most));
    portion
}

/// A grant on its way to a worker. If it does not arrive, because the worker has hung up, it is given back at once, and no
/// attempt is spent.
pub(crate) struct Grant {
    tenure: Tenure,
    claimed: Claimed,
    /// Memory of the client, which the response takes over.
    loan: Option<Loan>,
}

impl Grant {
    pub(crate) fn new(tenure: &Tenure, claimed: Claimed) -> Self {
        Self { tenure: tenure.clone(), claimed, loan: None }
    }

    /// The same with what else there is of what was asked for, as much as can be told in one answer.
    pub(super) async fn completed(mut self, ask: &Reserve, at_once: usize) -> Self {
        let mut last = self.len();
        while last == at_once && self.len() < ask.at_most && self.bytes() < MOST_BYTES {
            let more = portion(ask, at_once.min(ask.at_most - self.len()));
            // What there is already is told, whatever comes of looking for more.
            let Ok((_, more)) = self.tenure.remote().settle(Vec::new(), Some(more)).await else { break };
            last = more.jobs.len();
            self.claimed.due_in = more.due_in;
            self.claimed.jobs.extend(more.jobs);
        }
        let mut bytes = 0;
        let fits = self.claimed.jobs.iter().take_while(|job| {
            bytes += weight(job);
            bytes <= MOST_BYTES
        });
        let fits = fits.count().max(1);
        if fits < self.len() {
            // Dropped, it is given back; it is there at once for the next one who asks.
            let jobs = self.claimed.jobs.split_off(fits);
            drop(Self::new(&self.tenure, Claimed { jobs, due_in: None }));
            self.claimed.due_in = Some(Duration::ZERO);
        }
        self
    }

    /// Takes memory from the client's share for a response with these jobs and `others` more entries. If the memory does
    /// not suffice, the dropped grant gives its jobs back.
    pub(super) fn admitted(mut self, api: &Api, others: usize) -> Result<Self, Problem> {
        if self.len() == 0 {
            return Ok(self);
        }
        let entries = (self.len() + others) * ENTRY_BYTES;
        let mut loan = api.transfer().responses.lend(api.client().clone());
        loan.grow(self.bytes().saturating_add(entries))?;
        self.loan = Some(loan);
        Ok(self)
    }

    fn bytes(&self) -> usize {
        self.claimed.jobs.iter().map(|job| weight(job)).sum()
    }

    /// A grant of nothing.
    pub(crate) fn none(tenure: &Tenure) -> Self {
        Self::new(tenure, Claimed::default())
    }

    /// How many jobs it is of.
    pub(crate) fn len(&self) -> usize {
        self.claimed.jobs.len()
    }

    /// In how long something becomes due, as far as is known.
    pub(crate) fn due_in(&self) -> Option<Duration> {
        self.claimed.due_in
    }

    /// Returns the jobs for the response to the worker, and the memory of that response.
    pub(crate) fn told(mut self) -> (Claimed, Option<Loan>) {
        (std::mem::take(&mut self.claimed), self.loan.take())
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        let claimed = std::mem::take(&mut self.claimed);
        // Without a runtime the program is ending: it lapses.
        let Ok(runtime) = Handle::try_current() else { return };
        if !claimed.jobs.is_empty() {
            let tenure = self.tenure.clone();
            runtime.spawn(async move { tenure.remote().give_back(claimed).await });
        }
    }
}
