//! Shape A: one mutable row a job, everything else a partial index.
//! Shape E: the same indexes on a narrow `standing`, beside an immutable `job`.

use crate::shape::{Choices, Claim, Claimed, NewJob, RESULT, RETENTION, Shape};
use rusqlite::{Connection, Result, Row, params};

/// One row carries a job's standing: in `job` itself, or beside it.
pub struct Whole {
    pub choices: Choices,
    /// Keep the standing in a table of its own, away from the arguments.
    pub narrow: bool,
}

impl Whole {
    fn table(&self) -> &'static str {
        if self.narrow {
            return "standing";
        }
        "job"
    }

    fn until_index(&self) -> String {
        if !self.choices.until_index {
            return String::new();
        }
        format!("CREATE INDEX lapse ON {}(until) WHERE state = 1;", self.table())
    }

    fn claim_as_set(&self, conn: &Connection, claim: &Claim) -> Result<Vec<Claimed>> {
        let table = self.table();
        let fixed = if self.narrow {
            "(SELECT id FROM job WHERE job.seq = standing.seq), (SELECT args FROM job WHERE job.seq = standing.seq)"
        } else {
            "id, args"
        };
        let mut update = conn.prepare_cached(&format!(
            "UPDATE {table} SET state = 1, fence = fence + 1, attempt = attempt + 1, deliveries = deliveries + 1,
               holder = ?4, until = ?5, started = ?2
             WHERE seq IN (SELECT seq FROM {table} WHERE state = 0 AND lane = ?1 AND due <= ?2
                           ORDER BY priority, due, seq LIMIT ?3)
             RETURNING seq, fence, attempt, {fixed}"
        ))?;
        let given = params![claim.lane, claim.now, claim.limit as i64, claim.holder, claim.until];
        let rows = update.query_map(given, |row| claimed(row, 0))?;
        rows.collect()
    }

    fn claim_each(&self, conn: &Connection, claim: &Claim) -> Result<Vec<Claimed>> {
        let from = if self.narrow {
            "SELECT s.seq, s.fence, s.attempt, j.id, j.args FROM standing s CROSS JOIN job j ON j.seq = s.seq"
        } else {
            "SELECT s.seq, s.fence, s.attempt, s.id, s.args FROM job s"
        };
        let mut select = conn.prepare_cached(&format!(
            "{from} WHERE s.state = 0 AND s.lane = ?1 AND s.due <= ?2 ORDER BY s.priority, s.due, s.seq LIMIT ?3"
        ))?;
        let jobs: Vec<Claimed> = select
            .query_map(params![claim.lane, claim.now, claim.limit as i64], |row| claimed(row, 1))?
            .collect::<Result<_>>()?;
        let mut update = conn.prepare_cached(&format!(
            "UPDATE {} SET state = 1, fence = ?2, attempt = attempt + 1, deliveries = deliveries + 1,
               holder = ?3, until = ?4, started = ?5 WHERE seq = ?1",
            self.table()
        ))?;
        for job in &jobs {
            update.execute(params![job.seq, job.fence, claim.holder, claim.until, claim.now])?;
        }
        Ok(jobs)
    }
}

/// Reads `seq, fence, attempt, id, args`; `raise` is what the claim adds to the fence.
fn claimed(row: &Row<'_>, raise: i64) -> Result<Claimed> {
    std::hint::black_box(row.get_ref(4)?.as_blob()?.len());
    std::hint::black_box(row.get::<_, i64>(2)?);
    Ok(Claimed { seq: row.get(0)?, fence: row.get::<_, i64>(1)? + raise, id: row.get(3)? })
}

impl Shape for Whole {
    fn schema(&self) -> String {
        let table = self.table();
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
        format!(
            "{tables} {} CREATE INDEX ready ON {table}(lane, priority, due, seq) WHERE state = 0; {} {}",
            self.choices.id_index(),
            self.until_index(),
            self.choices.finished_indexes(table)
        )
    }

    fn enqueue(&self, conn: &Connection, jobs: &[NewJob]) -> Result<()> {
        if !self.narrow {
            let mut insert = conn.prepare_cached(
                "INSERT INTO job(id, lane, state, priority, due, created, args, fence, attempt, deliveries)
                 VALUES (?1, ?2, 0, ?3, ?4, ?4, ?5, 0, 0, 0)",
            )?;
            for job in jobs {
                insert.execute(params![job.id, job.lane, job.priority, job.created, job.args])?;
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
        }
        Ok(())
    }

    fn claim(&self, conn: &Connection, claim: &Claim) -> Result<Vec<Claimed>> {
        if self.choices.claim_as_set {
            return self.claim_as_set(conn, claim);
        }
        self.claim_each(conn, claim)
    }

    fn settle(&self, conn: &Connection, jobs: &[Claimed], now: i64) -> Result<usize> {
        let mut update = conn.prepare_cached(&format!(
            "UPDATE {} SET state = 2, until = NULL, ended = ?3, expires = ?4, result = ?5
             WHERE seq = {} AND fence = ?2 AND state = 1",
            self.table(),
            self.choices.key()
        ))?;
        let mut settled = 0;
        for job in jobs {
            settled += update.execute(params![
                self.choices.address(job),
                job.fence,
                now,
                now + RETENTION,
                RESULT
            ])?;
        }
        Ok(settled)
    }
}
