//! The threads that read, each with a connection of its own.

use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use tenure_store::Fault;
use tokio::sync::{mpsc, oneshot};

use crate::executor::in_transaction;

/// Reads that may wait for a reader before whoever asks waits, too.
const WAITING_READS: usize = 256;

type Read = Box<dyn FnOnce(&Connection) + Send>;

/// Where reads are asked for.
#[derive(Debug)]
pub(crate) struct Readers {
    asked: mpsc::Sender<Option<Read>>,
    count: usize,
}

/// What a thread has as long as it lives.
pub(crate) type Alive = mpsc::Sender<()>;

impl Readers {
    /// Starts a thread for each connection.
    pub(crate) fn start(connections: Vec<Connection>, alive: &Alive) -> std::io::Result<Self> {
        let (asked, waiting) = mpsc::channel(WAITING_READS);
        let waiting = Arc::new(Mutex::new(waiting));
        let count = connections.len();
        for (number, conn) in connections.into_iter().enumerate() {
            let (waiting, alive) = (Arc::clone(&waiting), alive.clone());
            std::thread::Builder::new().name(format!("tenure-read-{number}")).spawn(move || {
                read_on(&conn, &waiting);
                drop((conn, alive));
            })?;
        }
        Ok(Self { asked, count })
    }

    /// Reads in one transaction, so that all of it is of one moment.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let (reply, answer) = oneshot::channel();
        let read = move |conn: &Connection| {
            // Whoever asked may have stopped waiting.
            let _ = reply.send(in_transaction(conn, look));
        };
        self.asked.send(Some(Box::new(read))).await.map_err(|_| Fault::Closed)?;
        answer.await.unwrap_or_else(|_| Err(Fault::Unavailable("the reader thread has ended".to_owned())))
    }

    /// Tells the threads to end after what has been asked.
    pub(crate) async fn stop(&self) {
        for _ in 0..self.count {
            // A thread that has ended need not be told.
            let _ = self.asked.send(None).await;
        }
    }
}

fn read_on(conn: &Connection, waiting: &Mutex<mpsc::Receiver<Option<Read>>>) {
    loop {
        // The one that waits has the lock; it gives it to the next before it reads.
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv();
        let Some(Some(read)) = next else { return };
        read(conn);
    }
}
