//! Being copied, and taking a copy in.

use std::sync::Arc;

use tenure_core::{Block, Epoch, JournalEntry, Name, Record, RecordKey, State, Timestamp, UniqueKey};

use super::MemoryStore;
use super::keys::Hold;
use super::rows::{Row, Rows};
use crate::{Answer, CopiedJob, CopiedLimit, CopiedQueue, Copies, CopyEnd, Item, KeyHold, Rest, Totals};

impl Copies for MemoryStore {
    fn rest(&self) -> Answer<'_, Rest> {
        self.answer(|rows, _| Rest {
            epoch: rows.epoch,
            last_seq: rows.last_seq,
            last_version: rows.records.last().0,
            last_number: rows.records.last().1,
            buckets: rows.queues.iter().map(|(name, queue)| (name.clone(), queue.bucket)).collect(),
            is_new_backup: false,
            totals: rows.totals(),
        })
    }

    fn unreadable(&self, _at_most: usize) -> Answer<'_, Vec<String>> {
        // Memory keeps values of the domain, not rows.
        self.answer(|_, _| Vec::new())
    }

    fn keys_held(&self, behind: Option<UniqueKey>, at_most: usize) -> Answer<'_, Vec<KeyHold>> {
        self.answer(move |rows, _| {
            let held = rows.keys.behind(behind).take(at_most);
            held.map(|(key, Hold { job, until })| KeyHold {
                key,
                job,
                seq: rows.places.get(&job).copied().unwrap_or(0),
                until,
            })
            .collect()
        })
    }

    fn records_kept(&self, behind: Option<(Name, RecordKey)>, at_most: usize) -> Answer<'_, Vec<Record>> {
        self.answer(move |rows, _| rows.records.kept(behind).take(at_most).cloned().collect())
    }

    fn entries_kept(&self, behind: Option<(Name, u64)>, at_most: usize) -> Answer<'_, Vec<JournalEntry>> {
        self.answer(move |rows, _| rows.records.entries_kept(behind).take(at_most).cloned().collect())
    }

    fn begin_copy(&self) -> Answer<'_, Option<String>> {
        // It goes with its program: nobody can open a part of a copy.
        self.answer(|rows, now| rows.anything(now).map(str::to_owned))
    }

    fn take_in(&self, items: Vec<Item>) -> Answer<'_, ()> {
        self.answer(move |rows, now| items.into_iter().for_each(|item| rows.take_in(item, now)))
    }

    fn end_copy(&self, end: CopyEnd) -> Answer<'_, ()> {
        self.answer(move |rows, _| {
            // Fences go on above those of their own rows.
            rows.epoch = Epoch::max(rows.epoch, end.epoch);
            rows.last_seq = rows.last_seq.max(end.last_seq);
            rows.records.go_on(end.last_version, end.last_number);
            rows.news.due = true;
        })
    }
}

impl Rows {
    fn totals(&self) -> Totals {
        let count = |number: usize| number as u64;
        let ((leases, entries), (timers, slots)) = (self.leases.totals(), self.timers.totals());
        let (records, journal_entries) = self.records.totals();
        Totals {
            jobs: count(self.jobs.len()),
            keys: count(self.keys.len()),
            leases: count(leases),
            entries: count(entries),
            timers: count(timers),
            slots: count(slots),
            records: count(records),
            journal_entries: count(journal_entries),
        }
    }

    fn anything(&self, now: Timestamp) -> Option<&'static str> {
        let others = [
            (self.queues.is_empty(), "queues"),
            (self.apps.is_empty(), "app ids"),
            (self.live_hosts(now).next().is_none(), "live hosts"),
        ];
        let other = others.into_iter().find(|(is_empty, _)| !is_empty).map(|(_, what)| what);
        self.totals().anything().or(other)
    }

    fn take_in(&mut self, item: Item, now: Timestamp) {
        match item {
            Item::Queue(queue) => self.take_queue_in(queue),
            Item::Job(copied) => self.take_job_in(*copied, now),
            Item::Lines(seq, lines) => {
                if let Some(row) = self.jobs.get_mut(&seq) {
                    lines.into_iter().for_each(|line| row.lines.keep(line));
                }
            }
            Item::Key(hold) => self.keys.take(hold.key, Hold { job: hold.job, until: hold.until }),
            Item::Limit(limit) => self.take_limit_in(&limit, now),
            Item::Lease(lease) => self.leases.copied(lease),
            Item::Entry(entry) => self.leases.copied_entry(entry),
            Item::Timer(timer) => self.timers.copied(*timer),
            Item::Slot(record) => self.timers.copied_slot(record),
            Item::Record(record) => self.records.keep(record),
            Item::JournalEntry(entry) => self.records.keep_entry(entry),
            Item::App(app) => _ = self.apps.insert(app.app.clone(), app),
        }
    }

    fn take_queue_in(&mut self, CopiedQueue { name, paused, limit, bucket, terms }: CopiedQueue) {
        let queue = self.queue(&name);
        (queue.paused, queue.limit, queue.bucket, queue.terms) = (paused, limit, bucket, terms);
    }

    fn take_limit_in(&mut self, limit: &CopiedLimit, now: Timestamp) {
        self.limits.copied(limit);
        self.look_at_limit(&limit.key, now);
    }

    /// Keeps a job as it was, and lets it stand where it belongs.
    fn take_job_in(&mut self, CopiedJob { job, attempts, waits }: CopiedJob, now: Timestamp) {
        self.last_seq = self.last_seq.max(job.seq);
        let is_behind_jobs = matches!(job.state, State::Blocked { on: Block::Jobs, .. });
        let mut row = Row::new(job, now);
        row.ended = attempts.into();
        let terms = Arc::clone(&row.job.terms);
        if !row.job.state.is_finished() {
            self.limits.hear(&row.job);
            self.keep_for(&row.job);
        }
        for other in waits.iter().filter(|_| is_behind_jobs) {
            if let Some(other) = self.places.get(other).and_then(|seq| self.jobs.get(seq)) {
                self.waits.copied(row.job.seq, &other.job);
            }
        }
        self.stand(&mut row, now);
        self.places.insert(row.job.id, row.job.seq);
        self.index(&row);
        self.jobs.insert(row.job.seq, Box::new(row));
        self.pass_on(&terms, now);
    }
}
