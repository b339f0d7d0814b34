//! Lanes and queues as the writer remembers them, and the counters of a transaction.
//!
//! The memory is of the file, not beside it: it is read again when another process has changed a lane or
//! a pause, and forgotten when a transaction is rolled back.

use std::collections::HashMap;

use rusqlite::{Connection, Result, Row, params};
use tenure_core::{Bucket, Kind, Limit, Meter, QueueAgreed, QueueName, QueueTerms, StateName};

use crate::fault::unreadable;
use crate::value;

/// All queues, as [`read_queue`] reads them.
pub(crate) const QUEUES: &str = "SELECT name, paused, limit_to, bucket, fair, terms, gone FROM queue";

/// How many states are counted.
const STATES: usize = StateName::ALL.len();

/// A kind in a queue.
#[derive(Debug, Clone)]
pub(crate) struct Lane {
    pub id: i64,
    pub queue: QueueName,
    pub kind: Kind,
    /// What the running transaction adds to the counters, by state.
    added: [i64; STATES],
}

#[derive(Debug)]
pub(crate) struct Queue {
    paused: bool,
    limit: Limit,
    bucket: Bucket,
    /// Whether the bucket has to be written.
    is_bucket_changed: bool,
    /// Whether its jobs are served in rounds.
    fair: bool,
    terms: QueueTerms,
    /// Whether it was removed, and nobody has named it since.
    gone: bool,
    lanes: HashMap<Kind, i64>,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            paused: false,
            limit: Limit::default(),
            bucket: Bucket::FULL,
            is_bucket_changed: false,
            fair: false,
            terms: QueueTerms::default(),
            gone: false,
            lanes: HashMap::new(),
        }
    }
}

/// All lanes, by rising id, and all queues.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    lanes: Vec<Lane>,
    queues: HashMap<QueueName, Queue>,
    /// The queues in the order in which they were met.
    met: Vec<QueueName>,
    /// Those of them that have a limit, those that are fair, those that have terms, and those that are gone: most programs
    /// have none of these.
    limited: Vec<QueueName>,
    fair: Vec<QueueName>,
    termed: Vec<QueueName>,
    gone: Vec<QueueName>,
    /// The lane asked for last: most batches are of one kind in one queue.
    last: usize,
    revision: Option<i64>,
}

/// How the lanes were before a batch that may be refused.
#[derive(Debug)]
pub(crate) struct LanesMark {
    added: Vec<[i64; STATES]>,
    queues: usize,
    fair: usize,
    gone: Vec<QueueName>,
}

impl Lanes {
    /// Reads them again if another process has changed them.
    pub(crate) fn refresh(&mut self, conn: &Connection) -> Result<()> {
        let revision = conn
            .prepare_cached("SELECT value FROM meta WHERE name = 'lanes'")?
            .query_row([], |row| row.get::<_, i64>(0))?;
        if self.revision == Some(revision) {
            return self.refresh_buckets(conn);
        }
        *self = Self { revision: Some(revision), ..Self::default() };
        let mut queues = conn.prepare_cached(QUEUES)?;
        let mut rows = queues.query([])?;
        while let Some(row) = rows.next()? {
            let (name, read) = read_queue(row)?;
            let queue = self.meet(name.clone());
            *queue = read;
            let (limited, fair) = (queue.limit != Limit::default(), queue.fair);
            let (termed, gone) = (!queue.terms.are_default(), queue.gone);
            self.limited.extend(limited.then(|| name.clone()));
            self.termed.extend(termed.then(|| name.clone()));
            self.gone.extend(gone.then(|| name.clone()));
            self.fair.extend(fair.then_some(name));
        }
        let mut lanes = conn.prepare_cached("SELECT id, queue, kind FROM lane ORDER BY id")?;
        let mut rows = lanes.query([])?;
        while let Some(row) = rows.next()? {
            self.remember(row.get(0)?, value::queue(row, 1)?, value::kind(row, 2)?);
        }
        Ok(())
    }

