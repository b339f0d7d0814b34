//! Hosts: the running programs that use a store.

use std::time::Duration;

use serde::Serialize;
use tenure_core::{AppId, AppUse, HostId, JobId, QueueName, Serves, Serving, Timestamp};

use crate::Answer;

/// A running program that uses the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Host {
    /// Its ID, generated at start.
    pub id: HostId,
    /// Its name for people, such as `web-3 (pid 4711)`.
    pub name: String,
    /// Time of its first announcement.
    pub started: Timestamp,
    /// Time of its last announcement.
    pub heard: Timestamp,
    /// Time at which it counts as dead unless it announces itself again.
    pub until: Timestamp,
    /// Number of jobs it runs at once, over all queues.
    pub slots: u32,
    /// The queues it serves.
    pub serves: Vec<Serves>,
}

/// A program that stopped without retiring.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LostHost {
    /// The program, as it last announced itself.
    pub host: Host,
    /// Jobs that were taken from it, in order of acceptance; at most [`limits::LOST_JOBS`](tenure_core::limits::LOST_JOBS).
    pub jobs: Vec<JobId>,
}

impl Host {
    /// Returns `true` if it missed announcements: half of the time for which it counts as alive has passed since the last.
    #[must_use]
    pub fn is_silent(&self, now: Timestamp) -> bool {
        now.since(self.heard) > self.until.since(self.heard) / 2
    }

    /// The host as one that serves a queue and runs nothing yet; `None` if it does not serve the queue.
    #[must_use]
    pub fn serving(&self, queue: &QueueName) -> Option<Serving> {
        let serves: Vec<Serves> =
            self.serves.iter().filter(|serves| serves.queue == *queue).cloned().collect();
        let serving = Serving { host: self.id, slots: self.slots, serves, running: 0, elsewhere: 0 };
        (!serving.serves.is_empty()).then_some(serving)
    }
}

/// Who is there.
pub trait Hosts {
    /// Says that a host lives for another `ttl`, how many jobs it runs at once, and what it serves.
    /// Repeating it is harmless.
    fn announce(
        &self,
        id: HostId,
        name: &str,
        slots: u32,
        serves: &[Serves],
        ttl: Duration,
    ) -> Answer<'_, ()>;

    /// Says that a host has gone. Its reservations are not touched: they lapse, or were given back.
    fn retire(&self, id: HostId) -> Answer<'_, ()>;

    /// Says that a program uses an app id. If another does, that one is answered.
    fn claim_app(&self, app: &AppId, program: &str, host: HostId) -> Answer<'_, Result<AppUse, AppUse>>;

    /// The app ids that were ever claimed, by id, and who uses them.
    fn apps(&self) -> Answer<'_, Vec<AppUse>>;

    /// The hosts that are alive, by id.
    fn hosts(&self) -> Answer<'_, Vec<Host>>;

    /// The hosts that stopped without retiring, the latest loss first; at most
    /// [`limits::LOST_HOSTS`](tenure_core::limits::LOST_HOSTS), each for
    /// [`limits::LOST_HOSTS_KEPT`](tenure_core::limits::LOST_HOSTS_KEPT).
    fn lost_hosts(&self) -> Answer<'_, Vec<LostHost>>;
}
