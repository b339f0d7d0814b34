//! The rows of lines.

use rusqlite::{Connection, Result, params};
use tenure_core::LeaseId;
use tenure_store::engine::leases::{Place, WaitLine};

use crate::value;
use crate::writing::Writing;

pub(crate) const LINE: &str = "SELECT id, place, until FROM lease_line WHERE lease = ?1";
pub(crate) const SIT: &str =
    "INSERT OR REPLACE INTO lease_line (lease, id, place, until) VALUES (?1, ?2, ?3, ?4)";
pub(crate) const STAND_UP: &str = "DELETE FROM lease_line WHERE lease = ?1 AND id = ?2";
pub(crate) const GONE: &str = "DELETE FROM lease_line WHERE (lease, id) IN
     (SELECT lease, id FROM lease_line WHERE until <= ?1 ORDER BY until LIMIT ?2 + 0)";

/// Number of expired places that make room for a new one. With more than one, those that no upkeep removes cannot pile up.
const MAKE_ROOM: usize = 2;

/// Reads the line of a lease.
pub(super) fn read(conn: &Connection, lease: i64, line: &mut WaitLine) -> Result<()> {
    let mut find = conn.prepare_cached(LINE)?;
    let mut rows = find.query([lease])?;
    while let Some(row) = rows.next()? {
        let place = Place { number: row.get(1)?, until: value::instant(row, 2)? };
        line.read(LeaseId::from_bytes(row.get(0)?), place);
    }
    Ok(())
}

impl Writing<'_> {
    /// Writes what has changed in the line of a lease.
    pub(super) fn write_places(&self, lease: i64, line: &WaitLine) -> Result<()> {
        for id in line.gone() {
            self.conn.prepare_cached(STAND_UP)?.execute(params![lease, id.as_bytes()])?;
        }
        for (id, place) in line.kept() {
            self.clear_line(MAKE_ROOM)?;
            let place = params![lease, id.as_bytes(), place.number, place.until.as_micros()];
            self.conn.prepare_cached(SIT)?.execute(place)?;
        }
        Ok(())
    }

    /// Removes some expired places. Returns their number.
    pub(crate) fn clear_line(&self, at_most: usize) -> Result<usize> {
        self.conn.prepare_cached(GONE)?.execute([self.now.as_micros(), value::bound(at_most)])
    }
}