    /// What other programs have taken from buckets is no change of a queue.
    fn refresh_buckets(&mut self, conn: &Connection) -> Result<()> {
        if self.limited.is_empty() || cfg!(mutant = "sqlite-others-bucket-unread") {
            return Ok(());
        }
        let mut buckets = conn.prepare_cached("SELECT name, bucket FROM queue WHERE limit_to IS NOT NULL")?;
        let mut rows = buckets.query([])?;
        while let Some(row) = rows.next()? {
            self.meet(value::queue(row, 0)?).bucket = Bucket(value::instant(row, 1)?);
        }
        Ok(())
    }

    /// Forgets all: the transaction in which it was learnt has been rolled back.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// The lane of this kind in this queue; it is made if need be.
    pub(crate) fn of(&mut self, conn: &Connection, queue: &QueueName, kind: &Kind) -> Result<i64> {
        match self.find(queue, kind) {
            Some(lane) => self.name_again(conn, queue).map(|()| lane),
            None => self.make(conn, queue, kind),
        }
    }

    /// The lane of this kind in this queue, if there is one.
    pub(crate) fn find(&mut self, queue: &QueueName, kind: &Kind) -> Option<i64> {
        if let Some(last) = self.lanes.get(self.last)
            && last.kind == *kind
            && last.queue == *queue
        {
            return Some(last.id);
        }
        let id = self.queues.get(queue)?.lanes.get(kind).copied()?;
        self.last = self.position(id).ok()?;
        Some(id)
    }

    fn make(&mut self, conn: &Connection, queue: &QueueName, kind: &Kind) -> Result<i64> {
        self.ensure_queue(conn, queue)?;
        let id = conn
            .prepare_cached("INSERT INTO lane (queue, kind) VALUES (?1, ?2)")?
            .insert([queue.as_str(), kind.as_str()])?;
        self.revise(conn)?;
        self.remember(id, queue.clone(), kind.clone());
        Ok(id)
    }

    /// A queue that was removed is there again: somebody has named it.
    pub(crate) fn name_again(&mut self, conn: &Connection, queue: &QueueName) -> Result<()> {
        if self.gone.is_empty() { Ok(()) } else { self.ensure_queue(conn, queue) }
    }

    /// Makes the queue if need be: it is named.
    pub(crate) fn ensure_queue(&mut self, conn: &Connection, queue: &QueueName) -> Result<()> {
        if self.gone.contains(queue) {
            conn.prepare_cached("UPDATE queue SET gone = 0 WHERE name = ?1")?.execute([queue.as_str()])?;
            self.meet(queue.clone()).gone = false;
            self.gone.retain(|gone| gone != queue);
            return self.revise(conn);
        }
        if self.queues.contains_key(queue) {
            return Ok(());
        }
        conn.prepare_cached("INSERT INTO queue (name, paused) VALUES (?1, 0)")?.execute([queue.as_str()])?;
        self.meet(queue.clone());
        self.revise(conn)
    }

    /// Pauses or resumes a queue; answers whether that changed anything.
    pub(crate) fn set_paused(&mut self, conn: &Connection, queue: &QueueName, paused: bool) -> Result<bool> {
        self.ensure_queue(conn, queue)?;
        let changed = conn
            .prepare_cached("UPDATE queue SET paused = ?2 WHERE name = ?1 AND paused <> ?2")?
            .execute(params![queue.as_str(), paused])?;
        if changed == 0 {
            return Ok(false);
        }
        self.meet(queue.clone()).paused = paused;
        self.revise(conn)?;
        Ok(true)
    }

    /// Bounds the jobs of a queue; answers whether that changed anything.
    pub(crate) fn set_limit(
        &mut self,
        conn: &Connection,
        name: &QueueName,
        limit: Limit,
        bucket: Bucket,
    ) -> Result<bool> {
        self.ensure_queue(conn, name)?;
        let queue = self.meet(name.clone());
        if queue.limit == limit {
            return Ok(false);
        }
        (queue.limit, queue.bucket) = (limit, bucket);
        self.limited.retain(|limited| limited != name);
        let is_none = limit == Limit::default();
        self.limited.extend((!is_none).then(|| name.clone()));
        let text = if is_none { None } else { Some(value::to_json(&limit)?) };
        conn.prepare_cached("UPDATE queue SET limit_to = ?2, bucket = ?3 WHERE name = ?1")?
            .execute(params![name.as_str(), text, bucket.0.as_micros()])?;
        self.revise(conn)?;
        Ok(true)
    }

