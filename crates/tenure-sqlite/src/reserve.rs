//! Granting due jobs.
//!
//! A lane's jobs are claimed as the first stretch of its line: read it, begin the standings of the
//! whole stretch, cut it off. With several lanes the stretches are merged first, so that each lane is
//! cut behind its last job that is wanted.

use rusqlite::{CachedStatement, Error, OptionalExtension, Result, Row, params};
use tenure_core::{Args, Fence, Job, Reserved, State, StateName, Timestamp, Why, limits};
use tenure_store::{Happening, Kinds, Reservation, Reserve, Want};

use crate::fault::is_unreadable;
use crate::grants::Grant;
use crate::merge::merge;
use crate::taken::Taken;
use crate::value;
use crate::writing::Writing;

// Here and elsewhere, a bound is `LIMIT ?1 + 0`: after a bare parameter SQLite looks at its value when it
// prepares a statement, and prepares it anew at each use, unless it is told to keep its plans (connection.rs).

/// A place in a lane's line: priority, round, due, seq.
pub(crate) type Place = (i64, i64, i64, i64);

pub(crate) const LINE: &str =
    "SELECT r.priority, r.due, r.seq, r.begun, j.id, j.created, j.terms, j.args, r.round, r.limit_id
     FROM ready r CROSS JOIN job j ON j.seq = r.seq
     WHERE r.lane = ?1 AND r.due <= ?2 ORDER BY r.priority, r.round, r.due, r.seq LIMIT ?3 + 0";
pub(crate) const PLACES: &str = "SELECT priority, round, due, seq, limit_id FROM ready
     WHERE lane = ?1 AND due <= ?2 AND (priority, round, due, seq) > (?3, ?4, ?5, ?6)
     ORDER BY priority, round, due, seq LIMIT ?7 + 0";
macro_rules! begin {
    ($last_fence:literal) => {
        concat!(
            "INSERT INTO standing
                 (seq, lane, state, fence, attempt, delivery, due, until, lapse, started, holder, limit_id)
             SELECT seq, lane, 1, ?7 + 1, 1, 1, due, ?8, ?8, ?6, ?9, limit_id FROM ready
             WHERE lane = ?1 AND (priority, round, due, seq) <= (?2, ?3, ?4, ?5) AND due <= ?6
             ON CONFLICT (seq) DO UPDATE SET state = 1, fence = ",
            $last_fence,
            " + 1, attempt = attempt + 1, delivery = delivery + 1, why = NULL, due = excluded.due,
                 until = excluded.until, lapse = excluded.lapse, started = excluded.started,
                 holder = excluded.holder, progress = NULL, limit_id = excluded.limit_id"
        )
    };
}

pub(crate) const BEGIN: &str =
    if cfg!(mutant = "sqlite-claim-below-epoch") { begin!("fence") } else { begin!("max(fence, ?7)") };
pub(crate) const CUT: &str = "DELETE FROM ready
     WHERE lane = ?1 AND (priority, round, due, seq) <= (?2, ?3, ?4, ?5) AND due <= ?6";
pub(crate) const LEFT: &str =
    "SELECT 1 FROM ready WHERE lane = ?1 AND (priority, round, due, seq) <= (?2, ?3, ?4, ?5) LIMIT 1";
const BEGUN: &str = "SELECT fence, attempt, delivery, failure FROM standing WHERE seq = ?1";

/// What a job that has been claimed before brings along.
struct Begun {
    fence: Fence,
    attempt: u32,
    delivery: u32,
    failure: Option<tenure_core::Failure>,
}

/// What has been granted of one want.
#[derive(Debug, Default)]
struct Granted {
    jobs: Vec<Reserved>,
    /// The place that each of them had.
    places: Vec<Place>,
}

