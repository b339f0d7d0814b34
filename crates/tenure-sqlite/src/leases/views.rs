//! Looking at leases.

use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use tenure_core::{LeaseName, Timestamp, limits};
use tenure_store::{LeaseInfo, LeasePage, LeasesAsk};

use super::row;
use crate::fault::{is_unreadable, of_lease};
use crate::prefix::{end_of, first_of};
use crate::value;

pub(crate) const INFO: &str = "SELECT number, name, fence, forgotten, freed, phase, id, since, ttl, until,
         host, who, meta, began,
         (SELECT count(*) FROM lease_line w WHERE w.lease = lease.number AND w.until > ?2)
     FROM lease WHERE name = ?1 AND forgotten = 0";
pub(crate) const PAGE: &str = "SELECT number, name, fence, forgotten, freed, phase, id, since, ttl, until,
         host, who, meta, began,
         (SELECT count(*) FROM lease_line w WHERE w.lease = lease.number AND w.until > ?3)
     FROM lease WHERE forgotten = 0 AND name >= ?1 AND name < ?2 ORDER BY name LIMIT ?4 + 0";

/// One lease.
pub(crate) fn info(conn: &Connection, name: &LeaseName, now: Timestamp) -> Result<Option<LeaseInfo>> {
    conn.prepare_cached(INFO)?
        .query_row(params![name.as_str(), now.as_micros()], |row| read(row, now))
        .optional()
        .map_err(|error| of_lease(name, error))
}

/// A page of leases. One that cannot be read is left out; the writer complains of it, too.
pub(crate) fn page(conn: &Connection, ask: &LeasesAsk, now: Timestamp) -> Result<LeasePage> {
    let at_most = ask.at_most.clamp(1, limits::PAGE_LEASES);
    let mut statement = conn.prepare_cached(PAGE)?;
    let bound = value::bound(limits::PAGE_EXAMINED);
    let first = first_of(&ask.prefix, ask.behind.as_ref().map(LeaseName::as_str));
    let mut rows = statement.query(params![first, end_of(&ask.prefix), now.as_micros(), bound])?;
    let mut leases: Vec<LeaseInfo> = Vec::new();
    while let Some(row) = rows.next()? {
        let info = match read(row, now) {
            Err(error) if is_unreadable(&error) => {
                tracing::error!(%error, "skipping an unreadable lease; update this program");
                continue;
            }
            read => read?,
        };
        if leases.len() == at_most {
            let next = leases.last().map(|info| info.lease.name.clone());
            return Ok(LeasePage { leases, next });
        }
        leases.push(info);
    }
    Ok(LeasePage { leases, next: None })
}

fn read(row: &Row<'_>, now: Timestamp) -> Result<LeaseInfo> {
    let lease = row::read(row)?.lease;
    let waiting = row.get(14)?;
    Ok(LeaseInfo { state: lease.state(now), lease, waiting })
}
