//! Small documents that are not jobs: records, which change, and journals, which only grow.

use std::collections::BTreeSet;
use std::time::Duration;

use tenure_core::{Document, JournalEntry, Name, Record, RecordKey, Subject, Timestamp, limits};

use crate::{Answer, Fault, Order};

/// What a program keeps beside its jobs, and what it writes down.
///
/// Versions and numbers come from counters of the whole store, so none is ever given twice: whoever compares a version
/// cannot take a record for one that was removed and written again.
pub trait Records {
    /// Writes records and appends entries to journals, all of it in one go or nothing. If a condition does not hold,
    /// nothing is done, and the answer has what is in the way: whoever repeats a call of which he does not know what
    /// became finds there what the first one wrote. All conditions are about what was there before the call.
    ///
    /// Entries have no condition of their own. One that must not be appended twice goes along with a record that must not
    /// be there yet. No more than [`check_writes`] allows: of more nothing is done.
    fn write_records(&self, writes: Writes) -> Answer<'_, Written>;

    /// One record; `None` if there is none, or it has expired.
    fn record(&self, shelf: &Name, key: &RecordKey) -> Answer<'_, Option<Record>>;

    /// A page of the records of a shelf, by key.
    fn records(&self, ask: RecordsAsk) -> Answer<'_, RecordPage>;

    /// A page of the entries of a journal, by number. Whoever has seen a number and asks for what comes behind it misses
    /// nothing: no entry with a smaller number comes to be seen later.
    fn entries(&self, ask: EntriesAsk) -> Answer<'_, EntryPage>;
}

/// What is written in one go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Writes {
    /// Changes of records, each of another one.
    pub records: Vec<Put>,
    /// Entries, in the order in which they are appended.
    pub entries: Vec<Append>,
    /// Whether holders are asked something by it, so that they are [called](crate::Hints::asked) to look.
    pub asks: bool,
}

/// A change of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Put {
    /// On which shelf.
    pub shelf: Name,
    /// Under which key.
    pub key: RecordKey,
    /// What it needs for it to be done.
    pub only: Only,
    /// What it says from now on; it is removed if `None`.
    pub to: Option<NewValue>,
}

/// What a record says from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewValue {
    /// The text.
    pub value: Document,
    /// For how long, from when it is written; for good if `None`. How long and not until when, since whoever writes may
    /// have another clock than the store.
    pub keep: Option<Duration>,
}

/// What there has to be for a change to be done. What has expired is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Only {
    /// Anything, or nothing.
    Any,
    /// No record.
    Absent,
    /// The record in this version.
    Version(u64),
}

/// Something that is to be appended to a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Append {
    /// To which.
    pub journal: Name,
    /// What it is about.
    pub subject: Subject,
    /// What it says.
    pub value: Document,
    /// For how long it is kept, from now on; for good if `None`.
    pub keep: Option<Duration>,
}

/// What came of writing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// All of it is done.
    Done {
        /// The new version of each record, in the order of the call; `None` of one that is not there now.
        versions: Vec<Option<u64>>,
        /// The number of each entry, in the order of the call.
        numbers: Vec<u64>,
    },
    /// Nothing is done: these conditions do not hold, in the order of the call.
    Refused(Vec<Unmet>),
}

/// A condition that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmet {
    /// Of which of the changes of the call, from 0 on.
    pub index: usize,
    /// The record that is there; `None` if there is none.
    pub there: Option<Record>,
}

/// Which page of records is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordsAsk {
    /// On which shelf.
    pub shelf: Name,
    /// Whose keys begin so; all if it is empty.
    pub prefix: String,
    /// Behind this key.
    pub behind: Option<RecordKey>,
    /// How many at most.
    pub at_most: usize,
}

/// A page of records. One that looked at many that have expired may be short, or even empty, and still go on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordPage {
    /// The records, by key.
    pub records: Vec<Record>,
    /// Behind which key it goes on; `None` at the end.
    pub next: Option<RecordKey>,
}

/// Which page of a journal is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntriesAsk {
    /// Of which journal.
    pub journal: Name,
    /// About this; about anything if `None`.
    pub subject: Option<Subject>,
    /// Written at this instant or later.
    pub from: Option<Timestamp>,
    /// Written before this instant.
    pub before: Option<Timestamp>,
    /// In which order: of their numbers.
    pub order: Order,
    /// Behind this number, in that order.
    pub behind: Option<u64>,
    /// How many at most.
    pub at_most: usize,
}

/// A page of a journal. One that looked at many entries which nobody wants may be short, or even empty, and still go on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EntryPage {
    /// The entries.
    pub entries: Vec<JournalEntry>,
    /// Behind which number it goes on; `None` at the end.
    pub next: Option<u64>,
}

impl RecordsAsk {
    /// The first hundred of a shelf.
    #[must_use]
    pub fn of(shelf: Name) -> Self {
        Self { shelf, prefix: String::new(), behind: None, at_most: 100 }
    }
}

impl EntriesAsk {
    /// The last hundred of a journal.
    #[must_use]
    pub fn of(journal: Name) -> Self {
        let order = Order::NewestFirst;
        Self { journal, subject: None, from: None, before: None, order, behind: None, at_most: 100 }
    }

    /// Whether it means what was written at this instant.
    #[must_use]
    pub fn means_time(&self, at: Timestamp) -> bool {
        self.from.is_none_or(|from| at >= from) && self.before.is_none_or(|before| at < before)
    }
}

/// Refuses to write more than a call may, something too large, and one record twice.
///
/// # Errors
/// A fault, since there is no answer to some of it: whoever calls has to be mended.
pub fn check_writes(writes: &Writes) -> Result<(), Fault> {
    let Writes { records, entries, asks: _ } = writes;
    let most = |count: usize, what: &str, most: usize| {
        if count <= most {
            return Ok(());
        }
        Err(Fault::Broken(format!("{count} {what} written in one call; the maximum is {most}")))
    };
    most(records.len(), "records", limits::WRITE_RECORDS)?;
    most(entries.len(), "entries", limits::WRITE_ENTRIES)?;
    let mut keys = BTreeSet::new();
    for put in records {
        if !keys.insert((&put.shelf, &put.key)) {
            let Put { shelf, key, .. } = put;
            return Err(Fault::Broken(format!("record {shelf}/{key} occurs twice in one call")));
        }
        check_keep(put.to.as_ref().and_then(|to| to.keep))?;
    }
    for entry in entries {
        let length = entry.value.as_bytes().len();
        if length > limits::ENTRY_BYTES {
            let most = limits::ENTRY_BYTES;
            return Err(Fault::Broken(format!("an entry of {length} bytes; the maximum is {most}")));
        }
        check_keep(entry.keep)?;
    }
    Ok(())
}

fn check_keep(keep: Option<Duration>) -> Result<(), Fault> {
    if keep.is_none_or(|keep| keep <= limits::LONGEST) {
        return Ok(());
    }
    let most = limits::LONGEST.as_secs();
    Err(Fault::Broken(format!("a retention of more than {most} seconds, which is the maximum")))
}
