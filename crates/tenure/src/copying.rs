//! Copying a store.

use tenure_store::{Copied, Totals, copy};

use crate::{Error, Tenure};

impl Tenure {
    /// Copies everything in this store into another, empty one: from a file to a database, back, or to another file.
    /// Jobs with their history, queues, limits, leases with their history, timers with their run history and app ids
    /// are copied; hosts and lease waiters are not. The source is not changed.
    ///
    /// `even_in_use` copies even if the source has live hosts, running jobs or held leases. Changes during the copy
    /// may or may not be included, and running jobs run again in the copy. `tell` receives the progress after each
    /// page.
    ///
    /// An incomplete copy cannot be opened. Every fencing token that the copy grants is greater than any that this
    /// store has granted, so old ones are rejected there.
    ///
    /// # Errors
    /// A fault of either store. A refusal to copy is a result, not an error.
    pub async fn copy_to(
        &self,
        to: &Tenure,
        even_in_use: bool,
        tell: &mut (dyn FnMut(Totals, Totals) + Send),
    ) -> Result<Copied, Error> {
        Ok(copy(&**self.store(), &**to.store(), even_in_use, tell).await?)
    }
}
