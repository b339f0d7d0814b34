//! The epoch of a file: the floor of the fences that it grants.

use rusqlite::{Connection, Result};
use tenure_core::Epoch;

use crate::fault::unreadable;
use crate::value;

const READ: &str = "SELECT value FROM meta WHERE name = 'floor'";
const KEEP: &str = "UPDATE meta SET value = ?1 WHERE name = 'floor'";

pub(crate) fn read(conn: &Connection) -> Result<Epoch> {
    let number: i64 = conn.query_row(READ, [], |row| row.get(0))?;
    u64::try_from(number).map(Epoch::new).map_err(|_| unreadable(format_args!("epoch {number}")))
}

pub(crate) fn keep(conn: &Connection, epoch: Epoch) -> Result<()> {
    conn.execute(KEEP, [value::signed(epoch.number())]).map(drop)
}
