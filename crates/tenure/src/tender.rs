//! Looking after what time alone brings, while a handle lives.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tenure_core::AppUse;
use tenure_store::{Chance, Fault, Moment, Store, Tended};
use tokio::task::JoinHandle;

use crate::app::claim_again;

const BETWEEN: Duration = Duration::from_secs(5);
/// A program that was not seen for a month has given up its app id.
const BETWEEN_CLAIMS: Duration = Duration::from_secs(3600);
const BETWEEN_FULL_STEPS: Duration = Duration::from_millis(10);

/// A task that prunes finished jobs and takes lapsed ones. Ends when dropped.
#[derive(Debug)]
pub(crate) struct Tender {
    task: JoinHandle<()>,
}

impl Tender {
    pub(crate) fn start(store: &Arc<dyn Store>, chance: Chance, claimed: Option<AppUse>) -> Self {
        Self { task: tokio::spawn(tend(Arc::downgrade(store), chance, claimed)) }
    }
}

impl Drop for Tender {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Every host may do this at once: each step is bounded and claims its rows like any other write.
async fn tend(store: Weak<dyn Store>, chance: Chance, claimed: Option<AppUse>) {
    let (mut wait, mut told) = (Duration::ZERO, false);
    let mut said: Option<Moment> = None;
    loop {
        let Some(clock) = store.upgrade().map(|store| store.clock()) else { return };
        clock.sleep(wait).await;
        let Some(store) = store.upgrade() else { return };
        let now = clock.moment();
        if let Some(claimed) = &claimed
            && now.since(*said.get_or_insert(now)) >= BETWEEN_CLAIMS
        {
            claim_again(&*store, claimed).await;
            said = Some(now);
        }
        let spread = BETWEEN.mul_f64(0.8 + 0.4 * chance.fraction());
        let outcome = store.tend().await;
        let Some(pause) = pause_after(&outcome, spread) else { return };
        wait = pause;
        match outcome {
            Ok(_) => told = false,
            // Whoever asks something of the store itself hears of what passes.
            Err(fault) if fault.is_passing() || told => {}
            Err(fault) => {
                tracing::error!(%fault, "jobs are neither pruned nor taken from lost hosts; it is tried on");
                told = true;
            }
        }
    }
}

/// How long to wait for the next step; `None` if there will be none.
///
/// A person may mend a broken store while this program runs: free its disk, give its permissions back.
fn pause_after(outcome: &Result<Tended, Fault>, spread: Duration) -> Option<Duration> {
    match outcome {
        Ok(step) if step.more => Some(BETWEEN_FULL_STEPS),
        Ok(_) | Err(Fault::Unavailable(_) | Fault::Unknown(_) | Fault::Broken(_)) => Some(spread),
        Err(Fault::Closed) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upkeep_goes_on_after_a_fault_that_a_person_mends_and_ends_with_the_store() {
        let broken = Fault::Broken("its permissions were taken away".to_owned());
        assert_eq!(pause_after(&Err(broken), BETWEEN), Some(BETWEEN));
        assert_eq!(pause_after(&Err(Fault::Closed), BETWEEN), None);
    }
}
