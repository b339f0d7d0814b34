//! What became of a slot is what was agreed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{CatchUp, Fate, Name, NewTimer, OnEdit, Origin, Overlap, Skipped, SlotRecord, Timestamp};
use tenure_store::TimerAct;

use super::super::Check;
use super::{Roster, batches, keeps};
use crate::history::{Entry, SlotSeen, Timed, TimerDoing, What};

/// Later than this a slot was missed.
const IN_TIME: Duration = Duration::from_secs(60);

/// Each slot gets its job, unless the policies of its timer say otherwise, and then its record says why. None gets
/// one before its time, while the timer is paused, or while as many jobs of the timer have not ended as it allows.
#[derive(Default)]
pub(in super::super) struct Fates {
    roster: Roster,
    /// What was ever decided of each timer: some of it beyond the next slot, after a clock that was ahead.
    decided: BTreeMap<Name, Decided>,
}

/// By the last slot of each record: whether that got a job.
type Decided = BTreeMap<Timestamp, bool>;

/// In which light the slots of a timer were decided.
struct Court<'a> {
    agreed: &'a NewTimer,
    paused: bool,
    /// What it was set to just now, if that has another schedule.
    rescheduled: Option<&'a Arc<NewTimer>>,
    doing: &'a TimerDoing,
    /// Whether slots behind the first of these were decided before, by a clock that was ahead: such a slot gets no
    /// record again, but it takes the room of a job in this decision, and may be the one that is named.
    is_again: bool,
    /// What was decided before.
    decided: &'a Decided,
}

impl Check for Fates {
    fn rule(&self) -> &'static str {
        "what becomes of a slot is what was agreed"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        let What::Timed(timed) = &entry.what else { return Ok(()) };
        let judged = self.judge(timed);
        for (name, batch) in batches(timed) {
            let records = batch.iter().map(|seen| (seen.record.last, seen.record.job().is_some()));
            self.decided.entry(name.clone()).or_default().extend(records);
        }
        self.roster.see(timed);
        judged
    }
}

impl Fates {
    fn judge(&self, timed: &Timed) -> Result<(), String> {
        let nothing = Decided::new();
        for (name, batch) in batches(timed) {
            let (Some(agreed), Some(before)) = (self.roster.judged_by(name), self.roster.timers.get(name))
            else {
                continue;
            };
            let rescheduled = self.roster.rescheduled(timed, name);
            let first = batch.first().map(|seen| seen.record.first);
            let decided = self.decided.get(name).unwrap_or(&nothing);
            let is_again = decided.last_key_value().map(|(last, _)| *last) > first;
            let (paused, doing) = (before.paused, &timed.doing);
            Court { agreed: &agreed, paused, rescheduled, doing, is_again, decided }.judge(&batch)?;
        }
        for seen in timed.slots.iter().filter(|seen| seen.record.origin == Origin::Start) {
            self.judge_start(seen, timed)?;
        }
        Ok(())
    }

    /// A job for the start of a program.
    fn judge_start(&self, seen: &SlotSeen, timed: &Timed) -> Result<(), String> {
        let TimerDoing::Sets { timers, starts: true } = &timed.doing else {
            return Err(format!("no program started, and yet {:?}", seen.record));
        };
        let name = &seen.record.timer;
        let wanted = timers.iter().any(|(new, _)| new.name == *name);
        let paused = self.roster.timers.get(name).is_some_and(|agreed| agreed.paused);
        if !wanted || paused {
            return Err(format!("{name} ran on start, paused: {paused}"));
        }
        Ok(())
    }
}

