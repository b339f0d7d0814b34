//! Timers on the way to the store.

use tenure_core::{HostId, Name, NewTimer, Timer, Timestamp};
use tenure_store::{
    Answer, Fired, Pruned, SlotPage, SlotsAsk, TimerAct, TimerEdit, TimerEdited, TimerOutcome, TimerPage,
    TimerSeen, TimerSet, Timers, TimersAsk,
};

use super::Wire;

impl Timers for Wire {
    fn set_timers(&self, timers: Vec<NewTimer>, starts: Option<HostId>) -> Answer<'_, Vec<TimerSet>> {
        self.send("set_timers", move |store| async move { store.set_timers(timers, starts).await })
    }

    fn fire(&self, at_most: usize) -> Answer<'_, Fired> {
        self.send("fire", move |store| async move { store.fire(at_most).await })
    }

    fn change_timer(&self, name: &Name, act: TimerAct) -> Answer<'_, TimerOutcome> {
        let name = name.clone();
        self.send("change_timer", move |store| async move { store.change_timer(&name, act).await })
    }

    fn edit_timer(&self, name: &Name, seen: TimerSeen, edit: TimerEdit) -> Answer<'_, TimerEdited> {
        let name = name.clone();
        self.send("edit_timer", move |store| async move { store.edit_timer(&name, seen, edit).await })
    }

    fn timer(&self, name: &Name) -> Answer<'_, Option<Timer>> {
        let name = name.clone();
        self.send("timer", move |store| async move { store.timer(&name).await })
    }

    fn timers(&self, ask: TimersAsk) -> Answer<'_, TimerPage> {
        self.send("timers", move |store| async move { store.timers(ask).await })
    }

    fn slots(&self, ask: SlotsAsk) -> Answer<'_, SlotPage> {
        self.send("slots", move |store| async move { store.slots(ask).await })
    }

    fn prune_slots(&self, before: Timestamp) -> Answer<'_, Pruned> {
        self.send("prune_slots", move |store| async move { store.prune_slots(before).await })
    }
}