/// Why a stretch ended before its length.
enum Stop {
    /// The row there cannot be read.
    Unreadable(Place, Error),
    /// A limit has no room for the next job: it has to leave the line.
    NoRoom,
    /// The limit of the next job cannot be read: nothing behind it can be had.
    UnreadableLimit,
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
            let granted = self.grant_wanted(ask, want, left.min(want.at_most))?;
            left -= granted.len();
            jobs.extend(granted);
        }
        Ok(Reservation { jobs, due_in: self.next_due()?.map(|due| due.since(self.now)) })
    }

    fn grant_wanted(&mut self, ask: &Reserve, want: &Want, at_most: usize) -> Result<Vec<Reserved>> {
        if at_most == 0 || self.memory.lanes.is_paused(&want.queue) {
            return Ok(Vec::new());
        }
        let at_most = self.room_in_queue(&want.queue, at_most)?;
        let lanes = match &want.kinds {
            Kinds::All => self.memory.lanes.of_queue(&want.queue, |_| true),
            Kinds::Only(_) => self.memory.lanes.of_queue(&want.queue, |kind| want.kinds.take(kind)),
        };
        let mut granted = Granted { jobs: Vec::with_capacity(at_most), places: Vec::new() };
        // Each time but the last something was in the way and has been taken out of it.
        for _ in 0..limits::RESERVE_JOBS {
            let left = at_most - granted.jobs.len();
            if left == 0 || !self.grant_first(ask, &lanes, left, &mut granted)? {
                break;
            }
        }
        self.granted_in_queue(&want.queue, granted.jobs.len())?;
        if lanes.len() > 1 {
            return Ok(granted.in_order());
        }
        Ok(granted.jobs)
    }

    /// Grants the first jobs of these lanes; answers whether there may be more of them than were granted.
    fn grant_first(
        &mut self,
        ask: &Reserve,
        lanes: &[i64],
        at_most: usize,
        granted: &mut Granted,
    ) -> Result<bool> {
        self.write_line()?;
        let stretches = match lanes {
            [lane] => vec![(*lane, at_most)],
            _ => self.first_of(lanes, at_most)?,
        };
        let mut is_cut_short = false;
        for (lane, length) in stretches {
            match self.grant_stretch(ask, lane, length, granted)? {
                Some(Stop::Unreadable(place, error)) => {
                    self.set_waiting_aside(lane, place, &error)?;
                    is_cut_short = true;
                }
                Some(Stop::NoRoom) => is_cut_short = true,
                Some(Stop::UnreadableLimit) | None => {}
            }
        }
        // A limit of which jobs were granted has less room in all other lanes.
        self.settle_keys()?;
        Ok(is_cut_short)
    }

    /// How long the stretches are that hold the first jobs of several lanes. Each lane shows as many jobs of a
    /// limit as there is room for; those beyond what all lanes together may have leave their lines.
    fn first_of(&mut self, lanes: &[i64], at_most: usize) -> Result<Vec<(i64, usize)>> {
        let (conn, now) = (self.conn, self.now.as_micros());
        let mut taken = Taken::default();
        let read = |lane, behind: Option<(Place, Option<i64>)>, most| {
            // No priority is as small as this: a line is read from its head.
            let (priority, round, due, seq) = behind.map_or((i64::MIN, 0, 0, 0), |(place, _)| place);
            conn.prepare_cached(PLACES)?
                .query_map(params![lane, now, priority, round, due, seq, value::bound(most)], |row| {
                    Ok(((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?), row.get(4)?))
                })?
                .collect()
        };
        let admit = |lane, (place, limit): (Place, Option<i64>)| match limit {
            Some(limit) => {
                let Ok(limit_row) = self.readable_limit(limit)? else { return Ok(false) };
                let room = limit_row.meter().room(self.now);
                Ok(taken.take(limit, lane, place, room))
            }
            None => Ok(true),
        };
        let stretches = merge(lanes, at_most, read, admit)?;
        for limit in &taken.surplus {
            for (lane, queued) in self.limit(*limit)?.queued() {
                // By a clock that was put back, some of those before the last that is taken may not be due.
                let surplus = match taken.last_of(*limit, lane) {
                    Some(last) => self.queued_behind(*limit, lane, last)?,
                    None => queued,
                };
                if surplus > 0 {
                    self.push_out(*limit, lane, surplus)?;
                }
            }
        }
        Ok(stretches)
    }

    /// Grants the first jobs of one lane, up to one that is in the way.
    fn grant_stretch(
        &mut self,
        ask: &Reserve,
        lane: i64,
        at_most: usize,
        granted: &mut Granted,
    ) -> Result<Option<Stop>> {
        let (now, until) = (self.now, self.now.after(ask.ttl));
        let (before, mut last, mut stop) = (granted.jobs.len(), None, None);
        let (mut taken, mut limited) = (Taken::default(), Vec::new());
        {
            let mut line = self.conn.prepare_cached(LINE)?;
            let mut begun = self.conn.prepare_cached(BEGUN)?;
            let mut rows = line.query(params![lane, now.as_micros(), value::bound(at_most)])?;
            while let Some(row) = rows.next()? {
                let here = (row.get(0)?, row.get(8)?, row.get(1)?, row.get(2)?);
                let job = match waiting(row, self.memory.lanes.get(lane)?, &mut begun) {
                    Ok(job) => job.granted(ask.holder, self.memory.epoch, now, until),
                    Err(error) if is_unreadable(&error) => {
                        stop = Some(Stop::Unreadable(here, error));
                        break;
                    }
                    Err(error) => return Err(error),
                };
                let limit: Option<i64> = row.get(9)?;
                if let Some(limit) = limit {
                    let room = match self.readable_limit(limit)? {
                        Ok(limit) => limit.meter().room(now),
                        Err(error) => {
                            tracing::error!(limit, %error, "an unreadable limit holds up its jobs; update this program");
                            stop = Some(Stop::UnreadableLimit);
                            break;
                        }
                    };
                    if !taken.take(limit, lane, here, room) {
                        self.touch_limit(limit)?;
                        stop = Some(Stop::NoRoom);
                        break;
                    }
                    limited.push((limit, here));
                }
                self.remember(&job, lane, limit)?;
                last = Some(here);
                granted.places.push(here);
                granted.jobs.push(Reserved::granted(job));
            }
        }
        let Some(last) = last else { return Ok(stop) };
        self.cut(ask, lane, last, until)?;
        self.count_granted(lane, &granted.jobs[before..])?;
        if !limited.is_empty() {
            self.granted_in_limits(lane, last, &limited)?;
        }
        Ok(stop)
    }

    /// Notes that these jobs of a lane, up to the last place, were granted under their limits.
    fn granted_in_limits(&mut self, lane: i64, last: Place, limited: &[(i64, Place)]) -> Result<()> {
        let (priority, round, due, seq) = last;
        // A clock that was stepped back leaves some in line that are not due any more.
        let is_passed_wholly = !self.conn.prepare_cached(LEFT)?.exists([lane, priority, round, due, seq])?;
        for (limit, place) in limited {
            self.granted_in_limit(*limit, lane, *place, is_passed_wholly)?;
        }
        Ok(())
    }

    /// Keeps in mind what makes the end of a granted job cheap.
    fn remember(&mut self, job: &Job, lane: i64, limit: Option<i64>) -> Result<()> {
        if job.terms.unique.is_some() {
            return Ok(());
        }
        let chain = match &job.terms.ordering {
            Some(ordering) => self.chain_of(&ordering.key)?,
            None => None,
        };
        let Job { seq, fence, id, .. } = *job;
        let has_needs = job.terms.after.is_some();
        self.memory.grants.remember(Grant { seq, fence, id, lane, limit, chain, has_needs });
        Ok(())
    }

    /// Begins the standings of all jobs of a line up to this place, and takes them out of it.
    fn cut(&self, ask: &Reserve, lane: i64, last: Place, until: Timestamp) -> Result<()> {
        let (priority, round, due, seq) = last;
        let (now, floor) = (self.now.as_micros(), self.fence_floor());
        self.conn.prepare_cached(BEGIN)?.execute(params![
            lane,
            priority,
            round,
            due,
            seq,
            now,
            floor,
            until.as_micros(),
            ask.holder.as_bytes()
        ])?;
        self.conn.prepare_cached(CUT)?.execute([lane, priority, round, due, seq, now])?;
        Ok(())
    }

    fn count_granted(&mut self, lane: i64, granted: &[Reserved]) -> Result<()> {
        let jobs = value::bound(granted.len());
        self.memory.lanes.count(lane, StateName::Queued, -jobs)?;
        self.memory.lanes.count(lane, StateName::Running, jobs)?;
        if self.memory.lanes.is_fair(lane)? {
            self.granted_in_rounds(granted.iter().map(Reserved::job))?;
        }
        if self.is_heard() {
            for granted in granted {
                let (id, attempt) = (granted.job().id, granted.job().attempt);
                self.tell(lane, id, || Happening::Started { attempt })?;
            }
        }
        Ok(())
    }
}

impl Granted {
    /// The jobs of several lanes, in the order in which they stood.
    fn in_order(self) -> Vec<Reserved> {
        let mut placed: Vec<(Place, Reserved)> = self.places.into_iter().zip(self.jobs).collect();
        placed.sort_by_key(|(place, _)| *place);
        placed.into_iter().map(|(_, job)| job).collect()
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
        priority: value::priority(row, 0)?,
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
