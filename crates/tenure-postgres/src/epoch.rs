//! The epoch: whether this server knows of everything that was granted.
//!
//! A replica that is promoted may not have heard of the last grants of its primary. It would grant their fences a
//! second time, and what others hold. But whatever wrote on a server that comes after another writes on another
//! timeline, and `meta`, which came with the rest, says on which one it was written last. So each new connection
//! compares the two. If they differ, the epoch is raised, which makes every fence from then on greater than all
//! before, and nothing is granted for as long as the longest lease may last: whoever has something that this server
//! does not know of has stopped believing in it by then. What it knows of can be renewed and given back meanwhile.
//!
//! A dump that is restored elsewhere is noticed as well: there, the system identifier is another one. Two things are
//! not: files that are put back as they were once, and an old primary to which somebody returns although another
//! server has granted since. Both have the timeline that they had.

use tenure_store::Fault;

use crate::connection::Connection;
use crate::fault::Effect;
use crate::query::Query;
use crate::time::Time;

const IS_SAME: &str = "SELECT (SELECT value FROM meta WHERE name = 'system') = here.system
         AND (SELECT value FROM meta WHERE name = 'timeline') = here.timeline
     FROM (SELECT this_system() AS system, this_timeline() AS timeline) here";
/// One of those who come at the same time raises it; the others find that done.
const ONE_BY_ONE: &str = "SELECT value FROM meta WHERE name = 'epoch' FOR UPDATE";
const RAISE: &str = "UPDATE meta m SET value = CASE m.name
         WHEN 'epoch' THEN m.value + 1
         WHEN 'bar' THEN greatest(m.value, coalesce($1::bigint, micros()) + greatest($2::bigint,
             (SELECT coalesce(max(ttl), 0) FROM lease WHERE NOT forgotten)))
         WHEN 'system' THEN here.system
         ELSE here.timeline END
     FROM (SELECT this_system() AS system, this_timeline() AS timeline) here
     WHERE m.name IN ('epoch', 'bar', 'system', 'timeline')
         AND ((SELECT value FROM meta WHERE name = 'system') <> here.system
             OR (SELECT value FROM meta WHERE name = 'timeline') <> here.timeline)";

/// The fences of jobs are numbers of this sequence.
const RAISE_JOBS: &str = "SELECT setval('granted_fence_seq',
         greatest((SELECT last_value FROM granted_fence_seq), (SELECT value FROM meta WHERE name = 'epoch') << 40))";

/// A lease that this server has never heard of is taken to last so long at the most, unless there is a longer one.
const LEAST: i64 = 30_000_000;

/// Compares the server with the one that wrote last, and raises the epoch if it is another one.
pub(crate) async fn compare(connection: &mut Connection, time: &Time) -> Result<(), Fault> {
    let same = connection.read(Query::new(IS_SAME)).await?;
    if same.first().is_some_and(|row| row.get::<_, Option<bool>>(0) == Some(true)) {
        return Ok(());
    }
    connection.in_transaction = true;
    let raise = Query::new(RAISE).with(time.told()).with(LEAST);
    let raising =
        [Query::new("BEGIN"), Query::new(ONE_BY_ONE), raise, Query::new(RAISE_JOBS), Query::new("COMMIT")];
    let raised = connection.run(&raising, Effect::Commits).await?;
    connection.in_transaction = false;
    if raised.get(2).is_some_and(|raised| raised.changed > 0) {
        tracing::warn!(
            "this server may not know all that was granted before; the epoch is raised, and for a while no lease is granted"
        );
    }
    Ok(())
}
