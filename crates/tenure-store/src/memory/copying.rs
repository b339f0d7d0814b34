//! Being copied, and taking a copy in.

use std::sync::Arc;

use tenure_core::{Block, Epoch, State, Timestamp, UniqueKey};

use super::keys::Hold;
use super::rows::{Row, Rows};
use crate::{CopiedJob, CopiedLimit, CopiedQueue, CopyEnd, Item, KeyHold, Rest, Totals};

impl Rows {
    /// Returns the state that no view shows.
    pub(super) fn rest(&self) -> Rest {
        let (last_version, last_number) = self.records.last();
        Rest {
            epoch: self.epoch,
            last_seq: self.last_seq,
            last_version,
            last_number,
            buckets: self.queues.iter().map(|(name, queue)| (name.clone(), queue.bucket)).collect(),
            is_new_backup: false,
            totals: self.totals(),
        }
    }

    /// Returns a page of the unique keys that are held.
    pub(super) fn keys_held(&self, behind: Option<UniqueKey>, at_most: usize) -> Vec<KeyHold> {
        let held = self.keys.behind(behind).take(at_most);
        held.map(|(key, Hold { job, until })| KeyHold {
            key,
            job,
            seq: self.places.get(&job).copied().unwrap_or(0),
            until,
        })
        .collect()
    }

    /// Completes a copy.
    pub(super) fn end_copy(&mut self, end: &CopyEnd) {
        // Each row continues above its own last fence, so `end.fence` is not needed.
        self.epoch = Epoch::max(self.epoch, end.epoch);
        self.last_seq = self.last_seq.max(end.last_seq);
        self.records.go_on(end.last_version, end.last_number);
        self.news.due = true;
    }

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

    /// Returns the first kind of content, or `None` if the store is empty. A copy begins only in an empty store. Memory
    /// needs no mark of an unfinished copy, because it ends with its program.
    pub(super) fn anything(&self, now: Timestamp) -> Option<&'static str> {
        let others = [
            (self.queues.is_empty(), "queues"),
            (self.apps.is_empty(), "app ids"),
            (self.live_hosts(now).next().is_none(), "live hosts"),
        ];
        let other = others.into_iter().find(|(is_empty, _)| !is_empty).map(|(_, what)| what);
        self.totals().anything().or(other)
    }

    pub(super) fn take_in(&mut self, item: Item, now: Timestamp) {
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
