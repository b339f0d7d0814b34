//! Holders: parts of a host's program that take leases by the library and work under them.

use std::sync::Arc;
use std::time::Duration;

use tenure::{Held, Hold, Pass, Tenure};
use tenure_core::{Fence, LeaseName};
use tenure_store::{Chance, Clock};

use crate::gate::Gate;
use crate::history::{Stands, What, Who};
use crate::resource::{self, Write};
use crate::world::World;

/// Work says at least so often how it stands.
const SLICE: Duration = Duration::from_millis(400);

/// A holder on a host.
#[derive(Clone)]
pub(crate) struct Holder {
    pub(crate) who: Who,
    pub(crate) world: Arc<World>,
    pub(crate) tenure: Tenure,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) chance: Arc<Chance>,
}

impl Holder {
    /// Takes one lease after the other, until there has been enough of it.
    pub(crate) async fn run(self) {
        loop {
            self.clock.sleep(Duration::from_millis(100 + self.chance.below(3_000))).await;
            if self.world.is_enough() {
                return;
            }
            if let Some(held) = self.take().await {
                self.work_under(held).await;
            }
        }
    }

    /// Takes a lease in one of the ways in which one can be taken.
    async fn take(&self) -> Option<Held> {
        let name = self.world.draw_name(&self.chance);
        let leases = self.tenure.leases();
        let hold = self.drawn(leases.hold(name.as_str()));
        match self.chance.below(8) {
            0..=1 => hold.try_now().await.ok(),
            2..=3 => hold.within(self.span(10_000)).await.ok(),
            4 => {
                // Somebody has no patience: what is granted meanwhile must not stay taken.
                tokio::select! {
                    biased;
                    held = hold => held.ok(),
                    () = self.clock.sleep(self.span(4_000)) => None,
                }
            }
            _ => {
                let _waiting = self.world.wants(&name);
                hold.await.ok()
            }
        }
    }

    fn drawn<'a>(&self, hold: Hold<'a>) -> Hold<'a> {
        let hold = hold.who(&self.who.to_string()).grace(self.span(1_500));
        match self.chance.below(8) {
            0 => hold.endless(),
            _ => hold.ttl(Duration::from_millis(1_000 + self.chance.below(6_000))),
        }
    }

    fn span(&self, most_ms: u64) -> Duration {
        Duration::from_millis(self.chance.below(most_ms))
    }

    /// Works under a lease and gives it back, in one of the ways in which that can be done.
    async fn work_under(&self, held: Held) {
        let work_for = self.span(8_000);
        match self.chance.below(6) {
            0..=1 => {
                let _ = held.run(|pass| self.clone().work(pass, work_for)).await;
            }
            2 => {
                self.clone().work(held.pass(), work_for).await;
                let _ = held.release().await;
            }
            3 => {
                self.clone().work(held.pass(), work_for).await;
                drop(held);
            }
            // The holder has done with it while work under it still runs.
            4 => {
                let beside = self.clone().work(held.pass(), work_for);
                let release = async {
                    self.clock.sleep(self.span(4_000)).await;
                    self.lets_go(&held);
                    let _ = held.release().await;
                };
                tokio::join!(beside, release);
            }
            _ => {
                let beside = self.clone().work(held.pass(), work_for);
                let open = async {
                    self.clock.sleep(self.span(4_000)).await;
                    self.lets_go(&held);
                    drop(held);
                };
                tokio::join!(beside, open);
            }
        }
    }

    fn lets_go(&self, held: &Held) {
        let (name, fence, stands) = (held.name().clone(), held.fence(), Stands::LetsGo);
        self.world.book.note(self.who, What::Work { name, fence, stands });
    }

    /// Work: it writes to what the lease guards, and stops when it hears that the lease is lost, sooner or
    /// later.
    async fn work(self, pass: Pass, span: Duration) {
        let is_deaf = self.chance.below(3) == 0;
        let mut left = span;
        let task = Task::begin(self.who, &self.world, &self.gate, &pass);
        while !left.is_zero() {
            let slice = left.min(SLICE);
            task.go_on(&pass);
            if self.chance.below(2) == 0 {
                write_to(&self.world, self.who, &self.chance, &pass);
            }
            if is_deaf {
                self.clock.sleep(slice).await;
            } else if pass.sleep(slice).await.is_err() {
                break;
            }
            left -= slice;
        }
        task.go_on(&pass);
    }
}

/// Writes to what a lease guards; it may take a while to get there.
pub(crate) fn write_to(world: &Arc<World>, who: Who, chance: &Chance, pass: &Pass) {
    let write = Write { name: pass.name().clone(), id: pass.id(), fence: pass.fence() };
    let under_way = Duration::from_millis(chance.below(4) * chance.below(1_500));
    resource::send(world, who, write, under_way);
}

/// Work under a lease; it ends whatever becomes of it.
pub(crate) struct Task {
    who: Who,
    world: Arc<World>,
    gate: Arc<Gate>,
    name: LeaseName,
    fence: Fence,
}

impl Task {
    pub(crate) fn begin(who: Who, world: &Arc<World>, gate: &Arc<Gate>, pass: &Pass) -> Self {
        let (world, gate) = (Arc::clone(world), Arc::clone(gate));
        let task = Self { who, world, gate, name: pass.name().clone(), fence: pass.fence() };
        task.note(Stands::Begins);
        task
    }

    pub(crate) fn go_on(&self, pass: &Pass) {
        if self.gate.is_open() {
            self.note(if pass.is_held() { Stands::Believes } else { Stands::KnowsLost });
        }
    }

    fn note(&self, stands: Stands) {
        let (name, fence) = (self.name.clone(), self.fence);
        self.world.book.note(self.who, What::Work { name, fence, stands });
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.note(Stands::Ends);
    }
}
