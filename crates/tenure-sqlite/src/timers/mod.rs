//! Timers: what is asked of them. The domain decides, and what it decides is written in one go.

mod agreed;
mod aside;
mod firing;
mod row;
mod slots;
mod views;

use rusqlite::{Connection, Error, Result, params};
use tenure_core::{
    Edited, HostId, Name, NewTimer, Refused, SlotRecord, Timer, Timestamp, backfill, edit, fire, limits,
    past_slots, pause, remove, resume, start, trigger,
};
use tenure_store::{
    Brought, Fired, TimerAct, TimerEdit, TimerEdited, TimerOutcome, TimerSeen, TimerSet, is_over,
};

use crate::fault::{is_unreadable, unreadable};
use crate::rows::find;
use crate::value;
use crate::writing::Writing;

pub(crate) use aside::Aside;
#[cfg(test)]
pub(crate) use firing::OPEN_JOB;
pub(crate) use row::keep_copied;
#[cfg(test)]
pub(crate) use row::{AGREE, BY_NAME, REVISION, STAND};
#[cfg(test)]
pub(crate) use slots::{ALL_NEWEST, ALL_OLDEST, FIRST_KEPT, OF_ONE_NEWEST, OF_ONE_OLDEST, PRUNE, RECORD};
pub(crate) use slots::{keep_copied as keep_slot, page as slots};
#[cfg(test)]
pub(crate) use views::PAGE;
pub(crate) use views::{one, page};

pub(crate) const RIPE: &str =
    "SELECT name, wake FROM timer_standing WHERE wake <= ?1 ORDER BY wake, name LIMIT ?2 + 0";
pub(crate) const FIRST_WAKES: &str =
    "SELECT name, wake FROM timer_standing WHERE wake IS NOT NULL ORDER BY wake, name LIMIT ?1 + 0";
pub(crate) const ASIDE: &str = "UPDATE timer_standing SET wake = ?2 WHERE name = ?1";

/// When somebody has to look at a timer next; `None` if nothing comes by itself. For one that this program passes by
/// that is when it looks again.
pub(crate) fn first_wake(conn: &Connection, aside: &Aside, now: Timestamp) -> Result<Option<Timestamp>> {
    let mut statement = conn.prepare_cached(FIRST_WAKES)?;
    // One more than are passed by is enough to find one that is not.
    let mut rows = statement.query([value::bound(aside.len() + 1)])?;
    let mut first: Option<Timestamp> = None;
    while let Some(row) = rows.next()? {
        let wake = value::instant(row, 1)?;
        let again = aside.until(row.get_ref(0)?.as_str()?, wake, now);
        let look = again.unwrap_or(wake);
        first = Some(first.map_or(look, |first| first.min(look)));
        if again.is_none() {
            break;
        }
    }
    Ok(first)
}

