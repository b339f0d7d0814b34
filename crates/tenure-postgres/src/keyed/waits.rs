//! Jobs that wait for others.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{AfterJobs, Cancel, End, JobId, Noticed, State};
use tenure_store::Fault;
use tokio_postgres::Row;

use crate::aside::Odd;
use crate::fault::is_unreadable;
use crate::query::Query;
use crate::rows::{self, Kept, Stored};
use crate::writing::Writing;
use crate::{code, value};

const WAIT: &str = "INSERT INTO dependency (other, waiter) VALUES ($1, $2) ON CONFLICT DO NOTHING";
/// A job for which another waits has a standing, which tells whoever ends it.
const AWAIT: &str =
    "WITH first AS (INSERT INTO standing (seq, fence, lane, attempt, delivery, why, state, awaited)
         VALUES ($1, 0, $2, 0, 0, 0, 0, true) ON CONFLICT (seq) DO UPDATE SET awaited = true),
     line AS (UPDATE ready SET begun = true
         WHERE lane = $2 AND priority = $3 AND round = $4 AND due = $5 AND seq = $1 AND NOT begun),
     diary AS (UPDATE later SET begun = true WHERE due = $5 AND seq = $1 AND NOT begun)
     UPDATE keyed SET begun = true WHERE seq = $1 AND NOT begun";
const ENDED: &str = "INSERT INTO ending (seq, id, state)
     SELECT $1::bigint, $2::uuid, $3::smallint WHERE EXISTS (SELECT FROM dependency WHERE other = $1)
     ON CONFLICT (seq) DO UPDATE SET state = excluded.state, again = excluded.again";
const GOES_ON: &str = "DELETE FROM ending WHERE seq = $1";
/// The waits of a job that ends, and what was to be told to it alone.
const FORGET_WAITER: &str = "WITH gone AS (DELETE FROM dependency WHERE ctid = ANY (ARRAY(
         SELECT ctid FROM dependency WHERE waiter = $1)) RETURNING other)
     DELETE FROM ending WHERE seq = ANY (ARRAY(SELECT other FROM gone))
         AND NOT EXISTS (SELECT FROM dependency WHERE other = ending.seq AND waiter <> $1 OFFSET 0)";
const FORGET: &str = "DELETE FROM dependency WHERE waiter = $1 AND other = $2";
const TOLD: &str =
    "DELETE FROM ending WHERE NOT EXISTS (SELECT FROM dependency WHERE other = ending.seq OFFSET 0)";
const OVER: &str = "SELECT e.seq, e.id, e.state, d.waiter, k.id FROM ending e
     CROSS JOIN LATERAL (SELECT waiter FROM dependency WHERE other = e.seq ORDER BY waiter LIMIT $1) d
     CROSS JOIN LATERAL (SELECT id FROM keyed WHERE seq = d.waiter LIMIT 1) k
     WHERE e.again <= $2 ORDER BY e.seq, d.waiter LIMIT $1";
const WAITS: &str = "SELECT d.waiter, d.other FROM unnest($1::bigint[]) u (waiter)
     CROSS JOIN LATERAL (SELECT waiter, other FROM dependency WHERE waiter = u.waiter OFFSET 0) d";

/// A wait that is over.
struct Over {
    other: i64,
    id: JobId,
    end: Option<End>,
    waiter: i64,
    waiter_id: JobId,
}

