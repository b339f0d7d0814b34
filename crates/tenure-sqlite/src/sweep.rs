//! What time alone brings, in bounded steps: leases that lapse, jobs that come due.

use std::time::Duration;

use rusqlite::{OptionalExtension, Result, params};
use tenure_core::{StateName, Timestamp, lapse, limits};

use crate::fault::is_unreadable;
use crate::rows::row_of;
use crate::value;
use crate::writing::Writing;

pub(crate) const FIRST_LAPSE: &str = "SELECT lapse FROM standing WHERE state = 1 ORDER BY lapse LIMIT 1";
pub(crate) const LAPSED: &str =
    "SELECT seq FROM standing WHERE state = 1 AND lapse <= ?1 ORDER BY lapse LIMIT ?2 + 0";
pub(crate) const FIRST_LATER: &str = "SELECT due FROM later ORDER BY due LIMIT 1";
pub(crate) const LAST_DUE: &str = "SELECT due, seq FROM
     (SELECT due, seq FROM later WHERE due <= ?1 ORDER BY due, seq LIMIT ?2 + 0) ORDER BY due DESC, seq DESC LIMIT 1";
pub(crate) const COUNT_DUE: &str =
    "SELECT lane, singly, count(*) FROM later WHERE (due, seq) <= (?1, ?2) GROUP BY lane, singly";
pub(crate) const INTO_LINE: &str = "INSERT INTO ready (lane, priority, round, due, seq, begun)
     SELECT lane, priority, 0, due, seq, begun FROM later
     WHERE (due, seq) <= (?1, ?2) AND singly = 0 AND lane NOT IN (SELECT value FROM json_each(?3))";
/// Those that are given their places one by one, in the order in which they came due.
pub(crate) const SINGLY: &str = "SELECT seq, lane, priority, begun FROM later
     WHERE (due, seq) <= (?1, ?2) AND (singly OR lane IN (SELECT value FROM json_each(?3))) ORDER BY due, seq";
/// The lanes of those that have a share.
pub(crate) const SHARED: &str = "SELECT l.lane FROM later l CROSS JOIN job j ON j.seq = l.seq
     WHERE (l.due, l.seq) <= (?1, ?2) AND l.singly
         AND CASE WHEN json_valid(j.terms) THEN j.terms ->> '$.share' END IS NOT NULL";
pub(crate) const OUT_OF_DIARY: &str = "DELETE FROM later WHERE (due, seq) <= (?1, ?2)";

/// What a sweep did.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Swept {
    pub lapsed: usize,
    /// Jobs that came due, and jobs for which others have ended.
    pub due: usize,
    /// Whether a bound stopped it.
    pub more: bool,
}

/// A job that came due and is given its place by itself.
struct CameDue {
    seq: i64,
    lane: i64,
    priority: i64,
    begun: bool,
}

