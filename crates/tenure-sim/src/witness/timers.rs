//! Timers, which nobody writes down yet.

use tenure_core::{Name, NewTimer, Timer, Timestamp};
use tenure_store::{
    Answer, Fired, Pruned, SlotPage, SlotsAsk, TimerAct, TimerOutcome, TimerPage, TimerSet, Timers, TimersAsk,
};

use super::Witness;

impl Timers for Witness {
    fn set_timers(&self, timers: Vec<NewTimer>, starts: bool) -> Answer<'_, Vec<TimerSet>> {
        self.store.set_timers(timers, starts)
    }

    fn fire(&self, at_most: usize) -> Answer<'_, Fired> {
        self.store.fire(at_most)
    }

    fn change_timer(&self, name: &Name, act: TimerAct) -> Answer<'_, TimerOutcome> {
        self.store.change_timer(name, act)
    }

    fn timer(&self, name: &Name) -> Answer<'_, Option<Timer>> {
        self.store.timer(name)
    }

    fn timers(&self, ask: TimersAsk) -> Answer<'_, TimerPage> {
        self.store.timers(ask)
    }

    fn slots(&self, ask: SlotsAsk) -> Answer<'_, SlotPage> {
        self.store.slots(ask)
    }

    fn prune_slots(&self, before: Timestamp) -> Answer<'_, Pruned> {
        self.store.prune_slots(before)
    }
}
