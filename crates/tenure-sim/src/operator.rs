//! Operators: people who cancel, redo, delete, move and pause while the jobs run.

use std::sync::Arc;
use std::time::Duration;

use tenure::{Error, Tenure};
use tenure_core::{Kind, StateName};
use tenure_store::{Chance, ChangeOutcome, Clock, Filter};

use crate::plan::{LimitPlan, limit};
use crate::world::World;

/// An operator at a host.
pub(crate) struct Operator {
    pub(crate) world: Arc<World>,
    pub(crate) tenure: Tenure,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) chance: Chance,
}

impl Operator {
    /// Interferes now and then.
    pub(crate) async fn run(self) {
        loop {
            self.clock.sleep(Duration::from_millis(300 + self.chance.below(5_000))).await;
            // A fault means only that it did not work, or that nobody knows: people try again, or not.
            let _ = self.interfere().await;
        }
    }

    async fn interfere(&self) -> Result<(), Error> {
        let queues = &self.world.plan.queues;
        let queue = self.chance.below(queues.len() as u64);
        let queue = queues[usize::try_from(queue).unwrap_or(0)].name.as_str();
        let known = self.world.asks().known.clone();
        if known.is_empty() {
            return Ok(());
        }
        // Rather the latest ones: they have not all ended.
        let back = self.chance.below(known.len() as u64).min(self.chance.below(known.len() as u64));
        let id = known[known.len() - 1 - usize::try_from(back).unwrap_or(0)];
        let jobs = self.tenure.jobs();
        match self.chance.below(12) {
            0..=2 => {
                let grace = Duration::from_millis(self.chance.below(6_000));
                jobs.cancel(id, grace, "an operator wants it").await.map(drop)
            }
            3 => jobs.redo(id).await.map(drop),
            4 => self.redo_finished().await,
            5 => self.delete(id).await,
            6 => jobs.move_to(id, queue).await.map(drop),
            7 => jobs.reprioritise(id, 7).await.map(drop),
            8 => self.change_many(queue).await,
            9 => self.change_limit().await,
            10 => self.tenure.explain(id).await.map(drop),
            _ => self.pause(queue).await,
        }
    }

    /// Another limit for a key whose limit is set.
    async fn change_limit(&self) -> Result<(), Error> {
        let limits = &self.world.plan.keys.limits;
        let set: Vec<_> = limits.iter().filter(|limit| !limit.said).collect();
        let drawn = usize::try_from(self.chance.below(set.len().max(1) as u64)).unwrap_or(0);
        let Some(LimitPlan { key, .. }) = set.get(drawn) else { return Ok(()) };
        Ok(self.tenure.store().set_limit(key, Some(limit(&self.chance))).await?)
    }

    async fn redo_finished(&self) -> Result<(), Error> {
        let known = self.world.asks().known.clone();
        for id in known.iter().rev().take(8) {
            if self.tenure.jobs().redo(*id).await? == ChangeOutcome::Done {
                return Ok(());
            }
        }
        Ok(())
    }

    /// All that a filter means, in bounded steps.
    async fn change_many(&self, queue: &str) -> Result<(), Error> {
        let jobs = self.tenure.jobs();
        // What is for the single writer is not moved about by everybody.
        let kinds: Vec<Kind> =
            ["work", "chore", "sole"].into_iter().filter_map(|kind| Kind::new(kind).ok()).collect();
        let of = |state| Filter { states: vec![state], kinds: kinds.clone(), ..Filter::default() };
        match self.chance.below(4) {
            0 => jobs.move_all(of(StateName::Queued), queue).await,
            1 => jobs.reprioritise_all(of(StateName::Scheduled), -7).await,
            2 => jobs.redo_all(of(StateName::Failed)).await,
            _ => jobs.cancel_all(of(StateName::Running), Duration::from_secs(1), "all of it").await,
        }
        .map(drop)
    }

    async fn delete(&self, id: tenure_core::JobId) -> Result<(), Error> {
        if self.chance.below(2) == 0 {
            self.tenure.jobs().delete(id).await?;
        }
        Ok(())
    }

    async fn pause(&self, queue: &str) -> Result<(), Error> {
        self.tenure.queues().pause(queue).await?;
        self.clock.sleep(Duration::from_millis(self.chance.below(8_000))).await;
        // The connection may be bad; whoever paused a queue insists on resuming it.
        while let Err(Error::Fault(fault)) = self.tenure.queues().resume(queue).await {
            if !fault.is_passing() {
                break;
            }
            self.clock.sleep(Duration::from_millis(500)).await;
        }
        Ok(())
    }
}
