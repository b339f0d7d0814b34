//! What the tasks of a store have in common.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tenure_store::Bulletin;
use tokio::sync::Notify;

use crate::followed::Followed;
use crate::grants::Grants;
use crate::heads::Heads;
use crate::lanes::Lanes;
use crate::listening;
use crate::marks::Marks;
use crate::news::News;
use crate::timers::Aside;
use crate::vain::Vain;

/// What the tasks of a store have in common. All of it can be read again from the database.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    lanes: Mutex<Lanes>,
    grants: Mutex<Grants>,
    marks: Mutex<Marks>,
    heads: Mutex<Heads>,
    vain: Mutex<Vain>,
    pub timers_aside: Aside,
    /// Users' own transactions of which others are to hear.
    pub followed: Followed,
    pub bulletin: Bulletin,
    /// Rung when anybody here wants to hear what other programs tell.
    pub wanted: Bell,
    /// What other programs have not been told yet: see [`Told`].
    untold: AtomicU8,
    /// Rings when other programs shall be told at once, and when that can wait for a while.
    pub urgent: Notify,
    pub later: Notify,
    /// Rings when somebody has [spoken up](Self::speak_up).
    pub spoke: Notify,
    /// Who this program is when it speaks; 0 while nobody may.
    voice: AtomicI32,
    /// How many more looks of upkeep may take long before the clock is read by itself.
    pub slow_looks: AtomicU32,
    /// How many more claims look also for jobs that were claimed before.
    begun: AtomicU32,
}

/// What is rung once, and stays rung.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    is_rung: AtomicBool,
    rings: Notify,
}

impl Bell {
    pub(crate) fn ring(&self) {
        if !self.is_rung.swap(true, Ordering::AcqRel) {
            self.rings.notify_one();
        }
    }

    /// Waits until it is rung: one at a time.
    pub(crate) async fn rung(&self) {
        while !self.is_rung() {
            self.rings.notified().await;
        }
    }

    pub(crate) fn is_rung(&self) -> bool {
        self.is_rung.load(Ordering::Acquire)
    }
}

/// Where a job was that was claimed before, more will be: so many claims look for them at once.
const BEGUN: u32 = 256;

/// What one program tells the others: letters that stand for hints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Told(u8);

impl Told {
    /// Something was written.
    const WROTE: u8 = 1;
    pub(crate) const DUE: u8 = 2;
    const ASKED: u8 = 4;
    const FREED: u8 = 8;
    const LETTERS: [(u8, char); 4] =
        [(Self::WROTE, 'w'), (Self::DUE, 'd'), (Self::ASKED, 'a'), (Self::FREED, 'f')];

    /// All that there is, for whoever may have missed something.
    pub(crate) const ALL: Self = Self(Self::WROTE | Self::DUE | Self::ASKED | Self::FREED);

    /// What nobody looks for by himself where nothing is heard: what may be due is looked for anyway, if more seldom.
    pub(crate) const UNPOLLED: Self = Self(Self::WROTE | Self::ASKED | Self::FREED);

    pub(crate) fn as_text(self) -> String {
        Self::LETTERS.into_iter().filter(|(bit, _)| self.0 & bit != 0).map(|(_, letter)| letter).collect()
    }

    /// What a text says; letters that are not known say nothing.
    pub(crate) fn read(text: &str) -> Self {
        let said = Self::LETTERS.into_iter().filter(|(_, letter)| text.contains(*letter));
        Self(said.fold(0, |all, (bit, _)| all | bit))
    }

    /// Pins it to the board: another program has said it.
    pub(crate) fn publish(self, bulletin: &Bulletin) {
        bulletin.call_others();
        if self.0 & Self::DUE != 0 {
            bulletin.call_due();
        }
        if self.0 & Self::ASKED != 0 {
            bulletin.call_asked();
        }
        if self.0 & Self::FREED != 0 {
            bulletin.call_freed();
        }
    }
}

impl Memory {
    pub(crate) fn lanes(&self) -> MutexGuard<'_, Lanes> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn grants(&self) -> MutexGuard<'_, Grants> {
        self.grants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn marks(&self) -> MutexGuard<'_, Marks> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn heads(&self) -> MutexGuard<'_, Heads> {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn vain(&self) -> MutexGuard<'_, Vain> {
        self.vain.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells what there is to tell, here at once and elsewhere soon.
    pub(crate) fn publish(&self, news: News) {
        let bit = |said: bool, bit: u8| if said { bit } else { 0 };
        let said = bit(news.due, Told::DUE) | bit(news.asked, Told::ASKED) | bit(news.freed, Told::FREED);
        news.publish(&self.bulletin);
        self.tell_others(said);
    }

    /// Has others told of this, and that something was written.
    pub(crate) fn tell_others(&self, said: u8) {
        self.untold.fetch_or(said | Told::WROTE, Ordering::AcqRel);
        if said == 0 { self.later.notify_one() } else { self.urgent.notify_one() }
    }

    /// Pins it to the board of this program. Others have been told.
    pub(crate) fn publish_here(&self, news: News) {
        news.publish(&self.bulletin);
    }

    /// The text of a hint that tells others of something along with a statement that is sent now; `None` if somebody has spoken
    /// so short a time ago that it is to be told by [`publish`](Self::publish).
    pub(crate) fn speak_up(&self, hint: u8) -> Option<String> {
        let me = self.voice.swap(0, Ordering::AcqRel);
        if me == 0 {
            return None;
        }
        self.spoke.notify_one();
        Some(listening::hint(Told(hint | Told::WROTE), me))
    }

    /// Lets somebody speak up, or nobody if it is 0.
    pub(crate) fn let_speak(&self, me: i32) {
        self.voice.store(me, Ordering::Release);
    }

    /// Jobs were met that had been claimed before.
    pub(crate) fn met_begun(&self) {
        self.begun.store(BEGUN, Ordering::Relaxed);
    }

    /// Whether this claim shall look also for jobs that were claimed before.
    pub(crate) fn claims_begun(&self) -> bool {
        self.begun.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }

    /// Rings again if something is untold: whoever was called may have heard something else first.
    pub(crate) fn ring_again(&self) {
        if self.untold.load(Ordering::Acquire) != 0 {
            self.later.notify_one();
        }
    }

    /// What other programs have not been told.
    pub(crate) fn take_untold(&self) -> Option<Untold<'_>> {
        let untold = self.untold.swap(0, Ordering::AcqRel);
        (untold != 0).then_some(Untold { memory: self, left: Told(untold) })
    }
}

/// What somebody is about to tell other programs. If he does not come to it, it is left for the next.
#[derive(Debug)]
pub(crate) struct Untold<'m> {
    memory: &'m Memory,
    left: Told,
}

impl Untold<'_> {
    pub(crate) fn told(&self) -> Told {
        self.left
    }

    /// They have been told.
    pub(crate) fn done(mut self) {
        self.left = Told(0);
    }
}

impl Drop for Untold<'_> {
    fn drop(&mut self) {
        self.memory.untold.fetch_or(self.left.0, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_somebody_did_not_come_to_tell_is_left_for_the_next() {
        let memory = Memory::default();
        memory.publish(News::of_due());
        drop(memory.take_untold().unwrap());
        memory.publish(News::of_asking());
        let untold = memory.take_untold().unwrap();
        assert_eq!(untold.told(), Told::read("wda"));
        untold.done();
        assert!(memory.take_untold().is_none());
    }
}
