//! What transactions of users' own have left to do for whoever has the lock of the gates next: it is done before
//! anything else is decided. See `migrations/0005_joint.sql`.

use std::time::Duration;

use tenure_core::{AfterJobs, Cancel, CancelRequest, JobId, Noticed, State, StateName, limits};
use tenure_store::Fault;
use tokio_postgres::Row;

use crate::enqueue::end_replaced;
use crate::fault::{is_unreadable, unreadable};
use crate::query::Query;
use crate::rows::{self, Stored};
use crate::transaction::Gate;
use crate::value;
use crate::writing::Writing;

/// The last column tells whether the job is new and has no place yet, because that arrival was postponed.
///
/// A longer note would be cut anyway. SQL could once write one of any length.
const ARRIVED: &str = "WITH n AS MATERIALIZED (SELECT coalesce($2::bigint, micros()) AS now)
     SELECT a.seq, a.what, a.id, a.by, left(a.note, 1025), EXISTS (SELECT FROM arrival b
         WHERE b.seq = a.seq AND b.what = 0 AND b.what < a.what AND b.again > (SELECT now FROM n))
     FROM arrival a WHERE a.again <= (SELECT now FROM n) ORDER BY a.seq, a.what LIMIT $1";
const DISPLACE: &str = "INSERT INTO arrival (seq, what, id, by, again)
     SELECT seq, 1, id, $2, again FROM arrival WHERE seq = $1 AND what = 0
     ON CONFLICT (seq, what) DO UPDATE SET by = excluded.by";
const IS_DONE: &str = "DELETE FROM arrival WHERE seq = $1 AND what = $2";
const THERE: &str = "SELECT id FROM job WHERE id = ANY ($1)";

/// More rounds of arrivals than that are left to the next transaction.
const ROUNDS: usize = 50;

/// How long a job that is asked to stop by a statement has for it.
const GRACE: Duration = Duration::from_secs(30);

const NEW: i16 = 0;
const DISPLACED: i16 = 1;
const SUCCEEDED: i16 = 2;
const ASKED_TO_CANCEL: i16 = 3;

/// What is read at the beginning of a transaction.
pub(crate) fn read_under(gate: Gate, now: Option<i64>) -> Vec<Query> {
    match gate {
        Gate::Open => Vec::new(),
        Gate::Keys => vec![look(now)],
    }
}

fn look(now: Option<i64>) -> Query {
    Query::new(ARRIVED).with(value::bound(limits::SWEEP_ROWS)).with(now)
}

/// The outcome of an arrival.
enum Arrived {
    /// Nothing is left to do for it.
    LetIn,
    /// This version cannot read its job or limit, or does not know its sort.
    Odd(Fault),
}

