//! Leases: requests of one or several calls, decided on rows that a store has read and locked.
//!
//! A store reads the rows that [`Reads`] names, decides with a [`Batch`], and writes what has changed. All rows are known
//! before the first decision, so this verb needs no interactive transaction.

mod batch;
mod line;
mod reads;
#[cfg(test)]
mod tests;

pub use batch::{Batch, Now, Refused, Row};
pub use line::{Place, WaitLine};
pub use reads::Reads;

use tenure_core::{LeaseAct, LeaseId};

/// Returns the acquisition that may have a place in line and that a request is about.
fn acquisition(act: &LeaseAct) -> Option<LeaseId> {
    match act {
        LeaseAct::Acquire { id, .. } | LeaseAct::Leave { id } => Some(*id),
        LeaseAct::Renew { .. }
        | LeaseAct::Change { .. }
        | LeaseAct::Release { .. }
        | LeaseAct::Break { .. }
        | LeaseAct::Forget { .. } => None,
    }
}
