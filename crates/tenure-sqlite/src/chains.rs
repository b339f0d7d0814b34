//! Whose turn it is among the jobs of an ordering key.
//!
//! Of the jobs of a key that have not ended at most one has the turn (`chain.turn`). The others want it
//! (`chained`) or let those behind them go on (`stepped_aside`). When nobody has it, it goes to the first
//! that wants it, unless that one has to wait for other jobs first: then all behind it wait with it.

use rusqlite::{OptionalExtension, Result, Row, params};
use tenure_core::{Head, Key, StateName};

use crate::fault::{is_unreadable, unreadable};
use crate::front::{Before, Front, READ_AHEAD};
use crate::rows::{Stored, row_of};
use crate::value;
use crate::writing::Writing;

const FIND: &str = "SELECT id, key, turn, passed, waiting, aside FROM chain WHERE key = ?1";
const FIND_BY_ID: &str = "SELECT id, key, turn, passed, waiting, aside FROM chain WHERE id = ?1";
const MAKE: &str = "INSERT INTO chain (key, passed, waiting, aside) VALUES (?1, 0, 0, 0)";
pub(crate) const KEEP: &str =
    "UPDATE chain SET turn = ?2, passed = ?3, waiting = ?4, aside = ?5 WHERE id = ?1";
const DROP: &str = "DELETE FROM chain WHERE id = ?1";

const JOIN: &str = "INSERT INTO chained (chain, seq, lane, priority, due, begun, gate)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
pub(crate) const LEAVE: &str = "DELETE FROM chained WHERE chain = ?1 AND seq = ?2";
const STEP_ASIDE: &str = "INSERT INTO stepped_aside (chain, seq) VALUES (?1, ?2)";
pub(crate) const STEP_BACK: &str = "DELETE FROM stepped_aside WHERE chain = ?1 AND seq = ?2";
pub(crate) const FIRST: &str = "SELECT seq, lane, priority, due, begun, gate FROM chained
     WHERE chain = ?1 ORDER BY seq LIMIT ?2 + 0";
pub(crate) const CUT: &str = "DELETE FROM chained WHERE chain = ?1 AND seq <= ?2";

/// An ordering key, as the writer has it in mind.
#[derive(Debug)]
pub(crate) struct Chain {
    /// Whose turn it is.
    turn: Option<i64>,
    /// Those that want it, by seq.
    front: Front<i64, Next>,
    /// How many want it.
    waiting: i64,
    /// How many do not.
    aside: i64,
}

/// How a job stands among those of its ordering key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stand {
    /// Those behind it go on without it.
    Aside,
    /// It cannot take the turn before other jobs have ended, but those behind it wait for it.
    InTheWay,
    /// It has the turn or wants it.
    Ready,
}

/// A job that wants the turn.
#[derive(Debug, Clone, Copy)]
struct Next {
    lane: i64,
    priority: i64,
    due: i64,
    begun: bool,
    gate: i64,
}

/// Nothing else may stand between a job and its place.
const FREE: i64 = 0;
/// Other keys may.
const GATED: i64 = 1;
/// Other jobs do: it cannot take the turn, and lets nobody behind it take it.
const IN_THE_WAY: i64 = 2;

