//! Granting due jobs.
//!
//! A lane's jobs are claimed as the first stretch of its line: read it, begin the standings of the
//! whole stretch, cut it off. With several lanes the stretches are merged first, so that each lane is
//! cut behind its last job that is wanted.

use rusqlite::{CachedStatement, Error, OptionalExtension, Result, Row, params};
use tenure_core::{Args, Fence, Job, Reserved, State, StateName, Timestamp, Why, limits};
use tenure_store::{Happening, Kinds, Reservation, Reserve, Want};

use crate::fault::is_unreadable;
use crate::merge::merge;
use crate::value;
use crate::writing::Writing;

// Here and elsewhere, a bound is `LIMIT ?1 + 0`: after a bare parameter SQLite looks at its value when it
// prepares a statement, and prepares it anew at each use.

/// A place in a lane's line: priority, due, seq.
pub(crate) type Place = (i64, i64, i64);

pub(crate) const LINE: &str = "SELECT r.priority, r.due, r.seq, r.begun, j.id, j.created, j.terms, j.args
     FROM ready r CROSS JOIN job j ON j.seq = r.seq
     WHERE r.lane = ?1 AND r.due <= ?2 ORDER BY r.priority, r.due, r.seq LIMIT ?3 + 0";
pub(crate) const PLACES: &str = "SELECT priority, due, seq FROM ready
     WHERE lane = ?1 AND due <= ?2 AND (priority, due, seq) > (?3, ?4, ?5)
     ORDER BY priority, due, seq LIMIT ?6 + 0";
pub(crate) const BEGIN: &str = "INSERT INTO standing
         (seq, lane, state, fence, attempt, delivery, due, until, lapse, started, holder)
     SELECT seq, lane, 1, ?6 + 1, 1, 1, due, ?7, ?7, ?5, ?8 FROM ready
     WHERE lane = ?1 AND (priority, due, seq) <= (?2, ?3, ?4) AND due <= ?5
     ON CONFLICT (seq) DO UPDATE SET state = 1, fence = max(fence, ?6) + 1, attempt = attempt + 1,
         delivery = delivery + 1, why = NULL, due = excluded.due, until = excluded.until, lapse = excluded.lapse,
         started = excluded.started, holder = excluded.holder, progress = NULL";
pub(crate) const CUT: &str =
    "DELETE FROM ready WHERE lane = ?1 AND (priority, due, seq) <= (?2, ?3, ?4) AND due <= ?5";
const BEGUN: &str = "SELECT fence, attempt, delivery, failure FROM standing WHERE seq = ?1";

/// What a job that has been claimed before brings along.
struct Begun {
    fence: Fence,
    attempt: u32,
    delivery: u32,
    failure: Option<tenure_core::Failure>,
}

