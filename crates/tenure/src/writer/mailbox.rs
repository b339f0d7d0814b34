//! A writer's mailbox: messages go in from anywhere, and it can be looked at.

use std::time::Duration;

use serde::Serialize;
use tenure_core::{AppId, Invalid, JobId, Keep, Retention, StateName, Timestamp, limits};
use tenure_store::{Filter, LeaseInfo, Order, PageAsk};

use super::names::Names;
use super::order::DUE;
use crate::{Draft, Error, Tenure};

/// How many messages a mailbox holds, if nobody says otherwise.
const LIMIT: u64 = 10_000;
/// How long a message is kept that was written; one that was parked stays longer.
const KEEP: Duration = Duration::from_secs(3600);
/// How long to wait for room before looking again.
const FIRST_LOOK: Duration = Duration::from_millis(20);
const LAST_LOOK: Duration = Duration::from_secs(1);

/// The mailbox of a writer.
#[derive(Debug, Clone)]
pub struct Mailbox {
    tenure: Tenure,
    names: Names,
    limit: u64,
}

/// The error of a full mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the mailbox is full: it has {depth} messages and its limit is {limit}")]
pub struct Full {
    /// Number of messages in it.
    pub depth: u64,
    /// Its limit.
    pub limit: u64,
}

/// The state of a mailbox.
#[derive(Debug, Clone, PartialEq)]
pub struct MailboxInfo {
    /// Messages not written yet.
    pub depth: u64,
    /// Messages being written.
    pub in_work: u64,
    /// Messages that could not be written and are parked for inspection.
    pub parked: u64,
    /// Time at which the oldest unwritten message was sent.
    pub oldest: Option<Timestamp>,
    /// `true` if it is paused: nothing is written until it is resumed.
    pub paused: bool,
    /// The active writer; `None` if there is none.
    pub writer: Option<LeaseInfo>,
}

impl Tenure {
    /// Returns the mailbox of a writer of this app.
    ///
    /// # Errors
    /// [`Error::NoApp`], or an invalid name.
    pub fn writer(&self, name: &str) -> Result<Mailbox, Error> {
        let app = self.need_app(&format!("writer {name}"))?.clone();
        self.writer_of(&app, name)
    }

    /// Returns the mailbox of a writer of another app.
    ///
    /// # Errors
    /// An invalid name.
    pub fn writer_of(&self, app: &AppId, name: &str) -> Result<Mailbox, Error> {
        Ok(Mailbox { tenure: self.clone(), names: Names::new(app, name)?, limit: LIMIT })
    }
}

impl Mailbox {
    /// Limits the number of unwritten messages, at least 1; default 10,000.
    ///
    /// A sender checks the limit before it sends. A single sender never exceeds it. Concurrent senders may all see
    /// the same free space: with one message each, `n` senders exceed the limit by at most `n - 1`, however often
    /// they send.
    #[must_use]
    pub fn limit(mut self, most: u64) -> Self {
        self.limit = most;
        self
    }

    /// Sends a message when the mailbox has room for it. The message is durable when the await returns.
    ///
    /// # Errors
    /// A message beyond the limits of job args, or a fault.
    pub async fn send(&self, message: &impl Serialize) -> Result<JobId, Error> {
        self.room_for(1).await?;
        self.put(vec![self.draft(message)?]).await.map(|ids| ids[0])
    }

    /// Sends a message if the mailbox has room for it now.
    ///
    /// # Errors
    /// Like [`Mailbox::send`].
    pub async fn try_send(&self, message: &impl Serialize) -> Result<Result<JobId, Full>, Error> {
        if let Err(full) = self.has_room(1).await? {
            return Ok(Err(full));
        }
        self.put(vec![self.draft(message)?]).await.map(|ids| Ok(ids[0]))
    }

    /// Sends several messages when the mailbox has room for them: all or none, adjacent and in order.
    ///
    /// # Errors
    /// Like [`Mailbox::send`], and more messages than the limit of the mailbox or of a batch.
    pub async fn send_all<M: Serialize>(&self, messages: &[M]) -> Result<Vec<JobId>, Error> {
        let drafts: Vec<Draft> =
            messages.iter().map(|message| self.draft(message)).collect::<Result<_, _>>()?;
        let most = self.limit.min(limits::BATCH_JOBS as u64);
        if drafts.len() as u64 > most {
            let allowed = format!("at most {most}");
            return Err(Invalid::new("messages", drafts.len(), allowed).into());
        }
        self.room_for(drafts.len() as u64).await?;
        self.put(drafts).await
    }

