//! What this program has granted: what makes the ordinary end of a job cheap. It may be forgotten at any time.

use std::collections::BTreeMap;

use tenure_core::{Fence, JobId};

/// Jobs that are kept in mind at most.
const MOST: usize = 200_000;

/// The jobs that were granted under each fence and are not settled.
#[derive(Debug, Default)]
pub(crate) struct Grants {
    by_fence: BTreeMap<Fence, BTreeMap<u64, Grant>>,
    jobs: usize,
}

/// A granted job.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grant {
    pub id: JobId,
    pub lane: i32,
    /// Whether its end means nothing to any other job.
    pub plain: bool,
    /// Whether it has a standing.
    pub alone: bool,
}

impl Grants {
    pub(crate) fn remember(&mut self, fence: Fence, seq: u64, grant: Grant) {
        self.jobs += usize::from(self.by_fence.entry(fence).or_default().insert(seq, grant).is_none());
        while self.jobs > MOST {
            let Some((_, oldest)) = self.by_fence.pop_first() else { return };
            self.jobs -= oldest.len();
        }
    }

    /// Whether such a job is in mind, and its end means nothing to any other job.
    pub(crate) fn is_plain(&self, fence: Fence, seq: u64, id: JobId) -> bool {
        let grant = self.by_fence.get(&fence).and_then(|of_fence| of_fence.get(&seq));
        grant.is_some_and(|grant| grant.id == id && grant.plain)
    }

    /// Takes a grant out of mind.
    pub(crate) fn take(&mut self, fence: Fence, seq: u64, id: JobId) -> Option<Grant> {
        let of_fence = self.by_fence.get_mut(&fence)?;
        if of_fence.get(&seq).is_none_or(|grant| grant.id != id) {
            return None;
        }
        self.jobs -= 1;
        let grant = of_fence.remove(&seq);
        if of_fence.is_empty() {
            self.by_fence.remove(&fence);
        }
        grant
    }

    /// A job has a standing from now on.
    pub(crate) fn stands_alone(&mut self, fence: Fence, seq: u64) {
        if let Some(grant) = self.by_fence.get_mut(&fence).and_then(|of_fence| of_fence.get_mut(&seq)) {
            grant.alone = true;
        }
    }
}
