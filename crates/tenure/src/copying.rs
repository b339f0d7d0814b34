//! Copying a store.

use tenure_store::{Copied, Totals, copy};

use crate::{Error, Tenure};

impl Tenure {
    /// Copies all that this store keeps into another one, in which nothing may be: from a file to a database, back, or to
    /// another file. Jobs with their history, queues, limits, leases with their ledger, timers with their slots and app ids
    /// are copied; hosts and those who wait for a lease are not. The source stays as it is.
    ///
    /// `even_in_use`: also if a host is alive in this store, a job runs or a lease is held. What they change meanwhile is
    /// copied or not, and jobs that run are done again in the copy. `tell` hears after each page how much was copied, and
    /// of how much.
    ///
    /// Until it is whole the copy cannot be opened. Every fence that it grants is greater than any that this store has
    /// granted, and those are refused there.
    ///
    /// # Errors
    /// A fault of either store. That it may not be done is an answer, not an error.
    pub async fn copy_to(
        &self,
        to: &Tenure,
        even_in_use: bool,
        tell: &mut (dyn FnMut(Totals, Totals) + Send),
    ) -> Result<Copied, Error> {
        Ok(copy(&**self.store(), &**to.store(), even_in_use, tell).await?)
    }
}
