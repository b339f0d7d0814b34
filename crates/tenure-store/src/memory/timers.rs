//! Timers and the records of their slots.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use tenure_core::schedule::Schedule;
use tenure_core::{
    Edited, Firing, HostId, Job, JobId, Name, NewTimer, Open, Origin, Refused, SlotRecord, State, Timer,
    Timestamp, Why, backfill, edit, fire, limits, past_slots, pause, remove, resume, start, trigger,
};

use super::rows::Rows;
use crate::{
    Brought, Change, Fired, Order, Pruned, Selection, SlotCursor, SlotPage, SlotsAsk, TimerAct, TimerEdit,
    TimerEdited, TimerOutcome, TimerPage, TimerSeen, TimerSet, TimersAsk, is_over,
};

/// All that is known of timers.
#[derive(Debug, Default)]
pub(super) struct TimerRows {
    rows: BTreeMap<Name, Timer>,
    /// When somebody has to look at which.
    wakes: BTreeSet<(Timestamp, Name)>,
    records: BTreeMap<SlotCursor, SlotRecord>,
}

impl TimerRows {
    /// Keeps a timer as it is from now on.
    fn keep(&mut self, timer: Timer) {
        let name = timer.name().clone();
        let wake = timer.wake();
        let old = self.rows.insert(name.clone(), timer).and_then(|old| old.wake());
        self.wakes.extend(wake.map(|wake| (wake, name.clone())));
        if let Some(old) = old.filter(|old| Some(*old) != wake) {
            self.wakes.remove(&(old, name));
        }
    }

    /// Keeps a timer as it was copied.
    pub fn copied(&mut self, timer: Timer) {
        self.keep(timer);
    }

    /// Keeps a record as it was copied.
    pub fn copied_slot(&mut self, record: SlotRecord) {
        self.records.insert(SlotCursor::of(&record), record);
    }

    /// How many timers there are, and how many records.
    pub fn totals(&self) -> (usize, usize) {
        (self.rows.len(), self.records.len())
    }

    fn remove(&mut self, name: &Name) {
        let wake = self.rows.remove(name).and_then(|timer| timer.wake());
        wake.map(|wake| self.wakes.remove(&(wake, name.clone())));
    }

    /// Keeps records, one a slot. Answers the jobs of slots that were on record before: somebody removed a timer and
    /// set it again while the clock was put back, or asks again for slots of the past. What was decided stays, even if
    /// the job has long been removed. A trigger is a wish of its own, whatever else there is of its instant.
    fn record(&mut self, records: Vec<SlotRecord>, schedule: &Schedule) -> BTreeSet<JobId> {
        let mut decided = BTreeSet::new();
        for record in records {
            let is_kept = self.keep_record(&record, schedule);
            decided.extend(record.job().filter(|_| !is_kept));
        }
        decided
    }

    /// Keeps a record, but for its last slots if they are on record. Answers whether none were.
    fn keep_record(&mut self, record: &SlotRecord, schedule: &Schedule) -> bool {
        let mut left = Some(record.clone());
        for cuts in 0..limits::SLOTS_COUNTED {
            let Some(record) = left else { return false };
            match self.records.entry(SlotCursor::of(&record)) {
                Entry::Vacant(place) => {
                    place.insert(record);
                    return cuts == 0;
                }
                Entry::Occupied(_) if record.origin == Origin::Trigger => return true,
                Entry::Occupied(_) => left = record.without_last(schedule),
            }
        }
        false
    }

    /// Whether the record of a slot of the schedule tells that it had a job.
    fn has_run(&self, timer: &Name, slot: Timestamp) -> bool {
        let place = SlotCursor { slot, timer: timer.clone(), origin: Origin::Schedule };
        self.records.get(&place).is_some_and(|record| record.job().is_some())
    }

    /// Whether a slot of the schedule is on record as one that got no job.
    fn is_without_job(&self, timer: &Name, slot: Timestamp) -> bool {
        let place = SlotCursor { slot, timer: timer.clone(), origin: Origin::Schedule };
        self.records.get(&place).is_some_and(|record| record.job().is_none())
    }

    /// When the next timer is ripe.
    fn next(&self) -> Option<Timestamp> {
        self.wakes.first().map(|(wake, _)| *wake)
    }

    fn ripe(&self, now: Timestamp, at_most: usize) -> Vec<Name> {
        let ripe = self.wakes.iter().take_while(|(wake, _)| *wake <= now);
        ripe.take(at_most).map(|(_, name)| name.clone()).collect()
    }

    /// One timer.
    pub fn get(&self, name: &Name) -> Option<&Timer> {
        self.rows.get(name)
    }