impl Writing<'_> {
    /// The chain of this key, if there is one.
    pub(crate) fn chain_of(&mut self, key: &Key) -> Result<Option<i64>> {
        match self.memory.keyed.chains.id(key) {
            Some(id) => Ok(Some(id)),
            None => self.learn_chain(FIND, key.as_str()),
        }
    }

    fn learn_chain(&mut self, sql: &str, by: impl rusqlite::ToSql) -> Result<Option<i64>> {
        let found = self.conn.prepare_cached(sql)?.query_row([by], read_chain).optional()?;
        Ok(found.map(|(id, key, chain)| {
            self.memory.keyed.chains.learn(id, key, chain);
            id
        }))
    }

    fn chain_for(&mut self, key: &Key) -> Result<i64> {
        if let Some(id) = self.chain_of(key)? {
            return Ok(id);
        }
        let id = self.conn.prepare_cached(MAKE)?.insert([key.as_str()])?;
        let chain = Chain { turn: None, front: Front::new(None), waiting: 0, aside: 0 };
        self.memory.keyed.chains.learn(id, key.clone(), chain);
        Ok(id)
    }

    fn chain(&mut self, id: i64) -> Result<&Chain> {
        if self.memory.keyed.chains.get(id).is_none() {
            self.learn_chain(FIND_BY_ID, id)?;
        }
        self.memory.keyed.chains.get(id).ok_or_else(|| unreadable(format_args!("chain {id}")))
    }

    fn change_chain(&mut self, id: i64) -> Result<&mut Chain> {
        self.chain(id)?;
        self.memory.keyed.chains.change(id).ok_or_else(|| unreadable(format_args!("chain {id}")))
    }

    /// Lets a job that waits stand among those of its key; answers whether it has the turn.
    pub(crate) fn stand_in_chain(&mut self, stored: &Stored, key: &Key, stand: Stand) -> Result<bool> {
        let (id, seq) = (self.chain_for(key)?, value::signed(stored.job.seq));
        let turn = self.chain(id)?.turn;
        let has_turn = turn == Some(seq);
        match stand {
            Stand::Ready if has_turn || (turn.is_none() && self.would_be_first(id, seq)?) => {
                self.change_chain(id)?.turn = Some(seq);
                return Ok(true);
            }
            Stand::Ready | Stand::InTheWay => self.wait_in_chain(id, stored, stand)?,
            Stand::Aside => {
                self.conn.prepare_cached(STEP_ASIDE)?.execute([id, seq])?;
                self.change_chain(id)?.aside += 1;
            }
        }
        if has_turn {
            self.change_chain(id)?.turn = None;
            self.memory.keyed.touched_chains.push(id);
        }
        Ok(false)
    }

    fn would_be_first(&mut self, id: i64, seq: i64) -> Result<bool> {
        Ok(self.first_in_chain(id)?.is_none_or(|(first, _)| seq < first))
    }

    /// The first that wants the turn, whether or not it could take it.
    fn first_in_chain(&mut self, id: i64) -> Result<Option<(i64, Next)>> {
        let conn = self.conn;
        let chain = self.chain(id)?;
        if chain.waiting == 0 || chain.front.first().is_some() {
            return Ok(chain.front.first().copied());
        }
        if let Some(passed) = chain.front.passed {
            conn.prepare_cached(CUT)?.execute([id, passed])?;
        }
        let read = conn
            .prepare_cached(FIRST)?
            .query_map([id, READ_AHEAD], read_next)?
            .collect::<Result<Vec<_>>>()?;
        let front = &mut self.change_chain(id)?.front;
        front.passed = None;
        front.read_ahead(read);
        Ok(front.first().copied())
    }

    fn wait_in_chain(&mut self, id: i64, stored: &Stored, stand: Stand) -> Result<()> {
        let Stored { job, lane, begun } = stored;
        let terms = &job.terms;
        let has_other_gates = terms.limit.is_some() || terms.share.is_some() || terms.after.is_some();
        let gate = match stand {
            Stand::InTheWay => IN_THE_WAY,
            Stand::Ready | Stand::Aside if has_other_gates => GATED,
            Stand::Ready | Stand::Aside => FREE,
        };
        let due = job.state.due().unwrap_or(self.now).as_micros();
        let seq = value::signed(job.seq);
        let chain = self.change_chain(id)?;
        chain.waiting += 1;
        if let Before::Cut(passed) = chain.front.join(seq) {
            self.conn.prepare_cached(CUT)?.execute([id, passed])?;
        }
        self.conn.prepare_cached(JOIN)?.execute(params![
            id,
            seq,
            lane,
            job.priority.number(),
            due,
            begun,
            gate
        ])?;
        Ok(())
    }

    /// Takes a job that waits out of its stand; the turn it keeps until it has ended or another stand.
    pub(crate) fn leave_stand(&mut self, stored: &Stored) -> Result<()> {
        let Some(ordering) = &stored.job.terms.ordering else { return Ok(()) };
        let Some(id) = self.chain_of(&ordering.key)? else { return Ok(()) };
        let seq = value::signed(stored.job.seq);
        let chain = self.chain(id)?;
        if chain.turn == Some(seq) {
            return Ok(());
        }
        if chain.front.holds(seq) && self.conn.prepare_cached(LEAVE)?.execute([id, seq])? > 0 {
            let chain = self.change_chain(id)?;
            chain.waiting -= 1;
            chain.front.leave(seq);
        } else if self.conn.prepare_cached(STEP_BACK)?.execute([id, seq])? > 0 {
            self.change_chain(id)?.aside -= 1;
        }
        Ok(())
    }

    /// Lets the others of its key go on: this job, which has left its stand, has ended or is gone.
    pub(crate) fn end_in_chain(&mut self, id: i64, seq: i64) -> Result<()> {
        if self.chain(id)?.turn == Some(seq) {
            self.change_chain(id)?.turn = None;
        }
        self.memory.keyed.touched_chains.push(id);
        Ok(())
    }

    /// Gives a free turn to whom it belongs, and that one its place.
    pub(crate) fn pass_turn(&mut self, id: i64) -> Result<()> {
        while self.chain(id)?.turn.is_none() {
            let Some((seq, next)) = self.first_in_chain(id)? else { return Ok(()) };
            if next.gate == IN_THE_WAY {
                return Ok(());
            }
            let chain = self.change_chain(id)?;
            chain.front.take();
            chain.waiting -= 1;
            chain.turn = Some(seq);
            // A clock that was stepped back may make it give up the turn at once.
            self.place_next(seq, &next)?;
        }
        Ok(())
    }

    fn place_next(&mut self, seq: i64, next: &Next) -> Result<()> {
        let Next { lane, priority, due, begun, gate } = *next;
        self.memory.lanes.count(lane, StateName::Blocked, -1)?;
        if gate == FREE && due <= self.now.as_micros() && !self.memory.lanes.is_fair(lane)? {
            return self.put_in_line(lane, (priority, 0, due, seq), begun, None);
        }
        match row_of(self.conn, seq) {
            Ok(Some(stored)) => self.place_gated(&stored, stored.job.state.due().unwrap_or(self.now)),
            Ok(None) => Err(unreadable(format_args!("a turn of job number {seq}, which is gone"))),
            Err(error) if is_unreadable(&error) => {
                self.put_in_diary_aside(lane, priority, seq, begun, &error)
            }
            Err(error) => Err(error),
        }
    }

    /// Writes what changed.
    pub(crate) fn flush_chains(&mut self) -> Result<()> {
        let changed = self.memory.keyed.chains.take_changed();
        if changed.is_empty() {
            return Ok(());
        }
        let mut keep = self.conn.prepare_cached(KEEP)?;
        for id in changed {
            let Some(chain) = self.memory.keyed.chains.peek(id) else { continue };
            if chain.waiting == 0
                && let Some(passed) = chain.front.passed.take()
            {
                self.conn.prepare_cached(CUT)?.execute([id, passed])?;
            }
            if chain.turn.is_some() || chain.waiting > 0 || chain.aside > 0 {
                let passed = chain.front.passed.unwrap_or(0);
                keep.execute(params![id, chain.turn, passed, chain.waiting, chain.aside])?;
            } else {
                self.conn.prepare_cached(DROP)?.execute([id])?;
                self.memory.keyed.chains.remove(id);
            }
        }
        Ok(())
    }
}

/// How a waiting job with an ordering key stands.
pub(crate) fn stand_of(head: Head, jobs_ended: bool, is_due: bool) -> Stand {
    match (head, jobs_ended) {
        (Head::Block, true) => Stand::Ready,
        (Head::Block, false) => Stand::InTheWay,
        (Head::StepAside, true) if is_due => Stand::Ready,
        (Head::StepAside, true | false) => Stand::Aside,
    }
}

fn read_chain(row: &Row<'_>) -> Result<(i64, Key, Chain)> {
    let passed = Some(row.get(3)?).filter(|passed| *passed > 0);
    let chain =
        Chain { turn: row.get(2)?, front: Front::new(passed), waiting: row.get(4)?, aside: row.get(5)? };
    Ok((row.get(0)?, value::key(row, 1)?, chain))
}

fn read_next(row: &Row<'_>) -> Result<(i64, Next)> {
    let next = Next {
        lane: row.get(1)?,
        priority: row.get(2)?,
        due: row.get(3)?,
        begun: row.get(4)?,
        gate: row.get(5)?,
    };
    Ok((row.get(0)?, next))
}
