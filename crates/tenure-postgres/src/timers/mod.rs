//! Timers. There are none yet.

use tenure_core::{HostId, Name, NewTimer, Timer, Timestamp};
use tenure_store::{
    Answer, Fault, Fired, Pruned, SlotPage, SlotsAsk, Store as _, TimerAct, TimerOutcome, TimerPage,
    TimerSet, Timers, TimersAsk,
};

use crate::store::PostgresStore;

fn not_there_yet() -> Fault {
    Fault::Broken("timers are not there yet".to_owned())
}

impl Timers for PostgresStore {
    fn set_timers(&self, _: Vec<NewTimer>, _: Option<HostId>) -> Answer<'_, Vec<TimerSet>> {
        Box::pin(async { self.check_open().and_then(|()| Err(not_there_yet())) })
    }

    fn fire(&self, _: usize) -> Answer<'_, Fired> {
        Box::pin(async { self.check_open().map(|()| Fired::default()) })
    }

    fn change_timer(&self, _: &Name, _: TimerAct) -> Answer<'_, TimerOutcome> {
        Box::pin(async { self.check_open().and_then(|()| Err(not_there_yet())) })
    }

    fn timer(&self, _: &Name) -> Answer<'_, Option<Timer>> {
        Box::pin(async { self.check_open().map(|()| None) })
    }

    fn timers(&self, _: TimersAsk) -> Answer<'_, TimerPage> {
        Box::pin(async {
            self.check_open().map(|()| TimerPage { timers: Vec::new(), next: None, now: self.clock().now() })
        })
    }

    fn slots(&self, _: SlotsAsk) -> Answer<'_, SlotPage> {
        Box::pin(async { self.check_open().map(|()| SlotPage::default()) })
    }

    fn prune_slots(&self, _: Timestamp) -> Answer<'_, Pruned> {
        Box::pin(async { self.check_open().map(|()| Pruned::default()) })
    }
}
