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

    /// Returns every queue with its pause state, its limit and the age of its oldest due job.
    ///
    /// # Errors
    /// A fault of the store.
    pub async fn list(&self) -> Result<Vec<QueueInfo>, Error> {
        Ok(self.tenure.store().queues().await?)
    }

    /// Pauses the queue; running jobs continue. Returns `true` if it was not paused before.
    ///
    /// # Errors
    /// An invalid name, or a fault.
    pub async fn pause(&self, name: &str) -> Result<bool, Error> {
        self.set(name, true).await
    }

    /// Resumes the queue. Returns `true` if it was paused.
    ///
    /// # Errors
    /// An invalid name, or a fault.
    pub async fn resume(&self, name: &str) -> Result<bool, Error> {
        self.set(name, false).await
    }

    /// Limits how many jobs of this queue run at once, start per time span, or both, across all hosts;
    /// [`Limit::default`] removes the limit. Running jobs continue. Returns `true` if the limit changed.
    ///
    /// # Errors
    /// An invalid name or limit, or a fault.
    pub async fn limit(&self, name: &str, limit: impl Into<Limit>) -> Result<bool, Error> {
        let (name, limit) = (QueueName::new(name)?, limit.into());
        limit.check()?;
        Ok(self.tenure.store().set_queue_limit(&name, limit).await?)
    }

    /// Changes the settings of a queue, if they have not changed since they were read: how many jobs may wait, and
    /// the defaults of jobs that set none. Running and waiting jobs stay.
    ///
    /// A job for a full queue is refused together with its whole batch ([`Refusal::QueueFull`]). Jobs of timers are
    /// accepted nevertheless, because each run gets its job. Within your own transaction, only committed jobs count.
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
    /// An invalid name or value, or a fault.
    pub async fn agree(&self, name: &str, edit: QueueEdit) -> Result<QueueEdited, Error> {
        let name = QueueName::new(name)?;
        edit.limit.map_or(Ok(()), |limit| limit.check())?;
        edit.terms.as_ref().map_or(Ok(()), |terms| terms.check())?;
        Ok(self.tenure.store().edit_queue(&name, edit).await?)
    }

    /// Removes an empty queue, if it has not changed since it was read. It is created again when a job names it.
    ///
    /// # Errors
    /// An invalid name, or a fault.
    pub async fn remove(&self, name: &str, seen: QueueSeen) -> Result<QueueRemoved, Error> {
        Ok(self.tenure.store().remove_queue(&QueueName::new(name)?, seen).await?)
    }

    async fn set(&self, name: &str, paused: bool) -> Result<bool, Error> {
        let name = QueueName::new(name)?;
        Ok(self.tenure.store().set_paused(&name, paused).await?)
    }
}
