//! One transaction of the writer, as the commands in it see it.

use std::sync::Arc;

use rusqlite::{Connection, Result, params};
use tenure_core::{Epoch, Failure, JobId, StateName, Timestamp};
use tenure_store::{Bulletin, Event, Happening, Steps};

use crate::grants::Grants;
use crate::keyed::{Keyed, KeyedMark};
use crate::lanes::{Lanes, LanesMark};
use crate::place::Joined;
use crate::set_back::SetBack;
use crate::timers::Aside;
use crate::{epoch, value};

/// What the writer keeps in mind between transactions. All of it can be read again from the file.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub epoch: Epoch,
    /// `true` once the epoch is in the file.
    has_begun: bool,
    pub lanes: Lanes,
    pub grants: Grants,
    pub keyed: Keyed,
    pub set_back: SetBack,
    /// Which ripe timers are passed by, because this program cannot read them.
    pub timers_aside: Arc<Aside>,
    /// Whether the clock has stepped.
    pub steps: Steps,
    /// Behind which share pruning goes on.
    pub shares_pruned: i64,
    /// The last `seq` that was given.
    last_seq: Option<i64>,
    /// What `PRAGMA data_version` said last: it changes when another connection commits.
    data_version: Option<i64>,
    /// How many wishes to stop the file had seen.
    asked: Option<i64>,
    /// How many transactions of the file had made a lease free.
    freed: Option<i64>,
}

/// A transaction that is being written.
pub(crate) struct Writing<'w> {
    pub conn: &'w Connection,
    pub memory: &'w mut Memory,
    pub now: Timestamp,
    pub news: News,
    /// Whether this transaction has made a lease free.
    frees: bool,
    /// Number of blocked jobs that limits have let into line in this call.
    pub jobs_let_in: i64,
    /// Who has joined lines and is not written there.
    pub line: Vec<Joined>,
    /// Number of rows that this connection had changed at the beginning.
    changes: u64,
}

/// What to tell once the transaction is durable.
#[derive(Debug, Default)]
pub(crate) struct News {
    is_heard: bool,
    pub due: bool,
    pub asked: bool,
    pub freed: bool,
    /// Whether another program has written since the last transaction.
    pub others: bool,
    /// Whether something happened of which no event was made, because nobody listened.
    unheard: bool,
    events: Vec<Event>,
}

/// How a transaction was before something that may have to be undone.
#[derive(Debug)]
pub(crate) struct Mark {
    name: &'static str,
    lanes: LanesMark,
    keyed: KeyedMark,
    last_seq: Option<i64>,
    events: usize,
}

impl Memory {
    /// The memory of a writer that has just opened the file. What others write from now on is news.
    pub(crate) fn new(conn: &Connection, epoch: Epoch) -> Result<Self> {
        let mut memory = Self { epoch, ..Self::default() };
        memory.others_have_written(conn)?;
        memory.others_have_asked(conn)?;
        memory.others_have_freed(conn)?;
        Ok(memory)
    }

    /// Returns `true` if another process has committed since the last call, or may have.
    pub(crate) fn others_have_written(&mut self, conn: &Connection) -> Result<bool> {
        let version =
            conn.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get::<_, i64>(0))?;
        let before = self.data_version.replace(version);
        Ok(before.is_none_or(|before| before != version))
    }

    /// Whether a holder may have been asked to stop by another process since this was asked last.
    fn others_have_asked(&mut self, conn: &Connection) -> Result<bool> {
        let asked = conn
            .prepare_cached("SELECT value FROM meta WHERE name = 'asked'")?
            .query_row([], |row| row.get::<_, i64>(0))?;
        Ok(self.asked.replace(asked) != Some(asked))
    }

    /// Whether another process may have made a lease free since this was asked last.
    fn others_have_freed(&mut self, conn: &Connection) -> Result<bool> {
        let freed = conn
            .prepare_cached("SELECT value FROM meta WHERE name = 'freed'")?
            .query_row([], |row| row.get::<_, i64>(0))?;
        Ok(self.freed.replace(freed) != Some(freed))
    }

    /// Forgets what may be wrong now.
    pub(crate) fn forget(&mut self) {
        self.lanes.forget();
        self.grants.forget();
        self.keyed.forget();
        self.set_back = SetBack::default();
        self.last_seq = None;
        if !cfg!(mutant = "sqlite-rollback-keeps-hints") {
            (self.asked, self.freed) = (None, None);
        }
        // The news of other processes was not published.
        self.data_version = None;
        self.has_begun = false;
    }
}

impl<'w> Writing<'w> {
    /// The transaction that has just begun on this connection. Answers also whether another process has
    /// written since the last one.
    pub(crate) fn begin(
        conn: &'w Connection,
        memory: &'w mut Memory,
        now: Timestamp,
        is_heard: bool,
    ) -> Result<Self> {
        let mut news = News { is_heard, ..News::default() };
        if memory.others_have_written(conn)? {
            memory.last_seq = None;
            memory.keyed.forget();
            (news.due, news.others) = (true, true);
            // Not on every write of another: it would be answered by renewals, which are writes, too.
            news.asked = memory.others_have_asked(conn)?;
            news.freed = memory.others_have_freed(conn)?;
        }
        if news.due || memory.last_seq.is_none() {
            memory.lanes.refresh(conn)?;
        }
        let changes = conn.total_changes();
        Ok(Self { conn, memory, now, news, frees: false, jobs_let_in: 0, line: Vec::new(), changes })
    }

