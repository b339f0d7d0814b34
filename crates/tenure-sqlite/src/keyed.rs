//! What the writer keeps in mind of keys that jobs share, and what a step leaves to be done for them.

use rusqlite::{Connection, OptionalExtension, Result};
use tenure_core::{Key, Timestamp};

use crate::chains::Chain;
use crate::limit_keys::FIRST_GROWS;
use crate::limit_row::LimitRow;
use crate::remembered::Remembered;
use crate::value;
use crate::writing::Writing;

/// All of it can be read again from the file, once what changed is written.
#[derive(Debug, Default)]
pub(crate) struct Keyed {
    pub chains: Remembered<Key, Chain>,
    pub limits: Remembered<Key, LimitRow>,
    /// Chains whose turn may be free. Empty between two steps.
    pub touched_chains: Vec<i64>,
    /// Limits that have to be looked at. Empty between two steps.
    pub touched_limits: Vec<i64>,
    /// Whether any job waits for another; `None` if that is not known.
    awaited: Option<bool>,
    /// Whether time may make room in any limit; `None` if that is not known.
    grows: Option<bool>,
}

/// How it was before a batch that may be refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyedMark(u64);

impl Keyed {
    /// Whether any job waits for another.
    pub(crate) fn is_any_awaited(&mut self, conn: &Connection) -> Result<bool> {
        if let Some(awaited) = self.awaited {
            return Ok(awaited);
        }
        let awaited = conn
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM dependency)")?
            .query_row([], |row| row.get::<_, bool>(0))?;
        self.awaited = Some(awaited);
        Ok(awaited)
    }

    /// Some job waits for another now.
    pub(crate) fn awaits(&mut self) {
        self.awaited = Some(true);
    }

    /// Some job does not wait for another any more: perhaps it was the last.
    pub(crate) fn awaits_less(&mut self) {
        self.awaited = None;
    }

    /// Whether time may make room in any limit.
    pub(crate) fn may_grow(&mut self, conn: &Connection) -> Result<bool> {
        if let Some(grows) = self.grows {
            return Ok(grows);
        }
        Ok(self.first_grows(conn)?.is_some())
    }

    /// Time will make room in some limit.
    pub(crate) fn will_grow(&mut self) {
        self.grows = Some(true);
    }

    /// When time first makes room in a limit; it may be early.
    pub(crate) fn first_grows(&mut self, conn: &Connection) -> Result<Option<Timestamp>> {
        if self.grows == Some(false) {
            return Ok(None);
        }
        let written = conn
            .prepare_cached(FIRST_GROWS)?
            .query_row([], |row| value::nearest_instant(row, 0))
            .optional()?;
        let first = self.limits.changed().filter_map(|limit| limit.grows).chain(written).min();
        self.grows = Some(first.is_some());
        Ok(first)
    }

    /// Forgets all: another program may have changed it, or it was undone.
    pub(crate) fn forget(&mut self) {
        self.chains.forget();
        self.limits.forget();
        self.touched_chains.clear();
        self.touched_limits.clear();
        (self.awaited, self.grows) = (None, None);
    }

    /// How it is before a batch that may be refused. All that changed has to be written.
    pub(crate) fn mark(&self) -> KeyedMark {
        KeyedMark(self.chains.changes() + self.limits.changes())
    }

    /// Forgets what has been undone since the mark.
    pub(crate) fn back_to(&mut self, mark: KeyedMark) {
        if self.mark() != mark {
            self.forget();
        }
        (self.awaited, self.grows) = (None, None);
    }

    /// Forgets what is too much to keep in mind. Only once everything is written.
    pub(crate) fn trim(&mut self) {
        self.chains.trim();
        self.limits.trim();
    }
}

impl Writing<'_> {
    /// Ends a step: passes free turns on and makes limits keep their promise.
    pub(crate) fn settle_keys(&mut self) -> Result<()> {
        while let Some(chain) = self.memory.keyed.touched_chains.pop() {
            self.pass_turn(chain)?;
        }
        while let Some(limit) = self.memory.keyed.touched_limits.pop() {
            self.look_at_limit(limit)?;
        }
        Ok(())
    }

    /// Writes what changed in mind.
    pub(crate) fn flush_keys(&mut self) -> Result<()> {
        self.flush_chains()?;
        self.flush_limits()
    }
}
