//! Records, and the entries of journals.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::ops::Bound;

use tenure_core::{JournalEntry, Name, Record, RecordKey, Timestamp, limits};

use super::txn::Txn;
use crate::engine::records::{Changes, Numbers, RecordTxn, prunes_on};
use crate::{EntriesAsk, EntryPage, Order, Put, RecordPage, RecordsAsk};

/// The place of a record.
type Place = (Name, RecordKey);

/// All records and journals.
#[derive(Debug, Default)]
pub(super) struct RecordRows {
    /// By shelf and key.
    rows: BTreeMap<Name, BTreeMap<RecordKey, Record>>,
    /// When which of them expires.
    expiring: BTreeSet<(Timestamp, Place)>,
    entries: BTreeMap<(Name, u64), JournalEntry>,
    entries_expiring: BTreeSet<(Timestamp, Name, u64)>,
    /// The last version that was given, and the last number. None is given again.
    last_version: u64,
    last_number: u64,
}

impl RecordRows {
    /// Keeps a record as it is from now on.
    pub fn keep(&mut self, record: Record) {
        let place = (record.shelf.clone(), record.key.clone());
        self.remove(&place);
        self.expiring.extend(record.expires.map(|expires| (expires, place.clone())));
        self.rows.entry(place.0).or_default().insert(place.1, record);
    }

    fn remove(&mut self, place: &Place) {
        let Some(shelf) = self.rows.get_mut(&place.0) else { return };
        if let Some(expires) = shelf.remove(&place.1).and_then(|record| record.expires) {
            self.expiring.remove(&(expires, place.clone()));
        }
        if shelf.is_empty() {
            self.rows.remove(&place.0);
        }
    }

    /// Keeps an entry.
    pub fn keep_entry(&mut self, entry: JournalEntry) {
        let (journal, number) = (entry.journal.clone(), entry.number);
        self.entries_expiring.extend(entry.expires.map(|expires| (expires, journal.clone(), number)));
        self.entries.insert((journal, number), entry);
    }

    /// One record.
    pub fn get(&self, (shelf, key): &Place, now: Timestamp) -> Option<&Record> {
        self.rows.get(shelf)?.get(key).filter(|record| record.is_alive(now))
    }

    /// A page of records.
    pub fn page(&self, ask: &RecordsAsk, now: Timestamp) -> RecordPage {
        let at_most = ask.at_most.clamp(1, limits::PAGE_RECORDS);
        let Some(shelf) = self.rows.get(&ask.shelf) else { return RecordPage::default() };
        let behind = ask.behind.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let behind = shelf.range::<RecordKey, _>((behind, Bound::Unbounded)).map(|(_, record)| record);
        let mut wanted = behind
            .filter(|record| record.key.as_str().starts_with(&ask.prefix))
            .filter(|record| record.is_alive(now));
        let records: Vec<Record> = wanted.by_ref().take(at_most).cloned().collect();
        let next = wanted.next().and(records.last()).map(|record| record.key.clone());
        RecordPage { records, next }
    }

    /// A page of a journal.
    pub fn journal(&self, ask: &EntriesAsk, now: Timestamp) -> EntryPage {
        let at_most = ask.at_most.clamp(1, limits::PAGE_ENTRIES);
        let place = |number| (ask.journal.clone(), number);
        let (least, most) = match ask.order {
            Order::OldestFirst => (ask.behind.map_or(0, |behind| behind.saturating_add(1)), u64::MAX),
            Order::NewestFirst => (0, ask.behind.map_or(u64::MAX, |behind| behind.saturating_sub(1))),
        };
        let range = self.entries.range(place(least)..=place(most));
        let mut entries: Box<dyn Iterator<Item = _>> = match ask.order {
            Order::OldestFirst => Box::new(range),
            Order::NewestFirst => Box::new(range.rev()),
        };
        let (mut page, mut last) = (EntryPage::default(), None);
        for ((_, number), entry) in entries.by_ref().take(limits::PAGE_EXAMINED) {
            last = Some(*number);
            let is_about = ask.subject.as_ref().is_none_or(|subject| *subject == entry.subject);
            if is_about && ask.means_time(entry.at) && entry.is_alive(now) {
                page.entries.push(entry.clone());
            }
            if page.entries.len() == at_most {
                break;
            }
        }
        page.next = entries.next().and(last);
        page
    }

    /// Removes a bounded number of expired records and journal entries. Returns true if more may have expired.
    pub fn prune(&mut self, now: Timestamp) -> bool {
        let gone = self.expiring.iter().take_while(|(at, _)| *at <= now);
        let records: Vec<Place> = gone.take(limits::PRUNE_RECORDS).map(|(_, place)| place.clone()).collect();
        records.iter().for_each(|place| self.remove(place));
        let gone = self.entries_expiring.iter().take_while(|(at, ..)| *at <= now);
        let entries: Vec<_> = gone.take(limits::PRUNE_RECORDS).cloned().collect();
        for place in &entries {
            self.entries_expiring.remove(place);
            self.entries.remove(&(place.1.clone(), place.2));
        }
        prunes_on(records.len().max(entries.len()))
    }

    /// How many records there are, and how many entries.
    pub fn totals(&self) -> (usize, usize) {
        (self.rows.values().map(BTreeMap::len).sum(), self.entries.len())
    }

    /// The last version that was given, and the last number.
    pub fn last(&self) -> (u64, u64) {
        (self.last_version, self.last_number)
    }

    /// Gives no version and no number again up to these.
    pub fn go_on(&mut self, version: u64, number: u64) {
        self.last_version = self.last_version.max(version);
        self.last_number = self.last_number.max(number);
    }

    /// All records behind a place, expired ones included.
    pub fn kept(&self, behind: Option<Place>) -> impl Iterator<Item = &Record> {
        let all = self.rows.values().flat_map(BTreeMap::values);
        all.filter(move |record| {
            behind.as_ref().is_none_or(|(shelf, key)| (&record.shelf, &record.key) > (shelf, key))
        })
    }

    /// All entries behind a place, expired ones included.
    pub fn entries_kept(&self, behind: Option<(Name, u64)>) -> impl Iterator<Item = &JournalEntry> {
        let from = behind.map_or(Bound::Unbounded, Bound::Excluded);
        self.entries.range((from, Bound::Unbounded)).map(|(_, entry)| entry)
    }
}

impl RecordTxn for Txn<'_> {
    type Error = Infallible;

    fn now(&self) -> Timestamp {
        self.now
    }

    async fn find(&mut self, puts: &[Put]) -> Result<Vec<Option<Record>>, Infallible> {
        let rows = &self.rows.records.rows;
        Ok(puts.iter().map(|put| rows.get(&put.shelf)?.get(&put.key).cloned()).collect())
    }

    async fn write(&mut self, changes: &Changes<'_>) -> Result<Numbers, Infallible> {
        let (records, mut numbers) = (&mut self.rows.records, Numbers::default());
        for (shelf, key) in &changes.gone {
            records.remove(&((*shelf).clone(), (*key).clone()));
        }
        for new in &changes.kept {
            records.last_version += 1;
            records.keep(new.numbered(records.last_version));
            numbers.versions.push(records.last_version);
        }
        for new in &changes.entries {
            records.last_number += 1;
            records.keep_entry(new.numbered(records.last_number, changes.at));
            numbers.entries.push(records.last_number);
        }
        Ok(numbers)
    }

    fn notify_asked(&mut self) -> Result<(), Infallible> {
        self.rows.news.asked = true;
        Ok(())
    }
}
