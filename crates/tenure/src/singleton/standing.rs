//! Who holds the singletons of an app.

use tenure_core::LeaseName;
use tenure_store::{LeaseInfo, LeasePage, LeasesAsk};

use super::{Lock, Mode, Scope};
use crate::holding::SINGLETON;
use crate::{Error, Tenure};

/// The singletons of an app, with holders, times and number of hosts that stand by.
#[derive(Debug)]
pub struct Singletons<'a> {
    tenure: &'a Tenure,
}

impl Tenure {
    /// Returns the singletons of this app.
    #[must_use]
    pub fn singletons(&self) -> Singletons<'_> {
        Singletons { tenure: self }
    }
}

impl Singletons<'_> {
    /// Lists singletons that were ever held, by lease name.
    ///
    /// # Errors
    /// [`Error::NoApp`], or a fault.
    pub async fn list(&self, behind: Option<LeaseName>, at_most: usize) -> Result<LeasePage, Error> {
        let prefix = format!("{SINGLETON}{}/", self.tenure.need_app("listing singletons")?);
        self.tenure.leases().list(LeasesAsk { prefix, behind, at_most }).await
    }

    /// Returns the holder of a [listener](crate::Worker::singleton); `None` if it is not held now.
    ///
    /// # Errors
    /// [`Error::NoApp`], an invalid name, or a fault.
    pub async fn listener(&self, name: &str) -> Result<Option<LeaseInfo>, Error> {
        let app = self.tenure.need_app("listing singletons")?;
        let scope = Scope::Function { function: name.to_owned(), part: String::new() };
        self.holder(&Lock::new(app.clone(), scope, Mode::Listener)?).await
    }

    /// Returns the holder of a lock; `None` if it is not held now.
    ///
    /// # Errors
    /// A fault of the store.
    pub async fn holder(&self, lock: &Lock) -> Result<Option<LeaseInfo>, Error> {
        let info = self.tenure.store().lease_info(lock.name()).await?;
        Ok(info.filter(|info| info.state.is_locked()))
    }
}
