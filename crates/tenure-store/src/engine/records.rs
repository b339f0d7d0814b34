//! Records and journals: writes changes, all or nothing, and decides whether a store has more to prune.

use tenure_core::{Document, JournalEntry, Name, Record, RecordKey, Subject, Timestamp, limits};

use crate::{Only, Put, Unmet, Writes, Written};

/// A transaction over the rows of records and journals.
#[allow(
    async_fn_in_trait,
    reason = "the rows of some stores stay on one thread, and so do the futures of their reads"
)]
pub trait RecordTxn {
    /// The error of a failed read or write.
    type Error;

    /// Returns the instant of the transaction. Transactions that write the same records or journals commit in the order of
    /// their instants.
    fn now(&self) -> Timestamp;

    /// Returns the record in the place of each change, whether it has expired or not. No other transaction changes these
    /// places before this one ends.
    async fn find(&mut self, puts: &[Put]) -> Result<Vec<Option<Record>>, Self::Error>;

    /// Writes all changes. Removing a missing record has no effect.
    async fn write(&mut self, changes: &Changes<'_>) -> Result<Numbers, Self::Error>;

    /// Notifies hosts after the commit that a holder may have been asked to stop.
    fn notify_asked(&mut self) -> Result<(), Self::Error>;
}

/// The changes of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Changes<'w> {
    /// The instant at which entries are appended.
    pub at: Timestamp,
    /// The places whose records are removed.
    pub gone: Vec<(&'w Name, &'w RecordKey)>,
    /// New and replaced records.
    pub kept: Vec<NewRecord<'w>>,
    /// New entries of journals, in order.
    pub entries: Vec<NewEntry<'w>>,
}

/// A record before the store draws its version.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NewRecord<'w> {
    /// The shelf.
    pub shelf: &'w Name,
    /// The key.
    pub key: &'w RecordKey,
    /// The text.
    pub value: &'w Document,
    /// The instant at which it expires; `None` if it never does.
    pub expires: Option<Timestamp>,
}

/// An entry of a journal before the store draws its number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NewEntry<'w> {
    /// The journal.
    pub journal: &'w Name,
    /// The subject.
    pub subject: &'w Subject,
    /// The text.
    pub value: &'w Document,
    /// The instant at which it expires; `None` if it never does.
    pub expires: Option<Timestamp>,
}

/// The numbers that a store drew for the changes of a call. Each is greater than all that were drawn before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Numbers {
    /// The version of each record that is kept, in order.
    pub versions: Vec<u64>,
    /// The number of each entry, in order.
    pub entries: Vec<u64>,
}

/// Writes records and appends entries, unless a condition is not met.
///
/// # Errors
/// Returns an error of the transaction.
pub async fn write<T: RecordTxn>(txn: &mut T, writes: &Writes) -> Result<Written, T::Error> {
    let there = txn.find(&writes.records).await?;
    let unmet = unmet(&writes.records, there, txn.now());
    if !unmet.is_empty() {
        return Ok(Written::Refused(unmet));
    }
    let Numbers { versions, entries } = txn.write(&Changes::of(writes, txn.now())).await?;
    if writes.asks {
        txn.notify_asked()?;
    }
    let mut versions = versions.into_iter();
    let versions = writes.records.iter().map(|put| put.to.as_ref().and_then(|_| versions.next()));
    Ok(Written::Done { versions: versions.collect(), numbers: entries })
}

/// Returns true if more records or journal entries may have expired than a store removed. A store removes up to
/// [`limits::PRUNE_RECORDS`] of each, and the earliest expired first.
#[must_use]
pub fn prunes_on(removed: usize) -> bool {
    removed >= limits::PRUNE_RECORDS
}

impl<'w> Changes<'w> {
    fn of(writes: &'w Writes, at: Timestamp) -> Self {
        let mut changes = Self { at, gone: Vec::new(), kept: Vec::new(), entries: Vec::new() };
        for Put { shelf, key, to, only: _ } in &writes.records {
            match to {
                None => changes.gone.push((shelf, key)),
                Some(to) => {
                    let expires = to.keep.map(|keep| at.after(keep));
                    changes.kept.push(NewRecord { shelf, key, value: &to.value, expires });
                }
            }
        }
        changes.entries.extend(writes.entries.iter().map(|entry| NewEntry {
            journal: &entry.journal,
            subject: &entry.subject,
            value: &entry.value,
            expires: entry.keep.map(|keep| at.after(keep)),
        }));
        changes
    }
}

impl NewRecord<'_> {
    /// Returns the record in this version.
    #[must_use]
    pub fn numbered(self, version: u64) -> Record {
        let Self { shelf, key, value, expires } = self;
        Record { shelf: shelf.clone(), key: key.clone(), version, value: value.clone(), expires }
    }
}

impl NewEntry<'_> {
    /// Returns the entry with this number, appended at this instant.
    #[must_use]
    pub fn numbered(self, number: u64, at: Timestamp) -> JournalEntry {
        let (journal, subject, value) = (self.journal.clone(), self.subject.clone(), self.value.clone());
        JournalEntry { journal, number, at, subject, value, expires: self.expires }
    }
}

/// Returns the conditions that are not met. An expired record counts as absent.
fn unmet(puts: &[Put], there: Vec<Option<Record>>, now: Timestamp) -> Vec<Unmet> {
    let alive = there.into_iter().map(|there| there.filter(|there| there.is_alive(now)));
    let judged = puts.iter().zip(alive).enumerate();
    judged
        .filter(|(_, (put, there))| !is_met(put.only, there.as_ref()))
        .map(|(index, (_, there))| Unmet { index, there })
        .collect()
}

fn is_met(only: Only, there: Option<&Record>) -> bool {
    match only {
        Only::Any => true,
        Only::Absent => there.is_none(),
        Only::Version(version) => there.is_some_and(|there| there.version == version),
    }
}