    /// Returns the number of unwritten messages.
    ///
    /// # Errors
    /// A fault of the store.
    pub async fn depth(&self) -> Result<u64, Error> {
        Ok(self.tally().await?.0)
    }

    /// Returns the state of the mailbox.
    ///
    /// # Errors
    /// A fault of the store.
    pub async fn info(&self) -> Result<MailboxInfo, Error> {
        let (depth, in_work, parked) = self.tally().await?;
        let queues = self.tenure.queues().list().await?;
        let writer = self.tenure.store().lease_info(&self.names.lease).await?;
        Ok(MailboxInfo {
            depth,
            in_work,
            parked,
            oldest: self.oldest().await?,
            paused: queues.iter().any(|queue| queue.name == self.names.queue && queue.paused),
            writer: writer.filter(|info| info.state.is_locked()),
        })
    }

    /// Pauses the mailbox; messages being written are finished. Returns `true` if it was not paused before.
    ///
    /// # Errors
    /// A fault of the store.
    pub async fn pause(&self) -> Result<bool, Error> {
        Ok(self.tenure.store().set_paused(&self.names.queue, true).await?)
    }

    /// Resumes the mailbox. Returns `true` if it was paused.
    ///
    /// # Errors
    /// A fault of the store.
    pub async fn resume(&self) -> Result<bool, Error> {
        Ok(self.tenure.store().set_paused(&self.names.queue, false).await?)
    }

    fn draft(&self, message: &impl Serialize) -> Result<Draft, Error> {
        let args = serde_json::to_value(message).map_err(|source| Error::Json { what: "message", source })?;
        // How often it is tried is for the writer to say. A store ends only what no writer ever gets to.
        let retention = Retention { succeeded: Keep::For(KEEP), ..Retention::default() };
        let draft = Draft::raw(self.names.kind.as_str(), &args).queue(self.names.queue.as_str());
        Ok(draft.at(DUE).attempts(limits::MAX_ATTEMPTS).retain(retention))
    }

    async fn put(&self, drafts: Vec<Draft>) -> Result<Vec<JobId>, Error> {
        let accepted = self.tenure.enqueue_all(drafts).await?;
        Ok(accepted.into_iter().map(tenure_store::Accepted::id).collect())
    }

    async fn has_room(&self, messages: u64) -> Result<Result<(), Full>, Error> {
        if self.limit == 0 {
            // Whoever sends would wait for ever.
            return Err(Invalid::new("mailbox.limit", 0, "1 or more").into());
        }
        let (depth, limit) = (self.depth().await?, self.limit);
        Ok(if depth.saturating_add(messages) <= limit { Ok(()) } else { Err(Full { depth, limit }) })
    }

    async fn room_for(&self, messages: u64) -> Result<(), Error> {
        let mut look = FIRST_LOOK;
        while self.has_room(messages).await?.is_err() {
            self.tenure.pause_for(look).await;
            look = (look * 2).min(LAST_LOOK);
        }
        Ok(())
    }

    /// How many are not written, how many of them are in work, and how many are parked.
    async fn tally(&self) -> Result<(u64, u64, u64), Error> {
        let (mut depth, mut in_work, mut parked) = (0, 0, 0);
        for count in self.tenure.counts().await? {
            if count.queue != self.names.queue || count.kind != self.names.kind {
                continue;
            }
            match count.state {
                StateName::Running => (depth, in_work) = (depth + count.jobs, in_work + count.jobs),
                StateName::Scheduled | StateName::Queued | StateName::Blocked => depth += count.jobs,
                StateName::Failed => parked += count.jobs,
                StateName::Succeeded | StateName::Cancelled => {}
            }
        }
        Ok((depth, in_work, parked))
    }

    async fn oldest(&self) -> Result<Option<Timestamp>, Error> {
        let filter = Filter {
            states: vec![StateName::Queued, StateName::Blocked, StateName::Running],
            queues: vec![self.names.queue.clone()],
            ..Filter::default()
        };
        let mut after = None;
        loop {
            let order = Order::OldestFirst;
            let page = self
                .tenure
                .store()
                .jobs(PageAsk { filter: filter.clone(), order, after, at_most: 1, ..PageAsk::default() })
                .await?;
            if let Some(job) = page.jobs.first() {
                return Ok(Some(job.created));
            }
            after = page.next;
            if after.is_none() {
                return Ok(None);
            }
        }
    }
}
