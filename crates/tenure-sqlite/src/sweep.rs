//! What time alone brings, in bounded steps: leases that lapse, jobs that come due.

use rusqlite::{OptionalExtension, Result, params};
use tenure_core::{StateName, lapse, limits};

use crate::fault::is_unreadable;
use crate::rows::find_by_seq;
use crate::value;
use crate::writing::Writing;

pub(crate) const FIRST_LAPSE: &str = "SELECT lapse FROM standing WHERE state = 1 ORDER BY lapse LIMIT 1";
pub(crate) const LAPSED: &str =
    "SELECT seq FROM standing WHERE state = 1 AND lapse <= ?1 ORDER BY lapse LIMIT ?2 + 0";
pub(crate) const FIRST_LATER: &str = "SELECT due FROM later ORDER BY due LIMIT 1";
pub(crate) const LAST_DUE: &str = "SELECT due, seq FROM
     (SELECT due, seq FROM later WHERE due <= ?1 ORDER BY due, seq LIMIT ?2 + 0) ORDER BY due DESC, seq DESC LIMIT 1";
pub(crate) const COUNT_DUE: &str =
    "SELECT lane, count(*) FROM later WHERE (due, seq) <= (?1, ?2) GROUP BY lane";
pub(crate) const INTO_LINE: &str = "INSERT INTO ready (lane, priority, due, seq, begun)
     SELECT lane, priority, due, seq, begun FROM later WHERE (due, seq) <= (?1, ?2)";
pub(crate) const OUT_OF_DIARY: &str = "DELETE FROM later WHERE (due, seq) <= (?1, ?2)";

/// What a sweep did.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Swept {
    pub lapsed: usize,
    pub due: usize,
    /// Whether a bound stopped it.
    pub more: bool,
}

impl Writing<'_> {
    /// Takes lapsed jobs from their holders and gives jobs that came due their place in line.
    pub(crate) fn sweep(&mut self) -> Result<Swept> {
        let (lapsed, due) = (self.take_lapsed()?, self.line_up()?);
        let more = lapsed >= limits::SWEEP_ROWS || due >= limits::SWEEP_ROWS;
        if lapsed + due > 0 {
            self.news.due = true;
        }
        Ok(Swept { lapsed, due, more })
    }

    /// The next instant at which something comes due or lapses.
    pub(crate) fn next_due(&self) -> Result<Option<tenure_core::Timestamp>> {
        let first = |sql| -> Result<Option<i64>> {
            self.conn.prepare_cached(sql)?.query_row([], |row| row.get(0)).optional()
        };
        let next = first(FIRST_LAPSE)?.into_iter().chain(first(FIRST_LATER)?).min();
        // What a bounded sweep left behind is due already: whoever asks again gets it at once.
        next.map(|at| value::timestamp(at.max(self.now.as_micros() + 1))).transpose()
    }

    fn take_lapsed(&mut self) -> Result<usize> {
        let now = self.now.as_micros();
        let seqs = self
            .conn
            .prepare_cached(LAPSED)?
            .query_map(params![now, value::bound(limits::SWEEP_ROWS)], |row| row.get::<_, i64>(0))?
            .collect::<Result<Vec<_>>>()?;
        for seq in &seqs {
            let stored = match find_by_seq(self.conn, *seq) {
                Err(error) if is_unreadable(&error) => {
                    self.set_running_aside(*seq, &error)?;
                    continue;
                }
                found => found?,
            };
            let Some(stored) = stored else { continue };
            let Some(transition) = lapse(&stored.job, self.memory.epoch, self.now) else { continue };
            self.enter(stored, transition)?;
        }
        Ok(seqs.len())
    }

    fn line_up(&mut self) -> Result<usize> {
        let last: Option<(i64, i64)> = self
            .conn
            .prepare_cached(LAST_DUE)?
            .query_row(params![self.now.as_micros(), value::bound(limits::SWEEP_ROWS)], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()?;
        let Some(last) = last else { return Ok(0) };
        let counts = self
            .conn
            .prepare_cached(COUNT_DUE)?
            .query_map(last, |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<Vec<(i64, i64)>>>()?;
        for (lane, jobs) in counts {
            self.memory.lanes.count(lane, StateName::Scheduled, -jobs)?;
            self.memory.lanes.count(lane, StateName::Queued, jobs)?;
        }
        let moved = self.conn.prepare_cached(INTO_LINE)?.execute(last)?;
        self.conn.prepare_cached(OUT_OF_DIARY)?.execute(last)?;
        Ok(moved)
    }
}
