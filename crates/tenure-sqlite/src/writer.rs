//! Writing: on a thread of its own, or in the caller's turn.
//!
//! Whatever has been asked while one transaction was being written goes into the next, so that many
//! callers share one wait for the disk. Callers who were answered together usually ask again together:
//! the next transaction waits for them, but only a fraction of what the last one took. A lone caller
//! waits for nobody.

mod outage;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rusqlite::{Connection, Error, ErrorCode, Result};
use tenure_store::{Bulletin, Clock, Fault, Moment};
use tokio::sync::mpsc;

use crate::command::Command;
use crate::fault::{fault_of, fault_of_commit, is_unreadable};
use crate::inspect::of_file;
use crate::lock_holder::held_for_too_long;
use crate::open::Way;
use crate::pause::pause;
use crate::writing::{Memory, News, Writing};
pub(crate) use outage::Outage;

/// Most commands in one transaction.
const GROUP_COMMANDS: usize = 1024;
/// A transaction that has about so many rows to write takes no further command.
const GROUP_ROWS: usize = 10_000;

/// Which part of the last commit's time the next transaction waits for the callers of the last.
const PATIENCE: u32 = 8;
/// The writer waits no longer than for so many turns of other threads, about 0.1 s, even if its clock stands still.
const TURNS: u32 = 100_000;

/// Who shared the last transaction.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Company {
    commands: usize,
    commit_took: Duration,
}

pub(crate) struct Writer {
    pub conn: Connection,
    pub path: PathBuf,
    pub way: Way,
    pub memory: Memory,
    pub clock: Arc<dyn Clock>,
    pub bulletin: Arc<Bulletin>,
    /// Transactions that wrote something.
    pub commits: Arc<AtomicU64>,
    pub commit_takes_at_least: Option<Duration>,
    pub company: Company,
    pub outage: Outage,
}

impl Writer {
    /// Writes until nobody can ask any more, or it is told to close.
    pub(crate) fn run(mut self, mut inbox: mpsc::Receiver<Command>) {
        while let Some(first) = inbox.blocking_recv() {
            let (group, close) = self.gather(first, &mut inbox);
            // Whoever only looks asks for nothing but to look again, and has nothing in mind that could be out of date.
            if self.way == Way::Writes {
                self.commit(group).publish(&self.bulletin);
            }
            let Some(close) = close else { continue };
            inbox.close();
            while let Some(late) = inbox.blocking_recv() {
                late.answer(Err(Fault::Closed));
            }
            // The file is whole and alone when the answer comes.
            drop(self);
            if let Command::Close(pending) = close {
                pending.send(());
            }
            return;
        }
    }

    /// Takes what else has been asked by now, within bounds; a command to close stands apart.
    fn gather(&self, first: Command, inbox: &mut mpsc::Receiver<Command>) -> (Vec<Command>, Option<Command>) {
        let (mut group, mut rows) = (Vec::new(), 0);
        let mut next = Some(first);
        let began = self.clock.moment();
        while let Some(command) = next {
            if let Command::Close(_) = command {
                return (group, Some(command));
            }
            rows += command.weight();
            group.push(command);
            let full = rows >= GROUP_ROWS || group.len() >= GROUP_COMMANDS;
            next = if full { None } else { self.next(group.len(), began, inbox) };
        }
        (group, None)
    }

    /// The next command, if it is there or company is on its way.
    fn next(&self, gathered: usize, began: Moment, inbox: &mut mpsc::Receiver<Command>) -> Option<Command> {
        for _ in 0..TURNS {
            if let Ok(command) = inbox.try_recv() {
                return Some(command);
            }
            let waited = self.clock.moment().since(began);
            if gathered >= self.company.commands || waited >= self.company.commit_took / PATIENCE {
                return None;
            }
            std::thread::yield_now();
        }
        None
    }