impl Writing<'_> {
    /// Sweeps, then grants what is wanted.
    pub(crate) fn reserve(&mut self, ask: &Reserve) -> Result<Reservation> {
        self.sweep()?;
        let mut left = ask.at_most.min(limits::RESERVE_JOBS);
        let mut jobs = Vec::new();
        for want in &ask.wants {
            if left == 0 {
                break;
            }
            let before = jobs.len();
            self.grant_wanted(ask, want, left.min(want.at_most), &mut jobs)?;
            left -= jobs.len() - before;
        }
        Ok(Reservation { jobs, next_due: self.next_due()? })
    }

    fn grant_wanted(
        &mut self,
        ask: &Reserve,
        want: &Want,
        at_most: usize,
        jobs: &mut Vec<Reserved>,
    ) -> Result<()> {
        if at_most == 0 || self.memory.lanes.is_paused(&want.queue) {
            return Ok(());
        }
        let lanes = match &want.kinds {
            Kinds::All => self.memory.lanes.of_queue(&want.queue, |_| true),
            Kinds::Only(_) => self.memory.lanes.of_queue(&want.queue, |kind| want.kinds.take(kind)),
        };
        if let [lane] = lanes[..] {
            return self.grant_stretch(ask, lane, at_most, jobs);
        }
        let before = jobs.len();
        let (conn, now) = (self.conn, self.now.as_micros());
        let stretches = merge(&lanes, at_most, |lane, behind: Option<Place>, most| {
            // No priority is as small as this: a line is read from its head.
            let (priority, due, seq) = behind.unwrap_or((i64::MIN, 0, 0));
            conn.prepare_cached(PLACES)?
                .query_map(params![lane, now, priority, due, seq, value::bound(most)], |row| {
                    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
                })?
                .collect()
        })?;
        for (lane, length) in stretches {
            self.grant_stretch(ask, lane, length, jobs)?;
        }
        jobs[before..].sort_by_key(|granted| {
            let job = granted.job();
            (job.priority, job.state.due(), job.seq)
        });
        Ok(())
    }

    /// Grants the first jobs of one lane, past those that cannot be read.
    fn grant_stretch(
        &mut self,
        ask: &Reserve,
        lane: i64,
        at_most: usize,
        jobs: &mut Vec<Reserved>,
    ) -> Result<()> {
        let before = jobs.len();
        for _ in 0..limits::RESERVE_JOBS {
            let left = at_most - (jobs.len() - before);
            let Some((place, error)) = self.grant_readable(ask, lane, left, jobs)? else { return Ok(()) };
            self.set_waiting_aside(lane, place, &error)?;
        }
        Ok(())
    }

    /// Grants the first jobs of one lane, up to one that cannot be read; answers where that is.
    fn grant_readable(
        &mut self,
        ask: &Reserve,
        lane: i64,
        at_most: usize,
        jobs: &mut Vec<Reserved>,
    ) -> Result<Option<(Place, Error)>> {
        let (now, until) = (self.now, self.now.after(ask.ttl));
        let (before, mut last, mut unread) = (jobs.len(), None, None);
        {
            let mut line = self.conn.prepare_cached(LINE)?;
            let mut begun = self.conn.prepare_cached(BEGUN)?;
            let mut rows = line.query(params![lane, now.as_micros(), value::bound(at_most)])?;
            let place = self.memory.lanes.get(lane)?;
            while let Some(row) = rows.next()? {
                let here = (row.get(0)?, row.get(1)?, row.get(2)?);
                let job = match waiting(row, place, &mut begun) {
                    Ok(job) => job.granted(ask.holder, self.memory.epoch, now, until),
                    Err(error) if is_unreadable(&error) => {
                        unread = Some((here, error));
                        break;
                    }
                    Err(error) => return Err(error),
                };
                if job.terms.unique.is_none() {
                    self.memory.grants.remember(job.seq, job.fence, job.id, lane);
                }
                last = Some(here);
                jobs.push(Reserved::granted(job));
            }
        }
        let Some((priority, due, seq)) = last else { return Ok(unread) };
        let floor = self.fence_floor();
        let (now, until) = (now.as_micros(), until.as_micros());
        self.conn.prepare_cached(BEGIN)?.execute(params![
            lane,
            priority,
            due,
            seq,
            now,
            floor,
            until,
            ask.holder.as_bytes()
        ])?;
        self.conn.prepare_cached(CUT)?.execute([lane, priority, due, seq, now])?;
        let granted = jobs.len() - before;
        self.memory.lanes.count(lane, StateName::Queued, -value::bound(granted))?;
        self.memory.lanes.count(lane, StateName::Running, value::bound(granted))?;
        if self.news.is_heard {
            for granted in &jobs[before..] {
                let (id, attempt) = (granted.job().id, granted.job().attempt);
                self.tell(lane, id, || Happening::Started { attempt })?;
            }
        }
        Ok(unread)
    }
}

/// The waiting job of a row of [`LINE`].
fn waiting(row: &Row<'_>, lane: &crate::lanes::Lane, begun: &mut CachedStatement<'_>) -> Result<Job> {
    let seq: i64 = row.get(2)?;
    let begun = if row.get(3)? { begun.query_row([seq], read_begun).optional()? } else { None };
    let (fence, attempt, delivery, failure) = match begun {
        Some(begun) => (begun.fence, begun.attempt, begun.delivery, begun.failure),
        None => (Fence::NONE, 0, 0, None),
    };
    let due: Timestamp = value::instant(row, 1)?;
    Ok(Job {
        id: value::job_id(row, 4)?,
        seq: value::seq(seq)?,
        kind: lane.kind.clone(),
        queue: lane.queue.clone(),
        args: Args::stored(row.get_ref(7)?.as_blob()?),
        priority: value::priority(row.get(0)?)?,
        created: value::instant(row, 5)?,
        terms: value::terms(row, 6)?.unwrap_or_default(),
        state: State::Waiting { due, why: Why::Enqueued },
        attempt,
        delivery,
        fence,
        holder: None,
        started: None,
        cancel: None,
        progress: None,
        failure,
        output: None,
        expires: None,
    })
}

fn read_begun(row: &Row<'_>) -> Result<Begun> {
    Ok(Begun {
        fence: value::fence(row.get(0)?)?,
        attempt: value::number(row.get(1)?)?,
        delivery: value::number(row.get(2)?)?,
        failure: value::maybe_json(row, 3)?,
    })
}
