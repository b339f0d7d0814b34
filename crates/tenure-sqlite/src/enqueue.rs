//! Accepting jobs.

use rusqlite::{CachedStatement, Result, params};
use tenure_core::{Cancel, CancelRequest, JobId, NewJob, OnConflict, QueueName, StateName, Terms, Unique};
use tenure_store::{Accepted, Enqueued, Happening, Refusal};

use crate::dependencies::Waits;
use crate::queue_terms::Room;
use crate::rows::{Stored, find, seq_of};
use crate::writing::Writing;
use crate::{together, value};

const INSERT: &str = "INSERT INTO job (seq, id, lane, priority, due, created, singly, terms, args)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (id) DO NOTHING";

// The jobs of a batch get their places in one statement, except jobs that got theirs singly. A job that was
// cancelled at once has no place.
pub(crate) const IN_LINE: &str = "INSERT INTO ready (lane, priority, round, due, seq, begun)
     SELECT lane, priority, 0, due, seq, 0 FROM job WHERE seq >= ?1 AND due <= ?2 AND singly = 0";
pub(crate) const IN_DIARY: &str = "INSERT INTO later (lane, priority, due, seq, begun, singly)
     SELECT lane, priority, due, seq, 0, 0 FROM job WHERE seq >= ?1 AND due > ?2 AND singly = 0";

/// Jobs of a batch that are stored and have no place yet.
#[derive(Debug, Default)]
struct Unplaced {
    first_seq: Option<i64>,
    in_line: bool,
    in_diary: bool,
}

impl Unplaced {
    /// Notes the seq of a job, or of the first job of a group, and returns the state of these jobs.
    fn add(&mut self, seq: i64, is_due: bool) -> StateName {
        self.first_seq.get_or_insert(seq);
        self.in_line |= is_due;
        self.in_diary |= !is_due;
        if is_due { StateName::Queued } else { StateName::Scheduled }
    }
}

/// What came of storing one job.
enum Inserted {
    /// It is stored.
    Yes,
    /// Its id is taken.
    IdTaken,
    /// It waits for a job that is not there.
    NoSuchJob(JobId),
    /// So many jobs may wait in its queue, and as many do.
    QueueFull(u64),
}

