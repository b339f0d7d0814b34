//! Looking after what time alone brings, while a handle lives.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tenure_store::{Chance, Store};
use tokio::task::JoinHandle;

const BETWEEN: Duration = Duration::from_secs(5);
const BETWEEN_FULL_STEPS: Duration = Duration::from_millis(10);

/// A task that prunes finished jobs and takes lapsed ones. Ends when dropped.
#[derive(Debug)]
pub(crate) struct Tender {
    task: JoinHandle<()>,
}

impl Tender {
    pub(crate) fn start(store: &Arc<dyn Store>, chance: Chance) -> Self {
        Self { task: tokio::spawn(tend(Arc::downgrade(store), chance)) }
    }
}

impl Drop for Tender {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Every host may do this at once: each step is bounded and claims its rows like any other write.
async fn tend(store: Weak<dyn Store>, chance: Chance) {
    let mut wait = Duration::ZERO;
    loop {
        let Some(clock) = store.upgrade().map(|store| store.clock()) else { return };
        clock.sleep(wait).await;
        let Some(store) = store.upgrade() else { return };
        let spread = BETWEEN.mul_f64(0.8 + 0.4 * chance.fraction());
        wait = match store.tend().await {
            Ok(step) if step.more => BETWEEN_FULL_STEPS,
            Ok(_) => spread,
            Err(fault) if fault.is_passing() => spread,
            Err(fault) => {
                tracing::error!(%fault, "pruning has ended");
                return;
            }
        };
    }
}
