//! Who is there.

use std::time::Duration;

use rusqlite::{Connection, Result, params};
use tenure_core::{HostId, Serves, Timestamp};
use tenure_store::Host;

use crate::fault::unreadable;
use crate::value;
use crate::writing::Writing;

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
                "INSERT INTO host (id, name, started, until, slots, serves) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                 ON CONFLICT (id) DO UPDATE SET
                     name = excluded.name, until = excluded.until, slots = excluded.slots,
                     serves = excluded.serves",
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
    let mut statement = conn.prepare_cached(
        "SELECT id, name, started, until, slots, serves FROM host WHERE until > ?1 ORDER BY id",
    )?;
    let hosts = statement.query_map([now.as_micros()], |row| {
        Ok(Host {
            id: value::host_id(row, 0)?.ok_or_else(|| unreadable("a host without an id"))?,
            name: row.get(1)?,
            started: value::instant(row, 2)?,
            until: value::instant(row, 3)?,
            slots: row.get(4)?,
            serves: value::maybe_json(row, 5)?.unwrap_or_default(),
        })
    })?;
    hosts.collect()
}
