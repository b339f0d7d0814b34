//! Writing and reading in the caller's own turn, on one connection: for simulations, which have one thread.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;
use tenure_store::{Bulletin, Fault};

use crate::command::Command;
use crate::executor::{Answered, ENDED, in_transaction};
use crate::writer::Writer;

/// A writer without a thread. Every answer is ready when a caller first polls for it.
pub(crate) struct Inline {
    /// `None` after the store was closed.
    writer: Mutex<Option<Writer>>,
    bulletin: Arc<Bulletin>,
}

impl Inline {
    pub(crate) fn new(writer: Writer) -> Self {
        let bulletin = Arc::clone(&writer.bulletin);
        Self { writer: Mutex::new(Some(writer)), bulletin }
    }

    /// Writes the command in a transaction of its own.
    pub(crate) fn write<T>(
        &self,
        command: Command,
        mut answer: Answered<T>,
    ) -> Result<Result<T, Fault>, Fault> {
        let written = match self.lock().as_mut() {
            Some(writer) => writer.commit(vec![command]),
            None => return Err(Fault::Unavailable(ENDED.to_owned())),
        };
        // Publish without the lock: a notification sends parked claims, and they take the lock.
        written.publish(&self.bulletin);
        // Not awaited: tokio sometimes makes a task yield although its answer is there.
        answer.try_recv().map_err(|_| Fault::Unknown(ENDED.to_owned()))
    }

    pub(crate) fn read<T>(&self, look: impl FnOnce(&Connection) -> Result<T, Fault>) -> Result<T, Fault> {
        let open = self.lock();
        let writer = open.as_ref().ok_or(Fault::Closed)?;
        in_transaction(&writer.conn, look)
    }

    pub(crate) fn close(&self) -> Result<(), Fault> {
        self.lock().take().map(drop).ok_or(Fault::Closed)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Writer>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