    /// What was agreed about a queue; `None` if there is none of this name.
    pub(crate) fn agreed(&self, name: &QueueName) -> Option<QueueAgreed> {
        let queue = self.queues.get(name).filter(|queue| !queue.gone)?;
        Some(QueueAgreed { paused: queue.paused, limit: queue.limit, terms: queue.terms.clone() })
    }

    /// The terms of a queue, if it has any.
    pub(crate) fn terms(&self, name: &QueueName) -> Option<&QueueTerms> {
        if self.termed.is_empty() {
            return None;
        }
        self.queues.get(name).map(|queue| &queue.terms).filter(|terms| !terms.are_default())
    }

    /// Sets the terms of a queue.
    pub(crate) fn set_terms(&mut self, conn: &Connection, name: &QueueName, terms: QueueTerms) -> Result<()> {
        self.ensure_queue(conn, name)?;
        if self.meet(name.clone()).terms == terms {
            return Ok(());
        }
        self.termed.retain(|termed| termed != name);
        let is_none = terms.are_default();
        self.termed.extend((!is_none).then(|| name.clone()));
        let text = if is_none { None } else { Some(value::to_json(&terms)?) };
        conn.prepare_cached("UPDATE queue SET terms = ?2 WHERE name = ?1")?
            .execute(params![name.as_str(), text])?;
        self.meet(name.clone()).terms = terms;
        self.revise(conn)
    }

    /// Removes a queue. Its lanes stay: others know their ids.
    pub(crate) fn remove(&mut self, conn: &Connection, name: &QueueName) -> Result<()> {
        self.set_paused(conn, name, false)?;
        self.set_limit(conn, name, Limit::default(), Bucket::FULL)?;
        self.set_terms(conn, name, QueueTerms::default())?;
        conn.prepare_cached("UPDATE queue SET gone = 1 WHERE name = ?1")?.execute([name.as_str()])?;
        self.meet(name.clone()).gone = true;
        self.gone.push(name.clone());
        self.revise(conn)
    }

    /// The limit of a queue, and how many of its jobs run; `None` if it has no limit.
    pub(crate) fn meter(&self, conn: &Connection, name: &QueueName) -> Result<Option<Meter>> {
        let Some(queue) = self.queues.get(name).filter(|queue| queue.limit != Limit::default()) else {
            return Ok(None);
        };
        let sql = "SELECT ifnull(sum(running), 0) FROM lane WHERE queue = ?1";
        let running = self.count_in(conn, name, StateName::Running, sql)?;
        let running = u32::try_from(running).unwrap_or(u32::MAX);
        Ok(Some(Meter { limit: queue.limit, running, bucket: queue.bucket }))
    }

    /// How many jobs of a queue are queued.
    pub(crate) fn queued_in(&self, conn: &Connection, name: &QueueName) -> Result<u64> {
        let sql = "SELECT ifnull(sum(queued), 0) FROM lane WHERE queue = ?1";
        self.count_in(conn, name, StateName::Queued, sql)
    }

    /// How many jobs of a queue wait, due or not.
    pub(crate) fn waiting_in(&self, conn: &Connection, name: &QueueName) -> Result<u64> {
        let scheduled = "SELECT ifnull(sum(scheduled), 0) FROM lane WHERE queue = ?1";
        let blocked = "SELECT ifnull(sum(blocked), 0) FROM lane WHERE queue = ?1";
        Ok(self.count_in(conn, name, StateName::Scheduled, scheduled)?
            + self.queued_in(conn, name)?
            + self.count_in(conn, name, StateName::Blocked, blocked)?)
    }

    /// Whether any job of a queue is kept.
    pub(crate) fn has_jobs(&self, conn: &Connection, name: &QueueName) -> Result<bool> {
        let sql =
            "SELECT ifnull(sum(scheduled + queued + blocked + running + succeeded + failed + cancelled), 0)
             FROM lane WHERE queue = ?1";
        let written: i64 = conn.prepare_cached(sql)?.query_row([name.as_str()], |row| row.get(0))?;
        let of_queue = self.lanes.iter().filter(|lane| lane.queue == *name);
        let added: i64 = of_queue.flat_map(|lane| lane.added).sum();
        Ok(written + added > 0)
    }

