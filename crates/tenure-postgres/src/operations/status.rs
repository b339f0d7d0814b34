//! How a database stands.

use std::sync::Arc;

use tenure_core::StateName;
use tenure_store::{Fault, Hearing, Oldest, Status};
use tokio_postgres::Row;

use super::{database, number};
use crate::Options;
use crate::connection::Connection;
use crate::link::Link;
use crate::query::Query;
use crate::{hosts, listening, schema};

const ENGINE: &str = "SELECT current_setting('server_version')";
/// A kind of relation that others belong to counts those, too.
const BYTES: &str = "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
     WHERE c.relnamespace = to_regnamespace($1) AND c.relkind = 'r'";
const EPOCH: &str = "SELECT value FROM meta WHERE name = 'floor'";
const JOBS: &str =
    "SELECT sum(scheduled), sum(queued), sum(blocked), sum(running), sum(succeeded), sum(failed),
         sum(cancelled) FROM tally";
/// What is deleted stays where it was for as long as any transaction may still see it. A role sees of others what it may.
const OLDEST: &str = "SELECT who, seconds FROM (
         SELECT format('%s of %s, process %s, %s', coalesce(nullif(application_name, ''), 'a program'), usename, pid,
                 coalesce(state, 'at work')) AS who,
             extract(epoch FROM clock_timestamp() - xact_start)::bigint AS seconds,
             greatest(age(backend_xid), age(backend_xmin)) AS age
         FROM pg_stat_activity
         WHERE coalesce(backend_xid, backend_xmin) IS NOT NULL AND xact_start IS NOT NULL AND backend_type = 'client backend'
             AND datname = current_database() AND pid <> pg_backend_pid()
         UNION ALL SELECT format('%s, a prepared transaction of %s', gid, owner),
             extract(epoch FROM clock_timestamp() - prepared)::bigint, age(transaction)
         FROM pg_prepared_xacts WHERE database = current_database()) t
     ORDER BY age DESC, seconds DESC LIMIT 1";

/// How a database stands. It is not brought up to date, and no job is read.
///
/// # Errors
/// A URL that is not understood, a server that cannot be used, or a schema that this role may not use.
pub async fn status(url: &str, options: Options) -> Result<Status, Fault> {
    let database = Arc::new(database(url, options)?);
    let mut link = Link::new(Arc::clone(&database), Arc::default());
    let name = database.options.schema.clone();
    let connection = link.connection().await?;
    let standing = schema::look(connection, &name).await?;
    let engine = connection.read(Query::new(ENGINE)).await?;
    let bytes = connection.read(Query::new(BYTES).with(name)).await?;
    let oldest = connection.read(Query::new(OLDEST)).await?;
    let mut status = Status {
        place: database.describe(),
        engine: format!("PostgreSQL {}", text(&engine)),
        schema: number(standing.here),
        known: number(schema::known()),
        epoch: None,
        jobs: Vec::new(),
        bytes: u64::try_from(first(&bytes).unwrap_or(0)).unwrap_or(0),
        hosts: Vec::new(),
        hearing: Hearing::Looks,
        oldest: oldest
            .first()
            .map(|row| Oldest { who: row.get(0), seconds: u64::try_from(row.get::<_, i64>(1)).unwrap_or(0) }),
        cautions: database.cautions.clone(),
    };
    if standing.here > 0 {
        tell(connection, &mut status).await?;
        status.hosts = hosts::alive(&mut link).await?;
        if listening::is_heard(&database).await? {
            status.hearing = Hearing::Hints;
        }
    }
    Ok(status)
}

/// What the tables say.
async fn tell(connection: &mut Connection, status: &mut Status) -> Result<(), Fault> {
    let epoch = connection.read(Query::new(EPOCH)).await?;
    status.epoch = first(&epoch).and_then(|epoch| u64::try_from(epoch).ok());
    let jobs = connection.read(Query::new(JOBS)).await?;
    for row in &jobs {
        for (column, state) in StateName::ALL.into_iter().enumerate() {
            let jobs = row.get::<_, Option<i64>>(column).and_then(|jobs| u64::try_from(jobs).ok());
            status.jobs.extend(jobs.filter(|jobs| *jobs > 0).map(|jobs| (state, jobs)));
        }
    }
    Ok(())
}

fn text(rows: &[Row]) -> String {
    rows.first().map_or_else(String::new, |row| row.get(0))
}

fn first(rows: &[Row]) -> Option<i64> {
    rows.first().and_then(|row| row.get(0))
}
