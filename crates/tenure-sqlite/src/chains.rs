//! Whose turn it is among the jobs of an ordering key.
//!
//! Of the jobs of a key that have not ended at most one has the turn (`chain.turn`). The others want it
//! (`chained`) or let those behind them go on (`stepped_aside`). When nobody has it, it goes to the first
//! that wants it, unless that one has to wait for other jobs first: then all behind it wait with it.

use rusqlite::{OptionalExtension, Result, Row, params};
use tenure_core::{Head, Key, StateName};

use crate::fault::{is_unreadable, unreadable};
use crate::rows::{Stored, find_by_seq};
use crate::value;
use crate::writing::Writing;

const FIND: &str = "SELECT id, key, turn, waiting, aside FROM chain WHERE key = ?1";
const FIND_BY_ID: &str = "SELECT id, key, turn, waiting, aside FROM chain WHERE id = ?1";
const MAKE: &str = "INSERT INTO chain (key, waiting, aside) VALUES (?1, 0, 0)";
pub(crate) const KEEP: &str = "UPDATE chain SET turn = ?2, waiting = ?3, aside = ?4 WHERE id = ?1";
const DROP: &str = "DELETE FROM chain WHERE id = ?1";

const JOIN: &str = "INSERT INTO chained (chain, seq, lane, priority, due, begun, gate)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
pub(crate) const LEAVE: &str = "DELETE FROM chained WHERE chain = ?1 AND seq = ?2";
const STEP_ASIDE: &str = "INSERT INTO stepped_aside (chain, seq) VALUES (?1, ?2)";
pub(crate) const STEP_BACK: &str = "DELETE FROM stepped_aside WHERE chain = ?1 AND seq = ?2";
pub(crate) const FIRST: &str = "SELECT seq FROM chained WHERE chain = ?1 ORDER BY seq LIMIT 1";
/// Takes the first one out, unless it cannot take the turn.
pub(crate) const TAKE_FIRST: &str = "DELETE FROM chained
     WHERE chain = ?1 AND seq = (SELECT seq FROM chained WHERE chain = ?1 ORDER BY seq LIMIT 1) AND gate < 2
     RETURNING seq, lane, priority, due, begun, gate";

/// An ordering key, as the writer has it in mind.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Chain {
    /// Whose turn it is.
    pub turn: Option<i64>,
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

/// A job that has just got the turn.
struct Next {
    seq: i64,
    lane: i64,
    priority: i64,
    due: i64,
    begun: bool,
    /// Whether nothing else may stand between it and its place.
    is_free: bool,
}

