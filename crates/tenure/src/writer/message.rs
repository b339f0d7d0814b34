//! A message, as the writer gets it.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use tenure_core::{Cause, Failure, Job, JobId, Timestamp};

use crate::worker::Body;
use crate::{Duty, Failed};

/// A message, as the writer gets it.
#[derive(Debug, Clone, PartialEq)]
pub struct Message<M> {
    /// ID, the same in every attempt; use it as an idempotency key.
    pub id: JobId,
    /// Position in the order of acceptance; later messages have greater numbers.
    pub seq: u64,
    /// Time at which it was sent.
    pub sent: Timestamp,
    /// Attempt number: 1, 2, …
    pub attempt: u32,
    /// The message itself.
    pub body: M,
}

/// What a user's function makes of some messages.
pub(crate) enum Opened {
    /// The work on the first so many of them.
    Work {
        /// It.
        body: Body<Result<(), Failed>>,
        /// How many.
        taken: usize,
    },
    /// The first of them cannot be read.
    Unreadable(Failure),
}

/// A user's function, whatever its messages say.
pub(crate) type Open<App> = Arc<dyn Fn(Duty<App>, &[Job]) -> Opened + Send + Sync>;

/// Makes one of a typed function.
pub(crate) fn open_with<App, M, F, Fut>(write: F) -> Open<App>
where
    App: Send + Sync + 'static,
    M: DeserializeOwned + Send + 'static,
    F: Fn(Duty<App>, Vec<Message<M>>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), Failed>> + Send + 'static,
{
    let write = Arc::new(write);
    Arc::new(move |duty, jobs| {
        let mut messages = Vec::with_capacity(jobs.len());
        for job in jobs {
            match serde_json::from_slice(job.args.as_bytes()) {
                Ok(body) => messages.push(Message {
                    id: job.id,
                    seq: job.seq,
                    sent: job.created,
                    attempt: job.attempt,
                    body,
                }),
                Err(error) if messages.is_empty() => {
                    return Opened::Unreadable(Failure::new(Cause::Undecodable, &error.to_string()));
                }
                // Those before it come first.
                Err(_) => break,
            }
        }
        let (write, taken) = (Arc::clone(&write), messages.len());
        Opened::Work { body: Box::pin(async move { write(duty, messages).await }), taken }
    })
}
