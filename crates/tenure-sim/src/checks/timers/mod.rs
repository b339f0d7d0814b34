//! What is promised of timers and their slots.

pub(super) mod declared;
pub(super) mod fates;
#[cfg(test)]
mod made;
pub(super) mod occurrences;
pub(super) mod overlaps;
pub(super) mod ticking;
pub(super) mod timetable;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{Name, NewTimer, Origin, Timestamp};
use tenure_store::{TimerAct, TimerOutcome, TimerSet};

use crate::history::{SlotSeen, Timed, TimerDoing};

/// The timers that there are, as those who set, pause and remove them were answered.
#[derive(Default)]
struct Roster {
    timers: BTreeMap<Name, Agreed>,
}

/// A timer.
struct Agreed {
    new: Arc<NewTimer>,
    paused: bool,
}

impl Roster {
    /// Takes note of what was done; whoever wants to know how it was before asks before.
    fn see(&mut self, timed: &Timed) {
        match &timed.doing {
            TimerDoing::Sets { timers, .. } => {
                for (new, set) in timers {
                    match set {
                        TimerSet::New => {
                            let agreed = Agreed { new: Arc::clone(new), paused: false };
                            self.timers.insert(new.name.clone(), agreed);
                        }
                        TimerSet::Changed => {
                            if let Some(agreed) = self.timers.get_mut(&new.name) {
                                agreed.new = Arc::clone(new);
                            }
                        }
                        TimerSet::Same | TimerSet::Outdated { .. } | TimerSet::Over { .. } => {}
                    }
                }
            }
            TimerDoing::Changes { name, act, outcome: TimerOutcome::Done } => match act {
                TimerAct::Pause { .. } => self.pause(name, true),
                TimerAct::Resume => self.pause(name, false),
                TimerAct::Remove => _ = self.timers.remove(name),
                TimerAct::Trigger { .. } | TimerAct::Backfill { .. } => {}
            },
            TimerDoing::Fires | TimerDoing::Changes { .. } | TimerDoing::Looks { .. } => {}
        }
    }

    fn pause(&mut self, name: &Name, paused: bool) {
        if let Some(agreed) = self.timers.get_mut(name) {
            agreed.paused = paused;
        }
    }

    /// What a timer was set to just now, if that gave it another schedule.
    fn rescheduled<'a>(&self, timed: &'a Timed, name: &Name) -> Option<&'a Arc<NewTimer>> {
        let new = changed(timed, name)?;
        let before = self.timers.get(name)?;
        (before.new.schedule != new.schedule).then_some(new)
    }

    /// By what the slots of a timer were decided just now: by what was agreed before it was changed.
    fn judged_by(&self, name: &Name) -> Option<Arc<NewTimer>> {
        self.timers.get(name).map(|agreed| Arc::clone(&agreed.new))
    }
}

fn changed<'a>(timed: &'a Timed, name: &Name) -> Option<&'a Arc<NewTimer>> {
    let TimerDoing::Sets { timers, .. } = &timed.doing else { return None };
    timers.iter().find(|(new, set)| new.name == *name && *set == TimerSet::Changed).map(|(new, _)| new)
}

/// Whether this instant is a slot of a timer, and one that its jitter puts off, and none behind it has come: who gives a
/// timer another schedule leaves such a slot to that.
fn keeps(timer: &NewTimer, slot: Timestamp, now: Timestamp) -> bool {
    timer.schedule.next_after(slot.before(Duration::from_micros(1))) == Some(slot)
        && timer.schedule.due(timer.name.as_str(), slot) > now
        && timer.schedule.next_after(slot).is_none_or(|next| next > now)
}

/// The slots of schedules among what is new, timer by timer.
fn batches(timed: &Timed) -> BTreeMap<&Name, Vec<&SlotSeen>> {
    let mut batches: BTreeMap<&Name, Vec<&SlotSeen>> = BTreeMap::new();
    for seen in timed.slots.iter().filter(|seen| seen.record.origin == Origin::Schedule) {
        batches.entry(&seen.record.timer).or_default().push(seen);
    }
    batches
}
