//! What workers are told to do: to take no more jobs, or to end. It is written down in the store, so that whoever is asked
//! tells it to a worker of any program, in any language.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_core::{Document, HostId, Invalid, Name, Record, RecordKey};
use tenure_store::{Fault, NewValue, Only, Put, Store, Writes};

use crate::{Error, Tenure};

/// On which shelf it is.
const SHELF: &str = "worker-command";
/// For how long a worker is told the same: longer than any of them lives that is not begun anew.
const KEEP: Duration = Duration::from_secs(30 * 24 * 3600);

/// A command for a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WorkerCommand {
    /// Continue.
    #[default]
    Run,
    /// Claim no more jobs, and finish the current ones.
    Quiet,
    /// Stop, as if its own program told it to.
    Terminate,
}

/// Commands for the workers of a store. A [`Worker`](crate::Worker) of any program on the store obeys them; remote
/// workers learn of them from their server.
#[derive(Debug)]
pub struct WorkerCommands<'a> {
    tenure: &'a Tenure,
}

impl Tenure {
    /// Returns access to worker commands.
    #[must_use]
    pub fn worker_commands(&self) -> WorkerCommands<'_> {
        WorkerCommands { tenure: self }
    }
}

impl WorkerCommands<'_> {
    /// Sends a command to a worker, by the ID that [`Tenure::hosts`] shows. A live worker learns of it at once if
    /// notifications work, or up to ten seconds later after several commands, and otherwise with its next heartbeat.
    ///
    /// # Errors
    /// A fault of the store.
    pub async fn tell(&self, worker: HostId, command: WorkerCommand) -> Result<(), Error> {
        self.tell_for(worker, command, KEEP).await
    }

    /// Sends a command for a limited time.
    ///
    /// # Errors
    /// A fault of the store.
    pub async fn tell_for(
        &self,
        worker: HostId,
        command: WorkerCommand,
        keep: Duration,
    ) -> Result<(), Error> {
        let text = serde_json::to_vec(&command).map_err(|source| Error::Json { what: "command", source })?;
        let to = NewValue { value: Document::new(text)?, keep: Some(keep) };
        let put = Put { shelf: shelf()?, key: key(worker)?, only: Only::Any, to: Some(to) };
        let writes = Writes { records: vec![put], asks: true, ..Writes::default() };
        self.tenure.store().write_records(writes).await?;
        Ok(())
    }

    /// Returns the command of a worker.
    ///
    /// # Errors
    /// A fault of the store.
    pub async fn of(&self, worker: HostId) -> Result<WorkerCommand, Error> {
        Ok(command_of(&**self.tenure.store(), worker).await?)
    }
}

/// What a worker is told, as its store knows it.
pub(crate) async fn command_of(store: &dyn Store, worker: HostId) -> Result<WorkerCommand, Fault> {
    let unnamed = |wrong: Invalid| Fault::Broken(wrong.to_string());
    let (shelf, key) = (shelf().map_err(unnamed)?, key(worker).map_err(unnamed)?);
    let record = store.record(&shelf, &key).await?;
    Ok(record.as_ref().and_then(said).unwrap_or_default())
}

/// What a newer program may have told is not understood here: its worker goes on.
fn said(record: &Record) -> Option<WorkerCommand> {
    serde_json::from_slice(record.value.as_bytes()).ok()
}

fn shelf() -> Result<Name, Invalid> {
    Name::new("shelf", SHELF)
}

fn key(worker: HostId) -> Result<RecordKey, Invalid> {
    RecordKey::new(&worker.to_string())
}
