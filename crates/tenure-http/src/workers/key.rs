//! Where the key of tokens comes from: the system's own chance, since nobody may guess it.

#![allow(
    clippy::disallowed_methods,
    reason = "a key that follows from a seed could be found by whoever finds the seed"
)]

use crate::problem::{Problem, ProblemType};
use crate::workers::token::Key;

/// A key that nobody knows.
pub(crate) fn drawn() -> Result<Key, Problem> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| {
        tracing::error!(%error, "the system gives no chance, so no worker can be told a secret");
        Problem::new(ProblemType::Internal, "no key can be drawn; the operator finds more in the log")
    })?;
    Ok(Key::new(bytes))
}
