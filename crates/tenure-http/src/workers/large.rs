//! Queues with large jobs. A server counts the memory of a grant only after the store has read it, so claims of such queues
//! take less with one look, and few of them look at once. Claims of other queues are not affected.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenure::{JobRecord, QueueName, Reserve};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::grant::{MOST_BYTES, PORTION};
use crate::filling::weight;

/// Queues that are remembered. With more, all are forgotten, and the next grants tell which of them have large jobs.
const MOST_QUEUES: usize = 1_000;
/// Claims of queues with large jobs that look at once.
const LOOKS: usize = 16;

/// The queues whose last grant had jobs that are too large for a full portion.
pub(crate) struct LargeQueues {
    /// Bytes of a job, on average over the last grant.
    of: Mutex<BTreeMap<QueueName, usize>>,
    /// `false` if there are none, which is usual.
    any: AtomicBool,
    looks: Semaphore,
}

/// The permission of one claim to look for jobs.
pub(super) struct Look<'a> {
    /// Jobs that it may take at once.
    pub at_once: usize,
    _permit: Option<SemaphorePermit<'a>>,
}

impl Default for LargeQueues {
    fn default() -> Self {
        Self { of: Mutex::default(), any: AtomicBool::new(false), looks: Semaphore::new(LOOKS) }
    }
}

impl LargeQueues {
    /// Returns the permission for a claim, or nothing if one of its queues has large jobs and other claims look already.
    pub(super) fn look_now(&self, ask: &Reserve) -> Option<Look<'_>> {
        let at_once = self.at_once(ask);
        let permit = if at_once < PORTION { Some(self.looks.try_acquire().ok()?) } else { None };
        Some(Look { at_once, _permit: permit })
    }

    /// Waits for the permission for a claim of a queue with large jobs.
    pub(super) async fn look(&self, ask: &Reserve) -> Look<'_> {
        // The semaphore never closes.
        let permit = self.looks.acquire().await.ok();
        Look { at_once: self.at_once(ask), _permit: permit }
    }

    fn at_once(&self, ask: &Reserve) -> usize {
        if !self.any.load(Ordering::Relaxed) {
            return PORTION;
        }
        let of = self.lock();
        let largest = ask.wants.iter().filter_map(|want| of.get(&want.queue)).max();
        largest.map_or(PORTION, |bytes| (MOST_BYTES / bytes.max(&1)).clamp(1, PORTION))
    }

    /// Notes the sizes of granted jobs.
    pub(super) fn note(&self, jobs: &[Arc<JobRecord>]) {
        let bytes: usize = jobs.iter().map(|job| weight(job)).sum();
        let average = bytes.checked_div(jobs.len()).unwrap_or(0);
        let is_large = average > MOST_BYTES / PORTION;
        if jobs.is_empty() || (!is_large && !self.any.load(Ordering::Relaxed)) {
            return;
        }
        let mut of = self.lock();
        for job in jobs {
            if !is_large {
                of.remove(&job.queue);
            } else if let Some(known) = of.get_mut(&job.queue) {
                *known = average;
            } else {
                if of.len() >= MOST_QUEUES {
                    of.clear();
                }
                of.insert(job.queue.clone(), average);
            }
        }
        self.any.store(!of.is_empty(), Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<QueueName, usize>> {
        self.of.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt;
    use tenure::{Chance, Draft, Kinds, MemoryStore, SystemClock, Tenure, Want};

    use super::*;

    async fn jobs(queue: &str, bytes: usize) -> Vec<Arc<JobRecord>> {
        let tenure = Tenure::on(Arc::new(MemoryStore::new(Arc::new(SystemClock))), Chance::seeded(1));
        let draft = Draft::raw("k", &serde_json::json!("x".repeat(bytes))).queue(queue);
        let id = tenure.enqueue_draft(draft).await.unwrap().id();
        let job = Arc::new(tenure.jobs().get(id).await.unwrap());
        vec![job; 3]
    }

    fn ask(tenure: &Tenure, queue: &str) -> Reserve {
        let want = Want { queue: QueueName::new(queue).unwrap(), kinds: Kinds::All, at_most: 500 };
        let (holder, ttl) = (tenure.remote().draw_worker(), Duration::from_secs(30));
        Reserve { holder, ttl, wants: vec![want], at_most: 500 }
    }

    #[tokio::test]
    async fn claims_of_a_queue_with_large_jobs_take_less_at_once_and_wait_for_each_other() {
        let tenure = Tenure::on(Arc::new(MemoryStore::new(Arc::new(SystemClock))), Chance::seeded(1));
        let (large, small) = (ask(&tenure, "large"), ask(&tenure, "small"));
        let queues = LargeQueues::default();
        assert_eq!(queues.look_now(&large).unwrap().at_once, PORTION, "nothing is known yet");
        queues.note(&jobs("large", 250 * 1024).await);
        queues.note(&jobs("small", 100).await);
        let mut looks = Vec::new();
        for _ in 0..LOOKS {
            looks.push(queues.look_now(&large).unwrap());
            assert_eq!(looks[0].at_once, 32);
        }
        assert!(queues.look_now(&large).is_none(), "the memory of 16 grants is enough");
        assert!(queues.look(&large).now_or_never().is_none());
        for _ in 0..100 {
            looks.push(queues.look_now(&small).unwrap());
        }
        assert_eq!(looks.pop().unwrap().at_once, PORTION);
        queues.note(&jobs("large", 100).await);
        assert_eq!(queues.look_now(&large).unwrap().at_once, PORTION, "its jobs are small now");
    }
}
