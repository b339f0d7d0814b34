//! Who holds the singletons of an app.

use tenure_core::LeaseName;
use tenure_store::{LeaseInfo, LeasePage, LeasesAsk};

use super::{Lock, Mode, Scope};
use crate::holding::SINGLETON;
use crate::{Error, Tenure};

/// The singletons of an app: who holds them, since when, until when, and how many stand by.
#[derive(Debug)]
pub struct Singletons<'a> {
    tenure: &'a Tenure,
}

impl Tenure {
    /// The singletons of this app.
    #[must_use]
    pub fn singletons(&self) -> Singletons<'_> {
        Singletons { tenure: self }
    }
}

impl Singletons<'_> {
    /// A page of those that were ever held, by the name of their lease.
    ///
    /// # Errors
    /// [`Error::NoApp`], or a fault.
    pub async fn list(&self, behind: Option<LeaseName>, at_most: usize) -> Result<LeasePage, Error> {
        let prefix = format!("{SINGLETON}{}/", self.tenure.need_app("looking at singletons")?);
        self.tenure.leases().list(LeasesAsk { prefix, behind, at_most }).await
    }

    /// Who holds the lease of what [listens](crate::Worker::singleton) under this name; `None` if nobody
    /// does, even if somebody did.
    ///
    /// # Errors
    /// [`Error::NoApp`], a name that is none, or a fault.
    pub async fn listener(&self, name: &str) -> Result<Option<LeaseInfo>, Error> {
        let app = self.tenure.need_app("looking at singletons")?;
        let scope = Scope::Function { function: name.to_owned(), part: String::new() };
        self.holder(&Lock::new(app.clone(), scope, Mode::Listener)?).await
    }

    /// Who holds this lock; `None` if nobody does, even if somebody did.
    ///
    /// # Errors
    /// A fault of the store.
    pub async fn holder(&self, lock: &Lock) -> Result<Option<LeaseInfo>, Error> {
        let info = self.tenure.store().lease_info(lock.name()).await?;
        Ok(info.filter(|info| info.state.is_locked()))
    }
}
