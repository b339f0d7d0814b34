//! Jobs that wait for others.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{AfterJobs, Cancel, End, IfFailed, JobId, Noticed, State};
use tenure_store::Fault;
use tokio_postgres::Row;

use crate::aside::Odd;
use crate::fault::is_unreadable;
use crate::query::Query;
use crate::rows::{self, Kept, Stored};
use crate::writing::Writing;
use crate::{code, value};

const WAIT: &str =
    "INSERT INTO dependency (other, waiter, runs_anyway) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
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
const TOLD: &str =
    "DELETE FROM ending WHERE NOT EXISTS (SELECT FROM dependency WHERE other = ending.seq OFFSET 0)";
const OVER: &str = "SELECT e.seq, e.id, e.state, d.waiter, k.id, d.runs_anyway FROM ending e
     CROSS JOIN LATERAL (SELECT waiter, runs_anyway FROM dependency WHERE other = e.seq ORDER BY waiter LIMIT $1) d
     CROSS JOIN LATERAL (SELECT id FROM keyed WHERE seq = d.waiter LIMIT 1) k
     WHERE e.again <= $2 ORDER BY e.seq, d.waiter LIMIT $1";
const END_WAITS: &str = "DELETE FROM dependency WHERE ctid = ANY (ARRAY(SELECT d.ctid
         FROM unnest($1::bigint[], $2::bigint[]) u (other, waiter)
         CROSS JOIN LATERAL (SELECT ctid FROM dependency WHERE other = u.other AND waiter = u.waiter LIMIT 1) d))";
/// The jobs among these that wait for no other.
const FREE: &str = "SELECT u.waiter FROM unnest($1::bigint[]) u (waiter)
     LEFT JOIN LATERAL (SELECT true AS waits FROM dependency WHERE waiter = u.waiter LIMIT 1) d ON true
     WHERE d.waits IS NULL";

/// A wait that is over.
struct Over {
    other: i64,
    id: JobId,
    end: Option<End>,
    waiter: i64,
    waiter_id: JobId,
    runs_anyway: bool,
}

impl Over {
    /// Returns `true` if the waiter goes on without the other job. The rest of its terms decides nothing then.
    fn is_decided(&self) -> bool {
        self.runs_anyway || self.end == Some(End::Succeeded)
    }
}

