//! Looking at queues, pausing and resuming them.

use tenure_core::QueueName;
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

    /// Every queue, with its pause switch and the age of its oldest due job.
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

    async fn set(&self, name: &str, paused: bool) -> Result<bool, Error> {
        let name = QueueName::new(name)?;
        Ok(self.tenure.store().set_paused(&name, paused).await?)
    }
}
