//! A bounded step of upkeep.

use tenure_core::{JobId, limits};
use tenure_store::{Fault, Tended};

use crate::aside::Odd;
use crate::fault::Effect;
use crate::heads;
use crate::keyed::{self, Swept};
use crate::link::Link;
use crate::news::News;
use crate::query::{Answered, Query};
use crate::records;
use crate::rows::{self, Stored};
use crate::sweep;
use crate::transaction::Gate;
use crate::upkeep::{Chore, Due};
use crate::value;
use crate::writing::Writing;

/// Very many may come to their end at once.
const FREE_KEYS: &str = "DELETE FROM unique_key WHERE ctid = ANY (ARRAY(SELECT ctid FROM unique_key
         WHERE until <= (SELECT coalesce($1::bigint, micros())) ORDER BY until LIMIT $2 FOR UPDATE SKIP LOCKED))";
/// Lost hosts over their time, and the oldest beyond so many.
const GONE_HOSTS: &str = "WITH n AS MATERIALIZED (SELECT coalesce($1::bigint, micros()) AS now)
     DELETE FROM host WHERE ctid = ANY (ARRAY(SELECT ctid FROM host
         WHERE until <= (SELECT now FROM n) - $3
             OR id IN (SELECT id FROM host WHERE until <= (SELECT now FROM n) ORDER BY until DESC, id OFFSET $4)
         ORDER BY until LIMIT $2 FOR UPDATE SKIP LOCKED))";
/// Grants of which nothing is left. One under which a transaction has checked in keeps what has got a standing since from
/// being taken, and stays for as long.
const SPENT: &str = "DELETE FROM granted WHERE ctid = ANY (ARRAY(SELECT ctid FROM granted
         WHERE until <= (SELECT coalesce($1::bigint, micros())) AND bit_count(seqs) = 0
         ORDER BY until LIMIT $2 FOR UPDATE SKIP LOCKED))";
/// When there are many rows, they become one for each lane.
const FOLD: &str = "WITH gone AS (DELETE FROM tally WHERE ctid = ANY (ARRAY(SELECT ctid FROM tally
         WHERE (SELECT count(*) FROM (SELECT FROM tally LIMIT 101 + 2 * (SELECT count(*) FROM lane)) t) > 100 + 2 * (SELECT count(*) FROM lane)
         LIMIT 10000 FOR UPDATE SKIP LOCKED)) RETURNING *)
     INSERT INTO tally (lane, scheduled, queued, blocked, running, succeeded, failed, cancelled)
     SELECT lane, sum(scheduled), sum(queued), sum(blocked), sum(running), sum(succeeded), sum(failed), sum(cancelled)
     FROM gone GROUP BY lane";
/// What somebody has locked is looked at later. Whoever changes jobs locks them before what tells of them; here it is the
/// other way round, so nobody is waited for.
const EXPIRED: &str = "WITH n AS MATERIALIZED (SELECT coalesce($1::bigint, micros()) AS now),
     together AS MATERIALIZED (SELECT lane, block, seqs FROM receipt WHERE expires <= (SELECT now FROM n)
         ORDER BY expires LIMIT $2 FOR UPDATE SKIP LOCKED),
     alone AS MATERIALIZED (SELECT lane, seq FROM standing WHERE expires <= (SELECT now FROM n) AND state >= 2
         ORDER BY expires LIMIT $2 FOR UPDATE SKIP LOCKED)
     SELECT j.id FROM (
         SELECT r.lane, u.seq FROM together r CROSS JOIN LATERAL each_seq(r.block, r.seqs) u (seq)
         UNION ALL SELECT lane, seq FROM alone LIMIT $2) e
     CROSS JOIN LATERAL (SELECT id FROM job WHERE lane = e.lane AND seq = e.seq LIMIT 1 FOR UPDATE SKIP LOCKED) j";

