//! Timers: their transactions, the loops over several of them, and unreadable ones. `engine::timers` has the rules.
//!
//! Any host fires. It takes the lock of the gates, since the jobs of a timer have keys, then the rows of the first ripe
//! timers that no other host has locked, a few at a time. The record of a slot has a key of its own, and its job an ID
//! that follows from the slot. Each slot therefore exists once, whichever host decides it.

mod agreed;
mod aside;
mod change;
mod fire;
#[cfg(test)]
mod plans;
mod row;
mod set;
mod slots;
mod txn;
mod views;

use tenure_core::{HostId, Name, NewTimer, Timer, Timestamp};
use tenure_store::{
    Answer, Fired, Pruned, SlotPage, SlotsAsk, TimerEdit, TimerEdited, TimerPage, TimerSeen, TimerSet,
    TimersAsk,
};

use crate::store::PostgresStore;

pub(crate) use aside::Aside;
pub(crate) use row::keep_new as copied;
pub(crate) use slots::copied as copied_slot;

impl PostgresStore {
    pub(crate) fn set_timers(
        &self,
        timers: Vec<NewTimer>,
        starts: Option<HostId>,
    ) -> Answer<'_, Vec<TimerSet>> {
        Box::pin(self.ask(&self.tasks.timers, move |link| {
            Box::pin(async move { set::set_timers(link, &timers, starts).await })
        }))
    }

    pub(crate) fn fire(&self, at_most: usize) -> Answer<'_, Fired> {
        Box::pin(async move {
            // Hosts ask again and again, mostly in vain: whoever looks first keeps nobody from writing.
            let (next, now) = self.read(|link| Box::pin(fire::look(link))).await?;
            if next.is_none_or(|next| next > now) {
                let ripe_in = next.map(|next| next.since(now));
                return Ok(Fired { ripe_in, ..Fired::default() });
            }
            self.ask(&self.tasks.timers, move |link| Box::pin(fire::fire(link, at_most))).await
        })
    }

    pub(crate) fn edit_timer(
        &self,
        name: &Name,
        seen: TimerSeen,
        edit: TimerEdit,
    ) -> Answer<'_, TimerEdited> {
        let name = name.clone();
        Box::pin(self.ask(&self.tasks.timers, move |link| {
            Box::pin(async move {
                Ok(match edit {
                    TimerEdit::Set(timer) => {
                        let set = set::set_as_seen(link, &[*timer], None, &seen).await?;
                        let set = set.and_then(|set| set.first().copied());
                        set.map_or(TimerEdited::Otherwise, TimerEdited::Set)
                    }
                    TimerEdit::Act(act) => {
                        let acted = change::change(link, &name, &act, &seen).await?;
                        acted.map_or(TimerEdited::Otherwise, TimerEdited::Acted)
                    }
                })
            })
        }))
    }

    pub(crate) fn timer(&self, name: &Name) -> Answer<'_, Option<Timer>> {
        let name = name.clone();
        Box::pin(self.read(move |link| Box::pin(async move { views::one(link, &name).await })))
    }

    pub(crate) fn timers(&self, ask: TimersAsk) -> Answer<'_, TimerPage> {
        Box::pin(self.read(move |link| Box::pin(async move { views::page(link, &ask).await })))
    }

    pub(crate) fn slots(&self, ask: SlotsAsk) -> Answer<'_, SlotPage> {
        Box::pin(self.read(move |link| Box::pin(async move { slots::page(link, &ask).await })))
    }

    pub(crate) fn prune_slots(&self, before: Timestamp) -> Answer<'_, Pruned> {
        Box::pin(
            self.ask(&self.tasks.timers, move |link| {
                Box::pin(async move { slots::prune(link, before).await })
            }),
        )
    }
}