impl Writing<'_> {
    /// Sets timers, each by itself.
    ///
    /// A timer that cannot be read is a fault for whoever sets it alone. Among others it stays as it is, like any
    /// that a later version has declared.
    pub(crate) fn set_timers(
        &mut self,
        timers: &[NewTimer],
        starts: Option<HostId>,
    ) -> Result<Vec<TimerSet>> {
        let (mut set, mut brought) = (Vec::with_capacity(timers.len()), Brought::default());
        for new in timers {
            if brought.is_enough() {
                break;
            }
            let (outcome, more) = match self.apart(|this| this.set_timer(new, starts))? {
                Ok(done) => done,
                Err(error) if timers.len() > 1 => (self.pass_timer_by(&new.name, error)?, Brought::default()),
                Err(error) => return Err(error),
            };
            set.push(outcome);
            brought.jobs += more.jobs;
            brought.records += more.records;
        }
        Ok(set)
    }

    /// Sets a timer. Answers also how many jobs and records that brought.
    fn set_timer(&mut self, new: &NewTimer, starts: Option<HostId>) -> Result<(TimerSet, Brought)> {
        let mut brought = Brought::default();
        let there = row::find(self.conn, &new.name)?;
        if starts.is_none() && is_over(new, there.as_ref(), self.now) {
            return Ok((TimerSet::Over { now: self.now }, brought));
        }
        let set = match there {
            None => {
                let timer = Timer::accepted(new.clone(), self.now);
                row::agree(self.conn, &timer)?;
                row::stand(self.conn, &timer)?;
                TimerSet::New
            }
            Some(timer) => match edit(&timer, &self.open_jobs(&timer)?, new.clone(), self.now) {
                Edited::Same => TimerSet::Same,
                Edited::Outdated { by } => return Ok((TimerSet::Outdated { by }, brought)),
                Edited::Changed(firing) => {
                    row::agree(self.conn, &firing.timer)?;
                    brought.records += firing.records.len();
                    brought.jobs += self.write_firing(&timer, *firing)?;
                    TimerSet::Changed
                }
            },
        };
        if let (Some(host), Some(timer)) = (starts, row::find(self.conn, &new.name)?) {
            let firing = start(&timer, &self.open_jobs(&timer)?, host.drawn_at(), self.now);
            // Each host that starts says so: most find nothing to write.
            if firing.timer != timer || !firing.records.is_empty() {
                brought.records += firing.records.len();
                brought.jobs += self.write_firing(&timer, firing)?;
            }
        }
        self.news.due |= set != TimerSet::Same;
        Ok((set, brought))
    }

    /// Changes a timer, if it is as it was seen.
    pub(crate) fn edit_timer(
        &mut self,
        name: &Name,
        seen: &TimerSeen,
        edit: &TimerEdit,
    ) -> Result<TimerEdited> {
        if *seen != TimerSeen::Never && !seen.is(row::find(self.conn, name)?.as_ref()) {
            return Ok(TimerEdited::Otherwise);
        }
        Ok(match edit {
            TimerEdit::Set(new) => TimerEdited::Set(self.set_timer(new, None)?.0),
            TimerEdit::Act(act) => TimerEdited::Acted(self.change_timer(name, act)?),
        })
    }

    /// Decides the slots of timers that are ripe, the first ripe first.
    pub(crate) fn fire(&mut self, at_most: usize) -> Result<Fired> {
        let ripe = self.ripe(at_most.min(limits::FIRE_TIMERS))?;
        let mut fired = Fired::default();
        for (name, wake) in &ripe {
            if fired.brought().is_enough() {
                break;
            }
            fired.timers += 1;
            match self.apart(|this| this.fire_one(name))? {
                Ok((jobs, records)) => {
                    fired.jobs += jobs;
                    fired.records.extend(records);
                    self.memory.timers_aside.forget(name);
                }
                Err(error) => self.set_timer_aside(name, *wake, &error)?,
            }
        }
        let next = first_wake(self.conn, &self.memory.timers_aside, self.now)?;
        fired.ripe_in = next.map(|next| next.since(self.now));
        Ok(fired)
    }

    /// The first timers that are ripe, but for those that this program passes by.
    fn ripe(&self, at_most: usize) -> Result<Vec<(String, Timestamp)>> {
        let aside = &self.memory.timers_aside;
        let mut statement = self.conn.prepare_cached(RIPE)?;
        let looked_at = value::bound(at_most.saturating_add(aside.len()));
        let mut rows = statement.query([self.now.as_micros(), looked_at])?;
        let mut ripe = Vec::new();
        while let Some(row) = rows.next()?.filter(|_| ripe.len() < at_most) {
            let (name, wake): (String, _) = (row.get(0)?, value::instant(row, 1)?);
            if aside.until(&name, wake, self.now).is_none() {
                ripe.push((name, wake));
            }
        }
        Ok(ripe)
    }

    /// Answers how many jobs that came to, and the records.
    fn fire_one(&mut self, name: &str) -> Result<(usize, Vec<SlotRecord>)> {
        let name = Name::new("timer", name).map_err(unreadable)?;
        let Some(timer) = row::find(self.conn, &name)? else {
            return Err(unreadable("its definition"));
        };
        let firing = fire(&timer, &self.open_jobs(&timer)?, self.now);
        self.write_told(&timer, firing)
    }

    /// Does what somebody wants of a timer.
    pub(crate) fn change_timer(&mut self, name: &Name, act: &TimerAct) -> Result<TimerOutcome> {
        if *act == TimerAct::Remove {
            // It need not be readable for that.
            return self.remove_timer(name);
        }
        let Some(timer) = row::find(self.conn, name)? else { return Ok(TimerOutcome::NotFound) };
        let open = self.open_jobs(&timer)?;
        let firing = match act {
            TimerAct::Remove => return self.remove_timer(name),
            TimerAct::Pause { reason } => pause(&timer, &open, reason, self.now),
            TimerAct::Resume => resume(&timer, &open, self.now),
            TimerAct::Trigger { id, args, owner } => {
                if let Some(stored) = find(self.conn, *id)? {
                    let is_own = stored.job.terms.slot.as_ref().is_some_and(|slot| slot.is_trigger_of(name));
                    return Ok(if is_own {
                        TimerOutcome::Triggered(*id)
                    } else {
                        TimerOutcome::IdTaken(*id)
                    });
                }
                return match trigger(&timer, &open, *id, args.clone(), self.now) {
                    Ok(firing) => {
                        self.write_firing(&timer, firing.owned_by(owner.clone()))?;
                        Ok(TimerOutcome::Triggered(*id))
                    }
                    Err(Refused::Busy { job }) => Ok(TimerOutcome::Busy(job)),
                };
            }
            TimerAct::Backfill { from, to, again } => {
                let mut past = past_slots(&timer, (*from, *to), self.now);
                if !again {
                    past.slots = slots::without_run(self.conn, name, past.slots)?;
                }
                let step = backfill(&timer, &open, &past.slots, self.now);
                let jobs = self.write_firing(&timer, step)?;
                return Ok(TimerOutcome::Backfilled { jobs, next: past.next });
            }
        };
        self.write_firing(&timer, firing)?;
        self.news.due = true;
        Ok(TimerOutcome::Done)
    }

    /// Removes a timer and records what it leaves undecided. One that cannot be read can be removed as well: nobody
    /// knows what it leaves.
    fn remove_timer(&mut self, name: &Name) -> Result<TimerOutcome> {
        if let Err(error) = self.apart(|this| this.record_left_by(name))? {
            tracing::warn!(timer = %name, %error, "removing an unreadable timer without recording its skipped runs");
        }
        let is_gone = row::remove(self.conn, name)?;
        Ok(if is_gone { TimerOutcome::Done } else { TimerOutcome::NotFound })
    }

    fn record_left_by(&mut self, name: &Name) -> Result<()> {
        let Some(timer) = row::find(self.conn, name)? else { return Ok(()) };
        let left = remove(&timer, &self.open_jobs(&timer)?, self.now);
        slots::record_all(self.conn, &left, &timer.agreed.schedule)?;
        Ok(())
    }

    /// Does something about one timer. If that meets what cannot be read, nothing of it stays, and all else does.
    fn apart<T>(&mut self, act: impl FnOnce(&mut Self) -> Result<T>) -> Result<Result<T>> {
        let mark = self.mark("timer")?;
        match act(self) {
            Err(error) if is_unreadable(&error) => {
                self.back_to(mark)?;
                Ok(Err(error))
            }
            done => {
                let done = done?;
                self.keep(&mark)?;
                Ok(Ok(done))
            }
        }
    }

    fn pass_timer_by(&self, name: &Name, error: Error) -> Result<TimerSet> {
        let Some(by) = row::revision(self.conn, name)? else { return Err(error) };
        tracing::error!(timer = %name, %error, "unreadable timer was not changed; update this program");
        Ok(TimerSet::Outdated { by })
    }

    /// Leaves a ripe timer to others, or to this program once it is updated, so that it does not stop those behind it.
    fn set_timer_aside(&self, name: &str, wake: Timestamp, error: &Error) -> Result<()> {
        let span = self.memory.timers_aside.put(name, wake, self.now);
        let seconds = span.unwrap_or(aside::FIRST_SPAN).as_secs();
        tracing::error!(timer = name, %error, seconds, "skipping an unreadable timer; update this program");
        if span.is_none() {
            // There are more of them than are kept in mind. It is put off for all, but shortly.
            let again = self.now.after(aside::FIRST_SPAN).as_micros();
            self.conn.prepare_cached(ASIDE)?.execute(params![name, again])?;
        }
        Ok(())
    }
}
