//! Looking at queues, pausing, resuming and limiting them.

use tenure_core::{Limit, QueueName};
use tenure_store::QueueInfo;

use crate::{Error, Tenure};

/// The queues of a store.
#[derive(Debug)]
pub struct Queues<'a> {
    tenure: &'a Tenure,
}

impl<'a> Queues<'a> {
    pub(crate) fn new(tenure: &'a Tenure) -> Self {
        Self { tenure }
    }

    /// Every queue, with its pause switch, its limit and the age of its oldest due job.
    ///
    /// # Errors
    /// A fault of the store.
    pub async fn list(&self) -> Result<Vec<QueueInfo>, Error> {
        Ok(self.tenure.store().queues().await?)
    }

    /// Hands out no more jobs of this queue; what runs goes on. Answers whether that is new.
    ///
    /// # Errors
    /// A bad name, or a fault.
    pub async fn pause(&self, name: &str) -> Result<bool, Error> {
        self.set(name, true).await
    }

    /// Hands out jobs of this queue again. Answers whether that is new.
    ///
    /// # Errors
    /// A bad name, or a fault.
    pub async fn resume(&self, name: &str) -> Result<bool, Error> {
        self.set(name, false).await
    }

    /// Bounds how many jobs of this queue run at once, start in a time, or both, over all hosts;
    /// [`Limit::default`] lifts the bound. What runs goes on. Answers whether that is new.
    ///
    /// # Errors
    /// A bad name, a limit that is none, or a fault.
    pub async fn limit(&self, name: &str, limit: impl Into<Limit>) -> Result<bool, Error> {
        let (name, limit) = (QueueName::new(name)?, limit.into());
        limit.check()?;
        Ok(self.tenure.store().set_queue_limit(&name, limit).await?)
    }

    async fn set(&self, name: &str, paused: bool) -> Result<bool, Error> {
        let name = QueueName::new(name)?;
        Ok(self.tenure.store().set_paused(&name, paused).await?)
    }
}