impl Court<'_> {
    fn judge(&self, batch: &[&SlotSeen]) -> Result<(), String> {
        for (place, seen) in batch.iter().enumerate() {
            let fits = match &seen.record.fate {
                Fate::Ran { .. } => self.may_run(seen),
                Fate::Coalesced { into } => {
                    let later = batch.get(place + 1).map(|seen| &seen.record);
                    self.may_coalesce(*into, later)
                }
                Fate::Skipped { why } => self.may_skip(seen, why),
            };
            fits.map_err(|how| format!("{how}: {:?}", seen.record))?;
        }
        // A jitter may put a slot off for longer than the one behind it: then both are decided with that one.
        if let Some(SlotSeen { record, .. }) = batch.last().filter(|_| *self.doing == TimerDoing::Fires)
            && self.due(record.last) > record.at
        {
            return Err(format!("its time had not come: {record:?}"));
        }
        if let CatchUp::All { most } = self.agreed.policies.catch_up {
            let is_brought = |seen: &&&SlotSeen| {
                matches!(seen.record.fate, Fate::Ran { .. } | Fate::Skipped { why: Skipped::Busy { .. } })
            };
            let brought: Option<u64> = batch.iter().filter(is_brought).map(|seen| seen.record.count).sum();
            if brought.is_none_or(|brought| brought > u64::from(most)) {
                return Err(format!("{} caught up with {brought:?} slots, of {most}", self.agreed.name));
            }
        }
        Ok(())
    }

    fn may_run(&self, seen: &SlotSeen) -> Result<(), String> {
        let SlotRecord { first: slot, at, .. } = seen.record;
        let policies = &self.agreed.policies;
        let jitter = self.agreed.schedule.jitter().map_or(Duration::ZERO, |jitter| jitter.longest());
        let late = at.since(slot);
        let is_edit = self.rescheduled.is_some();
        refuse(self.paused, "it was paused")?;
        refuse(is_edit && policies.on_edit == OnEdit::Drop, "an edit drops what has passed")?;
        refuse(slot > at, "its instant had not come")?;
        if !self.agreed.schedule.follows_runs() {
            let is_missed = policies.catch_up == CatchUp::Skip && late > IN_TIME + jitter;
            refuse(is_missed, "it was missed, and nothing is caught up with")?;
            let is_too_late = policies.max_lateness.is_some_and(|most| late > most + jitter);
            refuse(is_too_late, "it was later than agreed")?;
            refuse(
                self.is_one() && self.is_ripe_after(slot, at),
                "a later slot was ripe, and it is one for all",
            )?;
        }
        refuse(seen.unfinished.len() >= self.room(), "earlier jobs had not ended")
    }

    fn may_coalesce(&self, into: Timestamp, later: Option<&SlotRecord>) -> Result<(), String> {
        refuse(!self.is_one(), "nothing is coalesced by this timer")?;
        let stands_for_it = |later: &SlotRecord| later.first == into && later.job().is_some();
        // One that has run keeps its record and gets no second job.
        let has_run = self.decided.get(&into) == Some(&true);
        refuse(!has_run && !later.is_some_and(stands_for_it), "no job of a later slot stands for it")
    }

    fn may_skip(&self, seen: &SlotSeen, why: &Skipped) -> Result<(), String> {
        let policies = &self.agreed.policies;
        let late = seen.record.at.since(self.due(seen.record.last));
        let fits = match why {
            Skipped::Busy { job } => {
                self.is_again || seen.unfinished.contains(job) && seen.unfinished.len() >= self.room()
            }
            Skipped::Missed => policies.catch_up == CatchUp::Skip && late > IN_TIME,
            Skipped::TooMany => !matches!(policies.catch_up, CatchUp::One),
            Skipped::TooLate => policies.max_lateness.is_some_and(|most| late > most),
            // No client can choose an ID that follows from a slot.
            Skipped::IdTaken { .. } => false,
            Skipped::Paused => self.paused && !matches!(self.doing, TimerDoing::Fires),
            Skipped::Edited => {
                let is_removal = matches!(self.doing, TimerDoing::Changes { act: TimerAct::Remove, .. });
                is_removal || self.rescheduled.is_some() && policies.on_edit == OnEdit::Drop
            }
        };
        refuse(!fits, "there was no such reason to skip it")
    }

    /// Whether one job stands for all slots that have passed.
    fn is_one(&self) -> bool {
        let policies = &self.agreed.policies;
        policies.catch_up == CatchUp::One || policies.overlap == Overlap::CancelPrevious
    }

    fn is_ripe_after(&self, slot: Timestamp, now: Timestamp) -> bool {
        let mut next = self.agreed.schedule.next_after(slot);
        // One that is on record without a job gets none, and stands for none.
        while next.is_some_and(|next| self.decided.get(&next) == Some(&false)) {
            next = next.and_then(|next| self.agreed.schedule.next_after(next));
        }
        next.is_some_and(|next| match self.rescheduled {
            Some(new) => next <= now && !(self.due(next) > now && keeps(new, next, now)),
            None => self.due(next) <= now,
        })
    }

    fn due(&self, slot: Timestamp) -> Timestamp {
        self.agreed.schedule.due(self.agreed.name.as_str(), slot)
    }

    fn room(&self) -> usize {
        match self.agreed.policies.overlap {
            Overlap::Skip => 1,
            Overlap::QueueOne => 2,
            Overlap::QueueAll | Overlap::CancelPrevious => usize::MAX,
            Overlap::Allow { most } => most as usize,
        }
    }
}

