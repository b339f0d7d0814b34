//! Looking after what time alone brings, while a handle lives.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tenure_core::{AppUse, Timestamp};
use tenure_store::{Chance, ClockCorrection, Fault, Store};
use tokio::task::JoinHandle;

use crate::app::claim_again;
use crate::stats::{self, Heap};

const BETWEEN: Duration = Duration::from_secs(5);
/// The ledger and the records of slots are pruned once in so many rounds: their age is counted in days.
const PRUNE_ROUNDS: u32 = 60;
/// So is the use of the app id said again: what is not seen for a month is given up.
const CLAIM_ROUNDS: u32 = 600;
const BETWEEN_FULL_STEPS: Duration = Duration::from_millis(10);

/// The maintenance task: prunes finished jobs, old notes of the ledger and old records of slots, and takes lapsed jobs. Also
/// makes jobs due that the store accepted while its clock was ahead. Ends when dropped.
#[derive(Debug)]
pub(crate) struct Tender {
    task: JoinHandle<()>,
}

impl Tender {
    pub(crate) fn start(store: &Arc<dyn Store>, chance: Chance, chores: Chores) -> Self {
        Self { task: tokio::spawn(tend(Arc::downgrade(store), chance, chores)) }
    }
}

/// What there is to do beside the jobs.
#[derive(Debug)]
pub(crate) struct Chores {
    /// How long notes of the ledger are kept.
    pub(crate) keep_ledger: Duration,
    /// How long records of slots are kept.
    pub(crate) keep_slots: Duration,
    /// The app id that is in use.
    pub(crate) claimed: Option<AppUse>,
    /// What was counted and is to be written.
    pub(crate) heap: Arc<Heap>,
}

impl Drop for Tender {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Every host may do this at once: each step is bounded and claims its rows like any other write.
async fn tend(store: Weak<dyn Store>, chance: Chance, chores: Chores) {
    let (mut wait, mut told) = (Duration::ZERO, false);
    let (mut until_pruned, mut until_claim) = (0_u32, CLAIM_ROUNDS);
    let mut correction = ClockCorrection::default();
    loop {
        let Some(clock) = store.upgrade().map(|store| store.clock()) else { return };
        clock.sleep(wait).await;
        let Some(store) = store.upgrade() else { return };
        let spread = BETWEEN.mul_f64(0.8 + 0.4 * chance.fraction());
        if let (Some(claimed), 0) = (&chores.claimed, until_claim) {
            claim_again(&*store, claimed).await;
            until_claim = CLAIM_ROUNDS;
        }
        until_claim = until_claim.saturating_sub(1);
        let mut outcome = store.tend().await.map(|step| step.more);
        if until_pruned == 0 && outcome.is_ok() {
            let pruned = prune(&*store, clock.now(), &chores).await;
            until_pruned = if matches!(pruned, Ok(true)) { 1 } else { PRUNE_ROUNDS };
            outcome = outcome.and_then(|more| pruned.map(|more_to_prune| more || more_to_prune));
        }
        // After the other steps: a store may read its server's clock in them, and a fault here must not stop them.
        if let Ok(more) = &mut outcome {
            match correction.step(&*store).await {
                Ok(more_jobs) => *more |= more_jobs,
                Err(fault) => {
                    tracing::debug!(%fault, "failed to look for jobs of a clock ahead; retrying later")
                }
            }
        }
        until_pruned = until_pruned.saturating_sub(1);
        if let Err(fault) = stats::write(&*store, &chores.heap, false).await {
            tracing::debug!(%fault, "failed to store statistics; retrying later");
        }
        let Some(pause) = pause_after(&outcome, spread) else { return };
        wait = pause;
        match outcome {
            Ok(_) => told = false,
            // Whoever asks something of the store itself hears of what passes.
            Err(fault) if fault.is_passing() || told => {}
            Err(fault) => {
                tracing::error!(%fault, "maintenance failed: finished jobs are not pruned and jobs of dead hosts are not recovered; retrying");
                told = true;
            }
        }
    }
}

/// Removes what is older than it is to be kept; answers whether there is more of it.
async fn prune(store: &dyn Store, now: Timestamp, chores: &Chores) -> Result<bool, Fault> {
    let ledger = store.prune_ledger(now.before(chores.keep_ledger)).await?;
    let slots = store.prune_slots(now.before(chores.keep_slots)).await?;
    Ok(ledger.more || slots.more)
}

/// How long to wait for the next step, given whether there is more to do; `None` if there will be none.
///
/// A person may mend a broken store while this program runs: free its disk, give its permissions back.
fn pause_after(outcome: &Result<bool, Fault>, spread: Duration) -> Option<Duration> {
    match outcome {
        Ok(true) => Some(BETWEEN_FULL_STEPS),
        Ok(false) | Err(Fault::Unavailable(_) | Fault::Unknown(_) | Fault::Broken(_)) => Some(spread),
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
