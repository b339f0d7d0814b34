//! Nothing of timers is here yet.

use tenure_core::{Name, NewTimer, Timer, Timestamp};
use tenure_store::{
    Answer, Fault, Fired, Pruned, SlotPage, SlotsAsk, TimerAct, TimerOutcome, TimerPage, TimerSet, Timers,
    TimersAsk,
};

use crate::store::SqliteStore;

fn missing<T: Send + 'static>() -> Answer<'static, T> {
    Box::pin(async { Err(Fault::Broken("timers are not there yet".to_owned())) })
}

impl Timers for SqliteStore {
    fn set_timers(&self, _: Vec<NewTimer>, _: bool) -> Answer<'_, Vec<TimerSet>> {
        missing()
    }

    fn fire(&self, _: usize) -> Answer<'_, Fired> {
        missing()
    }

    fn change_timer(&self, _: &Name, _: TimerAct) -> Answer<'_, TimerOutcome> {
        missing()
    }

    fn timer(&self, _: &Name) -> Answer<'_, Option<Timer>> {
        missing()
    }

    fn timers(&self, _: TimersAsk) -> Answer<'_, TimerPage> {
        missing()
    }

    fn slots(&self, _: SlotsAsk) -> Answer<'_, SlotPage> {
        missing()
    }

    fn prune_slots(&self, _: Timestamp) -> Answer<'_, Pruned> {
        missing()
    }
}