impl Writing<'_> {
    /// Notes for which jobs a new one waits. It is written, and stands nowhere yet.
    pub(crate) async fn let_wait(&mut self, stored: &Stored) -> Result<(), Fault> {
        let Some(after) = stored.job.terms.after.clone() else { return Ok(()) };
        let waiter = value::signed(stored.job.seq);
        self.keep_for(&stored.job)?;
        let mut reads = rows::lock(&after.jobs);
        // Each once, however often it is named: it is moved to a standing once.
        reads.push(rows::by_ids(after.jobs.iter().copied().collect::<BTreeSet<_>>()));
        let read = self.read(reads).await?;
        for row in read.last().into_iter().flatten() {
            let other = match rows::stored(row) {
                Ok(other) => other,
                // A role that may enqueue can name any job. A program that can read this one ends it later, or a repair
                // removes it.
                Err(fault) if is_unreadable(&fault) => {
                    self.wait_for_odd(waiter, row, &after)?;
                    continue;
                }
                Err(fault) => return Err(fault),
            };
            let id = other.job.id;
            let end = end_of(&other);
            match end.map(|end| after.noticed(id, Some(end), self.now)) {
                Some(Noticed::Ended) => continue,
                Some(Noticed::Cancels(_)) => self.news.due = true,
                None => {}
            }
            // Also one that has ended: it may be done again before anybody looks.
            self.wait_for(waiter, &other)?;
        }
        Ok(())
    }

    /// Makes a job wait for one that this version cannot read, unless the end of that one already satisfies the wait.
    fn wait_for_odd(&mut self, waiter: i64, row: &Row, after: &AfterJobs) -> Result<(), Fault> {
        let (odd, state): (Odd, Option<i16>) = (Odd::of(row), row.get(10));
        let end = state.and_then(|state| code::end(Some(state)).ok().flatten());
        let id = value::job_id(row, 1);
        match end.map(|end| after.noticed(id, Some(end), self.now)) {
            Some(Noticed::Ended) => return Ok(()),
            Some(Noticed::Cancels(_)) => self.news.due = true,
            None => {}
        }
        self.stand_alone(odd)?;
        let (lane, priority, due): (i32, i16, i64) = (row.get(4), row.get(5), row.get(6));
        let round: Option<i64> = row.get(28);
        let mark = Query::new(AWAIT).with(odd.seq).with(lane).with(priority);
        self.write(mark.with(round.unwrap_or(0)).with(due))?;
        self.write(Query::new(WAIT).with(odd.seq).with(waiter))?;
        end.map_or(Ok(()), |end| self.note_end(odd.seq, id, Some(end)))
    }

    /// Notes that a job waits for this other one, and if that one has ended, that somebody has to look.
    pub(crate) fn wait_for(&mut self, waiter: i64, other: &Stored) -> Result<(), Fault> {
        let seq = value::signed(other.job.seq);
        if matches!(other.kept, Kept::InGrant | Kept::InReceipt) {
            self.sheet.leaves_others(other);
            self.sheet.standing(other);
        }
        let due = other.job.state.due().unwrap_or(other.job.created);
        let mark = Query::new(AWAIT)
            .with(seq)
            .with(other.lane)
            .with(value::of_priority(other.job.priority))
            .with(other.ties.round.unwrap_or(0))
            .with(due.as_micros());
        self.write(mark)?;
        self.write(Query::new(WAIT).with(seq).with(waiter))?;
        match end_of(other) {
            Some(end) => self.note_end(seq, other.job.id, Some(end)),
            None => Ok(()),
        }
    }

    fn note_end(&mut self, seq: i64, id: JobId, end: Option<End>) -> Result<(), Fault> {
        let ended = Query::new(ENDED).with(seq).with(value::of_job(id));
        self.write(ended.with(end.map(code::of_end)))
    }

    /// Notes that an unfinished job has ended so, or was removed before it had.
    pub(crate) fn no_more_waits(&mut self, stored: &Stored, end: Option<End>) -> Result<(), Fault> {
        let seq = value::signed(stored.job.seq);
        if stored.job.terms.after.is_some() {
            self.write(Query::new(FORGET_WAITER).with(seq))?;
        }
        self.keep_no_more_for(&stored.job)?;
        if stored.ties.awaited {
            self.news.due = true;
            self.note_end(seq, stored.job.id, end)?;
        }
        Ok(())
    }

    /// Notes that a job is done again: who has not gone on without it waits for it again.
    pub(crate) fn goes_on(&mut self, stored: &Stored) -> Result<(), Fault> {
        if !stored.ties.awaited {
            return Ok(());
        }
        self.write(Query::new(GOES_ON).with(value::signed(stored.job.seq)))
    }

    /// Notices what has ended since the last turn, for up to so many that wait; answers how many of them wait no more.
    /// What ends by that is for the next turn.
    pub(super) async fn notice_ended(&mut self, at_most: usize) -> Result<usize, Fault> {
        let read =
            self.read(vec![Query::new(OVER).with(value::bound(at_most)).with(self.now.as_micros())]).await?;
        let mut over = Vec::new();
        for row in read.iter().flatten() {
            match self::over(row) {
                Ok(one) => over.push(one),
                Err(fault) => self.set_ending_aside(row.get(0), &fault)?,
            }
        }
        if over.is_empty() {
            self.write(Query::new(TOLD))?;
            return Ok(0);
        }
        let waiters: BTreeSet<i64> = over.iter().map(|over| over.waiter).collect();
        let ids = over.iter().map(|over| over.waiter_id);
        let ids: BTreeSet<JobId> = ids.collect();
        let reads = vec![Query::new(WAITS).with(Vec::from_iter(waiters)), rows::by_ids(ids)];
        let read = self.read(reads).await?;
        let mut waits: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
        for row in read.first().into_iter().flatten() {
            waits.entry(row.get(0)).or_default().insert(row.get(1));
        }
        let (mut jobs, mut odd) = (BTreeMap::new(), BTreeMap::new());
        for row in read.last().into_iter().flatten() {
            match self.found(row).await? {
                Ok(stored) => _ = jobs.insert(value::signed(stored.job.seq), stored),
                Err(fault) => _ = odd.insert(Odd::of(row).seq, fault),
            }
        }
        let mut free = 0;
        for over in over {
            if let Some(fault) = odd.get(&over.waiter) {
                self.set_ending_aside(over.other, fault)?;
            }
            let Some(others) = waits.get_mut(&over.waiter) else { continue };
            let Some(after) = jobs.get(&over.waiter).and_then(|stored| stored.job.terms.after.clone()) else {
                continue;
            };
            match after.noticed(over.id, over.end, self.now) {
                Noticed::Cancels(request) => {
                    waits.remove(&over.waiter);
                    free += 1;
                    let Some(stored) = jobs.remove(&over.waiter) else { continue };
                    if let Cancel::Ends(transition) = Cancel::decide(&stored.job, request) {
                        self.enter(stored, *transition).await?;
                    }
                }
                Noticed::Ended => {
                    others.remove(&over.other);
                    self.write(Query::new(FORGET).with(over.waiter).with(over.other))?;
                    if others.is_empty() {
                        waits.remove(&over.waiter);
                        free += 1;
                        if let Some(stored) = jobs.remove(&over.waiter) {
                            self.stand_again(stored).await?;
                        }
                    }
                }
            }
        }
        self.write(Query::new(TOLD))?;
        Ok(free)
    }
}

fn over(row: &Row) -> Result<Over, Fault> {
    let end = code::end(row.get(2))?;
    let (id, waiter_id) = (value::job_id(row, 1), value::job_id(row, 4));
    Ok(Over { other: row.get(0), id, end, waiter: row.get(3), waiter_id })
}

pub(super) fn end_of(stored: &Stored) -> Option<End> {
    match stored.job.state {
        State::Finished { end, .. } => Some(end),
        State::Waiting { .. } | State::Blocked { .. } | State::Running { .. } => None,
    }
}

#[cfg(test)]
pub(crate) const STATEMENTS: [&str; 8] = [AWAIT, ENDED, GOES_ON, FORGET_WAITER, FORGET, TOLD, OVER, WAITS];
