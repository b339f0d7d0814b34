//! Every other end of an ownership, by the whole job.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{Settlement, State, StateName};
use tenure_store::{Fault, Settled, Values};

use crate::link::Link;
use crate::query::Query;
use crate::rows::{self, Stored};
use crate::transaction::Gate;
use crate::value;
use crate::writing::Writing;

/// Ends ownerships, each under its own fence, after statements that are sent along.
pub(super) async fn settle(
    link: &mut Link,
    settlements: &[&Settlement],
    before: impl Fn() -> Vec<Query>,
) -> Result<Done, Fault> {
    let (mut tries, mut gate) = (0, Gate::Open);
    loop {
        match try_settle(link, gate, settlements, before()).await {
            Ok(Some(settled)) => return Ok(settled),
            Ok(None) => gate = Gate::Keys,
            Err(fault) => {
                if !link.may_try_again(&mut tries).await {
                    return Err(fault);
                }
            }
        }
    }
}

/// What came of each, and what the statements that were sent along answered.
type Done = (Vec<Settled>, Vec<Vec<tokio_postgres::Row>>);

/// `None` if it has to be done under the lock of the gates.
async fn try_settle(
    link: &mut Link,
    gate: Gate,
    settlements: &[&Settlement],
    before: Vec<Query>,
) -> Result<Option<Done>, Fault> {
    let sent_before = before.len();
    let ids: Vec<_> = settlements.iter().map(|settlement| settlement.id()).collect();
    let mut reads = before;
    if !cfg!(mutant = "postgres-settle-without-locks") {
        reads.extend(rows::lock_running(&ids));
    }
    reads.push(rows::by_ids_with(Values::Omitted, ids));
    let (mut writing, mut read) = Writing::begin(link, gate, reads).await?;
    let (mut jobs, mut unreadable) = (BTreeMap::new(), BTreeSet::new());
    for row in read.pop().iter().flatten() {
        match rows::stored(row) {
            Ok(stored) => drop(jobs.insert(stored.job.id, stored)),
            Err(fault) => {
                // Only this job cannot be settled.
                tracing::error!(%fault, "cannot settle an unreadable job");
                unreadable.insert(value::job_id(row, 1));
            }
        }
    }
    if jobs.values().any(|stored| writing.needs_gate(stored)) {
        writing.roll_back().await?;
        return Ok(None);
    }
    writing.load_limits_of(jobs.values()).await?;
    let mut settled = Vec::with_capacity(settlements.len());
    for settlement in settlements {
        settled.push(match unreadable.contains(&settlement.id()) {
            true => Settled::Fenced,
            false => writing.settle_one(settlement, &mut jobs).await?,
        });
    }
    writing.tell_where_they_stand(settlements, &mut settled).await?;
    writing.commit().await?;
    read.truncate(sent_before);
    Ok(Some((settled, read)))
}

impl Writing<'_> {
    /// Where jobs with keys stand is known when all are written.
    async fn tell_where_they_stand(
        &mut self,
        settlements: &[&Settlement],
        settled: &mut [Settled],
    ) -> Result<(), Fault> {
        let waits = |settled: &Settled| {
            matches!(settled, Settled::Done(StateName::Scheduled | StateName::Queued | StateName::Blocked))
        };
        if self.gate != Gate::Keys || !settled.iter().any(waits) {
            return Ok(());
        }
        let waiting = settlements.iter().zip(&*settled).filter(|(_, settled)| waits(settled));
        let read = rows::by_ids_with(Values::Omitted, waiting.map(|(settlement, _)| settlement.id()));
        let mut names = BTreeMap::new();
        for row in self.read(vec![read]).await?.iter().flatten() {
            let stored = rows::stored(row)?;
            names.insert(stored.job.id, stored.job.state.name(self.now));
        }
        for (settlement, settled) in settlements.iter().zip(settled) {
            if let (Settled::Done(name), Some(now)) = (settled, names.get(&settlement.id())) {
                *name = *now;
            }
        }
        Ok(())
    }

    async fn settle_one(
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
                let after = self.enter(stored.clone(), transition).await?;
                let name = after.job.state.name(self.now);
                jobs.insert(settlement.id(), after);
                Ok(Settled::Done(name))
            }
        }
    }
}
