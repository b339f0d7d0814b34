//! A server's copy of what the store says of queues, so that it need not ask the store at each claim and each new job.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure::{Moment, QueueName, Tenure};

use crate::creators::{Creator, Creators, Share};
use crate::problem::Problem;
use crate::quota::{Exceeded, Quotas};

/// For so long what the store said is believed: so long another server may still go by what was agreed before.
pub(crate) const BELIEVED: Duration = Duration::from_secs(5);

/// Queues that access tokens create.
static CREATED: Share = Share {
    shelf: "queue_creators",
    quota: "queues_per_token",
    about: "the queue does not exist, and access tokens of this name have created too many queues",
    setting: "--queues-per-token",
    field: "queue",
};

/// Names of queues and lease durations of their jobs.
pub(crate) struct KnownQueues {
    met: Mutex<Option<Met>>,
    creators: Creators,
}

impl Default for KnownQueues {
    fn default() -> Self {
        Self { met: Mutex::default(), creators: Creators::new(&CREATED) }
    }
}

/// Queues as the store had them, and those that were admitted since.
struct Met {
    at: Moment,
    leases: BTreeMap<QueueName, Duration>,
    names: BTreeSet<QueueName>,
}

impl Met {
    /// Returns `true` if a queue exists, and refuses one that does not if the quota of the store is used up.
    fn has(&self, quotas: Quotas, queue: &QueueName) -> Result<bool, Problem> {
        if self.names.contains(queue) {
            return Ok(true);
        }
        if self.names.len() < quotas.queues {
            return Ok(false);
        }
        let exceeded = Exceeded {
            quota: "queues",
            about: "the queue does not exist, and the store has too many queues to create it",
            limit: quotas.queues,
            setting: Some("--max-queues"),
            retry_after: None,
        };
        Err(Problem::from(exceeded).with("field", "queue"))
    }
}

impl KnownQueues {
    /// For how long jobs of these queues are granted together: for as long as the one of them wants that wants it longest.
    /// Of a lease that is too short somebody has his job taken away; of one that is too long somebody waits.
    pub(crate) async fn lease(
        &self,
        tenure: &Tenure,
        queues: &[QueueName],
        usual: Duration,
    ) -> Result<Duration, Problem> {
        self.refresh(tenure).await?;
        let met = self.lock();
        let lease = |queue| met.as_ref().and_then(|met| met.leases.get(queue)).copied().unwrap_or(usual);
        Ok(queues.iter().map(lease).max().unwrap_or(usual))
    }

    /// Refuses to create a queue if the store has used up its quota, or tokens of the caller's name their share. Other servers
    /// can exceed both by the queues that they create within five seconds.
    pub(crate) async fn admit(
        &self,
        tenure: &Tenure,
        quotas: Quotas,
        creator: Option<Creator<'_>>,
        queue: &QueueName,
    ) -> Result<(), Problem> {
        if queue.is_own() {
            return Ok(());
        }
        self.refresh(tenure).await?;
        // Another request may have forgotten them at this moment, because it changed a queue.
        let known = self.lock().as_ref().map(|met| met.has(quotas, queue)).transpose()?;
        if known == Some(true) {
            return Ok(());
        }
        if let Some(creator) = creator {
            let has =
                |met: &Met, queue: &str| QueueName::new(queue).is_ok_and(|queue| met.names.contains(&queue));
            let exists = |queue: &str| self.lock().as_ref().is_none_or(|met| has(met, queue));
            self.creators.admit(tenure, creator, queue.as_str(), exists).await?;
        }
        // Other requests may have created queues meanwhile.
        if let Some(met) = self.lock().as_mut()
            && !met.has(quotas, queue)?
        {
            met.names.insert(queue.clone());
        }
        Ok(())
    }

    async fn refresh(&self, tenure: &Tenure) -> Result<(), Problem> {
        let now = tenure.store().clock().moment();
        if let Some(met) = self.lock().as_mut() {
            if now.since(met.at) < BELIEVED {
                return Ok(());
            }
            // Other requests use the old copy while this one asks the store.
            met.at = now;
        }
        let queues = tenure.queues().list().await?;
        let lease = |queue: &tenure::QueueInfo| Some((queue.name.clone(), queue.terms.lease?));
        let leases = queues.iter().filter_map(lease).collect();
        let names = queues.into_iter().map(|queue| queue.name).filter(|name| !name.is_own()).collect();
        *self.lock() = Some(Met { at: now, leases, names });
        Ok(())
    }

    /// Asks the store again: something was agreed through this server.
    pub(crate) fn forget(&self) {
        *self.lock() = None;
        self.creators.forget();
    }

    fn lock(&self) -> MutexGuard<'_, Option<Met>> {
        self.met.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
