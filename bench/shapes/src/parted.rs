//! Shape D: an immutable `job`, and one table for each part of its life:
//! `ready` while it waits, `running` while it is held, `ended` afterwards.

use crate::shape::{Choices, Claim, Claimed, NewJob, RESULT, RETENTION, Shape};
use rusqlite::{Connection, Result, params};

/// A job's standing moves from table to table.
pub struct Parted {
    pub choices: Choices,
}

/// A row of `ready`, found by a claim.
struct Found {
    priority: i64,
    due: i64,
    attempt: i64,
    deliveries: i64,
    job: Claimed,
}

impl Parted {
    fn find(&self, conn: &Connection, claim: &Claim) -> Result<Vec<Found>> {
        let mut select = conn.prepare_cached(
            "SELECT r.priority, r.due, r.seq, r.fence + 1, r.attempt + 1, r.deliveries + 1, j.id, j.args
             FROM ready r CROSS JOIN job j ON j.seq = r.seq
             WHERE r.lane = ?1 ORDER BY r.priority, r.due, r.seq LIMIT ?2",
        )?;
        let rows = select.query_map(params![claim.lane, claim.limit as i64], |row| {
            std::hint::black_box(row.get_ref(7)?.as_blob()?.len());
            let job = Claimed { seq: row.get(2)?, fence: row.get(3)?, id: row.get(6)? };
            Ok(Found {
                priority: row.get(0)?,
                due: row.get(1)?,
                attempt: row.get(4)?,
                deliveries: row.get(5)?,
                job,
            })
        })?;
        rows.collect()
    }

    fn reserve_each(&self, conn: &Connection, claim: &Claim, found: &[Found]) -> Result<()> {
        let mut unready = conn.prepare_cached(
            "DELETE FROM ready WHERE lane = ?1 AND priority = ?2 AND due = ?3 AND seq = ?4",
        )?;
        let mut run = conn.prepare_cached(
            "INSERT INTO running(seq, lane, priority, fence, attempt, deliveries, until, started, holder)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?;
        for found in found {
            let job = &found.job;
            unready.execute(params![claim.lane, found.priority, found.due, job.seq])?;
            run.execute(params![
                job.seq,
                claim.lane,
                found.priority,
                job.fence,
                found.attempt,
                found.deliveries,
                claim.until,
                claim.now,
                claim.holder
            ])?;
        }
        Ok(())
    }

    fn reserve_as_set(&self, conn: &Connection, claim: &Claim, last: &Found) -> Result<()> {
        let mut run = conn.prepare_cached(
            "INSERT INTO running(seq, lane, priority, fence, attempt, deliveries, until, started, holder)
             SELECT seq, lane, priority, fence + 1, attempt + 1, deliveries + 1, ?5, ?6, ?7 FROM ready
             WHERE lane = ?1 AND (priority, due, seq) <= (?2, ?3, ?4)",
        )?;
        let mut unready = conn
            .prepare_cached("DELETE FROM ready WHERE lane = ?1 AND (priority, due, seq) <= (?2, ?3, ?4)")?;
        let (lane, seq) = (claim.lane, last.job.seq);
        run.execute(params![lane, last.priority, last.due, seq, claim.until, claim.now, claim.holder])?;
        unready.execute(params![lane, last.priority, last.due, seq])?;
        Ok(())
    }
}

impl Shape for Parted {
    fn schema(&self) -> String {
        let lapse = if self.choices.until_index { "CREATE INDEX lapse ON running(until);" } else { "" };
        format!(
            "CREATE TABLE job(seq INTEGER PRIMARY KEY, id BLOB NOT NULL, lane INTEGER NOT NULL, created INTEGER NOT NULL,
               spec BLOB, args BLOB NOT NULL) STRICT;
             CREATE TABLE ready(lane INTEGER NOT NULL, priority INTEGER NOT NULL, due INTEGER NOT NULL,
               seq INTEGER NOT NULL, fence INTEGER NOT NULL, attempt INTEGER NOT NULL, deliveries INTEGER NOT NULL,
               PRIMARY KEY(lane, priority, due, seq)) STRICT, WITHOUT ROWID;
             CREATE TABLE running(seq INTEGER PRIMARY KEY, lane INTEGER NOT NULL, priority INTEGER NOT NULL,
               fence INTEGER NOT NULL, attempt INTEGER NOT NULL, deliveries INTEGER NOT NULL,
               until INTEGER NOT NULL, started INTEGER NOT NULL, holder BLOB NOT NULL) STRICT;
             CREATE TABLE ended(seq INTEGER PRIMARY KEY, lane INTEGER NOT NULL, priority INTEGER NOT NULL,
               state INTEGER NOT NULL, fence INTEGER NOT NULL, attempt INTEGER NOT NULL, deliveries INTEGER NOT NULL,
               started INTEGER NOT NULL, ended INTEGER NOT NULL, expires INTEGER NOT NULL, result BLOB) STRICT;
             {lapse} {} {}",
            self.choices.id_index(),
            self.choices.finished_indexes("ended").replace(" WHERE state >= 2", "")
        )
    }

    fn enqueue(&self, conn: &Connection, jobs: &[NewJob]) -> Result<()> {
        let mut insert =
            conn.prepare_cached("INSERT INTO job(id, lane, created, args) VALUES (?1, ?2, ?3, ?4)")?;
        let mut ready = conn.prepare_cached(
            "INSERT INTO ready(lane, priority, due, seq, fence, attempt, deliveries) VALUES (?1, ?2, ?3, ?4, 0, 0, 0)",
        )?;
        for job in jobs {
            let seq = insert.insert(params![job.id, job.lane, job.created, job.args])?;
            ready.execute(params![job.lane, job.priority, job.created, seq])?;
        }
        Ok(())
    }

    fn claim(&self, conn: &Connection, claim: &Claim) -> Result<Vec<Claimed>> {
        let found = self.find(conn, claim)?;
        let Some(last) = found.last() else {
            return Ok(Vec::new());
        };
        if self.choices.claim_as_set {
            self.reserve_as_set(conn, claim, last)?;
        } else {
            self.reserve_each(conn, claim, &found)?;
        }
        Ok(found.into_iter().map(|found| found.job).collect())
    }

    fn settle(&self, conn: &Connection, jobs: &[Claimed], now: i64) -> Result<usize> {
        let key = self.choices.key();
        let mut end = conn.prepare_cached(&format!(
            "INSERT INTO ended(seq, lane, priority, state, fence, attempt, deliveries, started, ended, expires, result)
             SELECT seq, lane, priority, 2, fence, attempt, deliveries, started, ?3, ?4, ?5 FROM running
             WHERE seq = {key} AND fence = ?2"
        ))?;
        let mut stop = conn.prepare_cached(&format!("DELETE FROM running WHERE seq = {key}"))?;
        let mut settled = 0;
        for job in jobs {
            let at = self.choices.address(job);
            if end.execute(params![at, job.fence, now, now + RETENTION, RESULT])? == 0 {
                continue;
            }
            settled += stop.execute(params![at])?;
        }
        Ok(settled)
    }
}
