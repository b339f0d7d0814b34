//! Jobs that are enqueued or completed in a transaction of the caller.

use std::collections::BTreeSet;

use tenure_core::{JobId, NewJob, limits};
use tenure_store::{Answer, Call, Enqueued, Fault, Filter, Joint, PageAsk, Prepared, TxnRequest, Values};

use super::SealedStore;

/// Available only if the inner store supports transactions of the caller.
impl Joint for SealedStore {
    fn prepare(&self, request: TxnRequest) -> Answer<'_, Prepared> {
        Box::pin(async move {
            let sealed = match request {
                TxnRequest::Enqueue { jobs, given } => {
                    TxnRequest::Enqueue { jobs: self.seal_all(&jobs, &given).await?, given }
                }
                TxnRequest::Complete { held, kept_for, output } => {
                    let output = output.map(|output| self.vault.seal_output(&held.id, output)).transpose()?;
                    TxnRequest::Complete { held, kept_for, output }
                }
                check @ (TxnRequest::CheckLease { .. } | TxnRequest::CheckJob { .. }) => check,
            };
            self.inner_joint()?.prepare(sealed).await
        })
    }

    fn statement(&self, prepared: &Prepared) -> Result<Call, Fault> {
        self.inner_joint()?.statement(prepared)
    }

    fn answered(&self, prepared: &Prepared, answer: &str) -> Result<Enqueued, Fault> {
        self.inner_joint()?.answered(prepared, answer)
    }
}

impl SealedStore {
    /// Encrypts jobs. A repeated job, which may be stored under another key or plain, gets its stored bytes.
    async fn seal_all(&self, jobs: &[NewJob], given: &[JobId]) -> Result<Vec<NewJob>, Fault> {
        let mut sealed = self.vault.seal_jobs(jobs)?;
        if self.vault.seals() {
            let stored = self.stored_among(given).await?;
            for (sealed, new) in sealed.iter_mut().zip(jobs).filter(|(_, new)| stored.contains(&new.id)) {
                self.as_stored(sealed, new).await?;
            }
        }
        Ok(sealed)
    }

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
        self.inner.extras().joint.ok_or_else(|| Fault::Broken("this store has no transactions".to_owned()))
    }
}
