//! Timers and the records of their slots.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::ops::Bound;
use std::time::Duration;

use tenure_core::{
    HostId, Job, JobId, Name, NewJob, NewTimer, Origin, SlotRecord, State, Timer, Timestamp, Why, limits,
};

use super::rows::Rows;
use super::txn::{Txn, run};
use crate::engine::timers::{self, Progress, TimerTxn, Written};
use crate::{
    Brought, Change, Fired, Order, Pruned, Selection, SlotCursor, SlotPage, SlotsAsk, TimerAct, TimerEdit,
    TimerEdited, TimerOutcome, TimerPage, TimerSeen, TimerSet, TimersAsk,
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

    fn remove(&mut self, name: &Name) -> bool {
        let Some(timer) = self.rows.remove(name) else { return false };
        timer.wake().map(|wake| self.wakes.remove(&(wake, name.clone())));
        true
    }

    /// Adds a record, if its place has none. Returns true if it was added.
    fn add(&mut self, record: &SlotRecord) -> bool {
        let place = self.records.entry(SlotCursor::of(record));
        let is_free = matches!(place, Entry::Vacant(_));
        place.or_insert_with(|| record.clone());
        is_free
    }

    /// Returns true if the record of a scheduled slot says that it got its job; `None` without a record.
    fn has_run(&self, timer: &Name, slot: Timestamp) -> Option<bool> {
        let place = SlotCursor { slot, timer: timer.clone(), origin: Origin::Schedule };
        self.records.get(&place).map(|record| record.job().is_some())
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
        timers: &[NewTimer],
        starts: Option<HostId>,
        now: Timestamp,
    ) -> Vec<TimerSet> {
        let (mut outcomes, mut brought) = (Vec::new(), Brought::default());
        for new in timers {
            if brought.is_enough() {
                break;
            }
            let set = self.set_timer(new, starts, now);
            outcomes.push(set.outcome);
            brought.jobs += set.brought.jobs;
            brought.records += set.brought.records;
        }
        outcomes
    }

    fn set_timer(&mut self, new: &NewTimer, starts: Option<HostId>, now: Timestamp) -> timers::Set {
        let before = self.timers.get(&new.name).cloned();
        run(timers::set(&mut Txn { rows: self, now }, before, new, starts))
    }

    /// Changes a timer, if it is as it was seen.
    pub fn edit_timer(
        &mut self,
        name: &Name,
        seen: &TimerSeen,
        edit: &TimerEdit,
        now: Timestamp,
    ) -> TimerEdited {
        if !seen.is(self.timers.get(name)) {
            return TimerEdited::Otherwise;
        }
        match edit {
            TimerEdit::Set(new) => TimerEdited::Set(self.set_timer(new, None, now).outcome),
            TimerEdit::Act(act) => TimerEdited::Acted(self.change_timer(name, act, now)),
        }
    }

    /// Decides the slots of ripe timers.
    pub fn fire(&mut self, at_most: usize, now: Timestamp) -> Fired {
        let ripe = self.timers.ripe(now, at_most.min(limits::FIRE_TIMERS));
        let ripe = ripe.iter().filter_map(|name| self.timers.get(name).cloned().map(Ok)).collect();
        let mut txn = Txn { rows: self, now };
        let decided = run(timers::decide(&mut txn, ripe, |brought| brought.is_enough()));
        let timers = decided.errors.len();
        let Written { jobs, records, .. } = run(timers::write(&mut txn, decided.firings));
        let ripe_in = self.timers.next().map(|next| next.since(now));
        Fired { timers, jobs, records, ripe_in }
    }

    /// Performs an action on a timer.
    fn change_timer(&mut self, name: &Name, act: &TimerAct, now: Timestamp) -> TimerOutcome {
        let Some(timer) = self.timers.get(name).cloned() else { return TimerOutcome::NotFound };
        run(timers::act(&mut Txn { rows: self, now }, &timer, act))
    }
}

impl TimerTxn for Txn<'_> {
    type Error = Infallible;

    fn now(&self) -> Timestamp {
        self.now
    }

    async fn progress(
        &mut self,
        ids: Vec<JobId>,
    ) -> Result<BTreeMap<JobId, Result<Progress, Infallible>>, Infallible> {
        let found = ids.into_iter().filter_map(|id| Some((id, self.rows.find(id)?)));
        Ok(found.filter_map(|(id, row)| Some((id, Ok(progress(&row.job.state)?)))).collect())
    }

    async fn jobs(&mut self, ids: Vec<JobId>) -> Result<Vec<Job>, Infallible> {
        Ok(ids.into_iter().filter_map(|id| self.rows.find(id)).map(|row| row.job.clone()).collect())
    }

    async fn have_run(&mut self, slots: &[(&Name, Timestamp)]) -> Result<Vec<Option<bool>>, Infallible> {
        Ok(slots.iter().map(|(timer, slot)| self.rows.timers.has_run(timer, *slot)).collect())
    }

    async fn add_records(&mut self, records: &[&SlotRecord]) -> Result<Vec<bool>, Infallible> {
        Ok(records.iter().map(|record| self.rows.timers.add(record)).collect())
    }

    async fn enqueue(&mut self, jobs: &[NewJob]) -> Result<usize, Infallible> {
        let before = self.rows.last_seq;
        jobs.iter().for_each(|job| self.rows.enqueue_slot(job, self.now));
        Ok(usize::try_from(self.rows.last_seq - before).unwrap_or(usize::MAX))
    }

    async fn cancel(&mut self, ids: Vec<JobId>, grace: Duration, reason: String) -> Result<(), Infallible> {
        self.rows.change(&Change::Cancel { grace, reason }, &Selection::Ids(ids), self.now);
        Ok(())
    }

    async fn insert(&mut self, timer: &Timer) -> Result<(), Infallible> {
        self.advance(timer).await
    }

    async fn define(&mut self, timer: &Timer) -> Result<(), Infallible> {
        self.advance(timer).await
    }

    async fn advance(&mut self, timer: &Timer) -> Result<(), Infallible> {
        self.rows.timers.keep(timer.clone());
        Ok(())
    }

    async fn remove(&mut self, name: &Name) -> Result<bool, Infallible> {
        Ok(self.rows.timers.remove(name))
    }

    fn notify_due(&mut self) {
        self.rows.news.due = true;
    }
}

fn progress(state: &State) -> Option<Progress> {
    match state {
        State::Finished { at, .. } => Some(Progress::Ended(Some(*at))),
        State::Waiting { why: Why::Retry, .. } if cfg!(mutant = "retry-makes-room") => None,
        State::Waiting { .. } | State::Blocked { .. } | State::Running { .. } => Some(Progress::Unfinished),
    }
}
