//! Being copied, and taking a copy in.

mod job;
mod others;
mod rest;

use rusqlite::Result;
use tenure_store::{CopyEnd, Item};

use crate::writing::Writing;
use crate::{epoch, value};

pub(crate) use rest::{keys_held, rest};

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
