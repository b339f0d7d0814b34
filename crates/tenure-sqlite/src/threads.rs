//! The threads of a store: one writes, some read, and one watches for writes of other processes.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use tenure_store::Fault;
use tokio::sync::{mpsc, oneshot};

use crate::command::{Command, Pending};
use crate::executor::{Answered, ENDED};
use crate::identity::{Identity, Lost};
use crate::readers::Readers;
use crate::watch;
use crate::writer::Writer;

/// Commands that may wait for the writer before their callers wait, too.
const WAITING_COMMANDS: usize = 4096;

/// The threads of a store. Dropping this ends them.
pub(crate) struct Threads {
    writer: mpsc::Sender<Command>,
    readers: Readers,
    /// The threads besides the writer, until the store closes.
    others: Mutex<Option<Others>>,
}

struct Others {
    /// Ends when the last of them has ended.
    alive: mpsc::Receiver<()>,
    /// Ends the watch when it is dropped.
    stop_watch: std::sync::mpsc::Sender<()>,
}

impl Threads {
    /// Starts a thread for each connection. Also returns the place where the watch notes that the file was replaced.
    pub(crate) fn start(
        writer: Writer,
        reading: Vec<Connection>,
        watching: Connection,
        path: &Path,
    ) -> std::io::Result<(Self, Arc<Lost>)> {
        let (sender, inbox) = mpsc::channel(WAITING_COMMANDS);
        let (alive, others_alive) = mpsc::channel(1);
        let (stop_watch, stop) = std::sync::mpsc::channel();
        let readers = Readers::start(reading, &alive)?;
        let identity = Identity::of(path);
        let lost = identity.lost();
        watch::start(watching, identity, sender.downgrade(), stop, alive)?;
        std::thread::Builder::new().name("tenure-write".to_owned()).spawn(move || writer.run(inbox))?;
        let others = Mutex::new(Some(Others { alive: others_alive, stop_watch }));
        Ok((Self { writer: sender, readers, others }, lost))
    }

    pub(crate) async fn write<T>(
        &self,
        command: Command,
        answer: Answered<T>,
    ) -> Result<Result<T, Fault>, Fault> {
        if self.writer.send(command).await.is_err() {
            return Err(Fault::Unavailable(ENDED.to_owned()));
        }
        answer.await.map_err(|_| Fault::Unknown(ENDED.to_owned()))
    }

    pub(crate) async fn read<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        self.readers.read(look).await
    }

    pub(crate) async fn close(&self) -> Result<(), Fault> {
        let others = self.others.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.readers.stop().await;
        if let Some(Others { mut alive, stop_watch }) = others {
            drop(stop_watch);
            while alive.recv().await.is_some() {}
        }
        // The writer goes last, so that it is alone when it works the log into the file.
        let (reply, answer) = oneshot::channel();
        if self.writer.send(Command::Close(Pending::new(reply))).await.is_err() {
            return Ok(());
        }
        answer.await.unwrap_or(Ok(()))
    }
}
