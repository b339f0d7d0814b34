//! Looking at queues, and agreeing about them.

use tenure_core::{Limit, QueueName};
use tenure_store::{QueueEdit, QueueEdited, QueueInfo, QueueRemoved, QueueSeen};

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

    /// Changes what was agreed about a queue, if it is as it was seen: how many jobs may wait in it, and what holds for
    /// those that say nothing of their own, beside its limit and its pause switch. What runs goes on, and what waits stays.
    ///
    /// A job that comes into a full queue is refused, and with it the whole batch ([`Refusal::QueueFull`]); jobs of timers
    /// come in all the same, since a slot has its job. In a transaction of your own, full is what was committed before.
    ///
    /// ```
    /// use tenure::{Error, Keep, QueueEdit, QueueTerms, Refusal, Retention, Tenure};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), tenure::Error> {
    /// let tenure = Tenure::open("memory:").await?;
    /// let terms = QueueTerms {
    ///     max_depth: Some(1),
    ///     retention: Some(Retention::always(Keep::Forever)),
    ///     ..QueueTerms::default()
    /// };
    /// tenure.queues().agree("mail", QueueEdit { terms: Some(terms), ..QueueEdit::default() }).await?;
    /// let letter = || tenure::Draft::encoded("letter", b"{}".to_vec()).queue("mail");
    /// tenure.enqueue_draft(letter()).await?;
    /// let refused = tenure.enqueue_draft(letter()).await.unwrap_err();
    /// assert!(matches!(refused, Error::Refused { refusal: Refusal::QueueFull { most: 1 }, .. }));
    /// # Ok(()) }
    /// ```
    ///
    /// [`Refusal::QueueFull`]: crate::Refusal::QueueFull
    ///
    /// # Errors
    /// A bad name, something beyond its limits, or a fault.
    pub async fn agree(&self, name: &str, edit: QueueEdit) -> Result<QueueEdited, Error> {
        let name = QueueName::new(name)?;
        edit.limit.map_or(Ok(()), |limit| limit.check())?;
        edit.terms.as_ref().map_or(Ok(()), |terms| terms.check())?;
        Ok(self.tenure.store().edit_queue(&name, edit).await?)
    }

    /// Removes a queue in which no job is kept, if it is as it was seen. It is there again as soon as somebody names it.
    ///
    /// # Errors
    /// A bad name, or a fault.
    pub async fn remove(&self, name: &str, seen: QueueSeen) -> Result<QueueRemoved, Error> {
        Ok(self.tenure.store().remove_queue(&QueueName::new(name)?, seen).await?)
    }

    async fn set(&self, name: &str, paused: bool) -> Result<bool, Error> {
        let name = QueueName::new(name)?;
        Ok(self.tenure.store().set_paused(&name, paused).await?)
    }
}
