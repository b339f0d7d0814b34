//! A call as a transaction, for the verbs of the engine.

use std::convert::Infallible;

use tenure_core::Timestamp;

use super::rows::Rows;
use crate::engine::at_once;

/// The locked rows and the instant of a call.
pub(super) struct Txn<'r> {
    pub rows: &'r mut Rows,
    pub now: Timestamp,
}

/// Runs a verb that cannot fail.
pub(super) fn run<T>(verb: impl Future<Output = Result<T, Infallible>>) -> T {
    let Ok(reply) = at_once(verb);
    reply
}
