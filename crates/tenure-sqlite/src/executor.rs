//! The boundary between a store and the connections that serve it: threads, or the caller's own turn.
//!
//! Both forms run the same [`Writer`](crate::writer::Writer) and the same views. They differ only in who runs them.

use rusqlite::Connection;
use tenure_store::Fault;
use tokio::sync::oneshot;

use crate::command::{Command, Pending};
use crate::fault::fault_of;
use crate::inline::Inline;
use crate::threads::Threads;

/// The fault of a command that arrives after the writer ended.
pub(crate) const ENDED: &str = "the writer has ended; open the file again";

/// The answer to a command.
pub(crate) type Answered<T> = oneshot::Receiver<Result<T, Fault>>;

/// Runs commands and views.
pub(crate) enum Executor {
    /// Threads write and read, and commands that wait share a transaction.
    Threads(Threads),
    /// The caller writes and reads in its own turn, and each command is a transaction.
    Inline(Box<Inline>),
}

impl Executor {
    /// Runs a command. The outer error means that the writer has ended.
    pub(crate) async fn write<T>(
        &self,
        command: impl FnOnce(Pending<T>) -> Command,
    ) -> Result<Result<T, Fault>, Fault> {
        let (reply, answer) = oneshot::channel();
        let command = command(Pending::new(reply));
        match self {
            Self::Threads(threads) => threads.write(command, answer).await,
            Self::Inline(inline) => inline.write(command, answer),
        }
    }

    /// Reads in one transaction, so that the whole view shows one moment.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        match self {
            Self::Threads(threads) => threads.read(look).await,
            Self::Inline(inline) => inline.read(look),
        }
    }

    /// Ends the readers, then the writer.
    pub(crate) async fn close(&self) -> Result<(), Fault> {
        match self {
            Self::Threads(threads) => threads.close().await,
            Self::Inline(inline) => inline.close(),
        }
    }
}

/// Runs a view in one transaction.
pub(crate) fn in_transaction<T>(
    conn: &Connection,
    look: impl FnOnce(&Connection) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let transaction = conn.unchecked_transaction().map_err(|error| fault_of(&error))?;
    look(&transaction)
}
