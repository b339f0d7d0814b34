//! The hand that holds a lease: when it opens, the lease is given back.

use std::sync::Arc;

use super::Loss;
use super::book::Number;
use super::client::Client;
use super::grip::Grip;
use crate::Error;

/// Shared by a holder and its passes: when the last of them is gone, so is the work under the lease.
pub(super) struct Hand {
    grip: Arc<Grip>,
    number: Number,
    client: Client,
}

impl Hand {
    pub(super) fn new(grip: Arc<Grip>, number: Number, client: Client) -> Self {
        Self { grip, number, client }
    }

    pub(super) fn grip(&self) -> &Grip {
        &self.grip
    }

    /// Opens this one of perhaps several hands, and answers what came of giving the lease back when the last
    /// one was opened.
    pub(super) async fn release(hand: Arc<Self>) -> Result<(), Error> {
        hand.grip.guard()?;
        hand.grip.lose(Loss::Released);
        let end = hand.client.listen(hand.number);
        if cfg!(mutant = "release-unjoined") {
            hand.client.let_go(hand.number);
        }
        drop(hand);
        end.await
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        self.client.let_go(self.number);
    }
}
