//! The weather: hosts that crash, freeze and stop, wires that are cut, clocks that step.

use std::sync::Arc;
use std::time::Duration;

use tenure_store::Chance;

use crate::history::{What, Who};
use crate::host::Host;
use crate::plan::LONG_OUTAGE;
use crate::world::World;

/// How far the store's clock may be off.
const FARTHEST_US: i64 = 300_000_000;
/// How far in seeds whose timers are to forget what was decided by a clock that was ahead.
const FAR_OFF_US: i64 = 1_200_000_000;

/// The hosts of a cluster and what befalls them.
pub(crate) struct Cluster {
    world: Arc<World>,
    chance: Chance,
    slots: Vec<Slot>,
    later: Vec<(Duration, Relief)>,
    /// When the store will be out of reach for long, if it will.
    long_outage: Option<Duration>,
    /// Until when it is out of reach for whoever comes, if it is.
    lost_until: Option<Duration>,
}

/// Where a host lives, or will live again.
struct Slot {
    host: Option<Host>,
    life: u32,
    ahead_us: i64,
}

/// The end of a fault.
#[derive(Debug, Clone, Copy)]
enum Relief {
    Thaw(usize),
    Mend(usize),
    Up(usize),
    Restart(usize),
}

/// What can befall a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Blow {
    Crash,
    Freeze,
    Cut,
    Outage,
    Stop,
    StepHost,
    StepStore,
}

impl Cluster {
    pub(crate) fn start(world: &Arc<World>) -> Self {
        let start = |number| {
            let host = Some(Host::start(world, number, 0, 0, false));
            Slot { host, life: 0, ahead_us: 0 }
        };
        let slots = (0..world.plan.hosts).map(start).collect();
        let long_outage = world.plan.timers.as_ref().and_then(|timers| timers.long_outage);
        let (world, chance, later) = (Arc::clone(world), world.chance(3), Vec::new());
        Self { world, chance, slots, later, long_outage, lost_until: None }
    }

    pub(crate) fn hosts(&self) -> impl Iterator<Item = &Host> {
        self.slots.iter().filter_map(|slot| slot.host.as_ref())
    }

    /// The hosts that there are now, each in its life.
    pub(crate) fn alive(&self) -> Vec<Who> {
        self.hosts().map(|host| host.who).collect()
    }

    /// Ends what is over, and now and then strikes.
    pub(crate) fn turn(&mut self) {
        let now = self.world.book.now();
        let (due, later) = std::mem::take(&mut self.later).into_iter().partition(|(at, _)| *at <= now);
        self.later = later;
        let due: Vec<(Duration, Relief)> = due;
        due.into_iter().for_each(|(_, relief)| self.relieve(relief, false));
        self.restart_stopped(false);
        if self.long_outage.is_some_and(|at| at <= now) {
            self.long_outage = None;
            self.lost_until = Some(now + LONG_OUTAGE);
            self.lose_store(now + LONG_OUTAGE);
        }
        if self.chance.below(5) == 0 {
            self.strike();
        }
    }

    fn strike(&mut self) {
        let weather = &self.world.plan.weather;
        let known = [
            (weather.crashes, Blow::Crash),
            (weather.freezes, Blow::Freeze),
            (weather.cuts, Blow::Cut),
            (weather.outages, Blow::Outage),
            (weather.stops, Blow::Stop),
            (weather.host_clocks_step, Blow::StepHost),
            (weather.store_clock_steps, Blow::StepStore),
        ];
        let possible: Vec<Blow> = known.into_iter().filter(|(may, _)| *may).map(|(_, blow)| blow).collect();
        if possible.is_empty() {
            return;
        }
        let blow = possible[self.below(possible.len())];
        let number = self.below(self.slots.len());
        let span = self.world.plan.ttl.mul_f64(0.5 + 4.5 * self.chance.fraction());
        let step_us = self.draw_step_us();
        let end = self.world.book.now() + span;
        let is_up = self.slots[number].host.as_ref().is_some_and(Host::is_up);
        match blow {
            Blow::StepStore => self.step_store(self.far_step_us().unwrap_or(step_us)),
            Blow::Outage => self.lose_store(end),
            Blow::Crash => self.crash(number, end),
            Blow::Freeze | Blow::Cut | Blow::Stop | Blow::StepHost if !is_up => {}
            Blow::Freeze => {
                self.with_host(number, Host::freeze);
                self.later.push((end, Relief::Thaw(number)));
            }
            Blow::Cut => {
                self.with_host(number, |host| host.cut(true));
                self.later.push((end, Relief::Mend(number)));
            }
            Blow::Stop => {
                if let Some(host) = self.slots[number].host.as_mut() {
                    host.stop();
                }
            }
            Blow::StepHost => {
                self.with_host(number, |host| host.step_clock(step_us));
            }
        }
    }

