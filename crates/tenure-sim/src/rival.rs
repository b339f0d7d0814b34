//! Rivals: programs that ask the store for leases without the library, and do not always behave.
//!
//! They repeat what they asked, renew and release what they have lost long ago, come back under an old
//! id, break what others hold, and write late. The store has to give each the right answer.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{
    Fence, Holder, Late, LeaseAct, LeaseId, LeaseName, LeaseOutcome, LeaseRefusal, Timestamp, Ttl,
};
use tenure_store::{Chance, Clock, LeaseWish, Store};

use crate::history::Who;
use crate::resource::{self, Write};
use crate::world::World;

/// Acquisitions that a rival remembers, most of them over.
const MEMORY: usize = 12;
/// What one does next at the latest, if it waits for a lease.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// A rival on a host.
pub(crate) struct Rival {
    pub(crate) who: Who,
    pub(crate) world: Arc<World>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) chance: Chance,
    pub(crate) past: Vec<Past>,
}

/// An acquisition that was tried.
#[derive(Debug, Clone)]
pub(crate) struct Past {
    name: LeaseName,
    id: LeaseId,
    fence: Fence,
}

impl Rival {
    /// Asks for one thing after the other, until all is healed.
    pub(crate) async fn run(mut self) {
        let mut pause = self.pause();
        while !self.world.is_healed() {
            self.clock.sleep(pause).await;
            let wishes: Vec<LeaseWish> = (0..1 + self.chance.below(3) / 2).map(|_| self.wish()).collect();
            pause = match self.store.lease(wishes.clone()).await {
                Ok(outcomes) => {
                    let next: Vec<Duration> = wishes
                        .iter()
                        .zip(outcomes)
                        .filter_map(|(wish, outcome)| self.heard(wish, outcome))
                        .collect();
                    next.first().copied().unwrap_or_else(|| self.pause())
                }
                // Nobody knows what came of it; it may well be asked again.
                Err(_) => self.pause(),
            };
            self.write();
        }
        self.give_back().await;
    }

    fn pause(&self) -> Duration {
        Duration::from_millis(50 + self.chance.below(3_000))
    }

    fn wish(&self) -> LeaseWish {
        let past = self.recall();
        let act = match (self.chance.below(20), past) {
            (0..=3, Some(Past { id, fence, name })) => {
                let late = if self.chance.below(2) == 0 { Late::Refused } else { Late::Counts };
                return LeaseWish { name, act: LeaseAct::Renew { id, fence, late } };
            }
            (4..=6, Some(Past { id, fence, name })) => {
                return LeaseWish { name, act: LeaseAct::Release { id, fence } };
            }
            (7, Some(Past { id, fence, name })) => {
                return LeaseWish { name, act: LeaseAct::Change { id, fence, to: self.new_id() } };
            }
            (8, Some(Past { id, name, .. })) => return LeaseWish { name, act: LeaseAct::Leave { id } },
            // An acquisition of old is wanted again.
            (9..=11, Some(Past { id, name, .. })) => {
                return LeaseWish { name, act: self.acquire(id) };
            }
            (12, _) => LeaseAct::Forget { by: self.holder() },
            (13, _) => LeaseAct::Break {
                within: (self.chance.below(3) > 0).then(|| Duration::from_millis(self.chance.below(3_000))),
                by: self.holder(),
                reason: "a rival wants it".to_owned(),
            },
            _ => self.acquire(self.new_id()),
        };
        LeaseWish { name: self.world.draw_name(&self.chance), act }
    }

    fn acquire(&self, id: LeaseId) -> LeaseAct {
        let ttl = match self.chance.below(16) {
            0 => Ttl::Endless,
            _ => Ttl::new(Duration::from_millis(1_000 + self.chance.below(7_000))).unwrap_or(Ttl::Endless),
        };
        let wait = Some(Duration::from_millis(500 + self.chance.below(6_000)));
        LeaseAct::Acquire { id, by: self.holder(), ttl, wait }
    }

    /// Learns from an answer; says how long to wait before the next wish, if it matters.
    fn heard(&mut self, wish: &LeaseWish, outcome: LeaseOutcome) -> Option<Duration> {
        match (&wish.act, outcome) {
            (LeaseAct::Acquire { id, .. }, LeaseOutcome::Granted { fence, .. }) => {
                self.remember(Past { name: wish.name.clone(), id: *id, fence });
                None
            }
            (LeaseAct::Change { fence, to, .. }, LeaseOutcome::Changed { .. }) => {
                self.remember(Past { name: wish.name.clone(), id: *to, fence: *fence });
                None
            }
            (LeaseAct::Acquire { id, .. }, LeaseOutcome::Refused(refusal)) => {
                let again = match refusal {
                    LeaseRefusal::Held { until, .. } => until?,
                    LeaseRefusal::Breaking { until } => until,
                    LeaseRefusal::Awaited { again, .. } => again,
                    _ => return None,
                };
                // Whoever is refused comes again at the very instant at which it may be had.
                self.remember(Past { name: wish.name.clone(), id: *id, fence: Fence::NONE });
                self.until(again)
            }
            _ => None,
        }
    }

    fn until(&self, again: Timestamp) -> Option<Duration> {
        (self.chance.below(4) > 0).then(|| again.since(self.clock.now()).min(LONGEST_WAIT))
    }

    /// Writes to what a lease guards that it has or once had.
    fn write(&self) {
        for _ in 0..self.chance.below(3) {
            let Some(Past { name, id, fence }) = self.recall() else { return };
            let under_way = Duration::from_millis(self.chance.below(4) * self.chance.below(1_500));
            resource::send(&self.world, self.who, Write { name, id, fence }, under_way);
        }
    }

    async fn give_back(&mut self) {
        let release = |past: Past| LeaseWish {
            name: past.name,
            act: LeaseAct::Release { id: past.id, fence: past.fence },
        };
        let _ = self.store.lease(self.past.drain(..).map(release).collect()).await;
    }

    fn recall(&self) -> Option<Past> {
        let drawn = self.chance.below(self.past.len().max(1) as u64);
        // Rather the latest: it may still hold.
        let back = usize::try_from(drawn.min(self.chance.below(MEMORY as u64))).unwrap_or(0);
        self.past.iter().rev().nth(back).cloned()
    }

    fn remember(&mut self, past: Past) {
        self.past.retain(|known| known.fence != past.fence || known.id != past.id);
        self.past.push(past);
        if self.past.len() > MEMORY {
            self.past.remove(0);
        }
    }

    fn new_id(&self) -> LeaseId {
        LeaseId::new([self.chance.bits(), self.chance.bits()])
    }

    fn holder(&self) -> Holder {
        Holder::named(&self.who.to_string())
    }
}
