//! Looking at the jobs that a page examines, without the args and results of those that it passes over.

use rusqlite::{CachedStatement, Connection, Result};
use tenure_core::Job;
use tenure_store::{Examined, Filter, Values};

use crate::rows::{Looked, by_seq_with, look};

/// Looks at the candidates of a page, and counts them.
///
/// Args and results can fill hundreds of pages of the file for each job. They are read for a job that does not match only
/// if a condition needs them.
pub(crate) struct Looking<'c> {
    conn: &'c Connection,
    whole: CachedStatement<'c>,
    bare: CachedStatement<'c>,
    /// The values of a found job.
    wanted: Values,
    /// The values that the conditions need.
    needed: Values,
    /// Without conditions, most candidates match.
    has_conditions: bool,
    read: usize,
    found: usize,
    pub examined: Examined,
}

impl<'c> Looking<'c> {
    /// Begins a page whose jobs have these values.
    pub(crate) fn new(conn: &'c Connection, filter: &Filter, wanted: Values) -> Result<Self> {
        Ok(Self {
            conn,
            whole: by_seq_with(conn, Values::Read)?,
            bare: by_seq_with(conn, Values::Omitted)?,
            wanted,
            needed: filter.values_needed(),
            has_conditions: !filter.conditions.is_empty(),
            read: 0,
            found: 0,
            examined: Examined::new(filter),
        })
    }

    /// Returns the job with this place in the order of acceptance if it matches, or if it cannot be read.
    pub(crate) fn at(&mut self, seq: i64, matches: impl Fn(&Job) -> bool) -> Result<Option<Looked>> {
        let is_whole = self.reads_whole();
        self.read += 1;
        let looked = self.look(seq, is_whole)?;
        let Some(Ok(stored)) = &looked else {
            // Of those that were blocked some may be gone that are still listed.
            self.examined.add_row();
            return Ok(looked);
        };
        let is_match = matches(&stored.job);
        self.examined.add(&stored.job, is_match);
        if !is_match {
            return Ok(None);
        }
        self.found += 1;
        if is_whole || self.wanted == Values::Omitted {
            return Ok(looked);
        }
        let whole = self.look(seq, true)?;
        Ok(whole.filter(|whole| whole.as_ref().map_or(true, |stored| matches(&stored.job))))
    }

    fn look(&mut self, seq: i64, is_whole: bool) -> Result<Option<Looked>> {
        look(self.conn, if is_whole { &mut self.whole } else { &mut self.bare }, seq)
    }

    fn reads_whole(&self) -> bool {
        let most_match = !self.has_conditions && self.found * 2 >= self.read;
        self.needed == Values::Read || (self.wanted == Values::Read && most_match)
    }
}
