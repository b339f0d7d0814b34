//! Timers: the loops over several of them, and what to do about an unreadable one. `engine::timers` has the rules.

mod agreed;
mod aside;
mod row;
mod slots;
mod txn;
mod views;

use rusqlite::{Connection, Error, Result, params};
use tenure_core::{HostId, Name, NewTimer, Timestamp, limits};
use tenure_store::engine::at_once;
use tenure_store::engine::timers::{self, Set, Written};
use tenure_store::{Brought, Fired, TimerAct, TimerEdit, TimerEdited, TimerOutcome, TimerSeen, TimerSet};

use crate::fault::{is_unreadable, of_timer, unreadable};
use crate::value;
use crate::writing::Writing;

pub(crate) use aside::Aside;
pub(crate) use row::keep_copied;
#[cfg(test)]
pub(crate) use row::{AGREE, BY_NAME, REVISION, STAND};
#[cfg(test)]
pub(crate) use slots::{ALL_NEWEST, ALL_OLDEST, FIRST_KEPT, OF_ONE_NEWEST, OF_ONE_OLDEST, PRUNE, RECORD};
pub(crate) use slots::{keep_copied as keep_slot, page as slots};
#[cfg(test)]
pub(crate) use txn::PROGRESS;
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
        let (mut outcomes, mut brought) = (Vec::with_capacity(timers.len()), Brought::default());
        for new in timers {
            if brought.is_enough() {
                break;
            }
            let set = match self.apart(|this| this.set_timer(new, starts))? {
                Ok(set) => set,
                Err(error) if timers.len() > 1 => self.pass_timer_by(&new.name, error)?,
                Err(error) => return Err(error),
            };
            outcomes.push(set.outcome);
            brought.jobs += set.brought.jobs;
            brought.records += set.brought.records;
        }
        Ok(outcomes)
    }

    fn set_timer(&mut self, new: &NewTimer, starts: Option<HostId>) -> Result<Set> {
        let before = row::find(self.conn, &new.name)?;
        at_once(timers::set(self, before, new, starts)).map_err(|error| of_timer(&new.name, error))
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
            TimerEdit::Set(new) => TimerEdited::Set(self.set_timer(new, None)?.outcome),
            TimerEdit::Act(act) => TimerEdited::Acted(self.change_timer(name, act)?),
        })
    }

    /// Decides the slots of timers that are ripe, the first ripe first.
    pub(crate) fn fire(&mut self, at_most: usize) -> Result<Fired> {
        let ripe = self.ripe(at_most.min(limits::FIRE_TIMERS))?;
        let (mut fired, mut steps) = (Fired::default(), 0);
        for (name, wake) in &ripe {
            if (Brought { steps, ..fired.brought() }).is_enough() {
                break;
            }
            fired.timers += 1;
            match self.apart(|this| this.fire_one(name))? {
                Ok((written, of_one)) => {
                    steps += of_one;
                    fired.jobs += written.jobs;
                    fired.records.extend(written.records);
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

    /// Answers also the steps of the search for its slots.
    fn fire_one(&mut self, name: &str) -> Result<(Written, u32)> {
        let name = Name::new("timer", name).map_err(unreadable)?;
        let timer = row::find(self.conn, &name)?.ok_or_else(|| unreadable("its definition"))?;
        let mut decided = at_once(timers::decide(self, vec![Ok(timer)], |_| false))?;
        match decided.errors.pop().flatten() {
            Some(error) => Err(error),
            None => Ok((at_once(timers::write(self, decided.firings))?, decided.steps)),
        }
    }

    /// Performs an action on a timer.
    fn change_timer(&mut self, name: &Name, act: &TimerAct) -> Result<TimerOutcome> {
        if *act == TimerAct::Remove {
            return self.remove_timer(name);
        }
        match row::find(self.conn, name)? {
            Some(timer) => at_once(timers::act(self, &timer, act)).map_err(|error| of_timer(name, error)),
            None => Ok(TimerOutcome::NotFound),
        }
    }

    /// Removes a timer, which need not be readable: then its undecided slots get no record.
    fn remove_timer(&mut self, name: &Name) -> Result<TimerOutcome> {
        if let Err(error) = self.apart(|this| this.record_rest(name))? {
            tracing::warn!(timer = %name, %error, "removing an unreadable timer without recording its skipped runs");
        }
        let is_gone = row::remove(self.conn, name)?;
        Ok(if is_gone { TimerOutcome::Done } else { TimerOutcome::NotFound })
    }

    fn record_rest(&mut self, name: &Name) -> Result<()> {
        let timer = row::find(self.conn, name)?;
        timer.map_or(Ok(()), |timer| at_once(timers::record_rest(self, &timer)))
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

    fn pass_timer_by(&self, name: &Name, error: Error) -> Result<Set> {
        let Some(by) = row::revision(self.conn, name)? else { return Err(error) };
        tracing::error!(timer = %name, %error, "unreadable timer was not changed; update this program");
        Ok(Set { outcome: TimerSet::Outdated { by }, brought: Brought::default(), written: None })
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