impl Writing<'_> {
    /// Does what was left to do, in the order of jobs.
    pub(crate) async fn let_in(&mut self, mut arrived: Vec<Row>) -> Result<(), Fault> {
        for _ in 0..ROUNDS {
            let mut postponed = None;
            for row in &arrived {
                let (seq, what): (i64, i16) = (row.get(0), row.get(1));
                if row.get(5) || postponed == Some(seq) {
                    self.set_followers_aside(seq)?;
                    continue;
                }
                match self.let_one_in(row).await {
                    Ok(Arrived::LetIn) => {}
                    Ok(Arrived::Odd(fault)) => {
                        self.set_arrival_aside(seq, what, &fault)?;
                        if what == NEW {
                            postponed = Some(seq);
                        }
                        continue;
                    }
                    // Another row is unreadable. A retry would repeat the part that is already done.
                    Err(fault) if is_unreadable(&fault) => {
                        tracing::error!(seq, what, %fault, "dropping an arrival because of unreadable data; see `tenure db check`");
                    }
                    Err(fault) => return Err(fault),
                }
                self.write(Query::new(IS_DONE).with(seq).with(what))?;
            }
            // Whoever reads limits after this reads them as they are.
            self.flush_limits()?;
            if arrived.len() < limits::SWEEP_ROWS {
                return Ok(());
            }
            arrived =
                self.read(vec![look(Some(self.now.as_micros()))]).await?.into_iter().flatten().collect();
        }
        Ok(())
    }

    async fn let_one_in(&mut self, row: &Row) -> Result<Arrived, Fault> {
        let (seq, what): (i64, i16) = (row.get(0), row.get(1));
        let id = value::job_id(row, 2);
        if what == ASKED_TO_CANCEL {
            // It may run, and its holder may be ending it.
            self.read(rows::lock(&[id])).await?;
        }
        let read = self.read(vec![rows::by_ids([id])]).await?;
        let Some(found) = read.iter().flatten().find(|row| row.get::<_, i64>(0) == seq) else {
            return Ok(Arrived::LetIn);
        };
        let stored = match self.found(found).await? {
            Ok(stored) => stored,
            Err(fault) => return Ok(Arrived::Odd(fault)),
        };
        match what {
            NEW => self.let_new_in(stored).await?,
            DISPLACED => {
                let by = row.get::<_, Option<uuid::Uuid>>(3).map(|by| JobId::from_bytes(*by.as_bytes()));
                end_replaced(self, stored, by.unwrap_or(id)).await?;
            }
            SUCCEEDED => self.let_success_in(stored).await?,
            ASKED_TO_CANCEL => {
                let reason: Option<&str> = row.get(4);
                let request = CancelRequest::new(self.now, GRACE, reason.unwrap_or_default());
                self.cancel(stored, request).await.map(drop)?;
            }
            other => return Ok(Arrived::Odd(unreadable(format_args!("arrival {other}")))),
        }
        Ok(Arrived::LetIn)
    }

    /// Ends a job in favour of another one as soon as it has a place.
    pub(crate) fn displace_after_arrival(&mut self, stored: &Stored, by: JobId) -> Result<(), Fault> {
        let displace = Query::new(DISPLACE).with(value::signed(stored.job.seq));
        self.write(displace.with(value::of_job(by)))
    }

    /// A job stands where it belongs; it was stored, and stands nowhere.
    async fn let_new_in(&mut self, stored: Stored) -> Result<(), Fault> {
        let (id, after) = (stored.job.id, stored.job.terms.after.clone());
        self.accept(stored).await?;
        let Some(after) = after else { return Ok(()) };
        // What it waits for may have been removed since its transaction looked.
        for other in self.gone(&after).await? {
            if let Noticed::Cancels(request) = after.noticed(other, None, self.now)
                && let Some(stored) = self.find(id).await?
                && let Cancel::Ends(transition) = Cancel::decide(&stored.job, request)
            {
                self.enter(stored, *transition).await?;
                return Ok(());
            }
        }
        Ok(())
    }

    async fn gone(&mut self, after: &AfterJobs) -> Result<Vec<JobId>, Fault> {
        let ids: Vec<_> = after.jobs.iter().copied().map(value::of_job).collect();
        let read = self.read(vec![Query::new(THERE).with(ids)]).await?;
        let there: Vec<JobId> = read.iter().flatten().map(|row| value::job_id(row, 0)).collect();
        Ok(after.jobs.iter().filter(|id| !there.contains(id)).copied().collect())
    }

    /// A job with keys has ended, and is still counted among those that run.
    async fn let_success_in(&mut self, stored: Stored) -> Result<(), Fault> {
        let State::Finished { at, .. } = stored.job.state else { return Ok(()) };
        let mut before = stored.clone();
        let holder = stored.job.holder.ok_or_else(|| unreadable("a job that succeeded without a holder"))?;
        before.job.state = State::Running { holder, until: at, due: stored.job.created };
        self.unindex(&before).await?;
        self.keep_no_more_for(&stored.job)?;
        self.sheet.count(stored.lane, StateName::Succeeded, 1);
        self.news.due = true;
        self.tell_became(&stored.job, StateName::Succeeded, None);
        self.pass_on(&stored.job.terms).await
    }
}
