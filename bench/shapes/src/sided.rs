//! Shape B: one mutable row a job, with the orders kept in clustered side tables.
//! Shape C: the same beside an immutable `job`, the standing in a row of its own.

use crate::shape::{Choices, Claim, Claimed, Finished, NewJob, RESULT, RETENTION, Shape};
use rusqlite::{Connection, Result, params};

/// The orders (`ready`, `later`, `expiry`) are tables of their own.
pub struct Sided {
    pub choices: Choices,
    /// Keep the standing in a table of its own, away from the arguments.
    pub narrow: bool,
}

/// A row of `ready`, found by a claim.
struct Found {
    priority: i64,
    due: i64,
    job: Claimed,
}

impl Sided {
    fn table(&self) -> &'static str {
        if self.narrow {
            return "standing";
        }
        "job"
    }

    fn find(&self, conn: &Connection, claim: &Claim) -> Result<Vec<Found>> {
        let join = if self.narrow {
            "CROSS JOIN standing s ON s.seq = r.seq CROSS JOIN job j ON j.seq = r.seq"
        } else {
            "CROSS JOIN job j ON j.seq = r.seq"
        };
        let standing = if self.narrow { "s" } else { "j" };
        let mut select = conn.prepare_cached(&format!(
            "SELECT r.priority, r.due, r.seq, {standing}.fence + 1, {standing}.attempt + 1, j.id, j.args
             FROM ready r {join} WHERE r.lane = ?1 ORDER BY r.priority, r.due, r.seq LIMIT ?2"
        ))?;
        let rows = select.query_map(params![claim.lane, claim.limit as i64], |row| {
            std::hint::black_box(row.get_ref(6)?.as_blob()?.len());
            std::hint::black_box(row.get::<_, i64>(4)?);
            let job = Claimed { seq: row.get(2)?, fence: row.get(3)?, id: row.get(5)? };
            Ok(Found { priority: row.get(0)?, due: row.get(1)?, job })
        })?;
        rows.collect()
    }

    fn reserve_each(&self, conn: &Connection, claim: &Claim, found: &[Found]) -> Result<()> {
        let mut unready = conn.prepare_cached(
            "DELETE FROM ready WHERE lane = ?1 AND priority = ?2 AND due = ?3 AND seq = ?4",
        )?;
        let mut later = conn.prepare_cached("INSERT INTO later(at, seq) VALUES (?1, ?2)")?;
        let mut stand = conn.prepare_cached(&format!(
            "UPDATE {} SET state = 1, fence = ?2, attempt = attempt + 1, deliveries = deliveries + 1,
               holder = ?3, until = ?4, started = ?5 WHERE seq = ?1",
            self.table()
        ))?;
        for Found { priority, due, job } in found {
            unready.execute(params![claim.lane, priority, due, job.seq])?;
            stand.execute(params![job.seq, job.fence, claim.holder, claim.until, claim.now])?;
            later.execute(params![claim.until, job.seq])?;
        }
        Ok(())
    }

    fn reserve_as_set(&self, conn: &Connection, claim: &Claim, last: &Found) -> Result<()> {
        let upto = "lane = ?1 AND (priority, due, seq) <= (?2, ?3, ?4)";
        let mut later = conn
            .prepare_cached(&format!("INSERT INTO later(at, seq) SELECT ?5, seq FROM ready WHERE {upto}"))?;
        let mut stand = conn.prepare_cached(&format!(
            "UPDATE {} SET state = 1, fence = fence + 1, attempt = attempt + 1, deliveries = deliveries + 1,
               holder = ?5, until = ?6, started = ?7 WHERE seq IN (SELECT seq FROM ready WHERE {upto})",
            self.table()
        ))?;
        let mut unready = conn.prepare_cached(&format!("DELETE FROM ready WHERE {upto}"))?;
        let (lane, seq) = (claim.lane, last.job.seq);
        later.execute(params![lane, last.priority, last.due, seq, claim.until])?;
        stand.execute(params![lane, last.priority, last.due, seq, claim.holder, claim.until, claim.now])?;
        unready.execute(params![lane, last.priority, last.due, seq])?;
        Ok(())
    }
}

