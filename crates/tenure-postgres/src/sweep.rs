//! What time alone brings, in bounded steps: leases that lapse, jobs that come due.

use tenure_core::{Epoch, Fence, JobId, limits};
use tenure_store::Fault;
use tokio_postgres::Row;

use crate::aside::Odd;
use crate::heads::Head;
use crate::link::Link;
use crate::query::Query;
use crate::transaction::Gate;
use crate::value;
use crate::writing::Writing;

/// While keys have to be asked this is left to the sweep that asks them: who joins a line is in another round if the first
/// job with a share key has joined before.
const LINE_UP: &str = concat!(
    "WITH n AS MATERIALIZED (SELECT coalesce($1::bigint, micros()) AS now),
     moved AS (DELETE FROM later WHERE ctid = ANY (ARRAY(
         SELECT ctid FROM later
         WHERE due > $3 AND due <= (SELECT now FROM n) AND NOT gated AND NOT ",
    are_keys_asked!("'{}'::text[]", "'{}'::int[]"),
    "
         ORDER BY due, seq LIMIT $2 FOR UPDATE SKIP LOCKED)) RETURNING due, seq, lane, priority, begun),
     joined AS (INSERT INTO ready (due, round, seq, lane, priority, begun)
         SELECT due, 0, seq, lane, priority, begun FROM moved),
     t AS (INSERT INTO tally (lane, scheduled, queued) SELECT lane, -count(*), count(*) FROM moved GROUP BY lane)
     SELECT count(*) FROM moved"
);
/// The jobs that are to be taken from their holders, the first first, and the grants whose time is over. What somebody
/// else has locked is left to the next who looks.
/// Before the bar nothing is: a holder may have renewed with a server before this one.
/// `FOR UPDATE`, so that one under which a transaction has checked in is left to its holder until that ends: the
/// transaction may have locked the grant of a job that has got a standing since, which stays as long.
const LAPSED: &str = "WITH n AS MATERIALIZED (SELECT t.now FROM (SELECT coalesce($1::bigint, micros()) AS now) t
         WHERE NOT EXISTS (SELECT FROM meta WHERE name = 'bar' AND value > t.now)),
     over AS MATERIALIZED (SELECT fence, until, lane, block, seqs FROM granted WHERE until <= (SELECT now FROM n)
             AND bit_count(seqs) > 0 ORDER BY until LIMIT $2 FOR UPDATE SKIP LOCKED),
     found AS (
         SELECT o.until AS at, u.seq, o.lane, NULL::bigint AS fence
         FROM over o CROSS JOIN LATERAL each_seq(o.block, o.seqs) u (seq)
         UNION ALL
         SELECT * FROM (SELECT lapse, seq, lane, fence FROM standing WHERE lapse <= (SELECT now FROM n)
             ORDER BY lapse, seq LIMIT $2) l),
     first AS (SELECT * FROM found ORDER BY at, seq LIMIT $2)
     SELECT NULL::uuid, fence FROM over
     UNION ALL
     SELECT j.id, NULL FROM first f
     LEFT JOIN LATERAL (SELECT fence FROM standing WHERE seq = f.seq AND fence = f.fence FOR UPDATE SKIP LOCKED) s ON true
     LEFT JOIN LATERAL (SELECT fence FROM granted WHERE fence = f.fence LIMIT 1) g ON true
     LEFT JOIN LATERAL (SELECT fence FROM granted WHERE fence = f.fence FOR UPDATE SKIP LOCKED) l ON true
     CROSS JOIN LATERAL (SELECT id FROM job WHERE lane = f.lane AND seq = f.seq LIMIT 1) j
     WHERE f.fence IS NULL OR s.fence IS NOT NULL AND (g.fence IS NULL OR l.fence IS NOT NULL)";
/// What is taken from its holder is under a fence that nobody was granted.
const NEXT_FENCE: &str = "SELECT nextval(pg_get_serial_sequence('granted', 'fence'))";
/// A grant of which nothing is left stays while a transaction has checked in under it.
const CLOSE: &str = "DELETE FROM granted WHERE fence = ANY ($1) AND bit_count(seqs) = 0";

