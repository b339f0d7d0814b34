//! What stands between a job with keys and its line: other jobs, its turn, its time, its limit.
//!
//! Only such jobs come here, and those of queues that are fair; all others have their place by their due alone.

use rusqlite::{Connection, OptionalExtension, Result, params};
use tenure_core::{Block, Gates, Job, JobId, Key, State, StateName, Timestamp};

use crate::chains::{Stand, stand_of};
use crate::place::{Kept, place_of};
use crate::rows::{Stored, row_of, seq_of};
use crate::writing::Writing;
use crate::{limit_keys, value};

pub(crate) const WAITS_FOR_JOBS: &str = "SELECT 1 FROM dependency WHERE seq = ?1 LIMIT 1";
pub(crate) const WAITS_FOR_TURN: &str = "SELECT 1 FROM chain c CROSS JOIN chained m ON m.chain = c.id
     WHERE c.key = ?1 AND m.seq = ?2 AND m.seq > c.passed";
pub(crate) const ROUND: &str = "SELECT round FROM fair_place WHERE seq = ?1";
pub(crate) const WAITS_FOR_ROOM: &str = "SELECT 1 FROM limit_line
     WHERE limit_id = ?1 AND lane = ?2 AND priority = ?3 AND round = ?4 AND due = ?5 AND seq = ?6";

/// What blocks a job that waits, as the tables tell; `None` if nothing does. What the writer has in mind has to
/// be written before.
pub(crate) fn block_of(conn: &Connection, job: &Job, lane: i64) -> Result<Option<Block>> {
    let terms = &job.terms;
    let seq = value::signed(job.seq);
    if terms.after.is_some() && conn.prepare_cached(WAITS_FOR_JOBS)?.exists([seq])? {
        return Ok(Some(Block::Jobs));
    }
    if let Some(ordering) = &terms.ordering
        && conn.prepare_cached(WAITS_FOR_TURN)?.exists(params![ordering.key.as_str(), seq])?
    {
        return Ok(Some(Block::Order));
    }
    match &terms.limit {
        Some(limit) if waits_for_room(conn, &limit.key, job, lane)? => Ok(Some(Block::Limit)),
        Some(_) | None => Ok(None),
    }
}

fn waits_for_room(conn: &Connection, key: &Key, job: &Job, lane: i64) -> Result<bool> {
    let Some(due) = job.state.due() else { return Ok(false) };
    let found = conn.prepare_cached(limit_keys::FIND)?.query_row([key.as_str()], limit_keys::read_limit);
    let Some((id, _, limit)) = found.optional()? else { return Ok(false) };
    let Some(rooms) = limit.rooms.get(&lane).filter(|rooms| rooms.blocked > 0) else {
        return Ok(false);
    };
    let seq = value::signed(job.seq);
    let round = conn.prepare_cached(ROUND)?.query_row([seq], |row| row.get(0)).optional()?.unwrap_or(0);
    let place = (job.priority.number(), round, due.as_micros(), seq);
    let (priority, round, due, seq) = place;
    Ok(rooms.end_of_queued().is_none_or(|last| place > last)
        && conn.prepare_cached(WAITS_FOR_ROOM)?.exists([id, lane, priority, round, due, seq])?)
}

