//! Which server this is: one that may have forgotten grants begins a new epoch.
//!
//! A replica that was promoted may lack the last transactions of the server before it, and so may a restored backup. Both
//! have another timeline, or are another system. What they knew is in the database itself, so it lacks them, too.
//!
//! The epoch makes every fence from then on greater than all before. No lease is granted, no job is handed out and none
//! is taken from its holder for as long as the longest ownership may last: whoever has one that this server does not know
//! of has stopped believing in it by then. What it knows of can be renewed, given back and settled meanwhile.
//!
//! What keeps its timeline is not noticed: files that are put back as they were once, a dump that is restored on the
//! server from which it came, and an old primary to which somebody returns although another server has granted since.

use std::time::Duration;

use tenure_core::{Epoch, Fence};
use tenure_store::Fault;

use crate::connection::Connection;
use crate::fault::{Effect, unreadable};
use crate::query::Query;
use crate::value;

/// The identity of a server: its system, and its timeline in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Origin {
    pub system: i64,
    pub timeline: i64,
}

/// What tells the identity of a server, its version, and whether it takes writes.
pub(crate) const WHICH: &str = "SELECT current_setting('server_version_num')::int, pg_is_in_recovery(),
         (SELECT system_identifier FROM pg_control_system()),
         CASE WHEN pg_is_in_recovery() THEN 0
             ELSE ('x' || lpad(left(pg_walfile_name(pg_current_wal_lsn()), 8), 16, '0'))::bit(64)::bigint END";
const LOCK: &str = "SELECT pg_advisory_xact_lock(1413827145, hashtext(current_schema()))";
const KNOWN: &str = "SELECT (SELECT value FROM meta WHERE name = 'system'),
     (SELECT value FROM meta WHERE name = 'timeline'), (SELECT value FROM meta WHERE name = 'epoch')";
const KEEP: &str = "INSERT INTO meta (name, value) VALUES ('system', $1), ('timeline', $2), ('epoch', $3), ('since', micros())
     ON CONFLICT (name) DO UPDATE SET value = excluded.value";
/// Numbers of grants go on above this one.
const RAISE: &str = "SELECT setval(pg_get_serial_sequence('granted', 'fence'),
     greatest((SELECT last_value FROM pg_sequences WHERE schemaname = current_schema()
         AND sequencename = 'granted_fence_seq'), $1))";

/// Nothing is granted before this instant.
const BAR: &str = "UPDATE meta SET value = greatest(value, coalesce($1::bigint, micros())
         + greatest($2::bigint, (SELECT max(ttl) FROM lease WHERE NOT forgotten),
             (SELECT value FROM meta WHERE name = 'ttl')))
     WHERE name = 'bar'";

/// An ownership that this server has never heard of is taken to last so long at the most, unless another one lasts longer.
const LEAST: Duration = Duration::from_secs(30);

/// Begins a new epoch if this server is another one than the database knows.
pub(crate) async fn settle(
    connection: &mut Connection,
    origin: Origin,
    now: Option<i64>,
) -> Result<(), Fault> {
    connection.in_transaction = true;
    let begin = [Query::new("BEGIN"), Query::new(LOCK), Query::new(KNOWN)];
    let known = connection.run(&begin, Effect::None).await?;
    let known = known.last().and_then(|answered| answered.rows.first());
    let column = |column: usize| known.and_then(|row| row.get::<_, Option<i64>>(column));
    let before = column(0).zip(column(1)).map(|(system, timeline)| Origin { system, timeline });
    let epoch = column(2).unwrap_or(0);
    let epoch =
        u16::try_from(epoch).map(Epoch::new).map_err(|_| unreadable(format_args!("epoch {epoch}")))?;
    let mut queries = Vec::new();
    if before != Some(origin) {
        let epoch = if before.is_some() { epoch.next() } else { epoch };
        let keep = Query::new(KEEP).with(origin.system).with(origin.timeline);
        queries.push(keep.with(i64::from(epoch.number())));
        if before.is_some() {
            tracing::warn!(
                epoch = epoch.number(),
                "connected to another server, which may lack the latest grants; starting a new epoch and granting nothing for a while"
            );
            queries.push(Query::new(BAR).with(now).with(value::micros(LEAST)));
            queries.push(Query::new(RAISE).with(value::signed(Fence::NONE.next(epoch).number())));
        }
    }
    queries.push(Query::new("COMMIT"));
    connection.run(&queries, Effect::Commits).await?;
    connection.in_transaction = false;
    Ok(())
}
