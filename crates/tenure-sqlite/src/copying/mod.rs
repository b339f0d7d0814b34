//! Being copied, and taking a copy in.

mod job;
mod others;
mod rest;

use rusqlite::Result;
use tenure_core::{JournalEntry, Name, Record, RecordKey, UniqueKey};
use tenure_store::{Answer, Copies, CopyEnd, Item, KeyHold, Rest};

use crate::command::Command;
use crate::value;
use crate::writing::Writing;
use crate::{SqliteStore, epoch, records, repair};

/// What is in the file while it is part of a copy.
const BEGIN: &str = "INSERT INTO meta (name, value) VALUES ('copying', 1)";
const END: &str = "DELETE FROM meta WHERE name = 'copying'";
const IS_COPYING: &str = "SELECT EXISTS (SELECT 1 FROM meta WHERE name = 'copying')";

/// What is said of a file that is part of a copy.
pub(crate) const PART: &str = "incomplete copy; remove the file and copy again";

/// Whether only a part of a copy has been written into this file.
pub(crate) fn is_part(conn: &rusqlite::Connection) -> Result<bool> {
    conn.query_row(IS_COPYING, [], |row| row.get(0))
}

impl Copies for SqliteStore {
    fn rest(&self) -> Answer<'_, Rest> {
        let is_new_backup = self.is_new_backup;
        Box::pin(self.read(move |conn, _| rest::rest(conn, is_new_backup)))
    }

    fn unreadable(&self, at_most: usize) -> Answer<'_, Vec<String>> {
        Box::pin(self.read(move |conn, _| repair::sentences(conn, at_most)))
    }

    fn keys_held(&self, behind: Option<UniqueKey>, at_most: usize) -> Answer<'_, Vec<KeyHold>> {
        Box::pin(self.read(move |conn, _| rest::keys_held(conn, behind, at_most)))
    }

    fn records_kept(&self, behind: Option<(Name, RecordKey)>, at_most: usize) -> Answer<'_, Vec<Record>> {
        Box::pin(self.read(move |conn, _| records::records_kept(conn, behind.as_ref(), at_most)))
    }

    fn entries_kept(&self, behind: Option<(Name, u64)>, at_most: usize) -> Answer<'_, Vec<JournalEntry>> {
        Box::pin(self.read(move |conn, _| records::entries_kept(conn, behind.as_ref(), at_most)))
    }

    fn begin_copy(&self) -> Answer<'_, Option<String>> {
        Box::pin(self.write(Command::BeginCopy))
    }

    fn take_in(&self, items: Vec<Item>) -> Answer<'_, ()> {
        Box::pin(self.write(|reply| Command::TakeIn(items, reply)))
    }

    fn end_copy(&self, end: CopyEnd) -> Answer<'_, ()> {
        Box::pin(self.write(move |reply| Command::EndCopy(end, reply)))
    }
}

impl Writing<'_> {
    /// Begins to be what a copy is written into; answers what there is, if there is anything.
    pub(crate) fn begin_copy(&mut self) -> Result<Option<String>> {
        let there = rest::anything(self.conn, self.now)?;
        if there.is_none() {
            self.conn.execute(BEGIN, [])?;
        }
        Ok(there)
    }

    /// Takes some of a copy in.
    pub(crate) fn take_in(&mut self, items: &[Item]) -> Result<()> {
        for item in items {
            match item {
                Item::Queue(queue) => self.take_queue_in(queue)?,
                Item::Job(copied) => self.take_job_in(copied)?,
                Item::Lines(seq, lines) => self.take_lines_in(*seq, lines)?,
                Item::Key(hold) => self.take_key_in(hold)?,
                Item::Limit(limit) => self.take_limit_in(limit)?,
                Item::Lease(lease) => self.take_lease_in(lease)?,
                Item::Entry(entry) => self.take_entry_in(entry)?,
                Item::Timer(timer) => self.take_timer_in(timer)?,
                Item::Slot(record) => self.take_slot_in(record)?,
                Item::Record(record) => self.keep_record(record)?,
                Item::JournalEntry(entry) => self.keep_entry(entry)?,
                Item::App(app) => self.keep_app(app)?,
            }
        }
        Ok(())
    }

    /// The copy is whole.
    pub(crate) fn end_copy(&mut self, end: CopyEnd) -> Result<()> {
        epoch::keep(self.conn, epoch::read(self.conn)?.max(end.epoch))?;
        self.retire_seq(value::signed(end.last_seq))?;
        self.give_back_seq(None);
        self.go_on_behind(end.last_version, end.last_number)?;
        self.memory.epoch = self.memory.epoch.max(end.epoch);
        self.conn.execute(END, [])?;
        self.news.due = true;
        Ok(())
    }
}
