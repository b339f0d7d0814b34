//! Memory and connections that all push endpoints of a server may use together.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tenure::{Clock, JobRecord, limits};

use super::pool::{Pool, Taken};
use crate::filling::weight;

/// Jobs that a server sends at once: so many to each endpoint, and so many more to all of them together.
const OWN_SENDS: usize = 5;
const COMMON_SENDS: usize = 2_000;
/// Memory of these jobs.
const OWN_BYTES: usize = LARGEST_JOB;
const COMMON_BYTES: usize = 128 * 1024 * 1024;
/// Responses larger than [`SMALL_RESPONSE`] that a server reads at once.
const OWN_LARGE: usize = 1;
const COMMON_LARGE: usize = 256;
/// Memory for the largest job: its args, its metadata, the messages of its last attempt, and the record itself.
const LARGEST_JOB: usize = limits::ARGS_BYTES + limits::META_ENTRIES * limits::META_BYTES + 64 * 1024;
/// Bytes of a job beside its values.
const RECORD_BYTES: usize = 2 * 1024;
/// Bytes of a response that do not count.
pub(crate) const SMALL_RESPONSE: usize = 16 * 1024;
/// Delay after which the server tries again to read a large response.
const RETRY: Duration = Duration::from_millis(100);

/// The budget of a server.
#[derive(Debug, Clone)]
pub(super) struct Budget {
    sends: Pool,
    bytes: Pool,
    large: Pool,
}

/// Room for jobs that an endpoint is about to claim.
#[derive(Debug)]
pub(super) struct Room {
    pub(super) jobs: usize,
    sends: Taken,
    bytes: Taken,
}

/// Room for one job.
#[derive(Debug)]
pub(super) struct JobRoom {
    _send: Taken,
    _bytes: Taken,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            sends: Pool::new(OWN_SENDS, COMMON_SENDS),
            bytes: Pool::new(OWN_BYTES, COMMON_BYTES),
            large: Pool::new(OWN_LARGE, COMMON_LARGE),
        }
    }
}

impl Budget {
    /// Creates a budget for tests: each endpoint sends one job, and all together send so many more.
    #[cfg(test)]
    pub(super) fn of(sends: usize) -> Self {
        Self { sends: Pool::new(1, sends), ..Self::default() }
    }

    /// Takes room for at most so many jobs, each of the largest size; nothing if there is none for even one.
    pub(super) fn room(&self, name: &Arc<str>, most: usize) -> Option<Room> {
        let (jobs, mut sends) = self.sends.take(name, most, 1)?;
        let (jobs, bytes) = self.bytes.take(name, jobs, LARGEST_JOB)?;
        sends.shrink(jobs);
        Some(Room { jobs, sends, bytes })
    }

    /// Returns the permission to read the response to one job, even a large one.
    pub(super) fn response(&self, name: &Arc<str>, clock: Arc<dyn Clock>) -> LargeResponse {
        LargeResponse { pool: self.large.clone(), name: Arc::clone(name), clock, taken: OnceLock::new() }
    }
}

impl Room {
    /// Splits off the room for a claimed job.
    pub(super) fn of(&mut self, job: &JobRecord) -> JobRoom {
        let bytes = weight(job).saturating_add(RECORD_BYTES);
        JobRoom { _send: self.sends.split(1), _bytes: self.bytes.split(bytes) }
    }
}

/// Memory for a response, which it takes when the response turns out to be large.
pub(crate) struct LargeResponse {
    pool: Pool,
    name: Arc<str>,
    clock: Arc<dyn Clock>,
    taken: OnceLock<Taken>,
}

impl LargeResponse {
    /// Waits until the response may be large. Meanwhile the server reads no more of it.
    pub(crate) async fn admit(&self) {
        while self.taken.get().is_none() {
            match self.pool.take(&self.name, 1, 1) {
                Some((_, taken)) => drop(self.taken.set(taken)),
                None => self.clock.sleep(RETRY).await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tenure::ManualClock;

    use super::*;

    #[test]
    fn an_endpoint_with_large_jobs_leaves_memory_to_the_others() {
        let budget = Budget::default();
        let name = Arc::from("greedy");
        let rooms: Vec<Room> = std::iter::from_fn(|| budget.room(&name, 1_000)).collect();
        let jobs: usize = rooms.iter().map(|room| room.jobs).sum();
        assert!((150..=1 + COMMON_BYTES / 2 / LARGEST_JOB).contains(&jobs), "{jobs}");
        assert!(budget.room(&Arc::from("other"), 1_000).is_some_and(|room| room.jobs > 50));
        drop(rooms);
        assert!(budget.room(&name, 1_000).is_some_and(|room| room.jobs > 150));
    }

    #[tokio::test]
    async fn a_large_response_waits_until_others_are_read() {
        let clock = ManualClock::new();
        let budget = Budget { large: Pool::new(1, 0), ..Budget::default() };
        let response = |name: &str| budget.response(&Arc::from(name), Arc::new(clock.clone()));
        let (first, second, other) = (response("a"), response("a"), response("b"));
        first.admit().await;
        other.admit().await;
        let mut waits = Box::pin(second.admit());
        assert!(waits.as_mut().now_or_never().is_none());
        drop(first);
        clock.advance(RETRY);
        assert!(waits.now_or_never().is_some());
    }
}