impl Writing<'_> {
    /// Whether the place of a job depends on more than its due.
    pub(crate) fn is_gated(&self, stored: &Stored) -> Result<bool> {
        Ok(stored.job.terms.are_gated() || self.memory.lanes.is_fair(stored.lane)?)
    }

    /// Lets a job that waits stand where the first closed gate keeps it.
    pub(crate) fn place_gated(&mut self, stored: &Stored, due: Timestamp) -> Result<()> {
        let terms = stored.job.terms.clone();
        let jobs_ended = terms.after.is_none() || !self.waits_for_jobs(stored)?;
        let has_turn = match &terms.ordering {
            Some(ordering) => {
                let stand = stand_of(ordering.head, jobs_ended, due <= self.now);
                self.stand_in_chain(stored, &ordering.key, stand)?
            }
            None => true,
        };
        let why = why_of(&stored.job.state);
        // Whether there is room is seen when it has joined the line of its limit.
        match (Gates { jobs_ended, has_turn, has_room: true }).state(&terms, due, why, self.now) {
            State::Waiting { .. } if due <= self.now => self.join_line(stored, due, why),
            State::Waiting { .. } => self.put_in_diary(stored, due),
            State::Blocked { .. } | State::Running { .. } | State::Finished { .. } => {
                self.touch_limit_of(&stored.job)?;
                self.memory.lanes.count(stored.lane, StateName::Blocked, 1)
            }
        }
    }

    fn join_line(&mut self, stored: &Stored, due: Timestamp, why: tenure_core::Why) -> Result<()> {
        let round = self.join_round(stored, why)?;
        let place = place_of(stored, due, round);
        match &stored.job.terms.limit {
            Some(limit) => self.join_limit(&limit.key, stored.lane, place, stored.begun),
            None => self.put_in_line(stored.lane, place, stored.begun, None),
        }
    }

    /// Lets a job that stood in line, or that its limit kept from it, stand there again: its line is another
    /// one now. By a clock that was put back it may not be due any more; that does not take it out of line.
    pub(crate) fn join_line_again(&mut self, stored: &Stored, due: Timestamp) -> Result<()> {
        self.touch_limit_of(&stored.job)?;
        self.join_line(stored, due, why_of(&stored.job.state))
    }

    /// Lets a job that others block stand among those of its key again, as it stood there.
    pub(crate) fn block_again(&mut self, stored: &Stored) -> Result<()> {
        if let Some(ordering) = &stored.job.terms.ordering {
            let stand = match stored.job.state {
                State::Blocked { on: Block::Jobs, .. } => stand_of(ordering.head, false, false),
                State::Blocked { on: Block::Order | Block::Limit, .. }
                | State::Waiting { .. }
                | State::Running { .. }
                | State::Finished { .. } => Stand::Ready,
            };
            self.stand_in_chain(stored, &ordering.key.clone(), stand)?;
        }
        self.touch_limit_of(&stored.job)?;
        self.memory.lanes.count(stored.lane, StateName::Blocked, 1)
    }

    /// Takes a job that waits out of wherever it is. The turn it keeps, until it has another place or ends.
    pub(crate) fn unplace_gated(&mut self, stored: &Stored, due: Timestamp) -> Result<Kept> {
        let limit = self.touch_limit_of(&stored.job)?;
        let kept = match stored.job.state {
            State::Blocked { on: Block::Limit, .. } => {
                let round = self.leave_round(stored)?;
                if let Some(limit) = limit {
                    self.leave_blocked(limit, stored.lane, place_of(stored, due, round))?;
                }
                Kept::Shut
            }
            State::Blocked { .. } => {
                self.memory.lanes.count(stored.lane, StateName::Blocked, -1)?;
                Kept::Blocked
            }
            State::Waiting { .. } | State::Running { .. } | State::Finished { .. } => {
                let round = self.leave_round(stored)?;
                let place = place_of(stored, due, round);
                let kept = self.take_from_line_or_diary(stored, place)?;
                if let (Some(limit), Kept::InLine) = (limit, kept) {
                    self.leave_queued(limit, stored.lane, place)?;
                }
                kept
            }
        };
        self.leave_stand(stored)?;
        Ok(kept)
    }

    /// Lets a job that waits for its time, found due by no turn, stand as such among those of its key.
    pub(crate) fn step_aside(&mut self, stored: &Stored) -> Result<()> {
        self.touch_limit_of(&stored.job)?;
        let Some(ordering) = &stored.job.terms.ordering else { return Ok(()) };
        let stand = stand_of(ordering.head, true, false);
        self.stand_in_chain(stored, &ordering.key.clone(), stand).map(drop)
    }

    /// A running job with keys runs no more.
    pub(crate) fn stop_running(&mut self, stored: &Stored) -> Result<()> {
        match self.touch_limit_of(&stored.job)? {
            Some(limit) => self.stopped_in_limit(limit),
            None => Ok(()),
        }
    }

    /// A job that had not ended has, or is gone, and has left its place: others may go on. `how` is a state as
    /// the file numbers them; `None` if it is gone.
    pub(crate) fn let_others_go_on(&mut self, job: &Job, how: Option<i64>) -> Result<()> {
        self.note_end(job.seq, job.id, how)?;
        if job.terms.after.is_some() {
            self.forget_waits(job)?;
            self.keep_no_more_for(job.seq)?;
        }
        if let Some(limit) = self.touch_limit_of(job)? {
            self.unname_limit(limit)?;
        }
        let Some(ordering) = &job.terms.ordering else { return Ok(()) };
        match self.chain_of(&ordering.key)? {
            Some(chain) => self.end_in_chain(chain, value::signed(job.seq)),
            None => Ok(()),
        }
    }

    /// The job with this id.
    pub(crate) fn find(&mut self, id: JobId) -> Result<Option<Stored>> {
        match seq_of(self.conn, id)? {
            Some(seq) => self.find_by_seq(seq),
            None => Ok(None),
        }
    }

    /// The job with this place in the order of acceptance.
    pub(crate) fn find_by_seq(&mut self, seq: i64) -> Result<Option<Stored>> {
        let Some(stored) = row_of(self.conn, seq)? else { return Ok(None) };
        if stored.may_be_blocked() {
            // What blocks it is told by the file alone.
            self.flush_keys()?;
        }
        stored.seen(self.conn).map(Some)
    }

    /// The state under which people see a job that waits, once its step is settled.
    pub(crate) fn name_of_waiting(&mut self, stored: &Stored) -> Result<StateName> {
        self.flush_keys()?;
        Ok(match block_of(self.conn, &stored.job, stored.lane)? {
            Some(_) => StateName::Blocked,
            None => stored.job.state.name(self.now),
        })
    }

    /// Notes that the limit of a job has to be looked at.
    fn touch_limit_of(&mut self, job: &Job) -> Result<Option<i64>> {
        let Some(limit) = &job.terms.limit else { return Ok(None) };
        let id = self.limit_of(&limit.key)?;
        if let Some(id) = id {
            self.touch_limit(id)?;
        }
        Ok(id)
    }

    fn waits_for_jobs(&mut self, stored: &Stored) -> Result<bool> {
        if !self.memory.keyed.is_any_awaited(self.conn)? {
            return Ok(false);
        }
        let seq = value::signed(stored.job.seq);
        self.conn.prepare_cached(WAITS_FOR_JOBS)?.exists([seq])
    }
}

fn why_of(state: &State) -> tenure_core::Why {
    match state {
        State::Waiting { why, .. } | State::Blocked { why, .. } => *why,
        State::Running { .. } | State::Finished { .. } => tenure_core::Why::Enqueued,
    }
}