impl Writing<'_> {
    /// Stores a batch, or nothing of it.
    pub(crate) fn enqueue(&mut self, batch: &[NewJob]) -> Result<Enqueued> {
        self.enqueue_where(Room::Asked, batch)
    }

    /// Stores a batch, or nothing of it.
    pub(crate) fn enqueue_where(&mut self, room: Room, batch: &[NewJob]) -> Result<Enqueued> {
        let mark = self.mark("batch")?;
        let mut insert = self.conn.prepare_cached(INSERT)?;
        let mut unplaced = Unplaced::default();
        let mut accepted = Vec::with_capacity(batch.len());
        for jobs in batch.chunks(together::JOBS) {
            if self.accept_together(jobs, &mut unplaced)? {
                accepted.extend(jobs.iter().map(|new| Accepted::New(new.id)));
                continue;
            }
            for new in jobs {
                let filled = self.filled(new);
                let new = filled.as_ref().unwrap_or(new);
                match self.accept(new, room, &mut insert, &mut unplaced)? {
                    Ok(answer) => accepted.push(answer),
                    Err(refusal) => {
                        self.back_to(mark)?;
                        return Ok(Enqueued::Refused { index: accepted.len(), refusal });
                    }
                }
            }
        }
        self.place_new(&mut unplaced)?;
        self.keep(&mark)?;
        Ok(Enqueued::Stored(accepted))
    }

    /// Accepts jobs that one statement can store. Stores none and returns `false` if it cannot, or if an id is taken.
    fn accept_together(&mut self, jobs: &[NewJob], unplaced: &mut Unplaced) -> Result<bool> {
        let Some(first) = jobs.first().filter(|_| self.are_alike(jobs)) else { return Ok(false) };
        let Some(lane) = self.memory.lanes.find(&first.queue, &first.kind) else { return Ok(false) };
        let Some(seq) = self.insert_together(jobs, lane)? else { return Ok(false) };
        let state = unplaced.add(seq, first.due.at(self.now) <= self.now);
        self.memory.lanes.count(lane, state, value::bound(jobs.len()))?;
        self.memory.lanes.ensure_queue(self.conn, &first.queue)?;
        for new in jobs {
            self.tell(lane, new.id, || Happening::Enqueued)?;
        }
        Ok(true)
    }

    fn accept(
        &mut self,
        new: &NewJob,
        room: Room,
        insert: &mut CachedStatement<'_>,
        unplaced: &mut Unplaced,
    ) -> Result<std::result::Result<Accepted, Refusal>> {
        // Only its terms may stand against a job before it is stored, and most have none.
        let has_terms_to_ask = new.terms.unique.is_some() || new.terms.after.is_some();
        if has_terms_to_ask && seq_of(self.conn, new.id)?.is_some() {
            return self.meet_same_id(new);
        }
        let holder = match &new.terms.unique {
            Some(unique) => self.holder_of(unique.key)?.map(|holder| (holder, unique.on_conflict)),
            None => None,
        };
        let replaced = match holder {
            None => None,
            Some((holder, OnConflict::Return)) => return Ok(Ok(Accepted::Existing(holder))),
            Some((holder, OnConflict::Reject)) => return Ok(Err(Refusal::KeyHeld(holder))),
            Some((holder, OnConflict::Replace)) => match self.replace(holder, new, unplaced)? {
                Some(left) => Some((holder, left)),
                None => return Ok(Ok(Accepted::Existing(holder))),
            },
        };
        // Only a place in the same queue is one that it may take.
        let stays = replaced.as_ref().is_some_and(|(_, left)| *left == new.queue);
        let room = if stays { Room::Given } else { room };
        match (self.insert(new, room, insert, unplaced)?, replaced.map(|(old, _)| old)) {
            (Inserted::Yes, None) => Ok(Ok(Accepted::New(new.id))),
            (Inserted::Yes, Some(old)) => Ok(Ok(Accepted::Replaced { id: new.id, old })),
            (Inserted::IdTaken, _) => self.meet_same_id(new),
            (Inserted::NoSuchJob(other), _) => Ok(Err(Refusal::NoSuchJob(other))),
            (Inserted::QueueFull(most), _) => Ok(Err(Refusal::QueueFull { most })),
        }
    }

    fn meet_same_id(&self, new: &NewJob) -> Result<std::result::Result<Accepted, Refusal>> {
        let repeats = find(self.conn, new.id)?.is_some_and(|stored| new.repeats(&stored.job));
        Ok(if repeats { Ok(Accepted::Repeated(new.id)) } else { Err(Refusal::IdTaken(new.id)) })
    }

    /// Ends the holder of the key in favour of the new job, and answers in which queue it was; `None` if it does not wait
    /// any more.
    fn replace(&mut self, old: JobId, new: &NewJob, unplaced: &mut Unplaced) -> Result<Option<QueueName>> {
        // The holder may be of this very batch: only a job with a place can be taken out of it.
        if !cfg!(mutant = "sqlite-replace-unplaced") {
            self.place_new(unplaced)?;
        }
        let Some(holder) = self.find(old)? else { return Ok(None) };
        let left = holder.job.queue.clone();
        let reason = format!("replaced by job {}", new.id);
        let request = CancelRequest::new(self.now, std::time::Duration::ZERO, &reason);
        match Cancel::decide(&holder.job, request) {
            Cancel::Ends(transition) => self.enter(holder, *transition).map(|_| Some(left)),
            Cancel::Asks(_) | Cancel::AlreadyAsked | Cancel::AlreadyEnded(_) => Ok(None),
        }
    }

    /// Stores one job; one that has no place is given it with the others of its batch.
    fn insert(
        &mut self,
        new: &NewJob,
        room: Room,
        insert: &mut CachedStatement<'_>,
        unplaced: &mut Unplaced,
    ) -> Result<Inserted> {
        let waits = match &new.terms.after {
            Some(after) => match self.waits_of(after)? {
                Ok(waits) => Some(waits),
                Err(other) => return Ok(Inserted::NoSuchJob(other)),
            },
            None => None,
        };
        if let Some(most) = self.lacks_room(new, room)? {
            return Ok(Inserted::QueueFull(most));
        }
        let lane = match self.memory.lanes.find(&new.queue, &new.kind) {
            Some(lane) => lane,
            // A repetition names no new queue: its job may have been moved since.
            None if seq_of(self.conn, new.id)?.is_some() => return Ok(Inserted::IdTaken),
            None => self.memory.lanes.of(self.conn, &new.queue, &new.kind)?,
        };
        let due = new.due.at(self.now);
        let terms = value::of_terms(&new.terms)?;
        let singly = new.terms.are_gated() || self.memory.lanes.is_fair_queue(&new.queue);
        let before = self.last_seq();
        let seq = self.next_seq()?;
        let stored = insert.execute(params![
            seq,
            new.id.as_bytes(),
            lane,
            new.priority.number(),
            due.as_micros(),
            self.now.as_micros(),
            singly,
            terms,
            new.args.as_bytes(),
        ])?;
        if stored == 0 {
            self.give_back_seq(before);
            return Ok(Inserted::IdTaken);
        }
        self.memory.lanes.name_again(self.conn, &new.queue)?;
        if terms.is_some() {
            self.keep_terms(new, seq)?;
        }
        if singly {
            let job = new.accepted(value::seq(seq)?, self.now);
            self.place_singly(Stored { job, lane, begun: false }, waits.unwrap_or_default())?;
        } else {
            let state = unplaced.add(seq, due <= self.now);
            self.memory.lanes.count(lane, state, 1)?;
        }
        self.memory.lanes.ensure_queue(self.conn, &new.queue)?;
        self.tell(lane, new.id, || Happening::Enqueued)?;
        Ok(Inserted::Yes)
    }

    /// Gives a job with keys, or of a fair queue, its place at once: it depends on those before it.
    fn place_singly(&mut self, stored: Stored, waits: Waits) -> Result<()> {
        self.let_wait(value::signed(stored.job.seq), &waits)?;
        self.keep_for(&stored.job)?;
        if let Some(limit) = &stored.job.terms.limit {
            self.name_limit(limit)?;
        }
        self.place_gated(&stored, stored.job.state.due().unwrap_or(self.now))?;
        self.settle_keys()
    }

    pub(crate) fn tag(&self, terms: &Terms, seq: i64) -> Result<()> {
        for tag in &terms.tags {
            self.conn
                .prepare_cached("INSERT OR IGNORE INTO tag (tag, seq) VALUES (?1, ?2)")?
                .execute((tag.as_str(), seq))?;
        }
        Ok(())
    }

    /// What makes a job findable by its terms.
    fn keep_terms(&self, new: &NewJob, seq: i64) -> Result<()> {
        self.tag(&new.terms, seq)?;
        let Some(unique @ Unique { .. }) = &new.terms.unique else { return Ok(()) };
        self.take_key(unique, seq, new.id)
    }

    /// Gives every job of the batch that has none its place.
    fn place_new(&mut self, unplaced: &mut Unplaced) -> Result<()> {
        let Unplaced { first_seq: Some(first), in_line, in_diary } = std::mem::take(unplaced) else {
            return Ok(());
        };
        for (sql, needed) in [(IN_LINE, in_line), (IN_DIARY, in_diary)] {
            if needed {
                self.conn.prepare_cached(sql)?.execute([first, self.now.as_micros()])?;
            }
        }
        self.news.due = true;
        Ok(())
    }
}
