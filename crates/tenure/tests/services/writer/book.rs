//! What the writers of these tests write into: a book that is outside of the store.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::{Duty, Failed, Fence, FenceGate, Mailbox, Message, Tenure, Worker, Writer};

use crate::common::fleet::{Fleet, Instance};

pub const SECOND: Duration = Duration::from_secs(1);
/// For how long messages and the lease are held.
pub const LEASE: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub number: u64,
}

/// A book that refuses late writers, as any resource outside of the store should.
#[derive(Default)]
pub struct Book {
    gate: FenceGate,
    entries: Mutex<Vec<(u64, Fence)>>,
    pub refused: AtomicUsize,
    /// How many messages each batch had.
    pub batches: Mutex<Vec<usize>>,
    /// How long each batch takes.
    pub takes: Mutex<Duration>,
    /// What cannot be written, whatever is done.
    pub bad: Mutex<Vec<u64>>,
}

pub type Shared = Arc<Book>;

impl Book {
    /// All entries in the order in which they were written, repetitions and all.
    pub fn all(&self) -> Vec<u64> {
        self.entries.lock().unwrap().iter().map(|(number, _)| *number).collect()
    }

    /// Each entry at its first time.
    pub fn once(&self) -> Vec<u64> {
        let mut once = Vec::new();
        for number in self.all() {
            if !once.contains(&number) {
                once.push(number);
            }
        }
        once
    }

    pub fn fences(&self) -> Vec<Fence> {
        let mut fences: Vec<_> = self.entries.lock().unwrap().iter().map(|(_, fence)| *fence).collect();
        fences.dedup();
        fences
    }

    pub fn write(&self, number: u64, fence: Fence) -> Result<(), Failed> {
        let written = self.gate.write(fence, || self.entries.lock().unwrap().push((number, fence)));
        if written.is_err() {
            self.refused.fetch_add(1, Ordering::SeqCst);
        }
        Ok(written?)
    }
}

/// Takes its time, then writes the whole batch or nothing of it.
pub async fn write(duty: Duty<Shared>, messages: Vec<Message<Entry>>) -> Result<(), Failed> {
    let book = duty.app();
    let takes = *book.takes.lock().unwrap();
    if !takes.is_zero() {
        duty.sleep(takes).await?;
    }
    book.batches.lock().unwrap().push(messages.len());
    if let Some(bad) = messages.iter().find(|message| book.bad.lock().unwrap().contains(&message.body.number))
    {
        return Err(Failed::retry(format!("entry {} cannot be written", bad.body.number)));
    }
    for message in messages {
        book.write(message.body.number, duty.fence())?;
    }
    Ok(())
}

pub fn ledger(worker: Worker<Shared>, writer: Writer) -> Worker<Shared> {
    worker.writer(writer, write)
}

pub async fn writing(fleet: &Fleet, seed: u64, book: &Shared, writer: Writer) -> Instance {
    fleet.start(seed, Arc::clone(book), |worker| ledger(worker, writer)).await
}

pub fn one_by_one() -> Writer {
    Writer::new("ledger")
}

pub fn mailbox(tenure: &Tenure) -> Mailbox {
    tenure.writer("ledger").unwrap()
}

pub async fn send(mailbox: &Mailbox, numbers: impl IntoIterator<Item = u64>) {
    for number in numbers {
        mailbox.send(&Entry { number }).await.unwrap();
    }
}

pub fn up_to(end: u64) -> Vec<u64> {
    (0..end).collect()
}
