//! Jobs that are enqueued or completed in a transaction of the caller.

use std::collections::BTreeSet;
use std::time::Duration;

use tenure_core::{Fence, HostId, JobId, LeaseId, LeaseName, NewJob, Output, limits};
use tenure_store::{Answer, Call, Enqueued, Fault, Filter, Held, Joint, PageAsk, Prepared, Values};

use super::SealedStore;

/// Available only if the inner store supports transactions of the caller.
impl Joint for SealedStore {
    fn prepare(&self, jobs: Vec<NewJob>, given: Vec<JobId>) -> Answer<'_, Prepared> {
        Box::pin(async move {
            let mut sealed = self.vault.seal_jobs(&jobs)?;
            if self.vault.seals() {
                // A repeated job may be stored under another key or plain.
                let stored = self.stored_among(&given).await?;
                for (sealed, new) in sealed.iter_mut().zip(&jobs).filter(|(_, new)| stored.contains(&new.id))
                {
                    self.as_stored(sealed, new).await?;
                }
            }
            self.inner_joint()?.prepare(sealed, given).await
        })
    }

    fn enqueue(&self, jobs: &Prepared) -> Result<Call, Fault> {
        self.inner_joint()?.enqueue(jobs)
    }

    fn enqueued(&self, jobs: &Prepared, answer: &str) -> Result<Enqueued, Fault> {
        self.inner_joint()?.enqueued(jobs, answer)
    }

    fn prepare_end<'a>(&'a self, held: &'a Held) -> Answer<'a, ()> {
        Box::pin(async move { self.inner_joint()?.prepare_end(held).await })
    }

    fn complete(
        &self,
        held: &Held,
        holder: Option<HostId>,
        kept_for: Option<Duration>,
        output: Option<&Output>,
    ) -> Result<Call, Fault> {
        let sealed = output.map(|output| self.vault.seal_output(&held.id, output.clone())).transpose()?;
        self.inner_joint()?.complete(held, holder, kept_for, sealed.as_ref())
    }

    fn completed(&self, answer: &str) {
        if let Ok(inner) = self.inner_joint() {
            inner.completed(answer);
        }
    }

    fn check_lease(&self, name: &LeaseName, id: LeaseId, fence: Fence) -> Result<Call, Fault> {
        self.inner_joint()?.check_lease(name, id, fence)
    }

    fn check_job(&self, held: &Held) -> Result<Call, Fault> {
        self.inner_joint()?.check_job(held)
    }
}

impl SealedStore {
    /// Returns those of these IDs under which a job is stored.
    async fn stored_among(&self, ids: &[JobId]) -> Result<BTreeSet<JobId>, Fault> {
        let mut stored = BTreeSet::new();
        for ids in ids.chunks(limits::PAGE_JOBS) {
            let filter = Filter { ids: ids.to_vec(), ..Filter::default() };
            let (at_most, values) = (limits::PAGE_JOBS, Values::Omitted);
            let mut ask = PageAsk { filter, at_most, values, ..PageAsk::default() };
            loop {
                let page = self.inner.jobs(ask.clone()).await?;
                stored.extend(page.jobs.iter().map(|job| job.id));
                ask.after = page.next;
                if ask.after.is_none() {
                    break;
                }
            }
        }
        Ok(stored)
    }

    fn inner_joint(&self) -> Result<&dyn Joint, Fault> {
        self.inner.joint().ok_or_else(|| Fault::Broken("this store has no transactions".to_owned()))
    }
}
