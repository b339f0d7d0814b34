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

/// A mailbox has no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the mailbox holds {depth} messages, and {limit} at most")]
pub struct Full {
    /// How many messages it holds.
    pub depth: u64,
    /// How many it may hold.
    pub limit: u64,
}

/// A mailbox as people see it.
#[derive(Debug, Clone, PartialEq)]
pub struct MailboxInfo {
    /// Messages that are not written yet.
    pub depth: u64,
    /// Those of them that somebody has in work.
    pub in_work: u64,
    /// Messages that could not be written and stand there for a person to look at.
    pub parked: u64,
    /// When the first of those was sent that are not written yet.
    pub oldest: Option<Timestamp>,
    /// Whether it is paused: nothing is written until somebody resumes it.
    pub paused: bool,
    /// Who writes, since when and until when; `None` if nobody does.
    pub writer: Option<LeaseInfo>,
}

impl Tenure {
    /// The mailbox of a writer of this app.
    ///
    /// # Errors
    /// [`Error::NoApp`], or a name that is none.
    pub fn writer(&self, name: &str) -> Result<Mailbox, Error> {
        let app = self.need_app(&format!("writer {name}"))?.clone();
        self.writer_of(&app, name)
    }

    /// The mailbox of a writer of another app.
    ///
    /// # Errors
    /// A name that is none.
    pub fn writer_of(&self, app: &AppId, name: &str) -> Result<Mailbox, Error> {
        Ok(Mailbox { tenure: self.clone(), names: Names::new(app, name)?, limit: LIMIT })
    }
}

impl Mailbox {
    /// Holds at most so many messages that are not written, at least 1, 10,000 if this is not said.
    ///
    /// Whoever sends looks first and then puts in. So nobody exceeds it who sends alone, and those who send
    /// at the same time may find the same room: then the mailbox holds as many more than this as all of
    /// them sent together, but for the messages of the one that sent the fewest. With a message each, `n`
    /// senders exceed it by `n - 1` at most, however often they send.
    #[must_use]
    pub fn limit(mut self, most: u64) -> Self {
        self.limit = most;
        self
    }

    /// Sends a message, when there is room for it. What the wait answers is durable.
    ///
    /// # Errors
    /// A message beyond the limits of a job's args, or a fault.
    pub async fn send(&self, message: &impl Serialize) -> Result<JobId, Error> {
        self.room_for(1).await?;
        self.put(vec![self.draft(message)?]).await.map(|ids| ids[0])
    }

    /// Sends a message if there is room for it.
    ///
    /// # Errors
    /// As [`Mailbox::send`].
    pub async fn try_send(&self, message: &impl Serialize) -> Result<Result<JobId, Full>, Error> {
        if let Err(full) = self.has_room(1).await? {
            return Ok(Err(full));
        }
        self.put(vec![self.draft(message)?]).await.map(|ids| Ok(ids[0]))
    }

    /// Sends messages, all of them or none, next to each other and in this order, when there is room.
    ///
    /// # Errors
    /// As [`Mailbox::send`]; more messages than the mailbox holds or than one batch may have.
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

    /// How many messages are not written yet.
    ///
    /// # Errors
    /// A fault of the store.
    pub async fn depth(&self) -> Result<u64, Error> {
        Ok(self.tally().await?.0)
    }

    /// How it stands.
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

    /// Has nothing more written until it is resumed; what is in work is written. Answers whether that is
    /// new.
    ///
    /// # Errors
    /// A fault of the store.
    pub async fn pause(&self) -> Result<bool, Error> {
        Ok(self.tenure.store().set_paused(&self.names.queue, true).await?)
    }

    /// Has messages written again. Answers whether that is new.
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