fn refuse(is_wrong: bool, how: &str) -> Result<(), String> {
    if is_wrong { Err(how.to_owned()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use tenure_core::Policies;
    use tenure_store::TimerSet;

    use super::super::super::made::{second, verdict};
    use super::super::made::{done, fires, id_of, ran, record, sets, skipped, with_every};
    use super::*;

    fn says(policies: Policies, entry: Entry) -> Result<(), String> {
        let new = NewTimer { policies, ..with_every(5) };
        verdict(Fates::default(), [sets(2, new, TimerSet::New), entry])
    }

    fn agreed(catch_up: CatchUp, overlap: Overlap) -> Policies {
        Policies { catch_up, overlap, ..Policies::default() }
    }

    #[test]
    fn a_slot_that_runs_though_it_should_not_is_found() {
        let given = Policies::default();
        let busy = || SlotSeen { unfinished: vec![id_of(5)], ..ran(10, 10) };
        assert!(says(given, fires(10, [busy()])).is_err());
        assert_eq!(says(agreed(CatchUp::One, Overlap::QueueOne), fires(10, [busy()])), Ok(()));
        assert!(says(given, fires(4, [ran(5, 4)])).is_err());
        assert!(says(given, fires(11, [ran(5, 11)])).is_err());
        assert!(says(agreed(CatchUp::Skip, Overlap::Skip), fires(66, [ran(5, 66)])).is_err());
        let late = Policies { max_lateness: Some(Duration::from_secs(3)), ..given };
        assert!(says(late, fires(9, [ran(5, 9)])).is_err());
    }

    #[test]
    fn a_slot_that_runs_while_paused_is_found() {
        let new = sets(2, with_every(5), TimerSet::New);
        let pause = done(3, TimerAct::Pause { reason: String::new() });
        assert!(verdict(Fates::default(), [new, pause, fires(5, [ran(5, 5)])]).is_err());
    }

    #[test]
    fn a_reason_that_is_none_is_found() {
        let given = Policies::default();
        for why in [Skipped::Missed, Skipped::TooLate, Skipped::Paused, Skipped::Edited, Skipped::TooMany] {
            assert!(says(given, fires(6, [skipped((5, 5), 1, why.clone(), 6)])).is_err(), "{why:?}");
        }
        let busy = Skipped::Busy { job: id_of(5) };
        assert!(says(given, fires(10, [skipped((10, 10), 1, busy.clone(), 10)])).is_err());
        let seen = SlotSeen { unfinished: vec![id_of(5)], ..skipped((10, 10), 1, busy, 10) };
        assert_eq!(says(given, fires(10, [seen])), Ok(()));
    }

    #[test]
    fn a_slot_that_is_busy_although_there_is_room_is_found_unless_it_takes_the_room_again() {
        let two = agreed(CatchUp::All { most: 9 }, Overlap::Allow { most: 2 });
        let busy = || {
            let seen = skipped((10, 10), 1, Skipped::Busy { job: id_of(5) }, 10);
            fires(10, [SlotSeen { unfinished: vec![id_of(5)], ..seen }])
        };
        let new = || sets(2, NewTimer { policies: two, ..with_every(5) }, TimerSet::New);
        assert!(verdict(Fates::default(), [new(), busy()]).is_err());
        // A clock that was ahead had brought the job of a later slot already.
        assert_eq!(verdict(Fates::default(), [new(), fires(15, [ran(15, 15)]), busy()]), Ok(()));
    }

    #[test]
    fn a_slot_that_is_coalesced_into_none_is_found() {
        let coalesced = || {
            let record = record(5, Fate::Coalesced { into: second(10) }, 11);
            SlotSeen { record, ..skipped((5, 5), 1, Skipped::Missed, 11) }
        };
        let given = Policies::default();
        assert!(says(given, fires(11, [coalesced()])).is_err());
        assert_eq!(says(given, fires(11, [coalesced(), ran(10, 11)])), Ok(()));
        let busy = skipped((10, 10), 1, Skipped::Busy { job: id_of(1) }, 11);
        let busy = SlotSeen { unfinished: vec![id_of(1)], ..busy };
        let one_at_a_time = agreed(CatchUp::One, Overlap::Skip);
        assert!(says(one_at_a_time, fires(11, [coalesced(), busy])).is_err());
        let all = agreed(CatchUp::All { most: 1 }, Overlap::QueueAll);
        assert!(says(all, fires(11, [coalesced(), ran(10, 11)])).is_err());
        assert!(says(all, fires(11, [ran(5, 11), ran(10, 11)])).is_err());
    }

    /// A timer was removed and set again while the clock was put back.
    #[test]
    fn a_slot_that_is_left_to_one_on_record_without_a_job_is_found() {
        let says_after = |decided: Vec<Entry>, slot: SlotSeen| {
            let set = || sets(2, with_every(5), TimerSet::New);
            let again = [done(12, TimerAct::Remove), set(), fires(11, [slot])];
            verdict(Fates::default(), [set()].into_iter().chain(decided).chain(again))
        };
        let coalesced = || {
            let record = record(5, Fate::Coalesced { into: second(10) }, 11);
            SlotSeen { record, ..skipped((5, 5), 1, Skipped::Missed, 11) }
        };
        let has_run = || vec![fires(10, [ran(10, 10)])];
        let was_paused = || {
            let mut resumed = done(11, TimerAct::Resume);
            if let What::Timed(timed) = &mut resumed.what {
                timed.slots.push(skipped((5, 10), 2, Skipped::Paused, 11));
            }
            vec![done(3, TimerAct::Pause { reason: String::new() }), resumed]
        };
        assert!(says_after(was_paused(), coalesced()).is_err());
        assert_eq!(says_after(was_paused(), ran(5, 11)), Ok(()));
        let has_run = |slot| says_after(has_run(), slot);
        assert_eq!(has_run(coalesced()), Ok(()));
        assert!(has_run(ran(5, 11)).is_err());
    }
}
