//! The hand that holds a lease: when it opens, the lease is given back.

use std::sync::Arc;

use tenure_core::{LeaseAct, LeaseOutcome, LeaseRefusal};
use tenure_store::LeaseWish;

use super::grip::Grip;
use super::loss::Loss;
use crate::{Error, Tenure};

/// Shared by a holder and its passes: the last of them gives the lease back.
pub(super) struct Hand {
    grip: Arc<Grip>,
    tenure: Tenure,
}

impl Hand {
    pub(super) fn new(grip: Arc<Grip>, tenure: Tenure) -> Self {
        Self { grip, tenure }
    }

    pub(super) fn grip(&self) -> &Grip {
        &self.grip
    }

    pub(super) async fn release(hand: Arc<Self>) -> Result<(), Error> {
        hand.grip.guard()?;
        let wish = give_back(&hand.grip);
        let outcome = hand.tenure.store().lease(vec![wish]).await?;
        hand.grip.lose(Loss::Released);
        match outcome.first() {
            Some(LeaseOutcome::Refused(LeaseRefusal::Lost { fence })) => {
                Err(hand.grip.lost_by(Loss::TakenAway { fence: *fence }).into())
            }
            _ => Ok(()),
        }
    }
}

fn give_back(grip: &Grip) -> LeaseWish {
    LeaseWish { name: grip.name.clone(), act: LeaseAct::Release { id: grip.id, fence: grip.fence } }
}

impl Drop for Hand {
    fn drop(&mut self) {
        if self.grip.loss().is_some() {
            return;
        }
        let (tenure, wish) = (self.tenure.clone(), give_back(&self.grip));
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { tenure.store().lease(vec![wish]).await });
        }
    }
}
