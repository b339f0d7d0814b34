//! What people want of a timer.

use tenure_core::{
    Firing, JobId, Name, Open, Refused, Timer, backfill, past_slots, pause, remove, resume, trigger,
};
use tenure_store::{Fault, TimerAct, TimerOutcome, TimerSeen};

use super::row;
use crate::fault::is_unreadable;
use crate::link::Link;
use crate::rows;
use crate::transaction::Gate;
use crate::writing::Writing;

/// Does what somebody wants of a timer.
pub(super) async fn change(link: &mut Link, name: &Name, act: &TimerAct) -> Result<TimerOutcome, Fault> {
    let done = change_as_seen(link, name, act, &TimerSeen::Never).await?;
    Ok(done.unwrap_or(TimerOutcome::NotFound))
}

/// The same if it is as it was seen; `None` if it is not.
pub(super) async fn change_as_seen(
    link: &mut Link,
    name: &Name,
    act: &TimerAct,
    seen: &TimerSeen,
) -> Result<Option<TimerOutcome>, Fault> {
    let (mut tries, mut records) = (0, Records::Made);
    loop {
        match try_change(link, name, act, (seen, records)).await {
            // It need not be readable for that; nobody knows what it leaves.
            Err(fault)
                if *act == TimerAct::Remove
                    && *seen == TimerSeen::Never
                    && records == Records::Made
                    && is_unreadable(&fault) =>
            {
                tracing::warn!(timer = %name, %fault, "removing an unreadable timer without recording its skipped runs");
                records = Records::LeftOut;
            }
            Err(fault) => {
                if !link.may_try_again(&mut tries).await {
                    return Err(fault);
                }
            }
            done => return done,
        }
    }
}

/// Whether what a removed timer leaves is put on record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Records {
    Made,
    LeftOut,
}

async fn try_change(
    link: &mut Link,
    name: &Name,
    act: &TimerAct,
    (seen, records): (&TimerSeen, Records),
) -> Result<Option<TimerOutcome>, Fault> {
    let find = row::lock_and_find(vec![name.as_str().to_owned()]);
    let (mut writing, read) = Writing::begin(link, Gate::Keys, find).await?;
    let found = read.last().and_then(|rows| rows.first());
    if *seen != TimerSeen::Never && !seen.is(found.map(row::read).transpose()?.as_ref()) {
        writing.roll_back().await?;
        return Ok(None);
    }
    let outcome = if records == Records::LeftOut {
        writing.remove_timer(name).await?
    } else if let Some(found) = found {
        let timer = row::read(found)?;
        let open = writing.open_jobs([&timer]).await?.of(&timer)?;
        writing.act(&timer, &open, act).await?
    } else if *act == TimerAct::Remove {
        writing.remove_timer(name).await?
    } else {
        TimerOutcome::NotFound
    };
    match outcome {
        TimerOutcome::NotFound | TimerOutcome::Busy(_) | TimerOutcome::IdTaken(_) => {
            writing.roll_back().await?
        }
        TimerOutcome::Done | TimerOutcome::Triggered(_) | TimerOutcome::Backfilled { .. } => {
            writing.commit().await?;
        }
    }
    Ok(Some(outcome))
}

impl Writing<'_> {
    async fn act(&mut self, timer: &Timer, open: &Open, act: &TimerAct) -> Result<TimerOutcome, Fault> {
        let firing = match act {
            TimerAct::Pause { reason } => pause(timer, open, reason, self.now),
            TimerAct::Resume => resume(timer, open, self.now),
            TimerAct::Trigger { id, args, owner } => {
                let firing = trigger(timer, open, *id, args.clone(), self.now);
                return self.trigger(timer, *id, firing.map(|firing| firing.owned_by(owner.clone()))).await;
            }
            TimerAct::Backfill { from, to, again } => {
                let mut past = past_slots(timer, (*from, *to), self.now);
                if !again {
                    past.slots = self.without_run(timer.name(), past.slots).await?;
                }
                let step = backfill(timer, open, &past.slots, self.now);
                let (jobs, _) = self.write_firing(timer, step).await?;
                return Ok(TimerOutcome::Backfilled { jobs, next: past.next });
            }
            TimerAct::Remove => {
                let records = remove(timer, open, self.now);
                let left = Firing { timer: timer.clone(), records, jobs: Vec::new(), cancel: Vec::new() };
                self.record_all(&[(timer.clone(), left)]).await?;
                return self.remove_timer(timer.name()).await;
            }
        };
        self.write_firing(timer, firing).await?;
        self.news.due = true;
        Ok(TimerOutcome::Done)
    }

    async fn trigger(
        &mut self,
        timer: &Timer,
        id: JobId,
        firing: Result<Firing, Refused>,
    ) -> Result<TimerOutcome, Fault> {
        let there = self.read(vec![rows::by_ids([id])]).await?;
        if let Some(row) = there.iter().flatten().next() {
            let stored = rows::stored(row)?;
            let is_own = stored.job.terms.slot.as_ref().is_some_and(|slot| slot.is_trigger_of(timer.name()));
            return Ok(if is_own { TimerOutcome::Triggered(id) } else { TimerOutcome::IdTaken(id) });
        }
        match firing {
            Ok(firing) => {
                self.write_firing(timer, firing).await?;
                Ok(TimerOutcome::Triggered(id))
            }
            Err(Refused::Busy { job }) => Ok(TimerOutcome::Busy(job)),
        }
    }

    async fn remove_timer(&mut self, name: &Name) -> Result<TimerOutcome, Fault> {
        let removed = self.run(row::remove(name)).await?;
        let is_gone = removed.last().is_some_and(|removed| removed.changed > 0);
        Ok(if is_gone { TimerOutcome::Done } else { TimerOutcome::NotFound })
    }
}
