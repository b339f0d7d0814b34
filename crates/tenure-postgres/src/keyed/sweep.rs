//! What time and the ends of others bring to jobs with keys, in bounded steps.

use tenure_core::{JobId, limits};
use tenure_store::Fault;
use tokio_postgres::Row;

use crate::aside::Odd;
use crate::fault::is_unreadable;
use crate::link::Link;
use crate::query::Query;
use crate::rows::{self, Stored};
use crate::sweep::{self, Lapsed};
use crate::transaction::Gate;
use crate::value;
use crate::writing::Writing;

const DUE: &str = "SELECT j.id FROM (SELECT lane, seq, due FROM later WHERE due <= $1 ORDER BY due, seq LIMIT $2
         FOR UPDATE SKIP LOCKED) d
     CROSS JOIN LATERAL (SELECT id FROM job WHERE lane = d.lane AND seq = d.seq LIMIT 1) j ORDER BY d.due, d.seq";
const LOOKED: &str = "SELECT value FROM meta WHERE name = 'looked'";
const LOOK: &str = "UPDATE meta SET value = $1 WHERE name = 'looked'";

/// What came of it.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Swept {
    pub lapsed: usize,
    /// How many need not wait any more.
    pub due: usize,
    /// Whether there is more to do.
    pub goes_on: bool,
}

const IS_DUE: &str = concat!(
    "WITH n AS MATERIALIZED (SELECT coalesce($1::bigint, micros()) AS now) SELECT ",
    are_keys_asked!("'{}'::text[]", "'{}'::int[]")
);

/// Sweeps, if there is anything to do that concerns keys.
pub(crate) async fn sweep(link: &mut Link) -> Result<Swept, Fault> {
    let mut tries = 0;
    loop {
        let tried = try_sweep(link).await;
        if tried.is_ok() || !link.may_try_again(&mut tries).await {
            return tried;
        }
    }
}

/// Whether there is anything to do that concerns keys.
pub(crate) async fn is_due(link: &mut Link) -> Result<bool, Fault> {
    let is_due = Query::new(IS_DUE).with(link.database.time.told());
    let read = link.connection().await?.read(is_due).await?;
    Ok(read.first().is_some_and(|row| row.get(0)))
}

async fn try_sweep(link: &mut Link) -> Result<Swept, Fault> {
    if !is_due(link).await? {
        return Ok(Swept::default());
    }
    let (mut writing, _) = Writing::begin(link, Gate::Keys, Vec::new()).await?;
    let swept = writing.sweep().await?;
    writing.flush_limits()?;
    let is_due = Query::new(IS_DUE).with(Some(writing.now.as_micros()));
    let read = writing.read(vec![is_due]).await?;
    let goes_on = read.iter().flatten().next().is_some_and(|row| row.get(0));
    writing.commit().await?;
    Ok(Swept { goes_on, ..swept })
}

impl Writing<'_> {
    /// Notices what has ended that others waited for, takes jobs from holders that fell silent or did not stop, finds
    /// out what came due and which limits have room again.
    pub(crate) async fn sweep(&mut self) -> Result<Swept, Fault> {
        let noticed = self.notice_ended(limits::SWEEP_ROWS).await?;
        let now = self.now.as_micros();
        let lapsed = Lapsed::read(&self.read(vec![sweep::lapsed(Some(now))]).await?);
        let taken = if lapsed.is_empty() { 0 } else { self.take_lapsed(&lapsed).await?.unwrap_or(0) };
        let due = Query::new(DUE).with(now).with(value::bound(limits::SWEEP_ROWS));
        let read = self.read(vec![due, Query::new(LOOKED)]).await?;
        let ids: Vec<JobId> = read.first().into_iter().flatten().map(|row| value::job_id(row, 0)).collect();
        let looked = read.last().into_iter().flatten().next().map_or(0, |row| row.get::<_, i64>(0));
        let came_due = ids.len();
        self.stand_all_again(ids).await?;
        self.notice_room(limits::SWEEP_ROWS, now < looked).await?;
        if now != looked {
            self.write(Query::new(LOOK).with(now))?;
        }
        Ok(Swept { lapsed: taken, due: noticed + came_due, goes_on: false })
    }

    /// Lets jobs stand anew that came due.
    async fn stand_all_again(&mut self, ids: Vec<JobId>) -> Result<(), Fault> {
        for ids in self.batches(ids).await? {
            for row in &self.read_batch(&ids).await? {
                match self.found(row).await? {
                    Ok(stored) => self.stand_again(stored).await?,
                    Err(fault) => self.set_due_aside(Odd::of(row), &fault)?,
                }
            }
        }
        Ok(())
    }

    /// The job of a row whose limit is known then, too; or why this version cannot read one of them.
    pub(crate) async fn found(&mut self, row: &Row) -> Result<Result<Stored, Fault>, Fault> {
        let stored = match rows::stored(row) {
            Ok(stored) => stored,
            Err(fault) => return Ok(Err(fault)),
        };
        match self.load_limits_of(std::iter::once(&stored)).await {
            Ok(()) => Ok(Ok(stored)),
            Err(fault) if is_unreadable(&fault) => Ok(Err(fault)),
            Err(fault) => Err(fault),
        }
    }
}