    /// What the file says, and what the transaction has counted since.
    fn count_in(&self, conn: &Connection, name: &QueueName, state: StateName, sql: &str) -> Result<u64> {
        let written: i64 = conn.prepare_cached(sql)?.query_row([name.as_str()], |row| row.get(0))?;
        let of_queue = self.lanes.iter().filter(|lane| lane.queue == *name);
        let added: i64 = of_queue.map(|lane| lane.added[column(state)]).sum();
        Ok(u64::try_from(written + added).unwrap_or(0))
    }

    /// Notes what was taken from the bucket of a queue.
    pub(crate) fn set_bucket(&mut self, name: &QueueName, bucket: Bucket) {
        let queue = self.meet(name.clone());
        queue.is_bucket_changed |= queue.bucket != bucket;
        queue.bucket = bucket;
    }

    /// The queues that have a limit.
    pub(crate) fn limited(&self) -> &[QueueName] {
        &self.limited
    }

    /// Whether the jobs of a lane's queue are served in rounds.
    pub(crate) fn is_fair(&self, lane: i64) -> Result<bool> {
        Ok(!self.fair.is_empty() && self.is_fair_queue(&self.get(lane)?.queue))
    }

    /// Whether the jobs of a queue are served in rounds.
    pub(crate) fn is_fair_queue(&self, name: &QueueName) -> bool {
        !self.fair.is_empty() && self.queues.get(name).is_some_and(|queue| queue.fair)
    }

    /// The lanes whose jobs are served in rounds.
    pub(crate) fn all_fair(&self) -> Vec<i64> {
        self.fair.iter().flat_map(|name| self.of_queue(name, |_| true)).collect()
    }

    /// Whether the jobs of any queue are served in rounds.
    pub(crate) fn has_fair(&self) -> bool {
        !self.fair.is_empty()
    }

    /// From now on the jobs of a queue are served in rounds.
    pub(crate) fn make_fair(&mut self, conn: &Connection, name: &QueueName) -> Result<()> {
        if self.is_fair_queue(name) {
            return Ok(());
        }
        conn.prepare_cached("UPDATE queue SET fair = 1 WHERE name = ?1")?.execute([name.as_str()])?;
        self.meet(name.clone()).fair = true;
        self.fair.push(name.clone());
        self.revise(conn)
    }

    pub(crate) fn is_paused(&self, queue: &QueueName) -> bool {
        self.queues.get(queue).is_some_and(|known| known.paused)
    }

    /// Returns the lanes of a queue whose kind `take` accepts. Their order is fixed, so that the simulation can repeat a seed.
    pub(crate) fn of_queue(&self, queue: &QueueName, take: impl Fn(&Kind) -> bool) -> Vec<i64> {
        let Some(known) = self.queues.get(queue) else { return Vec::new() };
        let mut lanes: Vec<i64> =
            known.lanes.iter().filter(|(kind, _)| take(kind)).map(|(_, id)| *id).collect();
        lanes.sort_unstable();
        lanes
    }

    pub(crate) fn get(&self, id: i64) -> Result<&Lane> {
        Ok(&self.lanes[self.position(id)?])
    }

    /// Counts jobs into (or, if negative, out of) a state.
    pub(crate) fn count(&mut self, id: i64, state: StateName, jobs: i64) -> Result<()> {
        let position = self.position(id)?;
        self.lanes[position].added[column(state)] += jobs;
        Ok(())
    }

