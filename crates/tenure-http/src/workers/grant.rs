//! What was granted to a worker that has not heard of it yet.

use std::time::Duration;

use tenure::{Claimed, Tenure};
use tokio::runtime::Handle;

/// A grant on its way to a worker. If it does not arrive, because the worker has hung up, it is given back at once, and no
/// attempt is spent.
pub(crate) struct Grant {
    tenure: Tenure,
    claimed: Claimed,
}

impl Grant {
    pub(crate) fn new(tenure: &Tenure, claimed: Claimed) -> Self {
        Self { tenure: tenure.clone(), claimed }
    }

    /// A grant of nothing.
    pub(crate) fn none(tenure: &Tenure) -> Self {
        Self::new(tenure, Claimed::default())
    }

    /// How many jobs it is of.
    pub(crate) fn len(&self) -> usize {
        self.claimed.jobs.len()
    }

    /// In how long something becomes due, as far as is known.
    pub(crate) fn due_in(&self) -> Option<Duration> {
        self.claimed.due_in
    }

    /// The jobs, for the answer that tells the worker.
    pub(crate) fn told(mut self) -> Claimed {
        std::mem::take(&mut self.claimed)
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        let claimed = std::mem::take(&mut self.claimed);
        // Without a runtime the program is ending: it lapses.
        let Ok(runtime) = Handle::try_current() else { return };
        if !claimed.jobs.is_empty() {
            let tenure = self.tenure.clone();
            runtime.spawn(async move { tenure.remote().give_back(claimed).await });
        }
    }
}
