//! Looking at leases.

use tenure_core::{LeaseName, limits};
use tenure_store::{Fault, LeaseInfo, LeasePage, LeasesAsk};
use tokio_postgres::Row;

use super::row::{self, COLUMNS};
use crate::link::Link;
use crate::prefix::end_of;
use crate::query::Query;
use crate::value;

const INFO: &str =
    "SELECT number, name, fence, forgotten, freed, phase, id, since, ttl, until, host, who, meta, n.micros,
         (SELECT count(*) FROM lease_line w WHERE w.lease = lease.number AND w.until > n.micros)
     FROM (SELECT coalesce($2::bigint, micros()) AS micros) n CROSS JOIN lease
     WHERE name = $1 AND NOT forgotten AND fence > 0";
const PAGE: &str =
    "SELECT number, name, fence, forgotten, freed, phase, id, since, ttl, until, host, who, meta, n.micros,
         (SELECT count(*) FROM lease_line w WHERE w.lease = lease.number AND w.until > n.micros)
     FROM (SELECT coalesce($4::bigint, micros()) AS micros) n CROSS JOIN lease
     WHERE NOT forgotten AND fence > 0 AND name >= $1 AND name > $2 AND name < $5 ORDER BY name LIMIT $3";
const PAGE_TO_THE_END: &str =
    "SELECT number, name, fence, forgotten, freed, phase, id, since, ttl, until, host, who, meta, n.micros,
         (SELECT count(*) FROM lease_line w WHERE w.lease = lease.number AND w.until > n.micros)
     FROM (SELECT coalesce($4::bigint, micros()) AS micros) n CROSS JOIN lease
     WHERE NOT forgotten AND fence > 0 AND name >= $1 AND name > $2 ORDER BY name LIMIT $3";

/// One lease.
pub(super) async fn info(link: &mut Link, name: &LeaseName) -> Result<Option<LeaseInfo>, Fault> {
    let now = link.database.time.told();
    let query = Query::new(INFO).with(name.as_str().to_owned()).with(now);
    let rows = link.connection().await?.read(query).await?;
    rows.first().map(read).transpose().map_err(|fault| super::of_lease(name, fault))
}

/// A page of leases. One that cannot be read is left out; whoever takes it complains of it, too.
pub(super) async fn page(link: &mut Link, ask: &LeasesAsk) -> Result<LeasePage, Fault> {
    // No name holds such a character, and no text of the server's can.
    if ask.prefix.contains('\0') {
        return Ok(LeasePage::default());
    }
    let at_most = ask.at_most.clamp(1, limits::PAGE_LEASES);
    let end = end_of(&ask.prefix);
    let behind = ask.behind.as_ref().map_or_else(String::new, |name| name.as_str().to_owned());
    let query = Query::new(if end.is_some() { PAGE } else { PAGE_TO_THE_END })
        .with(ask.prefix.clone())
        .with(behind)
        .with(value::bound(at_most + 1))
        .with(link.database.time.told());
    let query = end.into_iter().fold(query, Query::with);
    let mut page = LeasePage::default();
    let rows = link.connection().await?.read(query).await?;
    for row in rows.iter().take(at_most) {
        match read(row) {
            Ok(info) => page.leases.push(info),
            Err(fault) => {
                tracing::error!(%fault, "skipping an unreadable lease; update this program");
            }
        }
    }
    if let Some(last) = rows.get(at_most - 1).filter(|_| rows.len() > at_most) {
        page.next = Some(row::key(last)?.1);
    }
    Ok(page)
}

fn read(row: &Row) -> Result<LeaseInfo, Fault> {
    let lease = row::read(row)?;
    let now = value::instant(row, COLUMNS)?;
    let waiting = u32::try_from(row.get::<_, i64>(COLUMNS + 1)).unwrap_or(u32::MAX);
    Ok(LeaseInfo { state: lease.state(now), lease, waiting })
}

#[cfg(test)]
pub(super) const STATEMENTS: [&str; 3] = [INFO, PAGE, PAGE_TO_THE_END];
