//! Writing the numbers to their journal, and reading them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tenure_core::{Document, JournalEntry, Name, QueueName, Subject, Timestamp, limits};
use tenure_store::{Append, Fault, Store, Writes};

use super::heap::{Bucket, Heap};
use super::{JOURNAL, KEPT, MINUTE, SpanCounts, Went};

/// One queue in one minute, as one program saw it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Kept {
    /// Which program.
    pub by: u64,
    /// What tells it from all else that this one wrote.
    pub number: u64,
    /// The number of the minute.
    pub minute: u64,
    pub kinds: BTreeMap<String, Went>,
}

/// Writes what is past; with `all`, the minute that is not over, too. What cannot be written is kept for the next time.
pub(crate) async fn write(store: &dyn Store, heap: &Heap, all: bool) -> Result<(), Fault> {
    loop {
        let some = heap.begin(all, store.clock().now(), limits::WRITE_ENTRIES);
        if some.is_empty() {
            return Ok(());
        }
        let entries =
            some.iter().filter_map(|(minute, queue, bucket)| entry(heap.id(), *minute, queue, bucket));
        store.write_records(Writes { entries: entries.collect(), ..Writes::default() }).await?;
        heap.written(&some);
    }
}

/// The entry for a queue in a minute. What is too large for one leaves out how long things took.
fn entry(by: u64, minute: u64, queue: &QueueName, bucket: &Bucket) -> Option<Append> {
    let text = |kinds| serde_json::to_vec(&Kept { by, number: bucket.number, minute, kinds }).ok();
    let counts =
        |went: &Went| Went { waited: SpanCounts::default(), ran: SpanCounts::default(), ..went.clone() };
    let mut value = text(bucket.kinds.clone())?;
    if value.len() > limits::ENTRY_BYTES {
        value = text(bucket.kinds.iter().map(|(kind, went)| (kind.clone(), counts(went))).collect())?;
    }
    Some(Append {
        journal: Name::new("journal", JOURNAL).ok()?,
        subject: Subject::new(queue.as_str()).ok()?,
        value: Document::new(value).ok()?,
        keep: Some(KEPT),
    })
}

/// What an entry tells; `None` if it is not understood, perhaps because a later version wrote it.
pub(super) fn read(entry: &JournalEntry) -> Option<Kept> {
    serde_json::from_slice(entry.value.as_bytes()).ok()
}

/// When a minute began.
pub(super) fn began(minute: u64) -> Timestamp {
    Timestamp::EPOCH.after(MINUTE * u32::try_from(minute).unwrap_or(u32::MAX))
}
