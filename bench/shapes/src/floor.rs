//! The floor: what SQLite asks for three bare transactions on one table.

use crate::shape::{Claim, Claimed, NewJob, Shape};
use rusqlite::{Connection, Result, params};

/// One table, one partial index, no id, no counts, no guard.
pub struct Floor;

impl Shape for Floor {
    fn schema(&self) -> String {
        "CREATE TABLE job(seq INTEGER PRIMARY KEY, lane INT NOT NULL DEFAULT 1, state INT NOT NULL DEFAULT 0,
           priority INT NOT NULL DEFAULT 0, attempt INT NOT NULL DEFAULT 0, due INT NOT NULL DEFAULT 0,
           until INT, args BLOB NOT NULL);
         CREATE INDEX ready ON job(lane, priority, due, seq) WHERE state = 0;"
            .into()
    }

    fn counts(&self) -> bool {
        false
    }

    fn enqueue(&self, conn: &Connection, jobs: &[NewJob]) -> Result<()> {
        let mut insert = conn.prepare_cached("INSERT INTO job(lane, args) VALUES (?1, ?2)")?;
        for job in jobs {
            insert.execute(params![job.lane, job.args])?;
        }
        Ok(())
    }

    fn claim(&self, conn: &Connection, claim: &Claim) -> Result<Vec<Claimed>> {
        let mut update = conn.prepare_cached(
            "UPDATE job SET state = 1, attempt = attempt + 1, until = 1 WHERE seq IN
               (SELECT seq FROM job WHERE state = 0 AND lane = ?1 ORDER BY priority, due, seq LIMIT ?2)
             RETURNING seq, args",
        )?;
        let rows = update.query_map(params![claim.lane, claim.limit as i64], |row| {
            std::hint::black_box(row.get_ref(1)?.as_blob()?.len());
            Ok(Claimed { seq: row.get(0)?, id: [0; 16], fence: 0 })
        })?;
        rows.collect()
    }

    fn settle(&self, conn: &Connection, jobs: &[Claimed], _now: i64) -> Result<usize> {
        let mut update = conn.prepare_cached("UPDATE job SET state = 2, until = NULL WHERE seq = ?1")?;
        let mut settled = 0;
        for job in jobs {
            settled += update.execute([job.seq])?;
        }
        Ok(settled)
    }
}
