//! What records and journals promise, and words for what the tests do with them.

mod conditions;
mod copied;
mod journals;
mod life;
mod pages;
mod races;

use std::time::Duration;

use tenure_core::{Document, JournalEntry, Name, Record, RecordKey, Subject};
use tenure_store::{
    Append, EntriesAsk, NewValue, Only, Order, Put, RecordsAsk, Store, Unmet, Writes, Written,
};

use super::Test;
use super::given::Given;

pub(super) fn tests() -> Vec<Test> {
    let all = [
        conditions::tests(),
        life::tests(),
        pages::tests(),
        journals::tests(),
        races::tests(),
        copied::tests(),
    ];
    all.into_iter().flatten().collect()
}

pub(super) fn word(text: &str) -> Name {
    Name::new("shelf", text).unwrap()
}

pub(super) fn key(text: &str) -> RecordKey {
    RecordKey::new(text).unwrap()
}

pub(super) fn document(text: &str) -> Document {
    Document::new(text.as_bytes()).unwrap()
}

/// A change of a token.
pub(super) fn put(key: &str, only: Only, value: &str) -> Put {
    let to = NewValue { value: document(value), keep: None };
    Put { shelf: word("token"), key: self::key(key), only, to: Some(to) }
}

/// The same, kept for so long.
pub(super) fn put_for(key: &str, only: Only, value: &str, keep: Duration) -> Put {
    let to = NewValue { value: document(value), keep: Some(keep) };
    Put { to: Some(to), ..put(key, only, value) }
}

pub(super) fn removal(key: &str, only: Only) -> Put {
    Put { to: None, ..put(key, only, "0") }
}

/// An entry of the audit journal.
pub(super) fn append(subject: &str, value: &str) -> Append {
    let subject = Subject::new(subject).unwrap();
    Append { journal: word("audit"), subject, value: document(value), keep: None }
}

pub(super) fn done(written: Written) -> (Vec<Option<u64>>, Vec<u64>) {
    match written {
        Written::Done { versions, numbers } => (versions, numbers),
        Written::Refused(unmet) => panic!("refused: {unmet:?}"),
    }
}

pub(super) fn refused(written: Written) -> Vec<Unmet> {
    match written {
        Written::Refused(unmet) => unmet,
        Written::Done { .. } => panic!("it was done"),
    }
}

pub(super) fn numbers(entries: &[JournalEntry]) -> Vec<u64> {
    entries.iter().map(|entry| entry.number).collect()
}

/// All keys of a page after the other.
pub(super) async fn keys(store: &dyn Store, ask: RecordsAsk) -> Vec<String> {
    let (mut keys, mut ask) = (Vec::new(), ask);
    for _ in 0..1_000 {
        let page = store.records(ask.clone()).await.unwrap();
        assert!(page.records.len() <= ask.at_most);
        keys.extend(page.records.iter().map(|record| record.key.to_string()));
        if page.next.is_none() {
            return keys;
        }
        ask.behind = page.next;
    }
    panic!("it has no end");
}

/// All entries of a page after the other.
pub(super) async fn entries(store: &dyn Store, ask: EntriesAsk) -> Vec<JournalEntry> {
    let (mut all, mut ask) = (Vec::new(), ask);
    for _ in 0..1_000 {
        let page = store.entries(ask.clone()).await.unwrap();
        assert!(page.entries.len() <= ask.at_most);
        all.extend(page.entries);
        if page.next.is_none() {
            return all;
        }
        ask.behind = page.next;
    }
    panic!("it has no end");
}

impl Given {
    pub(super) async fn write_all(&self, records: Vec<Put>, entries: Vec<Append>) -> Written {
        self.store.write_records(Writes { records, entries, ..Writes::default() }).await.unwrap()
    }

    /// Puts one record; answers its version.
    pub(super) async fn put_record(&self, put: Put) -> u64 {
        done(self.write_all(vec![put], vec![]).await).0[0].unwrap()
    }

    /// Appends one entry; answers its number.
    pub(super) async fn append(&self, append: Append) -> u64 {
        done(self.write_all(vec![], vec![append]).await).1[0]
    }

    /// Somebody puts the clock back.
    pub(super) fn step_back(&self, span: Duration) {
        self.clock.step_to(self.now().before(span));
    }

    pub(super) async fn token(&self, key: &str) -> Option<Record> {
        self.store.record(&word("token"), &self::key(key)).await.unwrap()
    }

    /// What a token says, if it is there.
    pub(super) async fn said(&self, key: &str) -> Option<String> {
        let record = self.token(key).await?;
        Some(String::from_utf8(record.value.as_bytes().to_vec()).unwrap())
    }

    /// The audit journal from its beginning.
    pub(super) async fn audit(&self) -> Vec<JournalEntry> {
        entries(&*self.store, EntriesAsk { order: Order::OldestFirst, ..EntriesAsk::of(word("audit")) }).await
    }
}
