//! What time alone brings, in bounded steps: leases that lapse, jobs that come due.

use tenure_core::{Epoch, Fence, JobId, limits};
use tenure_store::Fault;

use crate::link::Link;
use crate::query::Query;
use crate::rows;
use crate::transaction::Gate;
use crate::value;
use crate::writing::Writing;

const LINE_UP: &str = "WITH moved AS (DELETE FROM later WHERE ctid = ANY (ARRAY(
         SELECT ctid FROM later WHERE due <= (SELECT coalesce($1::bigint, micros())) AND NOT gated
         ORDER BY due, seq LIMIT $2 FOR UPDATE SKIP LOCKED)) RETURNING due, seq, lane, priority, begun),
     joined AS (INSERT INTO ready (due, round, seq, lane, priority, begun)
         SELECT due, 0, seq, lane, priority, begun FROM moved),
     t AS (INSERT INTO tally (lane, scheduled, queued) SELECT lane, -count(*), count(*) FROM moved GROUP BY lane)
     SELECT count(*) FROM moved";
/// The jobs that are to be taken from their holders, the first first, and the grants whose time is over. A grant is
/// looked at once: those of its jobs that are held for longer have a lapse of their own. What somebody else has locked
/// is left to the next who looks.
/// `FOR UPDATE`, so that one under which a transaction has checked in is left to its holder until that ends.
const LAPSED: &str = "WITH n AS MATERIALIZED (SELECT coalesce($1::bigint, micros()) AS now),
     over AS MATERIALIZED (SELECT fence, until, seqs FROM granted WHERE is_open AND until <= (SELECT now FROM n)
         ORDER BY until LIMIT $2 FOR UPDATE SKIP LOCKED),
     found AS (
         SELECT o.until AS at, s.seq, s.lane FROM over o CROSS JOIN LATERAL unnest(o.seqs) u (seq)
         CROSS JOIN LATERAL (SELECT seq, lane FROM standing WHERE seq = u.seq AND fence = o.fence
             AND state > 0 AND state < 2 AND lapse IS NULL LIMIT 1) s
         UNION ALL
         SELECT * FROM (SELECT lapse, seq, lane FROM standing WHERE lapse <= (SELECT now FROM n)
             ORDER BY lapse, seq LIMIT $2) l),
     first AS (SELECT * FROM found ORDER BY at, seq LIMIT $2)
     SELECT NULL::uuid, fence FROM over
     UNION ALL
     SELECT j.id, NULL FROM first f
     CROSS JOIN LATERAL (SELECT FROM standing WHERE seq = f.seq FOR UPDATE SKIP LOCKED) s
     CROSS JOIN LATERAL (SELECT id FROM job WHERE lane = f.lane AND seq = f.seq LIMIT 1) j";
/// What is taken from its holder is under a fence that nobody was granted.
const NEXT_FENCE: &str = "SELECT nextval(pg_get_serial_sequence('granted', 'fence'))";
const CLOSE: &str = "UPDATE granted SET is_open = false WHERE fence = ANY ($1)
     AND NOT EXISTS (SELECT FROM unnest(granted.seqs) u (seq) CROSS JOIN LATERAL (SELECT FROM standing
         WHERE seq = u.seq AND fence = granted.fence AND state > 0 AND state < 2 AND lapse IS NULL LIMIT 1) s)";

/// The statement that gives jobs that came due their places in line; it answers how many.
pub(crate) fn line_up(now: Option<i64>) -> Query {
    Query::new(LINE_UP).with(now).with(value::bound(limits::SWEEP_ROWS))
}

/// Takes jobs from holders that fell silent or did not stop; answers how many.
pub(crate) async fn take_lapsed(link: &mut Link) -> Result<usize, Fault> {
    let mut tries = 0;
    loop {
        let tried = try_take_lapsed(link).await;
        if tried.is_ok() || !link.may_try_again(&mut tries).await {
            return tried;
        }
    }
}

async fn try_take_lapsed(link: &mut Link) -> Result<usize, Fault> {
    let told = link.database.time.told();
    let look = Query::new(LAPSED).with(told).with(value::bound(limits::SWEEP_ROWS));
    let (mut writing, read) = Writing::begin(link, Gate::Open, vec![look]).await?;
    let (mut ids, mut over) = (Vec::new(), Vec::new());
    for row in read.iter().flatten() {
        match row.get::<_, Option<i64>>(1) {
            Some(fence) => over.push(fence),
            None => ids.push(value::job_id(row, 0)),
        }
    }
    if ids.is_empty() && over.is_empty() {
        writing.roll_back().await?;
        return Ok(0);
    }
    let lapsed = writing.take_back(&ids).await?;
    writing.write(Query::new(CLOSE).with(over))?;
    writing.commit().await?;
    Ok(lapsed)
}

impl Writing<'_> {
    async fn take_back(&mut self, ids: &[JobId]) -> Result<usize, Fault> {
        let read = self.read(vec![rows::by_ids(ids.iter().copied())]).await?;
        let (mut fence, mut count) = (None, 0);
        for row in read.last().into_iter().flatten() {
            let stored = match rows::stored(row) {
                Ok(stored) => stored,
                Err(fault) => {
                    tracing::error!(%fault, "a job that lapsed cannot be read");
                    continue;
                }
            };
            // Somebody may have renewed it meanwhile.
            let Some(mut transition) = tenure_core::lapse(&stored.job, Epoch::default(), self.now) else {
                continue;
            };
            let next = match fence {
                Some(fence) => fence,
                None => self.next_fence().await?,
            };
            fence = Some(next);
            transition.fence = next;
            self.enter(stored, transition)?;
            count += 1;
        }
        Ok(count)
    }

    async fn next_fence(&mut self) -> Result<Fence, Fault> {
        let read = self.read(vec![Query::new(NEXT_FENCE)]).await?;
        let number = read.iter().flatten().next().map(|row| value::fence(row.get(0))).transpose()?;
        number.ok_or_else(|| Fault::Broken("the server has left out an answer".to_owned()))
    }
}
