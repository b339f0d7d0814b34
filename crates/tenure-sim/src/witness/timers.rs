//! What is done with timers, and what became of their slots because of it.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{
    End, HostId, Job, JobId, Name, NewTimer, Origin, SlotRecord, State, Timer, Timestamp, limits,
};
use tenure_store::{
    Accepted, Answer, ChangeOutcome, Fault, Fired, Order, SlotsAsk, TimerEdit, TimerEdited, TimerSeen,
    TimerSet, TimersAsk,
};

use super::{Witness, row};
use crate::history::{Changing, SlotSeen, Timed, TimerDoing, What};
use crate::probes::Probe;

/// Records that are read at once after a firing, the latest first: those of one firing lie close together.
const LATEST: usize = 100;

impl Witness {
    /// Writes down what was done with timers, and what is new of their slots.
    async fn timed(&self, doing: TimerDoing) -> Result<(), Fault> {
        self.timed_since(doing, None).await
    }

    /// The same, where what is new is no older than this, if it is known.
    async fn timed_since(&self, doing: TimerDoing, oldest: Option<Timestamp>) -> Result<(), Fault> {
        let mut slots = Vec::new();
        for record in self.read_records(&doing, oldest).await? {
            slots.push(self.slot_seen(record).await?);
        }
        self.note(What::Timed(Timed { doing, slots }));
        Ok(())
    }

    /// The records that are new, or not what they were.
    async fn read_records(
        &self,
        doing: &TimerDoing,
        oldest: Option<Timestamp>,
    ) -> Result<Vec<SlotRecord>, Fault> {
        let reads_all = !matches!(doing, TimerDoing::Fires);
        let (mut fresh, mut behind) = (Vec::new(), None);
        loop {
            let at_most = if reads_all { limits::PAGE_SLOTS } else { LATEST };
            let ask = SlotsAsk { order: Order::NewestFirst, behind, at_most, ..SlotsAsk::default() };
            let page = self.store.slots(ask).await?;
            let before = fresh.len();
            let mut records = self.book.records();
            fresh.extend(page.slots.into_iter().filter(|record| records.learn(record)));
            let Some(place) = page.next else { break };
            // What a clock that was ahead has left on record is later than all that is new.
            let is_behind_all = oldest.is_none_or(|oldest| place.slot < oldest);
            if fresh.len() == before && is_behind_all && !reads_all {
                break;
            }
            behind = Some(place);
        }
        fresh.sort_by(|one, other| {
            (&one.timer, one.origin, one.first).cmp(&(&other.timer, other.origin, other.first))
        });
        Ok(fresh)
    }

    async fn slot_seen(&self, record: SlotRecord) -> Result<SlotSeen, Fault> {
        let unfinished = self.unfinished(&record.timer).await?;
        let Some(id) = record.job() else { return Ok(SlotSeen { record, job: None, unfinished }) };
        let job = self.store.job(id).await?;
        if let Some(job) = &job {
            // What somebody asked for from the past stands in nobody's way.
            if record.origin != Origin::Backfill {
                self.book.records().open(&record.timer, id);
            }
            let (seq, terms) = (Some(job.seq), Arc::clone(&job.terms));
            self.note(What::Stored { ask: 0, seq, terms, accepted: Accepted::New(id) });
            self.book.companions().see(job);
            self.note(What::Row(row(job)));
        }
        Ok(SlotSeen { record, job: job.as_ref().map(row), unfinished })
    }

    /// The jobs of a timer that have not ended now, the oldest first.
    async fn unfinished(&self, timer: &Name) -> Result<Vec<JobId>, Fault> {
        let opened = self.book.records().opened(timer);
        let mut unfinished = Vec::new();
        for id in opened {
            let job = self.store.job(id).await?;
            match job.as_ref().filter(|job| !job.state.is_finished()) {
                Some(_) => unfinished.push(id),
                None => self.book.records().close(timer, id),
            }
            if let Some(job) = &job {
                self.note_cancelled(job);
            }
        }
        Ok(unfinished)
    }

    /// A timer may have asked its earlier jobs to stop.
    fn note_cancelled(&self, job: &Job) {
        let asked = match (&job.cancel, job.state) {
            (Some(cancel), _) => Some((cancel.deadline.since(cancel.at), ChangeOutcome::Asked)),
            // One that waits ends at once.
            (None, State::Finished { end: End::Cancelled, .. }) => {
                Some((Duration::ZERO, ChangeOutcome::Done))
            }
            (None, _) => None,
        };
        if let Some((grace, outcome)) = asked.filter(|_| self.book.records().cancel(job.id)) {
            self.note(What::Changed { id: job.id, change: Changing::Cancel(grace), outcome });
            self.note(What::Row(row(job)));
        }
    }

    /// Looks at all timers and at all records.
    pub(crate) async fn look_at_timers(&self) -> Result<Vec<Timer>, Fault> {
        let (mut timers, mut behind) = (Vec::new(), None);
        loop {
            let page = self.store.timers(TimersAsk { behind, ..TimersAsk::default() }).await?;
            timers.extend(page.timers);
            behind = page.next;
            if behind.is_none() {
                break;
            }
        }
        self.timed(TimerDoing::Looks { timers: timers.clone() }).await?;
        Ok(timers)
    }
}

impl Witness {
    pub(super) fn set_timers(
        &self,
        timers: Vec<NewTimer>,
        starts: Option<HostId>,
    ) -> Answer<'_, Vec<TimerSet>> {
        Box::pin(async move {
            let asked: Vec<Arc<NewTimer>> = timers.iter().cloned().map(Arc::new).collect();
            let set = self.store.set_timers(timers, starts).await?;
            let timers: Vec<_> = asked.into_iter().zip(set.iter().copied()).collect();
            let new = timers.iter().filter(|(_, set)| *set == TimerSet::New);
            new.for_each(|(timer, _)| self.book.records().renew(&timer.name));
            self.timed(TimerDoing::Sets { timers, starts: starts.is_some() }).await?;
            Ok(set)
        })
    }

    pub(super) fn fire(&self, at_most: usize) -> Answer<'_, Fired> {
        Box::pin(async move {
            let fired = self.store.fire(at_most).await?;
            let now = self.book.now();
            if self.book.records().came(self.who, now, fired.timers > 0) {
                self.book.hit(Probe::FiredByAnother);
            }
            if fired.timers > 0 {
                let oldest = fired.records.iter().map(|record| record.first).min();
                self.timed_since(TimerDoing::Fires, oldest).await?;
            }
            Ok(fired)
        })
    }

    pub(super) fn edit_timer(
        &self,
        name: &Name,
        seen: TimerSeen,
        edit: TimerEdit,
    ) -> Answer<'_, TimerEdited> {
        let name = name.clone();
        Box::pin(async move {
            let edited = self.store.edit_timer(&name, seen, edit.clone()).await?;
            let doing = match (edit, &edited) {
                (TimerEdit::Set(timer), TimerEdited::Set(set)) => {
                    if *set == TimerSet::New {
                        self.book.records().renew(&name);
                    }
                    TimerDoing::Sets { timers: vec![(Arc::new(*timer), *set)], starts: false }
                }
                (TimerEdit::Act(act), TimerEdited::Acted(outcome)) => {
                    TimerDoing::Changes { name, act, outcome: outcome.clone() }
                }
                (TimerEdit::Set(_) | TimerEdit::Act(_), _) => return Ok(edited),
            };
            self.timed(doing).await?;
            Ok(edited)
        })
    }
}
