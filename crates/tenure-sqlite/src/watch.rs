//! Notices what other processes write to the same file, and that it was replaced.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::mpsc::WeakSender;

use crate::command::Command;
use crate::identity::Identity;
use crate::readers::Alive;

/// How long another process's commit may go unnoticed.
const EVERY: Duration = Duration::from_millis(25);
/// Rounds between two checks of the file's identity.
const ROUNDS: u32 = 10;

/// Starts the watch; it ends when the other end of `stop` is dropped.
pub(crate) fn start(
    conn: Connection,
    identity: Identity,
    writer: WeakSender<Command>,
    stop: Receiver<()>,
    alive: Alive,
) -> std::io::Result<()> {
    // What is written while the thread starts is not missed.
    let seen = version(&conn);
    std::thread::Builder::new().name("tenure-watch".to_owned()).spawn(move || {
        watch(&conn, seen, &identity, &writer, &stop);
        drop((conn, alive));
    })?;
    Ok(())
}

/// It cannot tell this process's commits from another's: the writer can, and is asked only if there
/// was any.
fn watch(
    conn: &Connection,
    mut seen: Option<i64>,
    identity: &Identity,
    writer: &WeakSender<Command>,
    stop: &Receiver<()>,
) {
    let mut round = 0;
    while let Err(RecvTimeoutError::Timeout) = stop.recv_timeout(EVERY) {
        round = (round + 1) % ROUNDS;
        if round == 0 {
            identity.check();
        }
        let version = version(conn);
        if version == seen {
            continue;
        }
        let Some(writer) = writer.upgrade() else { return };
        // A full inbox means that the writer looks anyway.
        let _ = writer.try_send(Command::Look);
        seen = version;
    }
}

fn version(conn: &Connection) -> Option<i64> {
    // A fault here costs a hint; what is wrong with the file is told to whoever uses it.
    conn.prepare_cached("PRAGMA data_version").ok()?.query_row([], |row| row.get(0)).ok()
}
