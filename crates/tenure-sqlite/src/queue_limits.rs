//! Limits of queues: how many of its jobs a turn may grant.

use rusqlite::Result;
use tenure_core::{Limit, Meter, QueueName, Timestamp};

use crate::writing::Writing;

impl Writing<'_> {
    /// Limits the jobs of a queue.
    pub(crate) fn set_queue_limit(&mut self, queue: &QueueName, limit: Limit) -> Result<()> {
        let before = self.memory.lanes.meter(self.conn, queue)?;
        let bucket = before.unwrap_or(Meter::new(Limit::default())).limited(limit, self.now).bucket;
        self.news.due |= self.memory.lanes.set_limit(self.conn, queue, limit, bucket)?;
        Ok(())
    }

    /// How many jobs of a queue may be granted now, if so many are wanted.
    pub(crate) fn room_in_queue(&mut self, queue: &QueueName, wanted: usize) -> Result<usize> {
        let Some(meter) = self.memory.lanes.meter(self.conn, queue)? else { return Ok(wanted) };
        let seen = meter.seen(self.now).bucket;
        if seen != meter.bucket {
            self.memory.lanes.set_bucket(queue, seen);
        }
        Ok(wanted.min(usize::try_from(meter.room(self.now)).unwrap_or(usize::MAX)))
    }

    /// Notes that so many jobs of a queue were granted.
    pub(crate) fn granted_in_queue(&mut self, queue: &QueueName, jobs: usize) -> Result<()> {
        if jobs == 0 {
            return Ok(());
        }
        let Some(meter) = self.memory.lanes.meter(self.conn, queue)? else { return Ok(()) };
        let jobs = u32::try_from(jobs).unwrap_or(u32::MAX);
        self.memory.lanes.set_bucket(queue, meter.started(jobs, self.now).bucket);
        Ok(())
    }

    /// Calls who may have been granted fewer jobs of a queue than it wanted: one of them has ended.
    pub(crate) fn call_for_room(&mut self, lane: i64) -> Result<()> {
        if self.news.due || self.memory.lanes.limited().is_empty() {
            return Ok(());
        }
        let queue = &self.memory.lanes.get(lane)?.queue;
        let meter = self.memory.lanes.meter(self.conn, queue)?;
        if meter.is_some_and(|meter| meter.limit.most.is_some()) {
            self.news.due = self.memory.lanes.queued_in(self.conn, queue)? > 0;
        }
        Ok(())
    }

    /// When time makes room for what is queued in a queue that has none.
    pub(crate) fn first_room_in_queues(&self) -> Result<Option<Timestamp>> {
        let mut first = None;
        for queue in self.memory.lanes.limited() {
            if self.memory.lanes.queued_in(self.conn, queue)? == 0 {
                continue;
            }
            let meter = self.memory.lanes.meter(self.conn, queue)?;
            first = meter.and_then(|meter| meter.next_room(self.now)).into_iter().chain(first).min();
        }
        Ok(first)
    }
}
