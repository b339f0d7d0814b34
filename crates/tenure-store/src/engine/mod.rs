//! The rules of the contract, written once for all stores.
//!
//! A *verb* is an async function over a transaction: it reads rows, decides with `tenure-core`, and writes rows. A store
//! implements the transaction, a trait of batched reads and writes. The store begins, commits and retries it, and takes
//! the locks. A read sees what the same transaction wrote before.
//!
//! A verb has no clock, no chance and no I/O of its own. Rows in memory or in a file are there at once, so their stores
//! run a verb with [`at_once`] and never suspend.

pub mod leases;
pub mod records;
pub mod timers;

use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// Runs a verb over rows that are there at once.
pub fn at_once<F: Future>(verb: F) -> F::Output {
    let mut verb = pin!(verb);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        // Poll again if a read is not ready. Reads of rows in memory or in a file are always ready.
        if let Poll::Ready(reply) = verb.as_mut().poll(&mut context) {
            return reply;
        }
    }
}