    /// Writes the group in one transaction, whose answers the caller has to send. A command that meets an unreadable
    /// row fails alone, and the others are written without it.
    pub(crate) fn commit(&mut self, mut group: Vec<Command>) -> Written {
        self.company = Company { commands: group.len(), commit_took: Duration::ZERO };
        loop {
            let undone = match self.transact(&mut group) {
                Ok(news) => return Written { news, group },
                Err(undone) => undone,
            };
            let fault = of_file(&self.path, undone.fault);
            let Some(culprit) = undone.culprit else {
                if self.outage.failed(&fault, self.clock.moment()) {
                    tracing::warn!(%fault, "all transactions fail until this fault is resolved");
                }
                group.into_iter().for_each(|command| command.answer(Err(fault.clone())));
                return Written::default();
            };
            tracing::warn!(%fault, "write failed");
            group.remove(culprit).answer(Err(fault));
        }
    }

    fn transact(&mut self, group: &mut [Command]) -> std::result::Result<News, Undone> {
        let before = self.conn.total_changes();
        let begin = if cfg!(mutant = "sqlite-begin-deferred") { "BEGIN" } else { "BEGIN IMMEDIATE" };
        execute(&self.conn, begin).map_err(|error| {
            let is_busy = error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy);
            Undone::whole(if is_busy { held_for_too_long(&self.path) } else { fault_of(&error) })
        })?;
        let mut news = match self.work(group) {
            Ok(news) => news,
            Err(undone) => {
                self.roll_back();
                return Err(undone);
            }
        };
        if cfg!(mutant = "sqlite-news-before-commit") {
            std::mem::take(&mut news).publish(&self.bulletin);
        }
        let wrote = self.conn.total_changes() != before;
        let began = self.clock.moment();
        if let Err(error) = execute(&self.conn, "COMMIT") {
            let rolled_back = self.roll_back();
            return Err(Undone::whole(fault_of_commit(&error, rolled_back)));
        }
        if !wrote {
            return Ok(news);
        }
        if let Some(ended) = self.outage.ended(self.clock.moment()) {
            let seconds = ended.lasted.as_secs();
            tracing::warn!(failed = ended.failed, seconds, "transactions succeed again");
        }
        self.commits.fetch_add(1, Ordering::Relaxed);
        if let Some(least) = self.commit_takes_at_least {
            pause(least.saturating_sub(self.clock.moment().since(began)));
        }
        self.company.commit_took = self.clock.moment().since(began);
        Ok(news)
    }

    fn work(&mut self, group: &mut [Command]) -> std::result::Result<News, Undone> {
        let whole = |error: Error| Undone::whole(fault_of(&error));
        let (now, is_heard) = (self.memory.steps.look(&*self.clock), self.bulletin.is_heard());
        let mut writing = Writing::begin(&self.conn, &mut self.memory, now, is_heard).map_err(whole)?;
        for (index, command) in group.iter_mut().enumerate() {
            command.write(&mut writing).map_err(|error| Undone::by(index, &error))?;
        }
        writing.finish().map_err(whole)
    }

    /// Undoes the transaction; answers whether it is certain that nothing of it stays.
    fn roll_back(&mut self) -> bool {
        self.memory.forget();
        // SQLite has rolled back by itself after some errors.
        self.conn.is_autocommit() || execute(&self.conn, "ROLLBACK").is_ok()
    }
}

/// A durable transaction whose callers still wait.
#[must_use = "the callers wait for their answers"]
#[derive(Default)]
pub(crate) struct Written {
    news: News,
    group: Vec<Command>,
}

impl Written {
    /// Notifies workers, then answers the callers.
    pub(crate) fn publish(self, bulletin: &Bulletin) {
        // A caller that has its answer also finds the notifications.
        self.news.publish(bulletin);
        self.group.into_iter().for_each(|command| command.answer(Ok(())));
    }
}

/// Why a transaction was not written.
struct Undone {
    fault: Fault,
    /// The command without which it may be written.
    culprit: Option<usize>,
}

impl Undone {
    fn whole(fault: Fault) -> Self {
        Self { fault, culprit: None }
    }

    fn by(index: usize, error: &Error) -> Self {
        // Any other error is one of the file or the disk, which no command can help.
        Self { fault: fault_of(error), culprit: is_unreadable(error).then_some(index) }
    }
}

fn execute(conn: &Connection, sql: &str) -> Result<()> {
    conn.prepare_cached(sql)?.execute([])?;
    Ok(())
}

#[cfg(test)]
mod tests;
