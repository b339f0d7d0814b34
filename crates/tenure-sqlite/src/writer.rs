//! The one thread that writes.
//!
//! Whatever has been asked while one transaction was being written goes into the next, so that many
//! callers share one wait for the disk. There is no timer: a lone caller never waits for company.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rusqlite::{Connection, Result};
use tenure_store::{Bulletin, Clock, Fault};
use tokio::sync::mpsc;

use crate::command::{Command, Held};
use crate::fault::{fault_of, fault_of_commit};
use crate::inspect::of_file;
use crate::pause::pause;
use crate::writing::{Memory, News, Writing};

/// Most commands in one transaction.
const GROUP_COMMANDS: usize = 1024;
/// A transaction that has about so many rows to write takes no further command.
const GROUP_ROWS: usize = 10_000;

pub(crate) struct Writer {
    pub conn: Connection,
    pub path: PathBuf,
    pub memory: Memory,
    pub clock: Arc<dyn Clock>,
    pub bulletin: Arc<Bulletin>,
    /// Transactions that wrote something.
    pub commits: Arc<AtomicU64>,
    pub commit_takes_at_least: Option<Duration>,
}

impl Writer {
    /// Writes until nobody can ask any more, or it is told to close.
    pub(crate) fn run(mut self, mut inbox: mpsc::Receiver<Command>) {
        while let Some(first) = inbox.blocking_recv() {
            let (group, close) = gather(first, &mut inbox);
            self.write(group);
            let Some(close) = close else { continue };
            inbox.close();
            while let Some(late) = inbox.blocking_recv() {
                late.refuse(Fault::Closed);
            }
            // The file is whole and alone when the answer comes.
            drop(self);
            if let Command::Close(reply) = close {
                let _ = reply.send(Ok(()));
            }
            return;
        }
    }

    fn write(&mut self, group: Vec<Command>) {
        let mut held = Vec::with_capacity(group.len());
        let mut commands = group.into_iter();
        match self.transact(&mut commands, &mut held) {
            Ok(news) => {
                // Hints come first: whoever has its answer finds them there.
                news.publish(&self.bulletin);
                held.into_iter().for_each(|answer| answer(Ok(())));
            }
            Err(fault) => {
                let fault = of_file(&self.path, fault);
                tracing::warn!(%fault, "a transaction was not written");
                held.into_iter().for_each(|answer| answer(Err(fault.clone())));
                commands.for_each(|command| command.refuse(fault.clone()));
            }
        }
    }

    fn transact(
        &mut self,
        commands: &mut impl Iterator<Item = Command>,
        held: &mut Vec<Held>,
    ) -> std::result::Result<News, Fault> {
        let before = self.conn.total_changes();
        execute(&self.conn, "BEGIN IMMEDIATE").map_err(|error| fault_of(&error))?;
        let news = match self.work(commands, held) {
            Ok(news) => news,
            Err(error) => {
                self.roll_back();
                return Err(fault_of(&error));
            }
        };
        let wrote = self.conn.total_changes() != before;
        let began = self.clock.moment();
        if let Err(error) = execute(&self.conn, "COMMIT") {
            let rolled_back = self.roll_back();
            return Err(fault_of_commit(&error, rolled_back));
        }
        if !wrote {
            return Ok(news);
        }
        self.commits.fetch_add(1, Ordering::Relaxed);
        if let Some(least) = self.commit_takes_at_least {
            pause(least.saturating_sub(self.clock.moment().since(began)));
        }
        Ok(news)
    }

    fn work(&mut self, commands: &mut impl Iterator<Item = Command>, held: &mut Vec<Held>) -> Result<News> {
        let (now, is_heard) = (self.clock.now(), self.bulletin.is_heard());
        let mut writing = Writing::begin(&self.conn, &mut self.memory, now, is_heard)?;
        for command in commands {
            command.write(&mut writing, held)?;
        }
        writing.finish()
    }

    /// Undoes the transaction; answers whether it is certain that nothing of it stays.
    fn roll_back(&mut self) -> bool {
        self.memory.forget();
        // SQLite has rolled back by itself after some errors.
        self.conn.is_autocommit() || execute(&self.conn, "ROLLBACK").is_ok()
    }
}

/// Takes what else has been asked by now, within bounds; a command to close stands apart.
fn gather(first: Command, inbox: &mut mpsc::Receiver<Command>) -> (Vec<Command>, Option<Command>) {
    let mut group = Vec::new();
    let mut rows = 0;
    let mut next = Some(first);
    while let Some(command) = next {
        if let Command::Close(_) = command {
            return (group, Some(command));
        }
        rows += command.weight();
        group.push(command);
        let full = rows >= GROUP_ROWS || group.len() >= GROUP_COMMANDS;
        next = if full { None } else { inbox.try_recv().ok() };
    }
    (group, None)
}

fn execute(conn: &Connection, sql: &str) -> Result<()> {
    conn.prepare_cached(sql)?.execute([])?;
    Ok(())
}
