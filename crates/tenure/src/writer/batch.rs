//! Messages in the hands of a writer, and what it does with them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::task::Poll;

use tenure_core::{Job, Reserved};
use tenure_store::{Clock, Held, Moment};

use super::order::is_in_line;
use crate::Stopping;
use crate::worker::{Control, Holding, Lease};

/// Messages that a writer holds. What is left in it when it is dropped is not renewed any more: it lapses.
pub(super) struct Batch {
    messages: Vec<(Reserved, Arc<Control>)>,
    holding: Arc<Holding>,
}

impl Batch {
    /// Holds what was granted in answer to a request that was sent at `sent`.
    pub(super) fn hold(
        jobs: Vec<Reserved>,
        (clock, lease, sent): (&Arc<dyn Clock>, Lease, Moment),
        holding: &Arc<Holding>,
    ) -> Self {
        let trust = lease.trust_from(sent);
        let control = |reserved: &Reserved| {
            let job = reserved.job();
            let held = Held { id: job.id, seq: job.seq, fence: job.fence };
            Arc::new(Control::new(held, Arc::clone(clock), trust))
        };
        let mut messages: Vec<_> =
            jobs.into_iter().map(|reserved| (control(&reserved), reserved)).map(|(c, r)| (r, c)).collect();
        // Those that have no place among the others come as they were handed out: before them.
        messages.sort_by_key(|(reserved, _)| (is_in_line(reserved.job()), reserved.job().seq));
        holding.add(messages.iter().map(|(_, control)| Arc::clone(control)));
        Self { messages, holding: Arc::clone(holding) }
    }

    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    /// The numbers of those that have a place among the others.
    pub(super) fn in_line(&self) -> BTreeSet<u64> {
        let jobs = self.messages.iter().map(|(reserved, _)| reserved.job());
        jobs.filter(|job| is_in_line(job)).map(|job| job.seq).collect()
    }

    pub(super) fn jobs(&self) -> Vec<Job> {
        self.messages.iter().map(|(reserved, _)| reserved.job().clone()).collect()
    }

    /// The messages behind the first so many.
    pub(super) fn split_off(&mut self, at: usize) -> Self {
        let messages = self.messages.split_off(at.min(self.messages.len()));
        Self { messages, holding: Arc::clone(&self.holding) }
    }

    /// Whether all of them are held, as far as this host may believe.
    pub(super) fn is_held(&self) -> bool {
        self.messages.iter().all(|(_, control)| control.is_held())
    }

    /// Resolves when one of them shall not be gone on with: it was cancelled, or lost.
    pub(super) async fn stopped(&self) -> Stopping {
        let mut waits: Vec<_> =
            self.messages.iter().map(|(_, control)| Box::pin(control.stopped())).collect();
        std::future::poll_fn(|context| {
            for wait in &mut waits {
                if let Poll::Ready(why) = wait.as_mut().poll(context) {
                    return Poll::Ready(why);
                }
            }
            Poll::Pending
        })
        .await
    }

    /// The proofs, to be settled. From here on others see that they are renewed.
    pub(super) fn take(&mut self) -> Vec<(Reserved, Arc<Control>)> {
        std::mem::take(&mut self.messages)
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.holding.remove(self.messages.iter().map(|(_, control)| control));
    }
}