impl Writing<'_> {
    /// Notes for which jobs a new one waits. It is written, and stands nowhere yet.
    pub(crate) async fn let_wait(&mut self, stored: &Stored) -> Result<(), Fault> {
        let Some(after) = stored.job.terms.after.clone() else { return Ok(()) };
        let waiter = value::signed(stored.job.seq);
        self.keep_for(&stored.job)?;
        self.read(rows::lock(&after.jobs)).await?;
        // Each once, however often it is named: it is moved to a standing once.
        let others: BTreeSet<JobId> = after.jobs.iter().copied().collect();
        for ids in self.batches(others.into_iter().collect()).await? {
            for row in &self.read_batch(&ids).await? {
                self.let_wait_for(waiter, &after, row)?;
            }
        }
        Ok(())
    }

    fn let_wait_for(&mut self, waiter: i64, after: &AfterJobs, row: &Row) -> Result<(), Fault> {
        let other = match rows::stored(row) {
            Ok(other) => other,
            // A role that may enqueue can name any job. A program that can read this one ends it later, or a repair
            // removes it.
            Err(fault) if is_unreadable(&fault) => return self.wait_for_odd(waiter, row, after),
            Err(fault) => return Err(fault),
        };
        match end_of(&other).map(|end| after.noticed(other.job.id, Some(end), self.now)) {
            Some(Noticed::Ended) => return Ok(()),
            Some(Noticed::Cancels(_)) => self.news.due = true,
            None => {}
        }
        // Also one that has ended: it may be done again before anybody looks.
        self.wait_for(waiter, after.if_failed, &other)
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
        self.write(wait(odd.seq, waiter, after.if_failed == IfFailed::Run))?;
        end.map_or(Ok(()), |end| self.note_end(odd.seq, id, Some(end)))
    }

    /// Notes that a job waits for this other one, and if that one has ended, that somebody has to look.
    pub(crate) fn wait_for(&mut self, waiter: i64, if_failed: IfFailed, other: &Stored) -> Result<(), Fault> {
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
        self.write(wait(seq, waiter, if_failed == IfFailed::Run))?;
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

    /// Notices what has ended since the last turn, for up to so many waits; returns the number of jobs that wait no
    /// more. What ends by that is for the next turn.
    pub(super) async fn notice_ended(&mut self, at_most: usize) -> Result<usize, Fault> {
        let over = self.over(at_most).await?;
        let free = self.end_decided(&over).await?;
        let looks = looks(&over, &free);
        let mut named = BTreeSet::new();
        let waiters = looks.iter().map(|look| look.waiter_id).filter(|id| named.insert(*id)).collect();
        let mut count = 0;
        for ids in self.batches(waiters).await? {
            let (mut jobs, mut odd) = (BTreeMap::new(), BTreeMap::new());
            for row in &self.read_batch(&ids).await? {
                match self.found(row).await? {
                    Ok(stored) => _ = jobs.insert(value::signed(stored.job.seq), stored),
                    Err(fault) => _ = odd.insert(Odd::of(row).seq, fault),
                }
            }
            for look in &looks {
                if let Some(fault) = odd.get(&look.waiter) {
                    self.wait_on(look, &over, fault)?;
                }
                if let Some(stored) = jobs.remove(&look.waiter) {
                    match self.look_at_waiter(look, free.contains(&look.waiter), stored).await? {
                        Some(waits) => _ = jobs.insert(look.waiter, waits),
                        None => count += 1,
                    }
                }
            }
        }
        self.write(Query::new(TOLD))?;
        Ok(count)
    }

    async fn over(&mut self, at_most: usize) -> Result<Vec<Over>, Fault> {
        let look = Query::new(OVER).with(value::bound(at_most)).with(self.now.as_micros());
        let mut over = Vec::new();
        for row in self.read(vec![look]).await?.iter().flatten() {
            match self::over(row) {
                Ok(one) => over.push(one),
                Err(fault) => self.set_ending_aside(row.get(0), &fault)?,
            }
        }
        Ok(over)
    }

    /// Ends the waits that need no look at their waiters; returns the waiters that wait for no other job.
    async fn end_decided(&mut self, over: &[Over]) -> Result<BTreeSet<i64>, Fault> {
        let decided = || over.iter().filter(|over| over.is_decided());
        let waiters: BTreeSet<i64> = decided().map(|over| over.waiter).collect();
        if waiters.is_empty() {
            return Ok(waiters);
        }
        let end = Query::new(END_WAITS)
            .with(decided().map(|over| over.other).collect::<Vec<_>>())
            .with(decided().map(|over| over.waiter).collect::<Vec<_>>());
        let free = Query::new(FREE).with(waiters.into_iter().collect::<Vec<_>>());
        let read = self.read(vec![end, free]).await?;
        Ok(read.last().into_iter().flatten().map(|row| row.get(0)).collect())
    }

    /// Lets a waiter go on, or cancels it; returns it if it still waits for another job.
    async fn look_at_waiter(
        &mut self,
        look: &Over,
        is_free: bool,
        stored: Stored,
    ) -> Result<Option<Stored>, Fault> {
        if is_free {
            return self.stand_again(stored).await.map(|()| None);
        }
        let Some(after) = stored.job.terms.after.clone() else { return Ok(Some(stored)) };
        match after.noticed(look.id, look.end, self.now) {
            Noticed::Cancels(request) => {
                if let Cancel::Ends(transition) = Cancel::decide(&stored.job, request) {
                    self.enter(stored, *transition).await?;
                }
                Ok(None)
            }
            Noticed::Ended => {
                self.write(Query::new(END_WAITS).with(vec![look.other]).with(vec![look.waiter]))?;
                if self.waits(stored.job.seq).await? {
                    return Ok(Some(stored));
                }
                self.stand_again(stored).await.map(|()| None)
            }
        }
    }

    /// Leaves an unreadable waiter waiting, and looks again later. One that waited for no other job waits again.
    fn wait_on(&mut self, look: &Over, over: &[Over], fault: &Fault) -> Result<(), Fault> {
        if !look.is_decided() {
            return self.set_ending_aside(look.other, fault);
        }
        for over in over.iter().filter(|over| over.waiter == look.waiter) {
            self.write(wait(over.other, over.waiter, over.runs_anyway))?;
            self.set_ending_aside(over.other, fault)?;
        }
        Ok(())
    }
}

/// Returns the waits for which the waiter is looked at: those that its terms decide, and the last one of a waiter that
/// waits for no other job.
fn looks<'o>(over: &'o [Over], free: &BTreeSet<i64>) -> Vec<&'o Over> {
    let mut last = BTreeSet::new();
    let mut is_last = |over: &Over| free.contains(&over.waiter) && last.insert(over.waiter);
    let mut looks: Vec<&Over> =
        over.iter().rev().filter(|over| !over.is_decided() || is_last(over)).collect();
    looks.reverse();
    looks
}

fn wait(other: i64, waiter: i64, runs_anyway: bool) -> Query {
    Query::new(WAIT).with(other).with(waiter).with(runs_anyway)
}

fn over(row: &Row) -> Result<Over, Fault> {
    let end = code::end(row.get(2))?;
    let (id, waiter_id) = (value::job_id(row, 1), value::job_id(row, 4));
    Ok(Over { other: row.get(0), id, end, waiter: row.get(3), waiter_id, runs_anyway: row.get(5) })
}

pub(super) fn end_of(stored: &Stored) -> Option<End> {
    match stored.job.state {
        State::Finished { end, .. } => Some(end),
        State::Waiting { .. } | State::Blocked { .. } | State::Running { .. } => None,
    }
}

#[cfg(test)]
pub(crate) const STATEMENTS: [&str; 8] = [AWAIT, ENDED, GOES_ON, FORGET_WAITER, TOLD, OVER, END_WAITS, FREE];
