//! Who is there, and which programs use which app ids.

use std::time::Duration;

use tenure_core::{AppId, AppUse, HostId, Serves, claim_app, limits};
use tenure_store::{Answer, Fault, Host, LostHost};
use tokio_postgres::Row;

use crate::fault::{Effect, unreadable};
use crate::link::Link;
use crate::query::Query;
use crate::store::PostgresStore;
use crate::transaction::Gate;
use crate::value;
use crate::writing::Writing;

const ANNOUNCE: &str = "INSERT INTO host (id, name, started, until, slots, serves, heard)
     SELECT $1, $2, n.now, n.now + $3, $4, $5, n.now FROM (SELECT coalesce($6::bigint, micros()) AS now) n
     ON CONFLICT (id) DO UPDATE SET
         name = excluded.name, until = excluded.until, slots = excluded.slots, serves = excluded.serves,
         heard = excluded.heard";
const RETIRE: &str = "DELETE FROM host WHERE id = $1";
const ALIVE: &str = "SELECT id, name, started, until, slots, serves, heard FROM host
     WHERE until > (SELECT coalesce($1::bigint, micros())) ORDER BY id";
const LOST: &str = "WITH n AS MATERIALIZED (SELECT coalesce($1::bigint, micros()) AS now),
     lost AS MATERIALIZED (SELECT h.* FROM host h
         WHERE until <= (SELECT now FROM n) AND until > (SELECT now FROM n) - $2 ORDER BY until DESC, id LIMIT $3)
     SELECT id, name, started, until, slots, serves, heard, ARRAY(
         SELECT j.id FROM (SELECT DISTINCT seq FROM attempt WHERE holder = lost.id AND ended_by = 5 ORDER BY seq LIMIT $4) a
         CROSS JOIN LATERAL (SELECT lane FROM standing WHERE seq = a.seq LIMIT 1) s
         CROSS JOIN LATERAL (SELECT id FROM job WHERE lane = s.lane AND seq = a.seq LIMIT 1) j ORDER BY a.seq)
     FROM lost ORDER BY until DESC, id";
const APPS: &str = "SELECT app, program, host, since, seen FROM app ORDER BY app";
const APP: &str = "SELECT app, program, host, since, seen FROM app WHERE app = $1 FOR UPDATE";
const KEEP_APP: &str = "INSERT INTO app (app, program, host, since, seen) VALUES ($1, $2, $3, $4, $5)";
const FORGET_APP: &str = "DELETE FROM app WHERE app = $1 AND program = $2 AND seen = $3";

impl PostgresStore {
    pub(crate) fn announce(
        &self,
        id: HostId,
        name: &str,
        slots: u32,
        serves: &[Serves],
        ttl: Duration,
    ) -> Answer<'_, ()> {
        let (name, serves) = (name.to_owned(), serves.to_vec());
        Box::pin(self.ask(&self.tasks.others, move |link| {
            Box::pin(async move {
                let announce = Query::new(ANNOUNCE)
                    .with(value::of_host(id))
                    .with(name)
                    .with(value::micros(ttl))
                    .with(value::small(slots))
                    .with(value::to_json(&serves)?)
                    .with(link.database.time.told());
                link.connection().await?.run(&[announce], Effect::Commits).await.map(drop)
            })
        }))
    }

    pub(crate) fn retire(&self, id: HostId) -> Answer<'_, ()> {
        Box::pin(self.ask(&self.tasks.others, move |link| {
            Box::pin(async move {
                let retire = Query::new(RETIRE).with(value::of_host(id));
                link.connection().await?.run(&[retire], Effect::Commits).await.map(drop)
            })
        }))
    }

    pub(crate) fn claim_app(
        &self,
        app: &AppId,
        program: &str,
        host: HostId,
    ) -> Answer<'_, Result<AppUse, AppUse>> {
        let (app, program) = (app.clone(), program.to_owned());
        Box::pin(self.ask(&self.tasks.others, move |link| {
            Box::pin(async move {
                let mut tries = 0;
                loop {
                    let tried = try_claim(link, &app, &program, host).await;
                    if tried.is_ok() || !link.may_try_again(&mut tries).await {
                        return tried;
                    }
                }
            })
        }))
    }

    pub(crate) fn apps(&self) -> Answer<'_, Vec<AppUse>> {
        Box::pin(self.read(|link| {
            Box::pin(async move {
                let rows = link.connection().await?.read(Query::new(APPS)).await?;
                rows.iter().map(app_use).collect()
            })
        }))
    }

    pub(crate) fn hosts(&self) -> Answer<'_, Vec<Host>> {
        Box::pin(self.read(|link| Box::pin(alive(link))))
    }

    pub(crate) fn lost_hosts(&self) -> Answer<'_, Vec<LostHost>> {
        Box::pin(self.read(|link| Box::pin(lost(link))))
    }
}

