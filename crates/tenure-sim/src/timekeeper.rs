//! People who look after timers: they edit, pause, trigger, backfill and remove them while they fire.

use std::sync::Arc;
use std::time::Duration;

use tenure::{Error, Tenure};
use tenure_core::{JobId, Name};
use tenure_store::{Chance, Clock, TimersAsk};

use crate::history::{What, Who};
use crate::timers::{LOOSE, TimerPlan};
use crate::world::World;

/// How far back they want jobs of slots that have passed.
const BACK: Duration = Duration::from_secs(20);

/// Somebody at a host.
pub(crate) struct Timekeeper {
    pub(crate) who: Who,
    pub(crate) world: Arc<World>,
    pub(crate) tenure: Tenure,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) chance: Chance,
}

impl Timekeeper {
    /// Interferes now and then, until all is healed.
    pub(crate) async fn run(self) {
        loop {
            self.clock.sleep(Duration::from_millis(500 + self.chance.below(6_000))).await;
            if self.world.is_healed() {
                return;
            }
            // A fault means only that it did not work, or that nobody knows: people try again, or not.
            let _ = self.interfere().await;
        }
    }

    async fn interfere(&self) -> Result<(), Error> {
        let Some(plan) = &self.world.plan.timers else { return Ok(()) };
        let name = TimerPlan::name(self.chance.below(plan.declared));
        let timers = self.tenure.timers();
        match self.chance.below(13) {
            0..=1 => self.pause(&name).await,
            2..=3 => self.trigger(&name).await,
            4 => self.backfill(&name).await,
            5..=7 => self.set(plan, &name).await,
            8 => self.set(plan, LOOSE).await,
            9 => timers.remove(LOOSE).await.map(drop),
            10 if self.chance.below(3) == 0 => timers.remove(&name).await.map(drop),
            11 => timers.explain(&name).await.map(drop),
            12 => timers.list(TimersAsk::default()).await.map(drop),
            _ => self.cancel(&name).await,
        }
    }

    /// Another version of it.
    async fn set(&self, plan: &TimerPlan, name: &str) -> Result<(), Error> {
        let World { seed, plan: whole, .. } = &*self.world;
        let draft = plan.draft(*seed, whole, name, self.chance.below(6));
        self.tenure.timers().set(draft).await.map(drop)
    }

    async fn trigger(&self, name: &str) -> Result<(), Error> {
        let id = JobId::new(self.clock.now(), self.chance.bits());
        if let Ok(name) = Name::new("timer", name) {
            self.world.book.note(self.who, What::Triggers(name, id));
        }
        self.tenure.timers().trigger(name).id(id).await.map(drop)
    }

    async fn backfill(&self, name: &str) -> Result<(), Error> {
        let to = self.clock.now();
        let from = to.before(BACK.mul_f64(self.chance.fraction()));
        self.tenure.timers().backfill(name, from, to).await?.run().await.map(drop)
    }

    /// The last job that it brought.
    async fn cancel(&self, name: &str) -> Result<(), Error> {
        let records = self.tenure.timers().last_slots(name, 8).await?;
        let Some(job) = records.iter().find_map(tenure_core::SlotRecord::job) else { return Ok(()) };
        let grace = Duration::from_millis(self.chance.below(6_000));
        self.tenure.jobs().cancel(job, grace, "nobody wants it").await.map(drop)
    }

    async fn pause(&self, name: &str) -> Result<(), Error> {
        self.tenure.timers().pause(name, "somebody wants it").await?;
        self.clock.sleep(Duration::from_millis(self.chance.below(12_000))).await;
        // Now and then it is forgotten.
        while self.chance.below(8) > 0 {
            match self.tenure.timers().resume(name).await {
                Err(Error::Fault(fault)) if fault.is_passing() => {}
                _ => break,
            }
            self.clock.sleep(Duration::from_millis(500)).await;
        }
        Ok(())
    }
}
