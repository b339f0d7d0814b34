//! Jobs that are enqueued or completed in a transaction of the caller.

use std::time::Duration;

use tenure_core::{Fence, JobId, LeaseId, LeaseName, NewJob, Output};
use tenure_store::{Answer, Call, Enqueued, Fault, Held, Joint, Prepared};

use super::SealedStore;

/// Available only if the inner store supports transactions of the caller.
impl Joint for SealedStore {
    fn prepare(&self, jobs: Vec<NewJob>, given: Vec<JobId>) -> Answer<'_, Prepared> {
        Box::pin(async move {
            let mut sealed = self.vault.seal_jobs(&jobs)?;
            if self.vault.seals() {
                self.as_stored(&mut sealed, &jobs, &given).await?;
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
        kept_for: Option<Duration>,
        output: Option<&Output>,
    ) -> Result<Call, Fault> {
        let sealed = output.map(|output| self.vault.seal_output(&held.id, output.clone())).transpose()?;
        self.inner_joint()?.complete(held, kept_for, sealed.as_ref())
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
    fn inner_joint(&self) -> Result<&dyn Joint, Fault> {
        self.inner.joint().ok_or_else(|| Fault::Broken("this store has no transactions".to_owned()))
    }
}
