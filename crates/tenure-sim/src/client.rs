//! Clients: ask for jobs, repeat what they were not told about, remember what they were told.

use std::sync::Arc;
use std::time::Duration;

use tenure::{Error, Tenure};
use tenure_core::JobId;
use tenure_store::{Accepted, Chance, Clock};

use crate::asks::Ask;
use crate::history::{What, Who};
use crate::host::as_app;
use crate::services::{self, Letter};
use crate::witness::row;
use crate::world::World;

/// A client on a host. It dies with its host; what it left open, the next one takes up.
pub(crate) struct Client {
    pub(crate) who: Who,
    pub(crate) world: Arc<World>,
    pub(crate) tenure: Tenure,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) chance: Chance,
}

impl Client {
    /// Asks for jobs as long as there are some to ask for, and goes on about what is open.
    pub(crate) async fn run(mut self) {
        let says_app = self.world.plan.services.clients_say_app;
        self.tenure = as_app(self.tenure.clone(), says_app, &*self.clock).await;
        let plan = &self.world.plan;
        let clients = u32::try_from(plan.hosts * plan.clients).unwrap_or(1);
        let jobs = u32::try_from(plan.jobs).unwrap_or(1).max(1);
        let apart = plan.length.mul_f64(0.8) * clients / jobs;
        loop {
            self.clock.sleep(apart.mul_f64(2.0 * self.chance.fraction())).await;
            if self.chance.below(6) == 0 {
                self.wait_for_one().await;
            }
            if self.world.plan.services.writer.is_some() && self.chance.below(6) == 0 {
                self.write_letters().await;
            }
            let Some(batch) = self.next() else { continue };
            self.world.asks().trying += 1;
            let trying = Trying(&self.world);
            self.try_it(batch).await;
            drop(trying);
        }
    }

    /// Waits a while for some job to end.
    async fn wait_for_one(&self) {
        let Some(id) = self.world.asks().known.last().copied() else { return };
        tokio::select! {
            biased;
            ended = self.tenure.wait(id) => {
                if let Ok(ended) = ended {
                    self.world.book.note(self.who, What::Waited { row: row(&ended.job) });
                }
            }
            () = self.clock.sleep(Duration::from_secs(5)) => {}
        }
    }

    /// Sends something to the single writer, once.
    async fn write_letters(&self) {
        if self.world.asks().made() >= self.world.plan.jobs {
            return;
        }
        let draw = || Letter::draw(self.world.asks().next(), &self.chance);
        let letters: Vec<Letter> = (0..1 + self.chance.below(4)).map(|_| draw()).collect();
        let asks = letters.iter().map(|letter| letter.ask);
        asks.clone().for_each(|ask| self.world.book.note(self.who, What::Asks { ask, id: None }));
        if let Ok(ids) = services::send(&self.tenure, &letters).await {
            for (ask, id) in asks.zip(ids) {
                self.world.book.note(self.who, What::Told { ask, accepted: Accepted::New(id) });
            }
        }
    }

    /// What to ask for next.
    fn next(&self) -> Option<Vec<Ask>> {
        let repeats = self.world.asks().made() >= self.world.plan.jobs || self.chance.below(3) == 0;
        if repeats {
            return self.world.asks().open.pop();
        }
        let shares = self.world.plan.keys.shares;
        if shares > 0 && self.chance.below(12) == 0 {
            // Somebody brings a lot at once.
            let tenant = 1 + self.chance.below(shares);
            return Some(
                (0..8 + self.chance.below(12)).map(|_| self.draw().in_shared_queue(tenant)).collect(),
            );
        }
        let size = if self.chance.below(6) == 0 { 2 + self.chance.below(6) } else { 1 };
        let mut before = self.world.asks().known.clone();
        let mut batch: Vec<Ask> = Vec::new();
        for _ in 0..size {
            let ask = self.draw().sharing(&self.world.plan.keys, &self.chance, &before);
            // A later job of the batch may wait for an earlier one.
            before.extend(ask.id.filter(|_| self.chance.below(2) == 0));
            batch.push(ask);
        }
        Some(batch)
    }

    fn draw(&self) -> Ask {
        let new_id = || JobId::new(self.clock.now(), self.chance.bits());
        let next = || self.world.asks().next();
        let ask = Ask::draw(&self.world.plan, &self.chance, next, new_id);
        self.world.book.note(self.who, What::Asks { ask: ask.script.ask, id: ask.id });
        ask
    }

    async fn try_it(&self, batch: Vec<Ask>) {
        // Should this client die on the way, somebody else has to find out. Only what names its jobs
        // can be repeated.
        let repeatable = batch.iter().all(|ask| ask.id.is_some());
        let open = Open { world: &self.world, batch: repeatable.then(|| batch.clone()) };
        match self.tenure.enqueue_all(batch.iter().map(Ask::draft)).await {
            Ok(accepted) => {
                open.close();
                for (ask, accepted) in batch.iter().zip(accepted) {
                    self.world.book.note(self.who, What::Told { ask: ask.script.ask, accepted });
                    self.world.asks().known.push(accepted.id());
                }
            }
            Err(Error::Fault(_)) => self.clock.sleep(Duration::from_millis(200)).await,
            Err(_) => open.close(),
        }
    }
}

/// A batch whose outcome is not known; dropped so, it waits for the next client.
struct Open<'a> {
    world: &'a World,
    batch: Option<Vec<Ask>>,
}

impl Open<'_> {
    fn close(mut self) {
        self.batch = None;
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let batch = self.batch.take();
        self.world.asks().open.extend(batch);
    }
}

struct Trying<'a>(&'a World);

impl Drop for Trying<'_> {
    fn drop(&mut self) {
        self.0.asks().trying -= 1;
    }
}
