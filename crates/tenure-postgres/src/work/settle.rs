//! Every other end of an ownership, by the whole job.

use std::collections::BTreeMap;

use tenure_core::{Settlement, State};
use tenure_store::{Fault, Settled};

use crate::link::Link;
use crate::query::Query;
use crate::rows::{self, Stored};
use crate::transaction::Gate;
use crate::writing::Writing;

/// Ends ownerships, each under its own fence, after statements that are sent along.
pub(super) async fn settle(
    link: &mut Link,
    settlements: &[&Settlement],
    before: impl Fn() -> Vec<Query>,
) -> Result<(Vec<Settled>, Vec<Vec<tokio_postgres::Row>>), Fault> {
    let mut tries = 0;
    loop {
        let tried = try_settle(link, settlements, before()).await;
        if tried.is_ok() || !link.may_try_again(&mut tries).await {
            return tried;
        }
    }
}

async fn try_settle(
    link: &mut Link,
    settlements: &[&Settlement],
    before: Vec<Query>,
) -> Result<(Vec<Settled>, Vec<Vec<tokio_postgres::Row>>), Fault> {
    let sent_before = before.len();
    let ids: Vec<_> = settlements.iter().map(|settlement| settlement.id()).collect();
    let mut reads = before;
    reads.push(rows::lock_standings(&ids));
    reads.push(rows::by_ids(ids));
    let (mut writing, mut read) = Writing::begin(link, Gate::Open, reads).await?;
    let mut jobs = BTreeMap::new();
    for row in read.pop().iter().flatten() {
        let stored = rows::stored(row)?;
        jobs.insert(stored.job.id, stored);
    }
    let mut settled = Vec::with_capacity(settlements.len());
    for settlement in settlements {
        settled.push(writing.settle_one(settlement, &mut jobs)?);
    }
    writing.commit().await?;
    read.truncate(sent_before);
    Ok((settled, read))
}

impl Writing<'_> {
    fn settle_one(
        &mut self,
        settlement: &Settlement,
        jobs: &mut BTreeMap<tenure_core::JobId, Stored>,
    ) -> Result<Settled, Fault> {
        // Places are never used again: another job there means that this one is gone.
        let stored = jobs.get(&settlement.id()).filter(|stored| stored.job.seq == settlement.seq());
        let Some(stored) = stored else { return Ok(Settled::Gone) };
        if stored.job.fence != settlement.fence() {
            return Ok(Settled::Fenced);
        }
        match stored.job.state {
            State::Waiting { .. } | State::Blocked { .. } | State::Finished { .. } => Ok(Settled::Repeated),
            State::Running { .. } => {
                let asked = stored.job.cancel.as_ref().map(|request| request.reason.as_str());
                let transition = settlement.resolve(self.now, asked);
                let after = self.enter(stored.clone(), transition)?;
                let name = after.job.state.name(self.now);
                jobs.insert(settlement.id(), after);
                Ok(Settled::Done(name))
            }
        }
    }
}
