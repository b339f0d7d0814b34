//! Taking leases and looking at them.

use std::time::Duration;

use tenure_core::{Holder, Holding, LeaseAct, LeaseName, LeaseOutcome, Timestamp};
use tenure_store::{Fault, LeaseInfo, LeasePage, LeaseWish, LeasesAsk, LedgerAsk, LedgerPage};

use super::held::Held;
use super::hold::Hold;
use super::own_names::check_is_users;
use super::past;
use super::tally::LeaseTally;
use crate::{Error, Tenure};

/// Times that a wish whose outcome is unknown is repeated before its caller is told.
const REPEATS: u32 = 3;

/// The leases of a store: names that can be held.
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

    /// Takes a lease: await it to wait until it is had, or [try](Hold::try_now).
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
    /// Names that begin with `singleton/`, `reservation/` or `writer/` are those of services: they can be
    /// looked at and broken, but held only by what they belong to.
    pub fn hold(&self, name: &str) -> Hold<'a> {
        let users = LeaseName::new(name).and_then(|lease| check_is_users("lease name", name).map(|()| lease));
        Hold::new(self.tenure, users)
    }

    /// Takes a lease by a name that Tenure itself gives.
    pub(crate) fn hold_own(&self, name: &LeaseName) -> Hold<'a> {
        Hold::new(self.tenure, Ok(name.clone()))
    }

    /// Takes a lease if it can be had now; `None` if somebody else has it.
    ///
    /// # Errors
    /// A name or time outside the limits, or a fault: a store that is away is never "held".
    pub async fn try_hold(&self, name: &str, ttl: Duration) -> Result<Option<Held>, Error> {
        match self.hold(name).ttl(ttl).try_now().await {
            Ok(held) => Ok(Some(held)),
            Err(Error::LeaseRefused { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// One lease: who holds it, since when, until when, and how many wait. `None` if its name was never
    /// held, or was forgotten.
    ///
    /// # Errors
    /// A name outside the limits, or a fault.
    pub async fn info(&self, name: &str) -> Result<Option<LeaseInfo>, Error> {
        Ok(self.tenure.store().lease_info(&LeaseName::new(name)?).await?)
    }

    /// A page of leases, by name.
    ///
    /// # Errors
    /// A fault of the store.
    pub async fn list(&self, ask: LeasesAsk) -> Result<LeasePage, Error> {
        Ok(self.tenure.store().leases(ask).await?)
    }

    /// Takes a lease from whoever has it, and answers when it is free. `within` is how long its holder has
    /// to come to an end; `None` is what is left of its time.
    ///
    /// # Errors
    /// [`Error::LeaseRefused`] if nobody has it; a name or time outside the limits; or a fault.
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

    /// Removes a name that nobody holds from the listing. Its fence is remembered.
    ///
    /// # Errors
    /// [`Error::LeaseRefused`] if somebody has it; a name outside the limits; or a fault.
    pub async fn forget(&self, name: &str) -> Result<(), Error> {
        let name = LeaseName::new(name)?;
        let outcome = self.wish(&name, LeaseAct::Forget { by: self.tenure.holder() }).await?;
        if outcome == LeaseOutcome::Forgotten { Ok(()) } else { Err(refused(name, outcome)) }
    }

    /// A page of the ledger: who held what, and how it ended. Go on behind its cursor while there is one,
    /// even if a page is short.
    ///
    /// # Errors
    /// A fault of the store.
    pub async fn ledger(&self, ask: LedgerAsk) -> Result<LedgerPage, Error> {
        Ok(self.tenure.store().ledger(ask).await?)
    }

    /// The last so many who held a lease, the latest first, at most 1,000.
    ///
    /// # Errors
    /// A name outside the limits, or a fault.
    pub async fn last(&self, name: &str, how_many: usize) -> Result<Vec<Holding>, Error> {
        past::last(self.tenure, &LeaseName::new(name)?, how_many).await
    }

    /// Who held a lease at that instant, as far as the ledger reaches back.
    ///
    /// # Errors
    /// A name outside the limits, or a fault.
    pub async fn held_at(&self, name: &str, at: Timestamp) -> Result<Option<Holding>, Error> {
        past::held_at(self.tenure, &LeaseName::new(name)?, at).await
    }

    /// What the leases of this handle come to: how many are held and waited for, and how near it came to
    /// losing any.
    #[must_use]
    pub fn tally(&self) -> LeaseTally {
        self.tenure.keeping().tally()
    }

    /// Every one of these wishes may be repeated without harm.
    pub(crate) async fn wish(&self, name: &LeaseName, act: LeaseAct) -> Result<LeaseOutcome, Error> {
        let wish = LeaseWish { name: name.clone(), act };
        let mut repeats = REPEATS;
        loop {
            match self.tenure.store().lease(vec![wish.clone()]).await {
                Ok(outcomes) => {
                    let nothing = || Fault::Broken("the store answered nothing".to_owned());
                    return Ok(outcomes.into_iter().next().ok_or_else(nothing)?);
                }
                Err(Fault::Unknown(_)) if repeats > 0 => repeats -= 1,
                Err(fault) => return Err(fault.into()),
            }
        }
    }
}

fn refused(name: LeaseName, outcome: LeaseOutcome) -> Error {
    if let LeaseOutcome::Refused(refusal) = outcome {
        return Error::LeaseRefused { name, refusal: Box::new(refusal) };
    }
    Fault::Broken(format!("the store answered {outcome:?} to another wish")).into()
}
