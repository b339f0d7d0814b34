//! The epoch of a file: the floor of the fences that it grants.

use rusqlite::{Connection, Result};
use tenure_core::Epoch;

use crate::fault::unreadable;
use crate::value;

const READ: &str = "SELECT value FROM meta WHERE name = 'floor'";
const KEEP: &str = "UPDATE meta SET value = ?1 WHERE name = 'floor' AND value < ?1";

pub(crate) fn read(conn: &Connection) -> Result<Epoch> {
    let number: i64 = conn.query_row(READ, [], |row| row.get(0))?;
    u64::try_from(number).map(Epoch::new).map_err(|_| unreadable(format_args!("epoch {number}")))
}

pub(crate) fn keep(conn: &Connection, epoch: Epoch) -> Result<()> {
    conn.execute(KEEP, [value::signed(epoch.number())]).map(drop)
}

/// Returns `true` if the file is a backup that nothing has changed.
pub(crate) fn is_new_backup(conn: &Connection) -> Result<bool> {
    conn.query_row("SELECT EXISTS (SELECT 1 FROM meta WHERE name = 'backup')", [], |row| row.get(0))
}

/// Notes that this file, which is being changed, goes on in an epoch.
pub(crate) fn begin(conn: &Connection, epoch: Epoch) -> Result<()> {
    keep(conn, epoch)?;
    conn.execute("DELETE FROM meta WHERE name = 'backup'", []).map(drop)
}