/// The hosts that are alive, by id.
pub(crate) async fn alive(link: &mut Link) -> Result<Vec<Host>, Fault> {
    let alive = Query::new(ALIVE).with(link.database.time.told());
    let rows = link.connection().await?.read(alive).await?;
    rows.iter().map(host).collect()
}

/// The hosts that stopped without retiring, the latest loss first.
async fn lost(link: &mut Link) -> Result<Vec<LostHost>, Fault> {
    let lost = Query::new(LOST)
        .with(link.database.time.told())
        .with(value::micros(limits::LOST_HOSTS_KEPT))
        .with(value::bound(limits::LOST_HOSTS))
        .with(value::bound(limits::LOST_JOBS));
    let rows = link.connection().await?.read(lost).await?;
    rows.iter().map(|row| Ok(LostHost { host: host(row)?, jobs: value::job_ids(row, 7) })).collect()
}

fn host(row: &Row) -> Result<Host, Fault> {
    let started = value::instant(row, 2)?;
    Ok(Host {
        id: value::host_id(row, 0).ok_or_else(|| unreadable("a host without an id"))?,
        name: row.get(1),
        started,
        until: value::instant(row, 3)?,
        slots: value::number(row.get(4))?,
        serves: value::maybe_json(row, 5)?.unwrap_or_default(),
        heard: value::maybe_instant(row, 6)?.unwrap_or(started),
    })
}

/// Keeps that a program uses an app id, unless another does.
async fn try_claim(
    link: &mut Link,
    app: &AppId,
    program: &str,
    host: HostId,
) -> Result<Result<AppUse, AppUse>, Fault> {
    let look = Query::new(APP).with(app.as_str().to_owned());
    let (mut writing, read) = Writing::begin(link, Gate::Open, vec![look]).await?;
    let known = read.iter().flatten().next().map(app_use).transpose()?;
    let (app, program) = (app.clone(), program.to_owned());
    let claim = AppUse { app, program, host, since: writing.now, seen: writing.now };
    let claimed = claim_app(known.as_ref(), claim);
    if let Ok(claimed) = &claimed {
        if let Some(known) = &known {
            let forget = Query::new(FORGET_APP).with(known.app.as_str().to_owned());
            writing.write(forget.with(known.program.clone()).with(known.seen.as_micros()))?;
        }
        writing.write(copied(claimed))?;
    }
    writing.commit().await?;
    Ok(claimed)
}

/// Keeps the use of an app id as it was copied.
pub(crate) fn copied(app: &AppUse) -> Query {
    Query::new(KEEP_APP)
        .with(app.app.as_str().to_owned())
        .with(app.program.clone())
        .with(value::of_host(app.host))
        .with(app.since.as_micros())
        .with(app.seen.as_micros())
}

fn app_use(row: &Row) -> Result<AppUse, Fault> {
    Ok(AppUse {
        app: AppId::new(row.get(0)).map_err(unreadable)?,
        program: row.get(1),
        host: value::host_id(row, 2).ok_or_else(|| unreadable("an app id without a host"))?,
        since: value::instant(row, 3)?,
        seen: value::instant(row, 4)?,
    })
}

#[cfg(test)]
pub(crate) const STATEMENTS: [&str; 1] = [LOST];
