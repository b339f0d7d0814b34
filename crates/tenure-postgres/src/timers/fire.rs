//! Firing: the timers that are ripe, in transactions of a few.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{Firing, SlotRecord, Timer, Timestamp, limits};
use tenure_store::engine::timers;
use tenure_store::{Brought, Fault, Fired};

use super::aside::FIRST_SPAN;
use super::row;
use super::txn::Halt;
use crate::fault::{Effect, is_unreadable, unreadable};
use crate::link::Link;
use crate::query::Query;
use crate::transaction::Gate;
use crate::value;
use crate::writing::Writing;

const FIRST_WAKES: &str = "SELECT n.now, f.name, f.wake FROM (SELECT coalesce($1::bigint, micros()) AS now) n
     LEFT JOIN LATERAL (SELECT name, wake FROM timer_standing WHERE wake IS NOT NULL
         ORDER BY wake, name LIMIT $2) f ON true ORDER BY f.wake, f.name";

/// What one transaction decides: whoever waits for the lock of the gates waits for no more than that.
const TOGETHER: usize = 100;
const JOBS_TOGETHER: usize = 500;

/// A timer that is ripe.
struct Ripe {
    name: String,
    wake: Timestamp,
    timer: Result<Timer, Fault>,
}

/// A timer that cannot be read, and since when it has been ripe.
struct Odd {
    name: String,
    wake: Timestamp,
    fault: Fault,
}

/// What one transaction came to.
#[derive(Default)]
struct Step {
    timers: usize,
    jobs: usize,
    steps: u32,
    records: Vec<SlotRecord>,
    /// Those that could be decided, and since when each had been ripe.
    done: Vec<(String, Timestamp)>,
    odd: Vec<Odd>,
}

/// When somebody has to look at a timer next, and the instant; no instant if nothing comes by itself. For a timer that
/// this program passes by it is when it looks again.
pub(super) async fn look(link: &mut Link) -> Result<(Option<Timestamp>, Timestamp), Fault> {
    let memory = Arc::clone(&link.memory);
    let aside = &memory.timers_aside;
    // One more than are passed by is enough to find one that is not.
    let look = Query::new(FIRST_WAKES).with(link.database.time.told()).with(value::bound(aside.len() + 1));
    let rows = link.connection().await?.read(look).await?;
    let now = rows.first().map(|row| value::instant(row, 0)).transpose()?;
    let now = now.ok_or_else(|| unreadable("no clock"))?;
    link.database.time.heard(now);
    let mut first: Option<Timestamp> = None;
    for row in &rows {
        let Some(wake) = value::maybe_instant(row, 2)? else { break };
        let again = aside.until(row.get(1), wake, now);
        let look = again.unwrap_or(wake);
        first = Some(first.map_or(look, |first| first.min(look)));
        if again.is_none() {
            break;
        }
    }
    Ok((first, now))
}

/// Decides the slots of timers that are ripe, the first ripe first.
pub(super) async fn fire(link: &mut Link, at_most: usize) -> Result<Fired, Fault> {
    let at_most = at_most.min(limits::FIRE_TIMERS);
    let (mut fired, mut together, mut steps) = (Fired::default(), TOGETHER, 0);
    loop {
        let before = Brought { steps, ..fired.brought() };
        if fired.timers >= at_most || before.is_enough() {
            break;
        }
        match fire_some(link, together.min(at_most - fired.timers), before).await {
            Ok(step) if step.timers == 0 => break,
            Ok(mut step) => {
                fired.timers += step.timers;
                fired.jobs += step.jobs;
                steps += step.steps;
                fired.records.append(&mut step.records);
                note(link, step).await?;
            }
            // One of them meets what cannot be read. Which one is seen if each is decided by itself.
            Err(fault) if is_unreadable(&fault) && together > 1 => together = 1,
            // What was brought before is told. The rest is ripe as before.
            Err(fault) if fired.timers > 0 => {
                tracing::warn!(%fault, "some due timers could not be run");
                return Ok(Fired { ripe_in: Some(Duration::ZERO), ..fired });
            }
            Err(fault) => return Err(fault),
        }
    }
    let (next, now) = look(link).await?;
    Ok(Fired { ripe_in: next.map(|next| next.since(now)), ..fired })
}

