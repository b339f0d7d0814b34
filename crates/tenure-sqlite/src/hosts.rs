//! Who is there.

use std::time::Duration;

use rusqlite::{Connection, Result, Row, params};
use tenure_core::{HostId, JobId, Serves, Timestamp, limits};
use tenure_store::{Host, LostHost};

use crate::fault::unreadable;
use crate::value;
use crate::writing::Writing;

const ALIVE: &str =
    "SELECT id, name, started, until, slots, serves, heard FROM host WHERE until > ?1 ORDER BY id";
const LOST: &str = "SELECT id, name, started, until, slots, serves, heard FROM host
     WHERE until <= ?1 AND until > ?2 ORDER BY until DESC, id LIMIT ?3 + 0";
/// The first jobs that were taken from a host.
pub(crate) const LOST_JOBS: &str = "SELECT id FROM job WHERE seq IN (SELECT seq FROM attempt
     WHERE holder = ?1 AND ended_by = 5 ORDER BY seq LIMIT ?2 + 0) ORDER BY seq";

impl Writing<'_> {
    pub(crate) fn announce(
        &self,
        id: HostId,
        name: &str,
        slots: u32,
        serves: &[Serves],
        ttl: Duration,
    ) -> Result<()> {
        self.conn
            .prepare_cached(
                "INSERT INTO host (id, name, started, until, slots, serves, heard)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?3)
                 ON CONFLICT (id) DO UPDATE SET
                     name = excluded.name, until = excluded.until, slots = excluded.slots,
                     serves = excluded.serves, heard = excluded.heard",
            )?
            .execute(params![
                id.as_bytes(),
                name,
                self.now.as_micros(),
                self.now.after(ttl).as_micros(),
                slots,
                value::to_json(&serves)?
            ])?;
        Ok(())
    }

    pub(crate) fn retire(&self, id: HostId) -> Result<()> {
        self.conn.prepare_cached("DELETE FROM host WHERE id = ?1")?.execute([id.as_bytes()])?;
        Ok(())
    }
}

/// The hosts that are alive, by id.
pub(crate) fn alive(conn: &Connection, now: Timestamp) -> Result<Vec<Host>> {
    conn.prepare_cached(ALIVE)?.query_map([now.as_micros()], host)?.collect()
}

/// The hosts that stopped without retiring, the latest loss first.
pub(crate) fn lost(conn: &Connection, now: Timestamp) -> Result<Vec<LostHost>> {
    let oldest = now.before(limits::LOST_HOSTS_KEPT);
    let bounds = [now.as_micros(), oldest.as_micros(), value::bound(limits::LOST_HOSTS)];
    let hosts: Vec<Host> = conn.prepare_cached(LOST)?.query_map(bounds, host)?.collect::<Result<_>>()?;
    hosts.into_iter().map(|host| Ok(LostHost { jobs: lost_by(conn, host.id)?, host })).collect()
}

fn lost_by(conn: &Connection, host: HostId) -> Result<Vec<JobId>> {
    let mut statement = conn.prepare_cached(LOST_JOBS)?;
    let bounds = params![host.as_bytes(), value::bound(limits::LOST_JOBS)];
    statement.query_map(bounds, |row| value::job_id(row, 0))?.collect()
}

fn host(row: &Row<'_>) -> Result<Host> {
    let started = value::instant(row, 2)?;
    Ok(Host {
        id: value::host_id(row, 0)?.ok_or_else(|| unreadable("a host without an id"))?,
        name: row.get(1)?,
        started,
        until: value::instant(row, 3)?,
        slots: row.get(4)?,
        serves: value::maybe_json(row, 5)?.unwrap_or_default(),
        heard: value::maybe_instant(row, 6)?.unwrap_or(started),
    })
}
