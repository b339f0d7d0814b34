//! What the tables of a schema take.

use tenure_store::{Fault, Sizes};

use crate::link::Link;
use crate::query::Query;

/// Each table with its indexes and what is kept beside it. What is free on the server's disk no statement tells.
const TABLES: &str = "SELECT c.relname::text, pg_total_relation_size(c.oid)::bigint FROM pg_class c
     WHERE c.relnamespace = to_regnamespace($1) AND c.relkind = 'r' ORDER BY c.relname";

pub(crate) async fn look(link: &mut Link) -> Result<Sizes, Fault> {
    let schema = link.database.options.schema.clone();
    let rows = link.connection().await?.read(Query::new(TABLES).with(schema)).await?;
    let part = |row: &tokio_postgres::Row| {
        let bytes: Option<i64> = row.get(1);
        (row.get(0), bytes.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0))
    };
    Ok(Sizes { parts: rows.iter().map(part).collect(), disk_free: None })
}