impl Chain {
    fn is_empty(&self) -> bool {
        self.turn.is_none() && self.waiting == 0 && self.aside == 0
    }
}

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
        self.memory.keyed.chains.learn(id, key.clone(), Chain::default());
        Ok(id)
    }

    fn chain(&mut self, id: i64) -> Result<Chain> {
        if self.memory.keyed.chains.get(id).is_none() {
            self.learn_chain(FIND_BY_ID, id)?;
        }
        self.memory.keyed.chains.get(id).copied().ok_or_else(|| unreadable(format_args!("chain {id}")))
    }

    fn change_chain(&mut self, id: i64, change: impl FnOnce(&mut Chain)) {
        if let Some(chain) = self.memory.keyed.chains.change(id) {
            change(chain);
        }
    }

    /// Lets a job that waits stand among those of its key; answers whether it has the turn.
    pub(crate) fn stand_in_chain(&mut self, stored: &Stored, key: &Key, stand: Stand) -> Result<bool> {
        let (id, seq) = (self.chain_for(key)?, value::signed(stored.job.seq));
        let chain = self.chain(id)?;
        let has_turn = chain.turn == Some(seq);
        match stand {
            Stand::Ready if has_turn || (chain.turn.is_none() && self.would_be_first(id, &chain, seq)?) => {
                self.change_chain(id, |chain| chain.turn = Some(seq));
                return Ok(true);
            }
            Stand::Ready | Stand::InTheWay => self.wait_in_chain(id, stored, stand)?,
            Stand::Aside => {
                self.conn.prepare_cached(STEP_ASIDE)?.execute([id, seq])?;
                self.change_chain(id, |chain| chain.aside += 1);
            }
        }
        if has_turn {
            self.give_up_turn(id);
        }
        Ok(false)
    }

    fn would_be_first(&self, id: i64, chain: &Chain, seq: i64) -> Result<bool> {
        if chain.waiting == 0 {
            return Ok(true);
        }
        let first =
            self.conn.prepare_cached(FIRST)?.query_row([id], |row| row.get::<_, i64>(0)).optional()?;
        Ok(first.is_none_or(|first| seq < first))
    }

    fn wait_in_chain(&mut self, id: i64, stored: &Stored, stand: Stand) -> Result<()> {
        let Stored { job, lane, begun } = stored;
        let terms = &job.terms;
        let has_other_gates = terms.limit.is_some() || terms.share.is_some() || terms.after.is_some();
        let gate = match stand {
            Stand::InTheWay => 2,
            Stand::Ready | Stand::Aside => i64::from(has_other_gates),
        };
        let due = job.state.due().unwrap_or(self.now).as_micros();
        let seq = value::signed(job.seq);
        self.conn.prepare_cached(JOIN)?.execute(params![
            id,
            seq,
            lane,
            job.priority.number(),
            due,
            begun,
            gate
        ])?;
        self.change_chain(id, |chain| chain.waiting += 1);
        Ok(())
    }

    fn give_up_turn(&mut self, id: i64) {
        self.change_chain(id, |chain| chain.turn = None);
        self.memory.keyed.touched_chains.push(id);
    }

    /// Takes a job that waits out of its stand; the turn it keeps until it has ended or another stand.
    pub(crate) fn leave_stand(&mut self, stored: &Stored) -> Result<()> {
        let Some(ordering) = &stored.job.terms.ordering else { return Ok(()) };
        let Some(id) = self.chain_of(&ordering.key)? else { return Ok(()) };
        let seq = value::signed(stored.job.seq);
        if self.chain(id)?.turn == Some(seq) {
            return Ok(());
        }
        if self.conn.prepare_cached(LEAVE)?.execute([id, seq])? > 0 {
            self.change_chain(id, |chain| chain.waiting -= 1);
        } else if self.conn.prepare_cached(STEP_BACK)?.execute([id, seq])? > 0 {
            self.change_chain(id, |chain| chain.aside -= 1);
        }
        Ok(())
    }

    /// Lets the others of its key go on: this job, which has left its stand, has ended or is gone.
    pub(crate) fn end_in_chain(&mut self, id: i64, seq: i64) -> Result<()> {
        if self.chain(id)?.turn == Some(seq) {
            self.change_chain(id, |chain| chain.turn = None);
        }
        self.memory.keyed.touched_chains.push(id);
        Ok(())
    }

    /// Gives a free turn to whom it belongs, and that one its place.
    pub(crate) fn pass_turn(&mut self, id: i64) -> Result<()> {
        loop {
            let chain = self.chain(id)?;
            if chain.turn.is_some() || chain.waiting == 0 {
                return Ok(());
            }
            let next = self.conn.prepare_cached(TAKE_FIRST)?.query_row([id], read_next).optional()?;
            let Some(next) = next else { return Ok(()) };
            self.change_chain(id, |chain| {
                chain.waiting -= 1;
                chain.turn = Some(next.seq);
            });
            // A clock that was stepped back may make it give up the turn at once.
            self.place_next(&next)?;
        }
    }

    fn place_next(&mut self, next: &Next) -> Result<()> {
        self.memory.lanes.count(next.lane, StateName::Blocked, -1)?;
        if next.is_free && next.due <= self.now.as_micros() && !self.memory.lanes.is_fair(next.lane)? {
            return self.put_in_line(next.lane, (next.priority, 0, next.due, next.seq), next.begun, None);
        }
        match find_by_seq(self.conn, next.seq) {
            Ok(Some(stored)) => self.place_gated(&stored, stored.job.state.due().unwrap_or(self.now)),
            Ok(None) => Err(unreadable(format_args!("a turn of job number {}, which is gone", next.seq))),
            Err(error) if is_unreadable(&error) => {
                self.put_in_diary_aside(next.lane, next.priority, next.seq, next.begun, &error)
            }
            Err(error) => Err(error),
        }
    }

    /// Writes what changed.
    pub(crate) fn flush_chains(&mut self) -> Result<()> {
        for id in self.memory.keyed.chains.take_changed() {
            let Some(chain) = self.memory.keyed.chains.get(id) else { continue };
            if chain.is_empty() {
                self.conn.prepare_cached(DROP)?.execute([id])?;
                self.memory.keyed.chains.remove(id);
                continue;
            }
            self.conn.prepare_cached(KEEP)?.execute(params![id, chain.turn, chain.waiting, chain.aside])?;
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
    let chain = Chain { turn: row.get(2)?, waiting: row.get(3)?, aside: row.get(4)? };
    Ok((row.get(0)?, value::key(row, 1)?, chain))
}

fn read_next(row: &Row<'_>) -> Result<Next> {
    Ok(Next {
        seq: row.get(0)?,
        lane: row.get(1)?,
        priority: row.get(2)?,
        due: row.get(3)?,
        begun: row.get(4)?,
        is_free: row.get::<_, i64>(5)? == 0,
    })
}
