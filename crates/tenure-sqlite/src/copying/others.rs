//! Taking in all that is not a job.

use rusqlite::{OptionalExtension, Result, params};
use tenure_core::{Fence, Lease, LeaseName, LedgerEntry, SlotRecord, Timer, Timestamp};
use tenure_store::{CopiedLimit, CopiedQueue, KeyHold};

use crate::writing::Writing;
use crate::{leases, timers, value};

const KEY: &str = "INSERT INTO unique_key (key, seq, id, until) VALUES (?1, ?2, ?3, ?4)";
const LIMIT: &str = "UPDATE limit_key SET set_to = ?2 WHERE id = ?1";
const NUMBER: &str = "SELECT number FROM lease WHERE name = ?1";
/// A name of which only the ledger tells any more.
const FORGOTTEN: &str = "INSERT INTO lease (name, fence, forgotten, freed) VALUES (?1, ?2, 1, ?3)";
const RAISE: &str = "UPDATE lease SET fence = ?2 WHERE number = ?1 AND fence < ?2 AND forgotten = 1";

impl Writing<'_> {
    pub(super) fn take_queue_in(&mut self, queue: &CopiedQueue) -> Result<()> {
        let CopiedQueue { name, paused, limit, bucket, terms } = queue;
        let lanes = &mut self.memory.lanes;
        lanes.ensure_queue(self.conn, name)?;
        lanes.set_paused(self.conn, name, *paused)?;
        lanes.set_terms(self.conn, name, terms.clone())?;
        lanes.set_limit(self.conn, name, *limit, *bucket).map(drop)
    }

    pub(super) fn take_key_in(&self, KeyHold { key, job, seq, until }: &KeyHold) -> Result<()> {
        let until = until.map(Timestamp::as_micros);
        let values = params![key.0, value::signed(*seq), job.as_bytes(), until];
        self.conn.prepare_cached(KEY)?.execute(values)?;
        Ok(())
    }

    pub(super) fn take_limit_in(&mut self, copied: &CopiedLimit) -> Result<()> {
        let id = self.limit_for(&copied.key)?;
        let set = copied.set.then_some(copied.limit);
        self.conn.prepare_cached(LIMIT)?.execute(params![id, value::maybe_to_json(set.as_ref())?])?;
        let limit = self.touch_limit(id)?;
        if copied.set {
            limit.set = set;
        } else {
            limit.said = copied.limit.most.or(limit.said);
        }
        limit.bucket = copied.bucket;
        self.settle_keys()
    }

    pub(super) fn take_lease_in(&self, lease: &Lease) -> Result<()> {
        leases::keep_copied(self.conn, lease, self.now)
    }

    pub(super) fn take_entry_in(&self, LedgerEntry { number, note }: &LedgerEntry) -> Result<()> {
        let lease = self.lease_of_entry(&note.name, note.fence, note.at)?;
        self.note_as(lease, note, Some(value::signed(*number)), false).map(drop)
    }

    fn lease_of_entry(&self, name: &LeaseName, fence: Fence, at: Timestamp) -> Result<i64> {
        let found =
            self.conn.prepare_cached(NUMBER)?.query_row([name.as_str()], |row| row.get(0)).optional()?;
        let fence = value::signed(fence.number());
        match found {
            Some(number) => {
                self.conn.prepare_cached(RAISE)?.execute([number, fence])?;
                Ok(number)
            }
            None => {
                self.conn.prepare_cached(FORGOTTEN)?.insert(params![name.as_str(), fence, at.as_micros()])
            }
        }
    }

    pub(super) fn take_timer_in(&self, timer: &Timer) -> Result<()> {
        timers::keep_copied(self.conn, timer)
    }

    pub(super) fn take_slot_in(&self, record: &SlotRecord) -> Result<()> {
        timers::keep_slot(self.conn, record)
    }
}
