//! Accepting jobs.

use rusqlite::{CachedStatement, Result, params};
use tenure_core::{Cancel, CancelRequest, JobId, NewJob, OnConflict, StateName, Unique};
use tenure_store::{Accepted, Enqueued, Happening, Refusal};

use crate::rows::{find, seq_of};
use crate::value;
use crate::writing::Writing;

const INSERT: &str = "INSERT INTO job (seq, id, lane, priority, due, created, terms, args)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (id) DO NOTHING";

// Jobs of a batch are given their places together; a job of it that was cancelled at once has none.
const IN_LINE: &str = "INSERT INTO ready (lane, priority, due, seq, begun)
     SELECT lane, priority, due, seq, 0 FROM job WHERE seq >= ?1 AND due <= ?2";
const IN_DIARY: &str = "INSERT INTO later (lane, priority, due, seq, begun)
     SELECT lane, priority, due, seq, 0 FROM job WHERE seq >= ?1 AND due > ?2";

/// Jobs of a batch that are stored and have no place yet.
#[derive(Debug, Default)]
struct Unplaced {
    first_seq: Option<i64>,
    in_line: bool,
    in_diary: bool,
}

impl Writing<'_> {
    /// Stores a batch, or nothing of it.
    pub(crate) fn enqueue(&mut self, batch: &[NewJob]) -> Result<Enqueued> {
        let mark = self.mark()?;
        let mut insert = self.conn.prepare_cached(INSERT)?;
        let mut unplaced = Unplaced::default();
        let mut accepted = Vec::with_capacity(batch.len());
        for (index, new) in batch.iter().enumerate() {
            match self.accept(new, &mut insert, &mut unplaced)? {
                Ok(answer) => accepted.push(answer),
                Err(refusal) => {
                    self.back_to(mark)?;
                    return Ok(Enqueued::Refused { index, refusal });
                }
            }
        }
        self.place_new(&mut unplaced)?;
        self.keep()?;
        Ok(Enqueued::Stored(accepted))
    }

    fn accept(
        &mut self,
        new: &NewJob,
        insert: &mut CachedStatement<'_>,
        unplaced: &mut Unplaced,
    ) -> Result<std::result::Result<Accepted, Refusal>> {
        let Some(unique) = &new.terms.unique else {
            if self.insert(new, insert, unplaced)? {
                return Ok(Ok(Accepted::New(new.id)));
            }
            return self.meet_same_id(new);
        };
        if find(self.conn, new.id)?.is_some() {
            return self.meet_same_id(new);
        }
        let Some(holder) = self.holder_of(unique.key)? else {
            self.insert(new, insert, unplaced)?;
            return Ok(Ok(Accepted::New(new.id)));
        };
        match unique.on_conflict {
            OnConflict::Return => Ok(Ok(Accepted::Existing(holder))),
            OnConflict::Reject => Ok(Err(Refusal::KeyHeld(holder))),
            OnConflict::Replace => self.replace(holder, new, insert, unplaced).map(Ok),
        }
    }

    fn meet_same_id(&self, new: &NewJob) -> Result<std::result::Result<Accepted, Refusal>> {
        let repeats = find(self.conn, new.id)?.is_some_and(|stored| new.repeats(&stored.job));
        Ok(if repeats { Ok(Accepted::Repeated(new.id)) } else { Err(Refusal::IdTaken(new.id)) })
    }

    /// Ends the holder of the key in favour of the new job, if it still waits.
    fn replace(
        &mut self,
        old: JobId,
        new: &NewJob,
        insert: &mut CachedStatement<'_>,
        unplaced: &mut Unplaced,
    ) -> Result<Accepted> {
        // The holder may be of this very batch: only a job with a place can be taken out of it.
        self.place_new(unplaced)?;
        let Some(holder) = find(self.conn, old)? else { return Ok(Accepted::Existing(old)) };
        let reason = format!("replaced by job {}", new.id);
        let request = CancelRequest::new(self.now, std::time::Duration::ZERO, &reason);
        match Cancel::decide(&holder.job, request) {
            Cancel::Ends(transition) => {
                self.enter(holder, *transition)?;
                self.insert(new, insert, unplaced)?;
                Ok(Accepted::Replaced { id: new.id, old })
            }
            Cancel::Asks(_) | Cancel::AlreadyAsked | Cancel::AlreadyEnded(_) => Ok(Accepted::Existing(old)),
        }
    }

    /// Stores one job, without a place; `false` if its id is taken.
    fn insert(
        &mut self,
        new: &NewJob,
        insert: &mut CachedStatement<'_>,
        unplaced: &mut Unplaced,
    ) -> Result<bool> {
        let lane = match self.memory.lanes.find(&new.queue, &new.kind) {
            Some(lane) => lane,
            // A repetition names no new queue: its job may have been moved since.
            None if seq_of(self.conn, new.id)?.is_some() => return Ok(false),
            None => self.memory.lanes.of(self.conn, &new.queue, &new.kind)?,
        };
        let due = new.due.at(self.now);
        let terms = if new.terms.are_default() { None } else { Some(value::to_json(&*new.terms)?) };
        let before = self.last_seq();
        let seq = self.next_seq()?;
        let stored = insert.execute(params![
            seq,
            new.id.as_bytes(),
            lane,
            new.priority.number(),
            due.as_micros(),
            self.now.as_micros(),
            terms,
            new.args.as_bytes(),
        ])?;
        if stored == 0 {
            self.give_back_seq(before);
            return Ok(false);
        }
        let is_due = due <= self.now;
        unplaced.first_seq.get_or_insert(seq);
        unplaced.in_line |= is_due;
        unplaced.in_diary |= !is_due;
        let state = if is_due { StateName::Queued } else { StateName::Scheduled };
        self.memory.lanes.count(lane, state, 1)?;
        if terms.is_some() {
            self.keep_terms(new, seq)?;
        }
        self.tell(lane, new.id, || Happening::Enqueued)?;
        Ok(true)
    }

    /// What makes a job findable by its terms.
    fn keep_terms(&self, new: &NewJob, seq: i64) -> Result<()> {
        for tag in &new.terms.tags {
            self.conn
                .prepare_cached("INSERT OR IGNORE INTO tag (tag, seq) VALUES (?1, ?2)")?
                .execute((tag.as_str(), seq))?;
        }
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