/// Sweeps, and removes what nobody needs any more, as far as something of it is to be done.
pub(crate) async fn tend(link: &mut Link, due: &Due) -> Result<Tended, Fault> {
    let swept = if due.has(Chore::Keys) { keyed::sweep(link).await? } else { Swept::default() };
    // Before anything is taken from its holder: by that keys may have to be asked, and what came due would wait for the
    // step that asks them.
    let lined_up = if due.has(Chore::Line) { line_up(link).await? } else { 0 };
    let taken = if due.has(Chore::Lapsed) { sweep::take_lapsed(link).await? } else { 0 };
    let (lapsed, came_due) = (swept.lapsed + taken, swept.due + lined_up);
    // What ended by that may concern others.
    let goes_on = swept.goes_on || (taken > 0 && keyed::is_due(link).await?);
    let spends_on = clear(link, due).await?;
    // What has just ended may be kept for no time at all.
    let (pruned, prunes_on) =
        if due.has(Chore::Expired) || lapsed > 0 { prune(link).await? } else { (0, false) };
    let records_left = due.has(Chore::Records) && records::prune(link).await?;
    if lapsed + came_due > 0 {
        link.memory.publish(News::of_due());
    }
    let is_full = lapsed.max(came_due) >= limits::SWEEP_ROWS;
    let more = is_full || prunes_on || goes_on || spends_on || records_left;
    Ok(Tended { lapsed, due: came_due, pruned, more })
}

/// Gives jobs that came due their places in line; answers how many.
async fn line_up(link: &mut Link) -> Result<usize, Fault> {
    let line_up = sweep::line_up(link.database.time.told(), heads::START);
    let answered = link.connection().await?.run(&[line_up], Effect::Commits).await?;
    let moved =
        answered.first().and_then(|answered| answered.rows.first()).map_or(0, |row| row.get::<_, i64>(0));
    Ok(usize::try_from(moved).unwrap_or(0))
}

/// Removes what needs no more than a statement; answers whether a bound stopped one.
async fn clear(link: &mut Link, due: &Due) -> Result<bool, Fault> {
    let told = link.database.time.told();
    let bounded = |sql| Query::new(sql).with(told).with(value::bound(limits::SWEEP_ROWS));
    let kept = value::micros(limits::LOST_HOSTS_KEPT);
    let (bounds, queries): (Vec<bool>, Vec<Query>) = [
        (Chore::FreeKeys, true, bounded(FREE_KEYS)),
        (Chore::GoneHosts, true, bounded(GONE_HOSTS).with(kept).with(value::bound(limits::LOST_HOSTS))),
        (Chore::Tally, false, Query::new(FOLD)),
        (Chore::Spent, true, bounded(SPENT)),
    ]
    .into_iter()
    .filter_map(|(chore, is_bounded, query)| due.has(chore).then_some((is_bounded, query)))
    .unzip();
    if queries.is_empty() {
        return Ok(false);
    }
    let answered = link.connection().await?.run(&queries, Effect::Commits).await?;
    let is_full = |answered: &Answered| answered.changed >= limits::SWEEP_ROWS as u64;
    Ok(bounds.iter().zip(&answered).any(|(is_bounded, answered)| *is_bounded && is_full(answered)))
}

/// Removes finished jobs whose retention is over and that no unfinished job depends on; answers how many, and whether a bound stopped it.
async fn prune(link: &mut Link) -> Result<(usize, bool), Fault> {
    let mut tries = 0;
    loop {
        let tried = try_prune(link).await;
        if tried.is_ok() || !link.may_try_again(&mut tries).await {
            return tried;
        }
    }
}

async fn try_prune(link: &mut Link) -> Result<(usize, bool), Fault> {
    let expired = Query::new(EXPIRED).with(link.database.time.told()).with(value::bound(limits::PRUNE_JOBS));
    let (mut writing, read) = Writing::begin(link, Gate::Open, vec![expired]).await?;
    let ids: Vec<JobId> = read.iter().flatten().map(|row| value::job_id(row, 0)).collect();
    if ids.is_empty() {
        writing.roll_back().await?;
        return Ok((0, false));
    }
    let is_full = ids.len() >= limits::PRUNE_JOBS;
    let mut pruned = 0;
    for ids in writing.batches(ids).await? {
        let mut read = writing.read(vec![keyed::needed(&ids)]).await?;
        let needed = keyed::read_needed(&read.pop().unwrap_or_default());
        let mut gone: Vec<Stored> = Vec::new();
        for row in &writing.read_batch(&ids).await? {
            match rows::stored(row) {
                Ok(stored) if needed.contains(&stored.job.id) => writing.keep_on(stored),
                Ok(stored) => gone.push(stored),
                Err(fault) => writing.set_expired_aside(Odd::of(row), &fault)?,
            }
        }
        gone.iter().for_each(|stored| writing.uncount(stored));
        writing.remove(&gone)?;
        pruned += gone.len();
    }
    writing.commit().await?;
    Ok((pruned, is_full))
}

#[cfg(test)]
pub(crate) const STATEMENTS: [&str; 3] = [FREE_KEYS, SPENT, EXPIRED];
