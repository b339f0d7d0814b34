//! A slot has one job.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{JobId, Name, Origin, Timestamp};

use super::super::Check;
use crate::history::{Entry, Row, SlotSeen, What};

/// The job of a slot is there as soon as its record is, under the identity that follows from timer and slot; no job of
/// a timer is there without a record, and none comes twice. Who asks for one job beside the schedule gets one at most.
#[derive(Default)]
pub(in super::super) struct Occurrences {
    /// The slot of each job, and its place.
    jobs: BTreeMap<JobId, (Occurrence, u64)>,
    /// What somebody asked for beside the schedule.
    asked: BTreeSet<(Name, JobId)>,
}

type Occurrence = (Name, Timestamp, Origin);

impl Check for Occurrences {
    fn rule(&self) -> &'static str {
        "a slot of a timer has one job"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        match &entry.what {
            What::Triggers(timer, id) => {
                self.asked.insert((timer.clone(), *id));
                Ok(())
            }
            What::Timed(timed) => timed.slots.iter().try_for_each(|seen| self.brought(seen)),
            What::Audit { rows, .. } => rows.iter().try_for_each(|row| self.look(row)),
            _ => Ok(()),
        }
    }
}

impl Occurrences {
    fn brought(&mut self, seen: &SlotSeen) -> Result<(), String> {
        let record = &seen.record;
        let Some(id) = record.job() else { return Ok(()) };
        let (timer, slot, origin) = (&record.timer, record.first, record.origin);
        let Some(job) = &seen.job else {
            return Err(format!("the slot {slot} of {timer} ran as {id}, which is not there"));
        };
        if origin != Origin::Trigger && id != JobId::of_slot(timer, slot, origin) {
            return Err(format!("the job of slot {slot} of {timer} has an identity of its own: {id}"));
        }
        let of = job.slot().map(|slot| (slot.timer.clone(), slot.at, slot.origin));
        let occurrence = (timer.clone(), slot, origin);
        if of.as_ref() != Some(&occurrence) {
            return Err(format!("the job of slot {slot} of {timer} says that it is of {of:?}"));
        }
        if let Some((before, _)) = self.jobs.insert(id, (occurrence.clone(), job.seq))
            && before != occurrence
        {
            return Err(format!("job {id} is of two slots: {before:?} and {occurrence:?}"));
        }
        if origin == Origin::Trigger && !self.asked.contains(&(timer.clone(), id)) {
            return Err(format!("{timer} brought {id} beside its schedule, for which nobody asked"));
        }
        Ok(())
    }

    fn look(&self, row: &Row) -> Result<(), String> {
        let Some(slot) = row.slot() else { return Ok(()) };
        match self.jobs.get(&row.id) {
            None => Err(format!("#{} of {} is there without a record of {}", row.seq, slot.timer, slot.at)),
            Some((_, seq)) if *seq != row.seq => {
                Err(format!("{} of {} brought its job twice: #{seq} and #{}", slot.at, slot.timer, row.seq))
            }
            Some(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::{Fate, SlotRecord};

    use super::super::super::made::{H0, at, audit, id, verdict};
    use super::super::made::{fires, job, name, ran, record};
    use super::*;

    fn says(history: impl IntoIterator<Item = Entry>) -> Result<(), String> {
        verdict(Occurrences::default(), history)
    }

    #[test]
    fn a_job_that_is_not_there_or_has_another_identity_is_found() {
        assert!(says([fires(5, [SlotSeen { job: None, ..ran(5, 5) }])]).is_err());
        let record = record(5, Fate::Ran { job: id(7) }, 5);
        assert!(says([fires(5, [SlotSeen { record, ..ran(5, 5) }])]).is_err());
    }

    #[test]
    fn a_job_without_a_record_and_one_that_comes_twice_are_found() {
        assert!(says([at(6, H0, audit(vec![job(5, 5)]))]).is_err());
        let again = Row { seq: 9, ..job(5, 5) };
        assert!(says([fires(5, [ran(5, 5)]), at(6, H0, audit(vec![again]))]).is_err());
        assert_eq!(says([fires(5, [ran(5, 5)]), at(6, H0, audit(vec![job(5, 5)]))]), Ok(()));
    }

    #[test]
    fn two_jobs_for_one_wish_are_found() {
        let triggered = |secs: u64| {
            let mut seen = ran(secs, secs);
            seen.record =
                SlotRecord { origin: Origin::Trigger, fate: Fate::Ran { job: id(secs) }, ..seen.record };
            let terms = seen.job.as_ref().map(|job| tenure_core::Terms::clone(&job.terms));
            let mut terms = terms.unwrap();
            terms.slot = terms.slot.map(|slot| tenure_core::TimerSlot { origin: Origin::Trigger, ..slot });
            seen.job = seen.job.map(|job| Row { id: id(secs), terms: terms.into(), ..job });
            fires(secs, [seen])
        };
        let asks = at(1, H0, What::Triggers(name(), id(2)));
        assert_eq!(says([asks.clone(), triggered(2)]), Ok(()));
        assert!(says([asks, triggered(2), triggered(3)]).is_err());
    }
}
