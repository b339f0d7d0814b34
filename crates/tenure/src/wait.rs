//! Waiting for a job's end.

use std::pin::pin;
use std::time::Duration;

use tenure_core::{End, Job as JobRecord, JobId, Output, State};
use tenure_store::{Event, Happening};
use tokio::sync::broadcast::error::RecvError;

use crate::worker::Waiting;
use crate::{Error, Job, Tenure};

/// Events are hints and may be lost, as when another program ends the job: now and then the job
/// itself is looked at, ever more seldom.
const FIRST_LOOK: Duration = Duration::from_millis(250);
const LAST_LOOK: Duration = Duration::from_secs(5);
/// Hints that anybody has written something are answered by a look at most so often.
const LOOKS_APART: Duration = Duration::from_millis(50);

/// A job that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// How it ended.
    pub end: End,
    /// The job with its output or error.
    pub job: JobRecord,
}

impl Tenure {
    /// Waits until a job has ended. Bound it with your own timeout.
    ///
    /// A handler that waits keeps its slot. If handlers that wait for jobs of a queue occupy all its slots, none of these
    /// jobs can start (a deadlock). The worker then logs a warning.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the job does not exist or is deleted during the wait, or a fault.
    pub async fn wait(&self, id: JobId) -> Result<Ended, Error> {
        // Listening starts before the first look: an end in between is not missed.
        let mut events = self.events();
        let mut others = self.store().others();
        let mut look = FIRST_LOOK;
        let waiting = Waiting::new(self.store(), id);
        loop {
            let job = self.jobs().get(id).await?;
            if let State::Finished { end, .. } = job.state {
                return Ok(Ended { end, job });
            }
            waiting.note(&job, self.now());
            let heard = async {
                loop {
                    match events.recv().await {
                        Ok(event) if concerns(&event, id) => return,
                        Ok(_) => {}
                        Err(RecvError::Lagged(_)) => return,
                        Err(RecvError::Closed) => std::future::pending().await,
                    }
                }
            };
            let mut heard = pin!(heard);
            let others_wrote = tokio::select! {
                biased;
                () = &mut heard => false,
                // Another program has written: its events are not heard here.
                _ = others.recv() => true,
                () = self.pause_for(look) => {
                    look = (look * 2).min(LAST_LOOK);
                    false
                }
            };
            if others_wrote {
                tokio::select! {
                    biased;
                    () = heard => {}
                    () = self.pause_for(LOOKS_APART) => {}
                }
            }
        }
    }

    /// Waits until a job of this kind has succeeded, and returns the result of its handler.
    ///
    /// # Errors
    /// [`Error::Unsuccessful`] if it failed or was cancelled; otherwise like [`Tenure::wait`].
    pub async fn wait_for<J: Job>(&self, id: JobId) -> Result<J::Output, Error> {
        let Ended { end, job } = self.wait(id).await?;
        match end {
            End::Succeeded => read_output(job.output.as_ref()),
            End::Failed | End::Cancelled => Err(Error::Unsuccessful { id, failure: job.failure }),
        }
    }
}

fn concerns(event: &Event, id: JobId) -> bool {
    event.id == id && matches!(event.what, Happening::Became { .. } | Happening::Deleted)
}

fn read_output<T: serde::de::DeserializeOwned>(output: Option<&Output>) -> Result<T, Error> {
    let value =
        output.map_or(&b"null"[..], |output| if output.value.is_empty() { b"null" } else { &output.value });
    serde_json::from_slice(value).map_err(|source| Error::Json { what: "output", source })
}
