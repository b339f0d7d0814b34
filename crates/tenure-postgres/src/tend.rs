//! A bounded step of upkeep.

use tenure_core::{JobId, limits};
use tenure_store::{Fault, Tended};

use crate::aside::Odd;
use crate::fault::Effect;
use crate::keyed;
use crate::link::Link;
use crate::news::News;
use crate::query::Query;
use crate::rows::{self, Stored};
use crate::sweep;
use crate::transaction::Gate;
use crate::value;
use crate::writing::Writing;

const FREE_KEYS: &str = "DELETE FROM unique_key WHERE until <= (SELECT coalesce($1::bigint, micros()))";
const GONE_HOSTS: &str = "DELETE FROM host WHERE until <= (SELECT coalesce($1::bigint, micros()))";
/// When there are many rows, they become one for each lane.
const FOLD: &str = "WITH gone AS (DELETE FROM tally WHERE ctid = ANY (ARRAY(SELECT ctid FROM tally
         WHERE (SELECT count(*) FROM (SELECT FROM tally LIMIT 1000) t) > 100 + 2 * (SELECT count(*) FROM lane)
         LIMIT 10000 FOR UPDATE SKIP LOCKED)) RETURNING *)
     INSERT INTO tally (lane, scheduled, queued, blocked, running, succeeded, failed, cancelled)
     SELECT lane, sum(scheduled), sum(queued), sum(blocked), sum(running), sum(succeeded), sum(failed), sum(cancelled)
     FROM gone GROUP BY lane";
/// With the instant by which they have: whether their jobs have, too, is asked by the same.
const EXPIRED: &str = "WITH n AS MATERIALIZED (SELECT coalesce($1::bigint, micros()) AS now)
     SELECT ctid::text, ARRAY(SELECT each_seq(seqs)), (SELECT now FROM n) FROM ended WHERE expires <= (SELECT now FROM n)
     ORDER BY expires LIMIT 100 FOR UPDATE SKIP LOCKED";
/// A job that was done again since has another end. One that somebody has locked has no id here: it is looked at later.
/// Whoever changes jobs locks them before their standings; here it is the other way round, so nobody is waited for.
const OF_EXPIRED: &str = "SELECT s.seq, j.id FROM unnest($1::bigint[]) u (seq)
     CROSS JOIN LATERAL (SELECT seq, lane FROM standing WHERE seq = u.seq AND state >= 2 AND expires <= $2 LIMIT 1) s
     LEFT JOIN LATERAL (SELECT j.id FROM (SELECT id FROM job WHERE lane = s.lane AND seq = s.seq LIMIT 1
             FOR UPDATE SKIP LOCKED) j
         CROSS JOIN LATERAL (SELECT FROM standing WHERE seq = s.seq AND state >= 2 AND expires <= $2
             FOR UPDATE SKIP LOCKED) l) j ON true";
const LOOK_LATER: &str = "INSERT INTO ended (expires, seqs) VALUES ($1, gather_seqs($2))";
const LOOKED_AT: &str = "DELETE FROM ended WHERE ctid = ANY ($1::text[]::tid[])";
const LOOKED_AT_SOME: &str = "UPDATE ended SET seqs = gather_seqs($2) WHERE ctid = $1::text::tid";

/// Sweeps, and removes what nobody needs any more.
pub(crate) async fn tend(link: &mut Link) -> Result<Tended, Fault> {
    let told = link.database.time.told();
    let swept = keyed::sweep(link).await?;
    let taken = sweep::take_lapsed(link).await?;
    let lapsed = swept.lapsed + taken;
    // What ended by that may concern others.
    let goes_on = swept.goes_on || (taken > 0 && keyed::is_due(link).await?);
    let queries = [
        sweep::line_up(told),
        Query::new(FREE_KEYS).with(told),
        Query::new(GONE_HOSTS).with(told),
        Query::new(FOLD),
    ];
    let answered = link.connection().await?.run(&queries, Effect::Commits).await?;
    let due =
        answered.first().and_then(|answered| answered.rows.first()).map_or(0, |row| row.get::<_, i64>(0));
    let due = usize::try_from(due).unwrap_or(0) + swept.due;
    let (pruned, prunes_on) = prune(link).await?;
    if lapsed + due > 0 {
        link.memory.publish(News::of_due());
    }
    let more = lapsed >= limits::SWEEP_ROWS || due >= limits::SWEEP_ROWS || prunes_on || goes_on;
    Ok(Tended { lapsed, due, pruned, more })
}

/// Removes finished jobs whose time of keeping is over; answers how many, and whether a bound stopped it.
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
    let told = link.database.time.told();
    let (mut writing, read) = Writing::begin(link, Gate::Open, vec![Query::new(EXPIRED).with(told)]).await?;
    let (mut seqs, mut looked_at, mut rest, mut now) = (Vec::new(), Vec::new(), None, 0_i64);
    for row in read.iter().flatten() {
        let (at, mut of_row): (String, Vec<i64>) = (row.get(0), row.get(1));
        now = row.get(2);
        let room = limits::PRUNE_JOBS - seqs.len();
        if room == 0 {
            break;
        }
        of_row.sort_unstable();
        if of_row.len() > room {
            let left = of_row.split_off(room);
            rest = Some((at, left));
        } else {
            looked_at.push(at);
        }
        seqs.extend(of_row);
    }
    if seqs.is_empty() {
        writing.roll_back().await?;
        return Ok((0, false));
    }
    let is_full = seqs.len() >= limits::PRUNE_JOBS;
    // A job that was done again and has ended again is named more than once.
    seqs.sort_unstable();
    seqs.dedup();
    let of_expired = Query::new(OF_EXPIRED).with(seqs).with(now);
    let (mut ids, mut later): (Vec<JobId>, Vec<i64>) = Default::default();
    for row in writing.read(vec![of_expired]).await?.iter().flatten() {
        match row.get::<_, Option<uuid::Uuid>>(1) {
            Some(_) => ids.push(value::job_id(row, 1)),
            None => later.push(row.get(0)),
        }
    }
    if !later.is_empty() {
        writing.write(Query::new(LOOK_LATER).with(now).with(later))?;
    }
    let read = writing.read(vec![rows::by_ids(ids)]).await?;
    let mut gone: Vec<Stored> = Vec::new();
    for row in read.iter().flatten() {
        match rows::stored(row) {
            Ok(stored) => gone.push(stored),
            Err(fault) => writing.set_expired_aside(Odd::of(row), &fault)?,
        }
    }
    gone.iter().for_each(|stored| writing.uncount(stored));
    writing.remove(&gone)?;
    writing.write(Query::new(LOOKED_AT).with(looked_at))?;
    if let Some((at, left)) = rest {
        writing.write(Query::new(LOOKED_AT_SOME).with(at).with(left))?;
    }
    let pruned = gone.len();
    writing.commit().await?;
    Ok((pruned, is_full))
}