async fn fire_some(link: &mut Link, most: usize, before: Brought) -> Result<Step, Fault> {
    let mut tries = 0;
    loop {
        let tried = try_fire(link, most, before).await;
        if tried.is_ok() || !link.may_try_again(&mut tries).await {
            return tried;
        }
    }
}

async fn try_fire(link: &mut Link, most: usize, before: Brought) -> Result<Step, Fault> {
    let (mut writing, _) = Writing::begin(link, Gate::Keys, Vec::new()).await?;
    let ripe = writing.ripe(most).await?;
    let (mut step, decided) = decide(&mut writing, ripe, before).await?;
    if decided.is_empty() {
        writing.roll_back().await?;
        return Ok(step);
    }
    let alone = if let [alone] = step.done.as_slice() { Some(alone.clone()) } else { None };
    match (timers::write(&mut writing, decided).await.map_err(Fault::from), alone) {
        (Ok(written), _) => {
            (step.jobs, step.records) = (written.jobs, written.records);
            writing.commit().await?;
            Ok(step)
        }
        (Err(fault), Some((name, wake))) if is_unreadable(&fault) => {
            writing.roll_back().await?;
            step.odd.push(Odd { name, wake, fault });
            Ok(Step { timers: step.timers, odd: step.odd, ..Step::default() })
        }
        (Err(fault), _) => Err(fault),
    }
}

impl Writing<'_> {
    /// The first timers that are ripe, but for those that this program passes by.
    async fn ripe(&mut self, most: usize) -> Result<Vec<Ripe>, Fault> {
        let but = self.memory().timers_aside.all(self.now);
        let rows = self.read(vec![row::ripe(self.now, most, but)]).await?;
        let ripe = rows.iter().flatten().map(|found| {
            let wake = row::wake(found)?.ok_or_else(|| unreadable("a ripe timer without an instant"))?;
            Ok(Ripe { name: row::name(found), wake, timer: row::read(found) })
        });
        ripe.collect()
    }
}

/// Decides the slots of ripe timers.
async fn decide(
    writing: &mut Writing<'_>,
    ripe: Vec<Ripe>,
    before: Brought,
) -> Result<(Step, Vec<(Timer, Firing)>), Fault> {
    let (mut places, mut timers) = (Vec::new(), Vec::new());
    for Ripe { name, wake, timer } in ripe {
        places.push((name, wake));
        timers.push(timer.map_err(Halt::Fault));
    }
    let is_enough = |brought: Brought| {
        let jobs = before.jobs + brought.jobs;
        let records = before.records + brought.records;
        let steps = before.steps + brought.steps;
        Brought { jobs, records, steps }.is_enough() || brought.jobs >= JOBS_TOGETHER
    };
    let decided = timers::decide(writing, timers, is_enough).await?;
    let mut step = Step { timers: decided.errors.len(), steps: decided.steps, ..Step::default() };
    for ((name, wake), error) in places.into_iter().zip(decided.errors) {
        match error {
            None => step.done.push((name, wake)),
            Some(halt) => step.odd.push(Odd { name, wake, fault: halt.into() }),
        }
    }
    Ok((step, decided.firings))
}

/// Passes by what cannot be read, so that it does not stop those behind it, and keeps in mind what can be.
async fn note(link: &mut Link, step: Step) -> Result<(), Fault> {
    let memory = Arc::clone(&link.memory);
    step.done.iter().for_each(|(name, _)| memory.timers_aside.forget(name));
    for Odd { name, wake, fault } in step.odd {
        let now = link.database.time.now();
        let span = memory.timers_aside.put(&name, wake, now);
        let seconds = span.unwrap_or(FIRST_SPAN).as_secs();
        tracing::error!(timer = name, %fault, seconds, "skipping an unreadable timer; update this program");
        if span.is_none() {
            // There are more of them than are kept in mind. It is put off for all, but shortly.
            let put_off = row::put_off(&name, wake, now.after(FIRST_SPAN));
            link.connection().await?.run(&[put_off], Effect::Commits).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
pub(super) const STATEMENTS: [&str; 1] = [FIRST_WAKES];
