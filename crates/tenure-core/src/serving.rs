//! What hosts serve, and whether they have a slot left for a job.

use serde::{Deserialize, Serialize};

use crate::{HostId, Job, JobId, Kind, QueueName};

/// A queue served by a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Serves {
    /// The queue.
    pub queue: QueueName,
    /// The kinds it has handlers for; `None` means every kind.
    pub kinds: Option<Vec<Kind>>,
    /// Number of jobs of the queue that it runs at once.
    pub slots: u32,
    /// `true` if handlers that wait for other jobs occupied all slots for the queue at the host's last heartbeat.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all_waiting: bool,
}

impl Serves {
    /// Whether a job of this queue and kind may be reserved under these terms.
    #[must_use]
    pub fn covers(&self, queue: &QueueName, kind: &Kind) -> bool {
        self.queue == *queue && self.kinds.as_ref().is_none_or(|kinds| kinds.contains(kind))
    }
}

/// A live host that serves a job's queue, and what it is busy with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Serving {
    /// The host.
    pub host: HostId,
    /// How many jobs it runs at once, of all queues together.
    pub slots: u32,
    /// What it serves of the queue.
    pub serves: Vec<Serves>,
    /// Jobs of the queue that it runs now.
    pub running: u32,
    /// Jobs of other queues that it runs now.
    pub elsewhere: u32,
}

impl Serving {
    /// Whether it has a handler for the job.
    #[must_use]
    pub fn covers(&self, job: &Job) -> bool {
        self.serves.iter().any(|serves| serves.covers(&job.queue, &job.kind))
    }

    /// Returns `true` if handlers that wait for other jobs occupied all slots for the job at the last heartbeat.
    #[must_use]
    pub fn is_all_waiting(&self, job: &Job) -> bool {
        let mut covering = self.serves.iter().filter(|serves| serves.covers(&job.queue, &job.kind));
        covering.all(|serves| serves.all_waiting)
    }

    /// Whether a slot is free for the job, and if not, what it would have to get one of.
    #[must_use]
    pub fn room(&self, job: &Job) -> Room {
        let covering = self.serves.iter().filter(|serves| serves.covers(&job.queue, &job.kind));
        let of_queue = covering.map(|serves| serves.slots).fold(0, u32::saturating_add).min(self.slots);
        if self.running >= of_queue {
            return Room::QueueFull { slots: of_queue };
        }
        let in_all = self.running.saturating_add(self.elsewhere);
        if in_all >= self.slots {
            return Room::HostFull { slots: self.slots };
        }
        Room::Free { slots: (of_queue - self.running).min(self.slots - in_all) }
    }
}

/// What room a host has for a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// It has some.
    Free {
        /// How many jobs of the queue it would take.
        slots: u32,
    },
    /// Jobs of the same queue have all that it gives to the queue.
    QueueFull {
        /// How many slots that are.
        slots: u32,
    },
    /// The queue could have more, but jobs of other queues have them.
    HostFull {
        /// How many slots it has in all.
        slots: u32,
    },
}

/// A job that takes a slot another waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AtWork {
    /// The job.
    pub id: JobId,
    /// Who has it.
    pub holder: HostId,
    /// Whether it is of another queue.
    pub elsewhere: bool,
}