impl Shape for Sided {
    fn schema(&self) -> String {
        let standing = "lane INTEGER NOT NULL, state INTEGER NOT NULL, priority INTEGER NOT NULL, due INTEGER NOT NULL,
             fence INTEGER NOT NULL, attempt INTEGER NOT NULL, deliveries INTEGER NOT NULL, until INTEGER, holder BLOB,
             started INTEGER, ended INTEGER, expires INTEGER, result BLOB";
        let fixed = "id BLOB NOT NULL, created INTEGER NOT NULL, spec BLOB, args BLOB NOT NULL";
        let tables = if self.narrow {
            format!(
                "CREATE TABLE job(seq INTEGER PRIMARY KEY, lane INTEGER NOT NULL, {fixed}) STRICT;
                 CREATE TABLE standing(seq INTEGER PRIMARY KEY, {standing}) STRICT;"
            )
        } else {
            format!("CREATE TABLE job(seq INTEGER PRIMARY KEY, {standing}, {fixed}) STRICT;")
        };
        let orders = "CREATE TABLE ready(lane INTEGER NOT NULL, priority INTEGER NOT NULL, due INTEGER NOT NULL,
               seq INTEGER NOT NULL, PRIMARY KEY(lane, priority, due, seq)) STRICT, WITHOUT ROWID;
             CREATE TABLE later(at INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY(at, seq)) STRICT, WITHOUT ROWID;
             CREATE TABLE expiry(at INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY(at, seq)) STRICT, WITHOUT ROWID;";
        let phase = match self.choices.finished {
            Finished::Unfindable | Finished::Expiry => String::new(),
            Finished::ExpiryAndPhase => format!("CREATE INDEX phase ON {}(lane, state, seq);", self.table()),
            Finished::ExpiryAndTrouble => {
                format!("CREATE INDEX phase ON {}(lane, state, seq) WHERE state >= 3;", self.table())
            }
            Finished::Ended => self.choices.finished_indexes(self.table()),
        };
        format!("{tables} {} {orders} {phase}", self.choices.id_index())
    }

    fn enqueue(&self, conn: &Connection, jobs: &[NewJob]) -> Result<()> {
        let mut ready =
            conn.prepare_cached("INSERT INTO ready(lane, priority, due, seq) VALUES (?1, ?2, ?3, ?4)")?;
        if !self.narrow {
            let mut insert = conn.prepare_cached(
                "INSERT INTO job(id, lane, state, priority, due, created, args, fence, attempt, deliveries)
                 VALUES (?1, ?2, 0, ?3, ?4, ?4, ?5, 0, 0, 0)",
            )?;
            for job in jobs {
                let seq = insert.insert(params![job.id, job.lane, job.priority, job.created, job.args])?;
                ready.execute(params![job.lane, job.priority, job.created, seq])?;
            }
            return Ok(());
        }
        let mut insert =
            conn.prepare_cached("INSERT INTO job(id, lane, created, args) VALUES (?1, ?2, ?3, ?4)")?;
        let mut stand = conn.prepare_cached(
            "INSERT INTO standing(seq, lane, state, priority, due, fence, attempt, deliveries) VALUES (?1, ?2, 0, ?3, ?4, 0, 0, 0)",
        )?;
        for job in jobs {
            let seq = insert.insert(params![job.id, job.lane, job.created, job.args])?;
            stand.execute(params![seq, job.lane, job.priority, job.created])?;
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
        let (table, key) = (self.table(), self.choices.key());
        let mut unlater = conn.prepare_cached(&format!(
            "DELETE FROM later WHERE seq = {key} AND at =
               (SELECT until FROM {table} WHERE seq = {key} AND fence = ?2 AND state = 1)"
        ))?;
        let mut stand = conn.prepare_cached(&format!(
            "UPDATE {table} SET state = 2, until = NULL, ended = ?3, expires = ?4, result = ?5
             WHERE seq = {key} AND fence = ?2 AND state = 1"
        ))?;
        let mut expiry = conn.prepare_cached(&format!("INSERT INTO expiry(at, seq) VALUES (?2, {key})"))?;
        let expires = !matches!(self.choices.finished, Finished::Unfindable | Finished::Ended);
        let mut settled = 0;
        for job in jobs {
            let at = self.choices.address(job);
            if unlater.execute(params![at, job.fence])? == 0 {
                continue;
            }
            settled += stand.execute(params![at, job.fence, now, now + RETENTION, RESULT])?;
            if expires {
                expiry.execute(params![at, now + RETENTION])?;
            }
        }
        Ok(settled)
    }
}