    /// No host reaches the store until then.
    fn lose_store(&mut self, end: Duration) {
        for number in 0..self.slots.len() {
            self.with_host(number, |host| host.down(true));
            self.later.push((end, Relief::Up(number)));
        }
    }

    fn is_lost(&self) -> bool {
        self.lost_until.is_some_and(|end| self.world.book.now() < end)
    }

    fn crash(&mut self, number: usize, end: Duration) {
        let Some(host) = self.slots[number].host.take() else { return };
        self.slots[number].ahead_us = host.ahead_us();
        host.crash();
        self.later.push((end, Relief::Restart(number)));
    }

    fn relieve(&mut self, relief: Relief, calm: bool) {
        match relief {
            Relief::Thaw(number) => {
                let chance = &self.chance;
                if let Some(host) = &self.slots[number].host {
                    host.thaw(chance);
                }
            }
            Relief::Mend(number) => self.with_host(number, |host| host.cut(false)),
            // A long outage is not over because a short one is.
            Relief::Up(_) if self.is_lost() => {}
            Relief::Up(number) => self.with_host(number, |host| host.down(false)),
            Relief::Restart(number) => self.restart(number, calm),
        }
    }

    fn restart(&mut self, number: usize, calm: bool) {
        let slot = &mut self.slots[number];
        if slot.host.is_none() {
            slot.life += 1;
            slot.host = Some(Host::start(&self.world, number, slot.life, slot.ahead_us, calm));
            if let Some(end) = self.lost_until.filter(|_| self.is_lost()) {
                self.with_host(number, |host| host.down(true));
                self.later.push((end, Relief::Up(number)));
            }
        }
    }

    /// A host that was stopped is started again once it has ended.
    fn restart_stopped(&mut self, calm: bool) {
        for number in 0..self.slots.len() {
            let ended = |host: &Host| host.is_stopping() && host.has_stopped();
            if self.slots[number].host.as_ref().is_some_and(ended) {
                self.slots[number].ahead_us =
                    self.slots[number].host.take().map_or(0, |host| host.ahead_us());
                self.restart(number, calm);
            }
        }
    }

    /// No more faults: all hosts are up and reach the store, whose clock is right again.
    pub(crate) fn heal(&mut self) {
        self.world.note_healed();
        self.world.book.note(Who::World, What::Healed);
        self.later.clear();
        self.lost_until = None;
        if self.world.store_clock.ahead_us() != 0 {
            let back_us = -self.world.store_clock.ahead_us();
            self.world.store_clock.set_right();
            self.world.book.note(Who::World, What::StoreStepped(back_us));
        }
        for number in 0..self.slots.len() {
            if let Some(host) = &self.slots[number].host {
                host.heal(&self.chance);
            }
            self.restart(number, true);
        }
    }

    /// What goes on after the healing: hosts that were stopping are started again.
    pub(crate) fn turn_calmly(&mut self) {
        self.restart_stopped(true);
    }

    pub(crate) fn stop_all(&mut self) {
        self.slots.iter_mut().filter_map(|slot| slot.host.as_mut()).for_each(Host::stop);
    }

    pub(crate) fn have_all_stopped(&self) -> bool {
        self.hosts().all(Host::has_stopped)
    }

    fn step_store(&self, by_us: i64) {
        // Many steps the same way would take longer to wait out than anybody has patience.
        let farthest = if self.world.plan.weather.steps_far { FAR_OFF_US } else { FARTHEST_US };
        let is_far = (self.world.store_clock.ahead_us() + by_us).abs() > farthest;
        let by_us = if is_far { -by_us } else { by_us };
        self.world.store_clock.step(by_us);
        self.world.book.note(Who::World, What::StoreStepped(by_us));
    }

    /// A step by up to twenty minutes, or back from there.
    fn far_step_us(&self) -> Option<i64> {
        let ahead_us = self.world.store_clock.ahead_us();
        if !self.world.plan.weather.steps_far || self.chance.below(2) == 0 {
            return None;
        }
        let far = ((2.0 * self.chance.fraction() - 1.0) * FAR_OFF_US as f64) as i64;
        Some(if ahead_us.abs() > FARTHEST_US { -ahead_us } else { far })
    }

    fn draw_step_us(&self) -> i64 {
        let ttl_us = self.world.plan.ttl.as_micros() as f64;
        let far = if self.chance.below(4) == 0 { 15.0 } else { 1.5 };
        ((2.0 * self.chance.fraction() - 1.0) * far * ttl_us) as i64
    }

    fn with_host(&self, number: usize, act: impl FnOnce(&Host)) {
        if let Some(host) = &self.slots[number].host {
            act(host);
        }
    }

    fn below(&self, limit: usize) -> usize {
        usize::try_from(self.chance.below(limit as u64)).unwrap_or(0)
    }
}