    /// Writes what is written once a transaction.
    pub(crate) fn finish(mut self) -> Result<News> {
        self.write_line()?;
        self.flush_keys()?;
        self.memory.keyed.trim();
        self.memory.lanes.flush(self.conn)?;
        if self.frees {
            let freed = self
                .conn
                .prepare_cached("UPDATE meta SET value = value + 1 WHERE name = 'freed' RETURNING value")?
                .query_row([], |row| row.get(0))?;
            self.memory.freed = Some(freed);
        }
        if !self.memory.has_begun && self.conn.total_changes() > self.changes {
            epoch::begin(self.conn, self.memory.epoch)?;
            self.memory.has_begun = true;
        }
        Ok(self.news)
    }

    /// The next place in the order of acceptance.
    pub(crate) fn next_seq(&mut self) -> Result<i64> {
        self.next_seqs(1)
    }

    /// Takes this many places in the order of acceptance, and returns the first.
    pub(crate) fn next_seqs(&mut self, jobs: i64) -> Result<i64> {
        let last = match self.memory.last_seq {
            Some(last) => last,
            None => self.conn.query_row(
                "SELECT max((SELECT ifnull(max(seq), 0) FROM job), (SELECT value FROM meta WHERE name = 'removed'))",
                [],
                |row| row.get(0),
            )?,
        };
        self.memory.last_seq = Some(last + jobs);
        Ok(last + 1)
    }

    /// The last place that was given, as far as it is known.
    pub(crate) fn last_seq(&self) -> Option<i64> {
        self.memory.last_seq
    }

    /// Takes back the places after this one: nothing was stored there.
    pub(crate) fn give_back_seq(&mut self, last: Option<i64>) {
        self.memory.last_seq = last;
    }

    /// Keeps the place of a removed job from being given again.
    pub(crate) fn retire_seq(&self, seq: i64) -> Result<()> {
        self.conn
            .prepare_cached("UPDATE meta SET value = ?1 WHERE name = 'removed' AND value < ?1")?
            .execute([seq])?;
        Ok(())
    }

    /// Tells this process and the others that a holder was asked to stop.
    pub(crate) fn call_asked(&mut self) -> Result<()> {
        let asked = self
            .conn
            .prepare_cached("UPDATE meta SET value = value + 1 WHERE name = 'asked' RETURNING value")?
            .query_row([], |row| row.get(0))?;
        self.memory.asked = Some(asked);
        self.news.asked = true;
        Ok(())
    }

    /// Tells this process and the others that a lease became free, once for the transaction.
    pub(crate) fn call_freed(&mut self) {
        (self.frees, self.news.freed) = (true, true);
    }

    /// The smallest fence that may be granted, less one.
    pub(crate) fn fence_floor(&self) -> i64 {
        value::signed(self.memory.epoch.number())
    }

    /// Whether anybody listens to what happens; if not, it is noted that something happened of which none heard.
    pub(crate) fn is_heard(&mut self) -> bool {
        self.news.unheard |= !self.news.is_heard;
        self.news.is_heard
    }

    /// Tells of a job, if anybody listens.
    pub(crate) fn tell(&mut self, lane: i64, id: JobId, what: impl FnOnce() -> Happening) -> Result<()> {
        if !self.is_heard() {
            return Ok(());
        }
        let lane = self.memory.lanes.get(lane)?;
        let (kind, queue) = (lane.kind.clone(), lane.queue.clone());
        self.news.events.push(Event { at: self.now, id, kind, queue, what: what() });
        Ok(())
    }

    /// Tells which state a job has entered.
    pub(crate) fn tell_became(
        &mut self,
        lane: i64,
        id: JobId,
        state: StateName,
        failure: Option<&Failure>,
    ) -> Result<()> {
        self.tell(lane, id, || Happening::Became { state, failure: failure.map(ToString::to_string) })
    }

    /// Begins something that may have to be undone within the transaction. Nested marks need different names.
    pub(crate) fn mark(&mut self, name: &'static str) -> Result<Mark> {
        // Memory cannot be undone, so its rows go to the file first.
        self.write_line()?;
        self.flush_keys()?;
        self.conn.prepare_cached(&format!("SAVEPOINT {name}"))?.execute(params![])?;
        let (lanes, last_seq) = (self.memory.lanes.mark(), self.memory.last_seq);
        let keyed = self.memory.keyed.mark();
        Ok(Mark { name, lanes, keyed, last_seq, events: self.news.events.len() })
    }

    /// Keeps the changes since the mark.
    pub(crate) fn keep(&self, mark: &Mark) -> Result<()> {
        self.conn.prepare_cached(&format!("RELEASE {}", mark.name))?.execute(params![])?;
        Ok(())
    }

    /// Undoes the changes since the mark.
    pub(crate) fn back_to(&mut self, mark: Mark) -> Result<()> {
        let name = mark.name;
        self.conn.execute_batch(&format!("ROLLBACK TO {name}; RELEASE {name}"))?;
        self.memory.lanes.back_to(self.conn, mark.lanes)?;
        self.memory.keyed.back_to(mark.keyed);
        if !cfg!(mutant = "sqlite-refused-batch-in-line") {
            self.line.clear();
        }
        self.memory.last_seq = mark.last_seq;
        if !cfg!(mutant = "sqlite-refused-batch-told") {
            self.news.events.truncate(mark.events);
        }
        Ok(())
    }
}

impl News {
    /// Pins it on the board.
    pub(crate) fn publish(self, bulletin: &Bulletin) {
        self.events.into_iter().for_each(|event| bulletin.tell(event));
        if self.due {
            bulletin.call_due();
        }
        if self.asked {
            bulletin.call_asked();
        }
        if self.freed {
            bulletin.call_freed();
        }
        // Whoever has begun to listen meanwhile may have looked before the commit: it is told to look again.
        if self.others || (self.unheard && bulletin.is_heard()) {
            bulletin.call_others();
        }
    }
}
