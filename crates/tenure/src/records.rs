//! Small documents that a program keeps beside its jobs, in the same store: [records](Records::record) under keys, which
//! change by comparing versions, and [journals](Records::entries), which only grow.

pub use tenure_core::{Document, JournalEntry, Record, RecordKey, Subject};
pub use tenure_store::{
    Append, EntriesAsk, EntryPage, NewValue, Only, Put, RecordPage, Records, RecordsAsk, Unmet, Writes,
    Written,
};
