//! Small documents beside jobs: records with optimistic concurrency, and append-only journals.
//!
//! [`Records::write_records`] writes all changes of a call, or none.
//!
//! ```
//! use std::sync::Arc;
//! use tenure::records::{Document, NewValue, Only, Put, RecordKey, Records, Writes, Written};
//! use tenure::{ManualClock, MemoryStore, Name};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = MemoryStore::new(Arc::new(ManualClock::new()));
//! let first = Put {
//!     shelf: Name::new("shelf", "request")?,
//!     key: RecordKey::new("order 7")?,
//!     only: Only::Absent,
//!     to: Some(NewValue { value: Document::new(*b"{\"status\":201}")?, keep: None }),
//! };
//! let writes = Writes { records: vec![first], ..Writes::default() };
//! assert!(matches!(store.write_records(writes.clone()).await?, Written::Done { .. }));
//! // A repeated call finds the record that the first one wrote.
//! let Written::Refused(unmet) = store.write_records(writes).await? else { panic!("it is there") };
//! assert_eq!(unmet[0].there.as_ref().map(|there| there.version), Some(1));
//! # Ok(())
//! # }
//! ```

pub use tenure_core::{Document, JournalEntry, Record, RecordKey, Subject};
pub use tenure_store::{
    Append, EntriesAsk, EntryPage, NewValue, Only, Put, RecordPage, Records, RecordsAsk, Unmet, Writes,
    Written,
};
