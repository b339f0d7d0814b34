//! Looking at the limits of limit keys, setting and clearing them.

use tenure_core::{Key, Limit};
use tenure_store::{LimitInfo, LimitPage};

use crate::holding::check_is_users;
use crate::{Error, Tenure};

/// Most limits that [`Limits::list`] answers.
const LISTED: usize = 10_000;

/// The limits of a store's limit keys.
///
/// A limit sets how many jobs of its key run at once, how many start per time span, or both, across all hosts. Jobs
/// can set a number themselves ([`crate::Draft::limited`]); a limit set here takes precedence.
#[derive(Debug)]
pub struct Limits<'a> {
    tenure: &'a Tenure,
}

impl<'a> Limits<'a> {
    pub(crate) fn new(tenure: &'a Tenure) -> Self {
        Self { tenure }
    }

    /// Returns every limit that is set or used by a job, by key, with its usage; at most 10,000.
    ///
    /// # Errors
    /// A fault of the store.
    pub async fn list(&self) -> Result<Vec<LimitInfo>, Error> {
        let (mut all, mut behind) = (Vec::new(), None);
        loop {
            let page = self.page(behind, tenure_core::limits::PAGE_LIMITS).await?;
            all.extend(page.limits);
            behind = page.next;
            if behind.is_none() || all.len() >= LISTED {
                return Ok(all);
            }
        }
    }

    /// Returns the limit of a key, if it is set or a job that has not ended has the key.
    ///
    /// # Errors
    /// An invalid key, or a fault of the store.
    pub async fn get(&self, key: &str) -> Result<Option<LimitInfo>, Error> {
        Ok(self.tenure.store().limit(&Key::new("limit_key", key)?).await?)
    }

    /// Returns a page of limits, by key.
    ///
    /// # Errors
    /// A fault of the store.
    pub async fn page(&self, behind: Option<Key>, at_most: usize) -> Result<LimitPage, Error> {
        Ok(self.tenure.store().limits(behind, at_most).await?)
    }

    /// Sets the limit of a key; it takes precedence over numbers set by jobs. Running jobs continue.
    ///
    /// # Errors
    /// An invalid key or limit, a key that Tenure reserves for itself, or a fault.
    pub async fn set(&self, key: &str, limit: impl Into<Limit>) -> Result<(), Error> {
        check_is_users("limit_key", key)?;
        let (key, limit) = (Key::new("limit_key", key)?, limit.into());
        limit.check()?;
        Ok(self.tenure.store().set_limit(&key, Some(limit)).await?)
    }

    /// Removes the limit of a key, so that its jobs set the number again. The usage of its rate is forgotten.
    ///
    /// # Errors
    /// An invalid key, or a fault.
    pub async fn clear(&self, key: &str) -> Result<(), Error> {
        let key = Key::new("limit_key", key)?;
        Ok(self.tenure.store().set_limit(&key, None).await?)
    }
}