    /// A page of timers.
    pub fn page(&self, ask: &TimersAsk, now: Timestamp) -> TimerPage {
        let at_most = ask.at_most.clamp(1, limits::PAGE_TIMERS);
        let from = ask.behind.clone().map_or(Bound::Unbounded, Bound::Excluded);
        let rows = self.rows.range((from, Bound::Unbounded));
        let mut wanted = rows.filter(|(name, _)| name.as_str().starts_with(&ask.prefix));
        let timers: Vec<Timer> = wanted.by_ref().take(at_most).map(|(_, timer)| timer.clone()).collect();
        let next = wanted.next().and(timers.last()).map(|timer| timer.name().clone());
        TimerPage { timers, next, now }
    }

    /// A page of records.
    pub fn slots(&self, ask: &SlotsAsk) -> SlotPage {
        let at_most = ask.at_most.clamp(1, limits::PAGE_SLOTS);
        let behind = ask.behind.clone().map_or(Bound::Unbounded, Bound::Excluded);
        let mut records: Box<dyn Iterator<Item = _>> = match ask.order {
            Order::OldestFirst => Box::new(self.records.range((behind, Bound::Unbounded))),
            Order::NewestFirst => Box::new(self.records.range((Bound::Unbounded, behind)).rev()),
        };
        let (mut slots, mut last) = (Vec::new(), None);
        for (cursor, record) in records.by_ref().take(limits::PAGE_EXAMINED) {
            last = Some(cursor.clone());
            if ask.means(record) {
                slots.push(record.clone());
            }
            if slots.len() == at_most {
                break;
            }
        }
        let next = records.next().and(last);
        SlotPage { slots, next }
    }

    /// Removes old records.
    pub fn prune(&mut self, before: Timestamp) -> Pruned {
        let old = self.records.iter().take_while(|(cursor, _)| cursor.slot < before);
        let old = old.filter(|(_, record)| record.at < before);
        let mut old: Vec<(Timestamp, SlotCursor)> =
            old.map(|(cursor, record)| (record.at, cursor.clone())).collect();
        old.sort();
        let more = old.len() > limits::PRUNE_SLOTS;
        old.truncate(limits::PRUNE_SLOTS);
        old.iter().for_each(|(_, cursor)| _ = self.records.remove(cursor));
        Pruned { removed: old.len(), more }
    }
}

impl Rows {
    /// Sets timers, each by itself.
    pub fn set_timers(
        &mut self,
        timers: Vec<NewTimer>,
        starts: Option<HostId>,
        now: Timestamp,
    ) -> Vec<TimerSet> {
        let (mut set, mut brought) = (Vec::new(), Brought::default());
        for new in timers {
            if brought.is_enough() {
                break;
            }
            let (outcome, more) = self.set_timer(new, starts, now);
            set.push(outcome);
            brought.jobs += more.jobs;
            brought.records += more.records;
        }
        set
    }

    /// Sets a timer. Answers also how many jobs and records that brought.
    fn set_timer(&mut self, new: NewTimer, starts: Option<HostId>, now: Timestamp) -> (TimerSet, Brought) {
        let name = new.name.clone();
        let mut brought = Brought::default();
        if starts.is_none() && is_over(&new, self.timers.get(&name), now) {
            return (TimerSet::Over { now }, brought);
        }
        let set = match self.timers.get(&name).cloned() {
            None => {
                self.timers.keep(Timer::accepted(new, now));
                TimerSet::New
            }
            Some(timer) => match edit(&timer, &self.open_jobs(&timer), new, now) {
                Edited::Same => TimerSet::Same,
                Edited::Outdated { by } => return (TimerSet::Outdated { by }, brought),
                Edited::Changed(firing) => {
                    brought.records += firing.records.len();
                    brought.jobs += self.write_firing(&timer, *firing, now);
                    TimerSet::Changed
                }
            },
        };
        if let (Some(timer), Some(host)) = (self.timers.get(&name).cloned(), starts) {
            let firing = start(&timer, &self.open_jobs(&timer), host.drawn_at(), now);
            brought.records += firing.records.len();
            brought.jobs += self.write_firing(&timer, firing, now);
        }
        self.news.due = true;
        (set, brought)
    }

    /// Changes a timer, if it is as it was seen.
    pub fn edit_timer(
        &mut self,
        name: &Name,
        seen: &TimerSeen,
        edit: TimerEdit,
        now: Timestamp,
    ) -> TimerEdited {
        if !seen.is(self.timers.get(name)) {
            return TimerEdited::Otherwise;
        }
        match edit {
            TimerEdit::Set(new) => TimerEdited::Set(self.set_timer(*new, None, now).0),
            TimerEdit::Act(act) => TimerEdited::Acted(self.change_timer(name, act, now)),
        }
    }

