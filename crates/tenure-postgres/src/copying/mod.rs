//! Being copied, and taking a copy in.

mod jobs;
mod others;
mod rest;

use tenure_core::{Fence, JournalEntry, Name, Record, RecordKey, UniqueKey};
use tenure_store::{Answer, CopyEnd, Fault, Item, KeyHold, Rest};

use crate::link::Link;
use crate::query::Query;
use crate::records;
use crate::repair;
use crate::store::PostgresStore;
use crate::transaction::Gate;
use crate::value;
use crate::writing::Writing;

const IS_PART: &str = "SELECT EXISTS (SELECT FROM meta WHERE name = 'copying')";
const BEGIN: &str = "INSERT INTO meta (name, value) VALUES ('copying', 1)";
/// Grants of jobs that are gone: others will have their fences.
const FORGET_GRANTS: &str = "DELETE FROM granted";
const EPOCH: &str = "UPDATE meta SET value = greatest(value, $1) WHERE name = 'floor'";
const FENCES: &str = "SELECT setval(s, greatest($1, nextval(s)))
     FROM (SELECT pg_get_serial_sequence('granted', 'fence')::regclass AS s) s";
const PLACES: &str = "SELECT setval(s, greatest($1, nextval(s)))
     FROM (SELECT pg_get_serial_sequence('job', 'seq')::regclass AS s) s";
const NUMBERS: &str = "SELECT setval(s, greatest((SELECT max(number) FROM ledger), nextval(s)))
     FROM (SELECT pg_get_serial_sequence('ledger', 'number')::regclass AS s) s";
const VERSIONS: &str = "SELECT setval('record_version', greatest($1, nextval('record_version')))";
const ENTRIES: &str = "SELECT setval(s, greatest($1, nextval(s)))
     FROM (SELECT pg_get_serial_sequence('journal_entry', 'number')::regclass AS s) s";
const END: &str = "DELETE FROM meta WHERE name = 'copying'";

impl PostgresStore {
    pub(crate) fn rest(&self) -> Answer<'_, Rest> {
        Box::pin(self.ask(&self.tasks.reads, |link| Box::pin(rest::rest(link))))
    }

    pub(crate) fn unreadable(&self, at_most: usize) -> Answer<'_, Vec<String>> {
        Box::pin(self.ask(&self.tasks.reads, move |link| Box::pin(unreadable(link, at_most))))
    }

    pub(crate) fn keys_held(&self, behind: Option<UniqueKey>, at_most: usize) -> Answer<'_, Vec<KeyHold>> {
        Box::pin(self.ask(&self.tasks.reads, move |link| Box::pin(rest::keys_held(link, behind, at_most))))
    }

    pub(crate) fn records_kept(
        &self,
        behind: Option<(Name, RecordKey)>,
        at_most: usize,
    ) -> Answer<'_, Vec<Record>> {
        Box::pin(
            self.ask(&self.tasks.reads, move |link| Box::pin(records::records_kept(link, behind, at_most))),
        )
    }

    pub(crate) fn entries_kept(
        &self,
        behind: Option<(Name, u64)>,
        at_most: usize,
    ) -> Answer<'_, Vec<JournalEntry>> {
        Box::pin(
            self.ask(&self.tasks.reads, move |link| Box::pin(records::entries_kept(link, behind, at_most))),
        )
    }

    pub(crate) fn begin_copy(&self) -> Answer<'_, Option<String>> {
        Box::pin(self.ask(&self.tasks.others, |link| Box::pin(begin(link))))
    }

    pub(crate) fn take_in(&self, items: Vec<Item>) -> Answer<'_, ()> {
        Box::pin(self.ask(&self.tasks.others, move |link| Box::pin(take_in(link, items))))
    }

    pub(crate) fn end_copy(&self, end: CopyEnd) -> Answer<'_, ()> {
        Box::pin(self.ask(&self.tasks.others, move |link| Box::pin(finish(link, end))))
    }
}

/// Refuses tables that have a part of a copy and nothing else.
pub(crate) async fn refuse_part(link: &mut Link) -> Result<(), Fault> {
    let is_part = link.connection().await?.read(Query::new(IS_PART)).await?;
    if !is_part.first().is_some_and(|row| row.get(0)) {
        return Ok(());
    }
    let schema = &link.database.options.schema;
    Err(Fault::Broken(format!(
        "incomplete copy; remove it (DROP SCHEMA \"{schema}\" CASCADE) and copy again"
    )))
}

async fn unreadable(link: &mut Link, at_most: usize) -> Result<Vec<String>, Fault> {
    repair::sentences(link.connection().await?, at_most).await
}

async fn begin(link: &mut Link) -> Result<Option<String>, Fault> {
    let look = rest::anything(link.database.time.told());
    let (mut writing, read) = Writing::begin(link, Gate::Keys, look).await?;
    if let Some(there) = rest::found(&read)? {
        writing.roll_back().await?;
        return Ok(Some(there));
    }
    writing.write(Query::new(FORGET_GRANTS))?;
    writing.write(Query::new(BEGIN))?;
    writing.commit().await?;
    Ok(None)
}

async fn take_in(link: &mut Link, items: Vec<Item>) -> Result<(), Fault> {
    let (mut writing, fair) = Writing::begin(link, Gate::Keys, vec![jobs::fair()]).await?;
    let fair = jobs::read_fair(&fair)?;
    writing.insert_copied(&items).await?;
    for item in items {
        match item {
            Item::Queue(queue) => others::queue(&mut writing, &queue)?,
            Item::Job(copied) => writing.take_job_in(*copied, &fair).await?,
            Item::Lines(seq, lines) => jobs::lines(&mut writing, seq, &lines)?,
            Item::Key(hold) => others::key(&mut writing, &hold)?,
            Item::Limit(limit) => writing.take_limit_in(&limit).await?,
            Item::Lease(lease) => writing.write(crate::leases::copied(&lease))?,
            Item::Entry(entry) => others::entry(&mut writing, &entry)?,
            Item::Timer(timer) => {
                crate::timers::copied(&timer)?.into_iter().try_for_each(|query| writing.write(query))?;
            }
            Item::Slot(record) => writing.write(crate::timers::copied_slot(&record))?,
            Item::Record(record) => writing.write(records::copied(&record))?,
            Item::JournalEntry(entry) => writing.write(records::copied_entry(&entry))?,
            Item::App(app) => writing.write(crate::hosts::copied(&app))?,
        }
    }
    writing.commit().await
}

async fn finish(link: &mut Link, end: CopyEnd) -> Result<(), Fault> {
    let fence = end.fence.max(Fence::NONE.next(end.epoch));
    let (mut writing, _) = Writing::begin(link, Gate::Keys, Vec::new()).await?;
    writing.write(Query::new(EPOCH).with(value::signed(end.epoch.number())))?;
    writing.write(Query::new(FENCES).with(value::signed(fence.number())))?;
    writing.write(Query::new(PLACES).with(value::signed(end.last_seq)))?;
    writing.write(Query::new(NUMBERS))?;
    writing.write(Query::new(VERSIONS).with(value::signed(end.last_version)))?;
    writing.write(Query::new(ENTRIES).with(value::signed(end.last_number)))?;
    writing.write(Query::new(END))?;
    writing.news.due = true;
    writing.commit().await
}
