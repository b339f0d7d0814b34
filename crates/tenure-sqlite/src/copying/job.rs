//! Taking a job in as it was: its rows, its history, and the place where it belongs.

use rusqlite::{OptionalExtension, Result, params};
use tenure_core::{Block, End, Job, JobId, LogLine, State};
use tenure_store::CopiedJob;

use crate::dependencies::Waits;
use crate::fault::unreadable;
use crate::rows::{Stored, write_standing};
use crate::writing::Writing;
use crate::{attempts, value};

const INSERT: &str = "INSERT INTO job (seq, id, lane, priority, due, created, singly, terms, args)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
const LINE: &str = "INSERT INTO log (seq, delivery, number, at, text) VALUES (?1, ?2, ?3, ?4, ?5)";
const STANDS: &str =
    "SELECT j.seq, ifnull(s.state, 0) FROM job j LEFT JOIN standing s ON s.seq = j.seq WHERE j.id = ?1";

impl Writing<'_> {
    pub(super) fn take_job_in(&mut self, copied: &CopiedJob) -> Result<()> {
        let job = &copied.job;
        let lane = self.memory.lanes.of(self.conn, &job.queue, &job.kind)?;
        self.insert_copied(job, lane)?;
        for attempt in copied.attempts.iter().filter(|attempt| !tells_itself(job, attempt.delivery)) {
            let (at, by) = attempt.ended.ok_or_else(|| unreadable("a copied attempt that has not ended"))?;
            attempts::keep(self.conn, value::signed(job.seq), attempt, at, by)?;
        }
        let stored = Stored { job: job.clone(), lane, begun: copied.has_begun() };
        if stored.begun {
            write_standing(self.conn, &stored)?;
        }
        match job.state {
            State::Waiting { due, .. } | State::Blocked { due, .. } => {
                let waits = self.waits_as_copied(copied)?;
                self.let_wait(value::signed(job.seq), &waits)?;
                self.keep_for(job)?;
                if let Some(limit) = &job.terms.limit {
                    self.name_limit(limit)?;
                }
                self.place(&stored, due)?;
                self.settle_keys()
            }
            State::Finished { end, .. } => self.memory.lanes.count(lane, end.name(), 1),
            State::Running { .. } => Err(unreadable("a copied job that runs")),
        }
    }

    fn insert_copied(&mut self, job: &Job, lane: i64) -> Result<()> {
        let seq = value::signed(job.seq);
        let terms = if job.terms.are_default() { None } else { Some(value::to_json(&*job.terms)?) };
        let singly = job.terms.are_gated() || self.memory.lanes.is_fair_queue(&job.queue);
        self.conn.prepare_cached(INSERT)?.execute(params![
            seq,
            job.id.as_bytes(),
            lane,
            job.priority.number(),
            job.state.due().unwrap_or(job.created).as_micros(),
            job.created.as_micros(),
            singly,
            terms,
            job.args.as_bytes(),
        ])?;
        for tag in &job.terms.tags {
            self.conn
                .prepare_cached("INSERT OR IGNORE INTO tag (tag, seq) VALUES (?1, ?2)")?
                .execute((tag.as_str(), seq))?;
        }
        // The next place is asked of the file.
        self.give_back_seq(None);
        Ok(())
    }

    /// For which jobs it waits. One of them may have ended by being copied: the next turn notices.
    fn waits_as_copied(&self, copied: &CopiedJob) -> Result<Waits> {
        let mut waits = Waits::default();
        if !matches!(copied.job.state, State::Blocked { on: Block::Jobs, .. }) {
            return Ok(waits);
        }
        for id in &copied.waits {
            if let Some((seq, state)) = self.stands(*id)? {
                waits.add(*id, seq, state);
            }
        }
        Ok(waits)
    }

    fn stands(&self, id: JobId) -> Result<Option<(i64, i64)>> {
        self.conn
            .prepare_cached(STANDS)?
            .query_row([id.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()
    }

    pub(super) fn take_lines_in(&self, seq: u64, lines: &[LogLine]) -> Result<()> {
        let mut insert = self.conn.prepare_cached(LINE)?;
        for LogLine { delivery, number, at, text } in lines {
            insert.execute(params![value::signed(seq), delivery, number, at.as_micros(), text])?;
        }
        Ok(())
    }
}

/// Whether the job tells all of an attempt itself: of the one by which it succeeded.
fn tells_itself(job: &Job, delivery: u32) -> bool {
    let succeeded = matches!(job.state, State::Finished { end: End::Succeeded, .. });
    succeeded && job.delivery == delivery && job.holder.is_some()
}