    /// Decides what is ripe.
    pub fn fire(&mut self, at_most: usize, now: Timestamp) -> Fired {
        let ripe = self.timers.ripe(now, at_most.min(limits::FIRE_TIMERS));
        let mut fired = Fired::default();
        for name in ripe {
            if fired.brought().is_enough() {
                break;
            }
            let Some(timer) = self.timers.get(&name).cloned() else { continue };
            let firing = fire(&timer, &self.open_jobs(&timer), now);
            fired.timers += 1;
            let (jobs, records) = self.write_told(&timer, firing, now);
            fired.jobs += jobs;
            fired.records.extend(records);
        }
        fired.ripe_in = self.timers.next().map(|next| next.since(now));
        fired
    }

    /// Does what somebody wants of a timer.
    pub fn change_timer(&mut self, name: &Name, act: TimerAct, now: Timestamp) -> TimerOutcome {
        let Some(timer) = self.timers.get(name).cloned() else { return TimerOutcome::NotFound };
        let open = self.open_jobs(&timer);
        let firing = match act {
            TimerAct::Pause { reason } => pause(&timer, &open, &reason, now),
            TimerAct::Resume => resume(&timer, &open, now),
            TimerAct::Trigger { id, args, owner } => {
                if let Some(row) = self.find(id) {
                    let is_own = row.job.terms.slot.as_ref().is_some_and(|slot| slot.is_trigger_of(name));
                    return if is_own { TimerOutcome::Triggered(id) } else { TimerOutcome::IdTaken(id) };
                }
                return match trigger(&timer, &open, id, args, now) {
                    Ok(firing) => {
                        self.write_firing(&timer, firing.owned_by(owner), now);
                        TimerOutcome::Triggered(id)
                    }
                    Err(Refused::Busy { job }) => TimerOutcome::Busy(job),
                };
            }
            TimerAct::Backfill { from, to, again } => {
                let mut past = past_slots(&timer, (from, to), now);
                past.slots.retain(|slot| again || !self.timers.has_run(name, *slot));
                let jobs = self.write_firing(&timer, backfill(&timer, &open, &past.slots, now), now);
                return TimerOutcome::Backfilled { jobs, next: past.next };
            }
            TimerAct::Remove => {
                self.timers.record(remove(&timer, &open, now), &timer.agreed.schedule);
                self.timers.remove(name);
                return TimerOutcome::Done;
            }
        };
        self.write_firing(&timer, firing, now);
        self.news.due = true;
        TimerOutcome::Done
    }

    /// What is known of the jobs that a timer has open.
    fn open_jobs(&self, timer: &Timer) -> Open {
        let mut open = Open::default();
        for id in &timer.open {
            match self.find(*id).map(|row| &row.job.state) {
                Some(State::Finished { at, .. }) => open.ended = open.ended.max(Some(*at)),
                Some(State::Waiting { why: Why::Retry, .. }) if cfg!(mutant = "retry-makes-room") => {}
                Some(State::Waiting { .. } | State::Blocked { .. } | State::Running { .. }) => {
                    open.unfinished.push(*id);
                }
                // It was removed after its end.
                None => {}
            }
        }
        open
    }

    /// Writes what was decided about a timer that was so before; answers how many jobs are new.
    fn write_firing(&mut self, timer: &Timer, firing: Firing, now: Timestamp) -> usize {
        self.write_told(timer, firing, now).0
    }

    /// The same; answers the records as well.
    fn write_told(&mut self, timer: &Timer, mut firing: Firing, now: Timestamp) -> (usize, Vec<SlotRecord>) {
        for _ in 0..limits::SLOTS_COUNTED {
            let into = firing.stands_for_others();
            if !into.is_some_and(|into| self.timers.is_without_job(timer.name(), into)) {
                break;
            }
            firing.pass_by(timer, now);
        }
        let there: Vec<Job> =
            firing.jobs.iter().filter_map(|new| self.find(new.id)).map(|row| Job::clone(&row.job)).collect();
        let mut not_wanted = firing.skip_taken(&there);
        not_wanted.extend(self.timers.record(firing.records.clone(), &timer.agreed.schedule));
        firing.take_back(&not_wanted, timer, now);
        let Firing { timer, jobs, cancel, records } = firing;
        if !cancel.is_empty() {
            self.cancel_for(timer.name(), cancel, now);
        }
        let before = self.last_seq;
        for job in &jobs {
            // One that is there already, as it is now or as it was agreed then, is the job of its slot.
            self.enqueue_slot(job, now);
        }
        self.timers.keep(timer);
        (usize::try_from(self.last_seq - before).unwrap_or(usize::MAX), records)
    }

    fn cancel_for(&mut self, timer: &Name, jobs: Vec<JobId>, now: Timestamp) {
        let reason = format!("the next run of timer {timer} is due");
        let cancel = Change::Cancel { grace: limits::TIMER_GRACE, reason };
        self.change(&cancel, &Selection::Ids(jobs), now);
    }
}
