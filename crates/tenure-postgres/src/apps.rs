//! App ids and who uses them.

use tenure_core::{AppId, AppUse, HostId, claim_app};
use tenure_store::Fault;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::fault::unreadable;
use crate::leases::{host, instant};
use crate::link::Link;
use crate::query::Query;
use crate::transaction::{Gate, Transaction};

/// The first who claims it; whoever else does at the same time waits here and finds it claimed.
const FIRST: &str = "INSERT INTO app (app, program, host, since, seen)
     SELECT $1, $2, $3, n.micros, n.micros FROM (SELECT coalesce($4::bigint, micros()) AS micros) n
     ON CONFLICT (app) DO NOTHING";
const KNOWN: &str = "SELECT app, program, host, since, seen FROM app WHERE app = $1 FOR UPDATE";
const KEEP: &str = "UPDATE app SET program = $2, host = $3, since = $4, seen = $5 WHERE app = $1";
const ALL: &str = "SELECT app, program, host, since, seen FROM app ORDER BY app";

/// The use of an app id from now on, or the other program's.
pub(crate) type Claimed = Result<AppUse, AppUse>;

/// Keeps that a program uses an app id, unless another does.
pub(crate) async fn claim(
    link: &mut Link,
    app: AppId,
    program: String,
    by: HostId,
) -> Result<Claimed, Fault> {
    let time = link.database.time.clone();
    let first = Query::new(FIRST)
        .with(app.as_str().to_owned())
        .with(program.clone())
        .with(host(by))
        .with(time.told());
    let known = Query::new(KNOWN).with(app.as_str().to_owned());
    let connection = link.connection().await?;
    let (mut transaction, read_rows) =
        Transaction::begin(connection, Gate::Open, &time, vec![first, known]).await?;
    let known = read_rows.into_iter().flatten().next().map(|row| read(&row)).transpose()?;
    // What was stored just now was stored at the server's next microsecond.
    let now = known.as_ref().map_or(transaction.now, |known| known.since.max(transaction.now));
    let claimed = claim_app(known.as_ref(), AppUse { app, program, host: by, since: now, seen: now });
    if let Ok(kept) = &claimed {
        let keep = Query::new(KEEP)
            .with(kept.app.as_str().to_owned())
            .with(kept.program.clone())
            .with(host(kept.host))
            .with(kept.since.as_micros())
            .with(kept.seen.as_micros());
        transaction.write(keep);
    }
    transaction.commit().await?;
    Ok(claimed)
}

/// The app ids that were ever claimed, by id.
pub(crate) async fn all(link: &mut Link) -> Result<Vec<AppUse>, Fault> {
    let rows = link.connection().await?.read(Query::new(ALL)).await?;
    rows.iter().map(read).collect()
}

fn read(row: &Row) -> Result<AppUse, Fault> {
    Ok(AppUse {
        app: AppId::new(row.get(0)).map_err(unreadable)?,
        program: row.get(1),
        host: HostId::from_bytes(row.get::<_, Uuid>(2).into_bytes()),
        since: instant(row.get(3))?,
        seen: instant(row.get(4))?,
    })
}
