//! Taking leases and looking at them.

use std::time::Duration;

use tenure_core::{Holder, Holding, LeaseAct, LeaseName, LeaseOutcome, Timestamp};
use tenure_store::{Fault, LeaseInfo, LeasePage, LeaseWish, LeasesAsk, LedgerAsk, LedgerPage};

use super::held::Held;
use super::hold::Hold;
use super::own_names::check_is_users;
use super::past;
use super::tally::LeaseTally;
use crate::until_known::until_known;
use crate::{Error, Tenure};

/// The leases of a store: names that one holder at a time can hold.
#[derive(Debug)]
pub struct Leases<'a> {
    tenure: &'a Tenure,
}

impl<'a> Leases<'a> {
    pub(crate) fn new(tenure: &'a Tenure) -> Self {
        Self { tenure }
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn tenure(&self) -> &'a Tenure {
        self.tenure
    }

    /// Acquires a lease: `.await` it to wait, or [try](Hold::try_now).
    ///
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), tenure::Error> {
    /// # let tenure = tenure::Tenure::open("memory:").await?;
    /// let held = tenure.leases().hold("billing-close").within(Duration::from_secs(60)).await?;
    /// held.guard()?;                                  // before each effect
    /// held.release().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// The prefixes `singleton/`, `reservation/` and `writer/` are reserved. Such leases can be inspected and broken,
    /// but held only by the service they belong to.
    pub fn hold(&self, name: &str) -> Hold<'a> {
        let users = LeaseName::new(name).and_then(|lease| check_is_users("lease name", name).map(|()| lease));
        Hold::new(self.tenure, users)
    }

    /// Takes a lease by a name that Tenure itself gives.
    pub(crate) fn hold_own(&self, name: &LeaseName) -> Hold<'a> {
        Hold::new(self.tenure, Ok(name.clone()))
    }

    /// Acquires a lease if it is free now; returns `None` if another owner holds it.
    ///
    /// # Errors
    /// An invalid name or duration, or a fault. An unavailable store is never reported as "held".
    pub async fn try_hold(&self, name: &str, ttl: Duration) -> Result<Option<Held>, Error> {
        match self.hold(name).ttl(ttl).try_now().await {
            Ok(held) => Ok(Some(held)),
            Err(Error::LeaseRefused { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns a lease: holder, times and number of waiters. `None` if the name was never held or was forgotten.
    ///
    /// # Errors
    /// An invalid name, or a fault.
    pub async fn info(&self, name: &str) -> Result<Option<LeaseInfo>, Error> {
        Ok(self.tenure.store().lease_info(&LeaseName::new(name)?).await?)
    }

    /// Lists leases by name, page by page.
    ///
    /// # Errors
    /// A fault of the store.
    pub async fn list(&self, ask: LeasesAsk) -> Result<LeasePage, Error> {
        Ok(self.tenure.store().leases(ask).await?)
    }

    /// Breaks a lease and returns when it is free. `within` is the time that its holder has to finish; `None` means
    /// the rest of the lease.
    ///
    /// # Errors
    /// [`Error::LeaseRefused`] if the lease is not held; an invalid name or duration; or a fault.
    pub async fn break_it(
        &self,
        name: &str,
        within: Option<Duration>,
        reason: &str,
    ) -> Result<Timestamp, Error> {
        let within = within.map(|span| tenure_core::delay_of("within", span)).transpose()?;
        let by: Holder = self.tenure.holder();
        let act = LeaseAct::Break { within, by, reason: reason.to_owned() };
        let name = LeaseName::new(name)?;
        let outcome = self.wish(&name, act).await?;
        if let LeaseOutcome::Breaks { free } = outcome { Ok(free) } else { Err(refused(name, outcome)) }
    }

    /// Removes an unheld name from the listing. Its fence is remembered.
    ///
    /// # Errors
    /// [`Error::LeaseRefused`] if the lease is held; an invalid name; or a fault.
    pub async fn forget(&self, name: &str) -> Result<(), Error> {
        let name = LeaseName::new(name)?;
        let outcome = self.wish(&name, LeaseAct::Forget { by: self.tenure.holder() }).await?;
        if outcome == LeaseOutcome::Forgotten { Ok(()) } else { Err(refused(name, outcome)) }
    }

    /// Lists lease history: who held a lease, and how it ended. Continue with the returned cursor until there is
    /// none, even if a page is short.
    ///
    /// # Errors
    /// A fault of the store.
    pub async fn ledger(&self, ask: LedgerAsk) -> Result<LedgerPage, Error> {
        Ok(self.tenure.store().ledger(ask).await?)
    }

    /// Returns the latest holders of a lease, latest first; at most 1,000.
    ///
    /// # Errors
    /// An invalid name, or a fault.
    pub async fn last(&self, name: &str, how_many: usize) -> Result<Vec<Holding>, Error> {
        past::last(self.tenure, &LeaseName::new(name)?, how_many).await
    }

    /// Returns the holder of a lease at a given time, as far as the history reaches.
    ///
    /// # Errors
    /// An invalid name, or a fault.
    pub async fn held_at(&self, name: &str, at: Timestamp) -> Result<Option<Holding>, Error> {
        past::held_at(self.tenure, &LeaseName::new(name)?, at).await
    }

    /// Returns the latest holder that had acquired a lease by a given time, even if that holder had lost it again by
    /// then. `None` means that the history begins later, or that the lease was not acquired before.
    ///
    /// # Errors
    /// An invalid name, or a fault.
    pub async fn latest_by(&self, name: &str, at: Timestamp) -> Result<Option<Holding>, Error> {
        past::latest_by(self.tenure, &LeaseName::new(name)?, at).await
    }

    /// Returns statistics about the leases of this handle.
    #[must_use]
    pub fn tally(&self) -> LeaseTally {
        self.tenure.keeping().tally()
    }

    /// Every one of these wishes may be repeated without harm.
    pub(crate) async fn wish(&self, name: &LeaseName, act: LeaseAct) -> Result<LeaseOutcome, Error> {
        let wish = LeaseWish { name: name.clone(), act };
        let outcomes = until_known(|| self.tenure.store().lease(vec![wish.clone()])).await?;
        let nothing = || Fault::Broken("the store returned no result".to_owned());
        Ok(outcomes.into_iter().next().ok_or_else(nothing)?)
    }
}

fn refused(name: LeaseName, outcome: LeaseOutcome) -> Error {
    if let LeaseOutcome::Refused(refusal) = outcome {
        return Error::LeaseRefused { name, refusal: Box::new(refusal) };
    }
    Fault::Broken(format!("the store returned an unexpected result: {outcome:?}")).into()
}