    /// Writes what the transaction has counted: one statement a lane that changed.
    pub(crate) fn flush(&mut self, conn: &Connection) -> Result<()> {
        let changed = self.lanes.iter_mut().filter(|lane| lane.added != [0; STATES]);
        for lane in changed {
            let [scheduled, queued, blocked, running, succeeded, failed, cancelled] = lane.added;
            conn.prepare_cached(
                "UPDATE lane SET scheduled = scheduled + ?2, queued = queued + ?3, blocked = blocked + ?4,
                     running = running + ?5, succeeded = succeeded + ?6, failed = failed + ?7,
                     cancelled = cancelled + ?8
                 WHERE id = ?1",
            )?
            .execute([lane.id, scheduled, queued, blocked, running, succeeded, failed, cancelled])?;
            lane.added = [0; STATES];
        }
        for name in &self.limited {
            let Some(queue) = self.queues.get_mut(name).filter(|queue| queue.is_bucket_changed) else {
                continue;
            };
            conn.prepare_cached("UPDATE queue SET bucket = ?2 WHERE name = ?1")?
                .execute(params![name.as_str(), queue.bucket.0.as_micros()])?;
            queue.is_bucket_changed = false;
        }
        Ok(())
    }

    pub(crate) fn mark(&self) -> LanesMark {
        let added = self.lanes.iter().map(|lane| lane.added).collect();
        LanesMark { added, queues: self.met.len(), fair: self.fair.len(), gone: self.gone.clone() }
    }

    /// Back to the mark, after what was written since has been undone in the file.
    pub(crate) fn back_to(&mut self, conn: &Connection, mark: LanesMark) -> Result<()> {
        for lane in self.lanes.drain(mark.added.len()..) {
            if let Some(known) = self.queues.get_mut(&lane.queue) {
                known.lanes.remove(&lane.kind);
            }
        }
        for (lane, added) in self.lanes.iter_mut().zip(mark.added) {
            lane.added = added;
        }
        for name in self.fair.drain(mark.fair..) {
            if let Some(queue) = self.queues.get_mut(&name) {
                queue.fair = false;
            }
        }
        for name in &mark.gone {
            if let Some(queue) = self.queues.get_mut(name) {
                queue.gone = true;
            }
        }
        self.gone = mark.gone;
        for queue in self.met.drain(mark.queues..) {
            self.queues.remove(&queue);
        }
        self.last = 0;
        let revision = conn.query_row("SELECT value FROM meta WHERE name = 'lanes'", [], |row| row.get(0))?;
        self.revision = Some(revision);
        Ok(())
    }

    fn remember(&mut self, id: i64, queue: QueueName, kind: Kind) {
        self.meet(queue.clone()).lanes.insert(kind.clone(), id);
        self.lanes.push(Lane { id, queue, kind, added: [0; STATES] });
    }

    fn meet(&mut self, queue: QueueName) -> &mut Queue {
        if !self.queues.contains_key(&queue) {
            self.met.push(queue.clone());
        }
        self.queues.entry(queue).or_default()
    }

    fn position(&self, id: i64) -> Result<usize> {
        if let Some(last) = self.lanes.get(self.last)
            && last.id == id
        {
            return Ok(self.last);
        }
        self.lanes
            .binary_search_by_key(&id, |lane| lane.id)
            .map_err(|_| unreadable(format_args!("lane {id}, which does not exist")))
    }

    /// Tells other processes that there is something new to read.
    fn revise(&mut self, conn: &Connection) -> Result<()> {
        let revision = conn
            .prepare_cached("UPDATE meta SET value = value + 1 WHERE name = 'lanes' RETURNING value")?
            .query_row([], |row| row.get(0))?;
        self.revision = Some(revision);
        Ok(())
    }
}

/// Reads a row of [`QUEUES`]: its name and its settings, without its lanes.
pub(crate) fn read_queue(row: &Row<'_>) -> Result<(QueueName, Queue)> {
    let queue = Queue {
        paused: value::get(row, 1)?,
        limit: value::maybe_json(row, 2)?.unwrap_or_default(),
        bucket: Bucket(value::instant(row, 3)?),
        fair: value::get(row, 4)?,
        terms: value::maybe_json(row, 5)?.unwrap_or_default(),
        gone: value::get(row, 6)?,
        ..Queue::default()
    };
    Ok((value::queue(row, 0)?, queue))
}

fn column(state: StateName) -> usize {
    match state {
        StateName::Scheduled => 0,
        StateName::Queued => 1,
        StateName::Blocked => 2,
        StateName::Running => 3,
        StateName::Succeeded => 4,
        StateName::Failed => 5,
        StateName::Cancelled => 6,
    }
}