/// The statement that gives jobs that came due, behind where it is to begin, their places in line; it answers how many.
pub(crate) fn line_up(now: Option<i64>, from: Head) -> Query {
    Query::new(LINE_UP).with(now).with(value::bound(limits::SWEEP_ROWS)).with(from.later)
}

/// The statement that finds what is to be taken from its holder.
pub(crate) fn lapsed(now: Option<i64>) -> Query {
    Query::new(LAPSED).with(now).with(value::bound(limits::SWEEP_ROWS))
}

/// What is to be taken from its holder.
pub(crate) struct Lapsed {
    ids: Vec<JobId>,
    /// The grants whose time is over.
    over: Vec<i64>,
}

impl Lapsed {
    /// Reads what [`lapsed`] has found.
    pub(crate) fn read(read: &[Vec<Row>]) -> Self {
        let (mut ids, mut over) = (Vec::new(), Vec::new());
        for row in read.iter().flatten() {
            match row.get::<_, Option<i64>>(1) {
                Some(fence) => over.push(fence),
                None => ids.push(value::job_id(row, 0)),
            }
        }
        Self { ids, over }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ids.is_empty() && self.over.is_empty()
    }
}

/// Takes jobs from holders that fell silent or did not stop; answers how many.
pub(crate) async fn take_lapsed(link: &mut Link) -> Result<usize, Fault> {
    let (mut tries, mut gate) = (0, Gate::Open);
    loop {
        match try_take_lapsed(link, gate).await {
            Ok(Some(taken)) => return Ok(taken),
            Ok(None) => gate = Gate::Keys,
            Err(fault) => {
                if !link.may_try_again(&mut tries).await {
                    return Err(fault);
                }
            }
        }
    }
}

async fn try_take_lapsed(link: &mut Link, gate: Gate) -> Result<Option<usize>, Fault> {
    let told = link.database.time.told();
    let (mut writing, read) = Writing::begin(link, gate, vec![lapsed(told)]).await?;
    let lapsed = Lapsed::read(&read);
    if lapsed.is_empty() {
        writing.roll_back().await?;
        return Ok(Some(0));
    }
    let taken = writing.take_lapsed(&lapsed).await?;
    if taken.is_some() {
        writing.commit().await?
    } else {
        writing.roll_back().await?
    }
    Ok(taken)
}

impl Writing<'_> {
    /// Takes jobs from their holders; answers how many, and `None` if it has to be done under the lock of the gates.
    pub(crate) async fn take_lapsed(&mut self, lapsed: &Lapsed) -> Result<Option<usize>, Fault> {
        let (mut fence, mut count) = (None, 0);
        for ids in self.batches(lapsed.ids.clone()).await? {
            let mut jobs = Vec::new();
            for row in &self.read_batch(&ids).await? {
                let stored = match self.found(row).await? {
                    Ok(stored) => stored,
                    Err(fault) => {
                        self.set_running_aside(Odd::of(row), &fault)?;
                        continue;
                    }
                };
                if self.needs_gate(&stored) {
                    return Ok(None);
                }
                jobs.push(stored);
            }
            for stored in jobs {
                // Its worker may have renewed the lease meanwhile.
                let Some(mut transition) = tenure_core::lapse(&stored.job, Epoch::default(), self.now) else {
                    continue;
                };
                let next = match fence {
                    Some(fence) => fence,
                    None => self.next_fence().await?,
                };
                fence = Some(next);
                transition.fence = next;
                self.enter(stored, transition).await?;
                count += 1;
            }
        }
        self.write(Query::new(CLOSE).with(lapsed.over.clone()))?;
        Ok(Some(count))
    }

    pub(crate) async fn next_fence(&mut self) -> Result<Fence, Fault> {
        let read = self.read(vec![Query::new(NEXT_FENCE)]).await?;
        let number = read.iter().flatten().next().map(|row| value::fence(row.get(0))).transpose()?;
        number.ok_or_else(|| Fault::Broken("the server omitted a result".to_owned()))
    }
}

#[cfg(test)]
pub(crate) const STATEMENTS: [&str; 3] = [LINE_UP, LAPSED, CLOSE];
