//! What a server knows of queues, so that it need not ask the store at each claim.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure::{Moment, QueueName, Tenure};

use crate::problem::Problem;

/// For so long what the store said is believed: so long another server may still go by what was agreed before.
const BELIEVED: Duration = Duration::from_secs(5);

type Leases = Arc<BTreeMap<QueueName, Duration>>;

/// For how long jobs of queues are granted to workers that do not say it.
#[derive(Default)]
pub(crate) struct KnownQueues {
    met: Mutex<Option<(Moment, Leases)>>,
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
        let leases = self.leases(tenure).await?;
        let wanted = queues.iter().map(|queue| leases.get(queue).copied().unwrap_or(usual));
        Ok(wanted.max().unwrap_or(usual))
    }

    async fn leases(&self, tenure: &Tenure) -> Result<Leases, Problem> {
        let now = tenure.store().clock().moment();
        let met = self.lock().clone();
        if let Some((_, leases)) = met.filter(|(at, _)| now.since(*at) < BELIEVED) {
            return Ok(leases);
        }
        let queues = tenure.queues().list().await?.into_iter();
        let leases = queues.filter_map(|queue| Some((queue.name, queue.terms.lease?)));
        let leases = Leases::new(leases.collect());
        *self.lock() = Some((now, Arc::clone(&leases)));
        Ok(leases)
    }

    /// Asks the store again: something was agreed through this server.
    pub(crate) fn forget(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<(Moment, Leases)>> {
        self.met.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