impl Writing<'_> {
    /// Notices what has ended, takes lapsed jobs from their holders, gives jobs that came due their places,
    /// and notices where time has made room.
    pub(crate) fn sweep(&mut self) -> Result<Swept> {
        let freed = self.notice_ended()?;
        let (lapsed, due) = (self.take_lapsed()?, self.line_up()?);
        let grown = self.notice_room()?;
        let is_cut_short = [lapsed, due, grown].into_iter().any(|rows| rows >= limits::SWEEP_ROWS);
        let more = is_cut_short || self.has_unnoticed()?;
        if lapsed + due > 0 {
            self.news.due = true;
        }
        Ok(Swept { lapsed, due: due + freed, more })
    }

    /// The next instant at which something comes due or lapses, or time makes room.
    pub(crate) fn next_due(&mut self) -> Result<Option<Timestamp>> {
        if self.has_unnoticed()? || self.memory.set_back.is_unfinished() {
            return Ok(Some(self.now));
        }
        let first = |sql| -> Result<Option<Timestamp>> {
            self.conn.prepare_cached(sql)?.query_row([], |row| value::nearest_instant(row, 0)).optional()
        };
        let next = first(FIRST_LAPSE)?.into_iter().chain(first(FIRST_LATER)?);
        let room = self.memory.keyed.first_grows(self.conn)?.into_iter().chain(self.first_room_in_queues()?);
        // What a bounded sweep left behind is due already: whoever asks again gets it at once.
        Ok(next.chain(room).min().map(|at| at.max(self.now.after(Duration::from_micros(1)))))
    }

    fn take_lapsed(&mut self) -> Result<usize> {
        let now = self.now.as_micros();
        let seqs = self
            .conn
            .prepare_cached(LAPSED)?
            .query_map(params![now, value::bound(limits::SWEEP_ROWS)], |row| row.get::<_, i64>(0))?
            .collect::<Result<Vec<_>>>()?;
        for seq in &seqs {
            let stored = match row_of(self.conn, *seq) {
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
            .query_map(last, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
            .collect::<Result<Vec<(i64, bool, i64)>>>()?;
        let fair = self.fair_lanes(last, &counts)?;
        let mut moved = 0;
        for (lane, is_single, jobs) in &counts {
            moved += usize::try_from(*jobs).unwrap_or(0);
            self.memory.lanes.count(*lane, StateName::Scheduled, -jobs)?;
            if !is_single && !fair.contains(lane) {
                self.memory.lanes.count(*lane, StateName::Queued, *jobs)?;
            }
        }
        let some_singly = !fair.is_empty() || counts.iter().any(|(_, is_single, _)| *is_single);
        let fair = value::to_json(&fair)?;
        let singly = if some_singly { self.came_due_singly(last, &fair)? } else { Vec::new() };
        let (due, seq) = last;
        self.conn.prepare_cached(INTO_LINE)?.execute(params![due, seq, fair])?;
        self.conn.prepare_cached(OUT_OF_DIARY)?.execute(last)?;
        for job in &singly {
            self.line_up_singly(job)?;
        }
        Ok(moved)
    }

    /// The lanes of queues that are fair, or become so by a job that came due. There, jobs join one by one, for
    /// their order is not that of their due alone, and those that join before their queue is fair differ.
    fn fair_lanes(&self, last: (i64, i64), counts: &[(i64, bool, i64)]) -> Result<Vec<i64>> {
        let mut fair = self.memory.lanes.all_fair();
        if counts.iter().any(|(_, is_single, _)| *is_single) {
            let mut shared = self.conn.prepare_cached(SHARED)?;
            let shared = shared.query_map(last, |row| row.get(0))?.collect::<Result<Vec<i64>>>()?;
            for lane in shared {
                if !fair.contains(&lane) {
                    fair.extend(self.memory.lanes.of_queue(&self.memory.lanes.get(lane)?.queue, |_| true));
                }
            }
        }
        Ok(fair)
    }

    fn came_due_singly(&self, (due, seq): (i64, i64), fair: &str) -> Result<Vec<CameDue>> {
        self.conn
            .prepare_cached(SINGLY)?
            .query_map(params![due, seq, fair], |row| {
                let (seq, lane) = (row.get(0)?, row.get(1)?);
                Ok(CameDue { seq, lane, priority: row.get(2)?, begun: row.get(3)? })
            })?
            .collect()
    }

    /// Gives a job, which has been taken out of the diary, the place that its keys allow.
    fn line_up_singly(&mut self, job: &CameDue) -> Result<()> {
        match row_of(self.conn, job.seq) {
            Ok(Some(stored)) => {
                self.leave_stand(&stored)?;
                self.place(&stored, stored.job.state.due().unwrap_or(self.now))?;
                self.settle_keys()
            }
            Ok(None) => Ok(()),
            Err(error) if is_unreadable(&error) => {
                self.put_in_diary_aside(job.lane, job.priority, job.seq, job.begun, &error)
            }
            Err(error) => Err(error),
        }
    }
}
