//! Removing what has expired.

use tenure_core::limits;
use tenure_store::Fault;
use tenure_store::engine::records::prunes_on;

use crate::fault::Effect;
use crate::link::Link;
use crate::query::Query;
use crate::value;

/// What somebody is writing is looked at later.
const PRUNE: &str = "DELETE FROM record WHERE ctid = ANY (ARRAY(SELECT ctid FROM record
         WHERE expires <= (SELECT coalesce($1::bigint, micros())) ORDER BY expires LIMIT $2 FOR UPDATE SKIP LOCKED))";
const PRUNE_ENTRIES: &str = "DELETE FROM journal_entry WHERE ctid = ANY (ARRAY(SELECT ctid FROM journal_entry
         WHERE expires <= (SELECT coalesce($1::bigint, micros())) ORDER BY expires LIMIT $2 FOR UPDATE SKIP LOCKED))";

/// Removes a bounded number of expired records and journal entries. Returns true if more may have expired.
pub(crate) async fn prune(link: &mut Link) -> Result<bool, Fault> {
    let (told, most) = (link.database.time.told(), value::bound(limits::PRUNE_RECORDS));
    let queries = [PRUNE, PRUNE_ENTRIES].map(|sql| Query::new(sql).with(told).with(most));
    let pruned = link.connection().await?.run(&queries, Effect::Commits).await?;
    Ok(pruned.iter().any(|pruned| prunes_on(usize::try_from(pruned.changed).unwrap_or(usize::MAX))))
}

#[cfg(test)]
pub(super) const STATEMENTS: [&str; 2] = [PRUNE, PRUNE_ENTRIES];
