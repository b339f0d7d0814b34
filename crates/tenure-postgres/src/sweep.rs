//! What time alone brings, in bounded steps: leases that lapse, jobs that come due.

use tenure_core::{Epoch, Fence, JobId, limits};
use tenure_store::Fault;
use tokio_postgres::Row;

use crate::aside::Odd;
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
/// Before the bar nothing is: a holder may have renewed with a server before this one.
/// `FOR UPDATE`, so that one under which a transaction has checked in is left to its holder until that ends.
const LAPSED: &str = "WITH n AS MATERIALIZED (SELECT t.now FROM (SELECT coalesce($1::bigint, micros()) AS now) t
         WHERE NOT EXISTS (SELECT FROM meta WHERE name = 'bar' AND value > t.now)),
     over AS MATERIALIZED (SELECT fence, until, seqs FROM granted WHERE is_open AND until <= (SELECT now FROM n)
         ORDER BY until LIMIT $2 FOR UPDATE SKIP LOCKED),
     found AS (
         SELECT o.until AS at, s.seq, s.lane FROM over o CROSS JOIN LATERAL each_seq(o.seqs) u (seq)
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
     AND NOT EXISTS (SELECT FROM each_seq(granted.seqs) u (seq) CROSS JOIN LATERAL (SELECT FROM standing
         WHERE seq = u.seq AND fence = granted.fence AND state > 0 AND state < 2 AND lapse IS NULL LIMIT 1) s)";

/// The statement that gives jobs that came due their places in line; it answers how many.
pub(crate) fn line_up(now: Option<i64>) -> Query {
    Query::new(LINE_UP).with(now).with(value::bound(limits::SWEEP_ROWS))
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
        let read = self.read(vec![rows::by_ids(lapsed.ids.iter().copied())]).await?;
        let mut jobs = Vec::new();
        for row in read.last().into_iter().flatten() {
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
        let (mut fence, mut count) = (None, 0);
        for stored in jobs {
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
            self.enter(stored, transition).await?;
            count += 1;
        }
        self.write(Query::new(CLOSE).with(lapsed.over.clone()))?;
        Ok(Some(count))
    }

    pub(crate) async fn next_fence(&mut self) -> Result<Fence, Fault> {
        let read = self.read(vec![Query::new(NEXT_FENCE)]).await?;
        let number = read.iter().flatten().next().map(|row| value::fence(row.get(0))).transpose()?;
        number.ok_or_else(|| Fault::Broken("the server has left out an answer".to_owned()))
    }
}
