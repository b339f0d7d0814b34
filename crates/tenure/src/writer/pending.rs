//! What was decided about messages and is not written yet.

use std::sync::Arc;

use tenure_core::{Job, Next, Reserved, RetryPolicy, Settlement, Verdict, limits};
use tenure_store::Settled;

use crate::Tenure;
use crate::worker::{Control, Holding, failures};

/// Decisions on their way to the store. They are renewed until they are written; what is left when this is
/// dropped lapses.
pub(super) struct Pending {
    decided: Vec<Decided>,
    tenure: Tenure,
    holding: Arc<Holding>,
}

struct Decided {
    job: Arc<Job>,
    settlement: Settlement,
    control: Arc<Control>,
}

/// What came of writing decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    /// All of it counts; every message up to this one has ended.
    Until(u64),
    /// Some of the messages are in other hands.
    TakenAway,
}

impl Pending {
    pub(super) fn new(tenure: Tenure, holding: Arc<Holding>) -> Self {
        Self { decided: Vec::new(), tenure, holding }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.decided.is_empty()
    }

    pub(super) fn decide(&mut self, (reserved, control): (Reserved, Arc<Control>), verdict: Verdict) {
        let job = reserved.shared();
        self.decided.push(Decided { job, settlement: reserved.settle(verdict, &policy(), 0.5), control });
    }

    pub(super) fn settlements(&self) -> Vec<Settlement> {
        self.decided.iter().map(|decided| decided.settlement.clone()).collect()
    }

    /// The store has answered.
    pub(super) fn written(&mut self, settled: &[Settled]) -> Written {
        let decided = std::mem::take(&mut self.decided);
        self.holding.remove(decided.iter().map(|decided| &decided.control));
        let told = decided.iter().zip(settled);
        let told = told.map(|(decided, settled)| (&*decided.job, &decided.settlement, *settled));
        self.tenure.heap().settled(told, self.tenure.now());
        for (decided, settled) in decided.iter().zip(settled) {
            // Messages that were taken over are logged together, below.
            if matches!(settled, Settled::Done(_) | Settled::Repeated) {
                failures::log(&decided.job, policy, (&decided.settlement, *settled), self.tenure.now());
            }
        }
        let counts = |settled: &Settled| matches!(settled, Settled::Done(_) | Settled::Repeated);
        if !settled.iter().all(counts) {
            tracing::warn!("another writer has taken over these messages; their results are rejected");
            return Written::TakenAway;
        }
        let settlements = decided.iter().map(|decided| &decided.settlement);
        let ended = settlements.filter(|settlement| match settlement.next() {
            Next::Succeed | Next::Fail | Next::Cancel => true,
            Next::Wait { .. } => false,
        });
        Written::Until(ended.map(Settlement::seq).max().unwrap_or(0))
    }
}

/// The policy of messages: the writer decides how often it tries one, and nothing else ends it.
fn policy() -> RetryPolicy {
    RetryPolicy {
        max_attempts: limits::MAX_ATTEMPTS,
        max_deliveries: limits::MAX_DELIVERIES,
        ..RetryPolicy::default()
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.holding.remove(self.decided.iter().map(|decided| &decided.control));
    }
}
