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
            // The caller may have given up before its turn, such as a client that has hung up.
            if !reply.is_closed() {
                let _ = reply.send(in_transaction(conn, look));
            }
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc as blocking;

    use super::*;

    /// A client that searches and hangs up, again and again, must not keep the readers busy.
    #[tokio::test]
    async fn a_read_is_dropped_if_its_caller_has_gone_before_it_begins() {
        let (alive, _end) = mpsc::channel(1);
        let readers = Arc::new(Readers::start(vec![Connection::open_in_memory().unwrap()], &alive).unwrap());
        let (go_on, wait) = blocking::channel::<()>();
        let slow = Arc::clone(&readers);
        let slow = tokio::spawn(async move {
            let look = move |_: &Connection| {
                let _ = wait.recv();
                Ok(())
            };
            slow.read(look).await
        });
        let (began, begun) = blocking::channel();
        for caller in 0..2 {
            let (readers, began) = (Arc::clone(&readers), began.clone());
            let read =
                tokio::spawn(
                    async move { readers.read(move |_| Ok(began.send(caller).is_ok())).await.unwrap() },
                );
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            if caller == 0 {
                // The first one hangs up while it waits for the reader.
                read.abort();
                assert!(read.await.unwrap_err().is_cancelled());
            } else {
                go_on.send(()).unwrap();
                assert!(read.await.unwrap());
            }
        }
        slow.await.unwrap().unwrap();
        assert_eq!(begun.try_iter().collect::<Vec<_>>(), [1]);
    }
}
