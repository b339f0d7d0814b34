//! What people do with timers: pause them, go on, and ask for a job beside the schedule.

use std::time::Duration;

use super::fire::{Firing, IN_TIME, Open, fire, first_slot};
use super::overlap::{Room, make_room};
use super::passed::{Passed, TICK};
use super::{Fate, Origin, Pause, Skipped, SlotRecord, Timer, TimerSlot};
use crate::schedule::{Search, Steps};
use crate::{Args, JobId, Timestamp, invalid, limits};

/// Jobs that were enqueued so shortly after one another may have been so in one step of a store. Whatever is said to
/// have been enqueued later than that from now was so before the clock was put back.
const AT_ONCE: Duration = Duration::from_millis(10);

/// Why a wish about a timer was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// Jobs of it have not ended, and it allows no more. This is the first of them.
    Busy {
        /// The job.
        job: JobId,
    },
}

/// The slots that one step of a backfill is about.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Past {
    /// The slots, a bounded number of them.
    pub slots: Vec<Timestamp>,
    /// Where to go on; `None` at the end.
    pub next: Option<Timestamp>,
}

/// It is not to fire until somebody says so. What is ripe is decided before.
#[must_use]
pub fn pause(timer: &Timer, open: &Open, reason: &str, now: Timestamp) -> Firing {
    let mut firing = fire(timer, open, now);
    let since = timer.paused.as_ref().map_or(now, |pause| pause.since);
    firing.timer.paused = Some(Pause { since, reason: invalid::storable(reason, limits::REASON_BYTES) });
    firing
}

/// It goes on. The slots that were due in the meantime are skipped.
#[must_use]
pub fn resume(timer: &Timer, open: &Open, now: Timestamp) -> Firing {
    let mut firing = Firing::of(timer, open, now);
    if firing.timer.paused.take().is_none() {
        return firing;
    }
    let agreed = &timer.agreed;
    let ripe = timer.next.filter(|next| agreed.due(*next) <= now);
    let was_ahead = timer.decided.is_some_and(|decided| decided.since(now) > limits::CLOCK_AHEAD);
    let next = match ripe {
        Some(first) if !agreed.schedule.follows_runs() && !cfg!(mutant = "pause-unrecorded") => {
            let steps = Steps::new(limits::FIRING_STEPS);
            let passed = Passed::ripe(agreed, first, now, &steps);
            firing.skip(&passed, &Skipped::Paused, now);
            passed.next()
        }
        None if !was_ahead => return firing,
        Some(_) | None => {
            firing.timer.forget_what_was_ahead(now);
            first_slot(agreed, firing.timer.decided, now)
        }
    };
    firing.timer.next = next.filter(|_| !timer.is_spent());
    firing
}

/// It ends. Answers what becomes of the slots that have come and that nobody decided: they are skipped, also one that
/// its jitter puts off, as if it had got a schedule that brings none of them.
#[must_use]
pub fn remove(timer: &Timer, open: &Open, now: Timestamp) -> Vec<SlotRecord> {
    let mut firing = Firing::of(timer, open, now);
    let agreed = &timer.agreed;
    if let Some(first) = timer.next.filter(|next| *next <= now && !agreed.schedule.follows_runs()) {
        let why = if timer.paused.is_some() { Skipped::Paused } else { Skipped::Edited };
        let steps = Steps::new(limits::FIRING_STEPS);
        firing.skip(&Passed::until(agreed, first, now, &steps), &why, now);
    }
    firing.records
}

/// A program starts that declares it. What is ripe is decided before, and if that brings a job, it is enough. Before the
/// beginning of its schedule and after the end nothing comes. The start is known by its instant, which is the program's:
/// if there is a record of it, this is the same start once more.
#[must_use]
pub fn start(timer: &Timer, open: &Open, at: Timestamp, now: Timestamp) -> Firing {
    let mut firing = fire(timer, open, now);
    let is_fresh = firing.timer.fired.is_some_and(|fired| {
        // What was brought later than now was so before the clock was put back, and says nothing of this start.
        fired.since(now) < AT_ONCE && now.since(fired) < IN_TIME
    });
    let has_begun = timer.agreed.schedule.bounds().starts_at.is_none_or(|begin| begin <= now);
    let is_over = firing.timer.next.is_none();
    let is_wanted = timer.agreed.policies.run_on_start && timer.paused.is_none();
    if is_wanted && has_begun && !is_over && !is_fresh {
        firing.bring_one(at, Origin::Start, false, now);
    }
    firing
}

/// Somebody wants a job of it now, under this id and perhaps with other arguments. The schedule goes on as it was,
/// even while it is paused.
///
/// # Errors
/// Refuses it while as many jobs have not ended as the timer allows.
pub fn trigger(
    timer: &Timer,
    open: &Open,
    id: JobId,
    args: Option<Args>,
    now: Timestamp,
) -> Result<Firing, Refused> {
    let mut firing = Firing::of(timer, open, now);
    if let Room::Taken { by } = make_room(&mut firing.timer, &mut firing.cancel) {
        return Err(Refused::Busy { job: by });
    }
    let at = own_instant(timer, now);
    let slot =
        TimerSlot { timer: timer.name().clone(), at, fired: now, origin: Origin::Trigger, past_due: false };
    let mut job = timer.agreed.job_for(&slot);
    job.id = id;
    job.args = args.unwrap_or(job.args);
    firing.timer.opened(id, at);
    firing.records.push(SlotRecord::of_one(timer.name(), at, slot.origin, Fate::Ran { job: id }, now));
    firing.jobs.push(job);
    Ok(firing)
}

/// The instant of a job that somebody wants now. A store may take many such wishes at one instant: each job is of a
/// slot of its own, a moment behind the one before.
fn own_instant(timer: &Timer, now: Timestamp) -> Timestamp {
    let last = timer.fired.filter(|last| *last >= now && last.since(now) < AT_ONCE);
    last.map_or(now, |last| last.after(Duration::from_micros(1)))
}

/// The slots of a timer from one instant until another, as far as they have passed, as one step of a backfill takes
/// them. What is counted from the end of jobs has no such slots: there is none that nobody decided.
#[must_use]
pub fn past_slots(timer: &Timer, (from, to): (Timestamp, Timestamp), now: Timestamp) -> Past {
    let schedule = &timer.agreed.schedule;
    let mut past = Past::default();
    if schedule.follows_runs() {
        return past;
    }
    let steps = Steps::default();
    let mut search = Search::new(schedule, &steps);
    past.next = search.next_after(from.before(TICK));
    let to = to.min(now);
    loop {
        if let (Some(last), true) = (past.slots.last(), steps.are_spent()) {
            // The next call continues with a new budget of steps.
            past.next = Some(last.after(TICK)).filter(|from| *from <= to);
            return past;
        }
        past.next = past.next.filter(|at| *at <= to);
        let Some(at) = past.next.filter(|_| past.slots.len() < limits::CATCH_UP_JOBS) else { return past };
        past.slots.push(at);
        past.next = search.next_after(at);
    }
}

/// Somebody wants jobs for slots of the past. They run as all jobs of the timer, one at a time or so many at once, but
/// behind those of its schedule, which does not ask for them: the job of a slot waits at most for such as run already,
/// and no slot is skipped because others of them wait. With a limit key or an ordering key of the timer's own there is
/// one line for all, and the jobs of slots wait for those of a backfill. Asking again brings no job twice.
#[must_use]
pub fn backfill(timer: &Timer, open: &Open, slots: &[Timestamp], now: Timestamp) -> Firing {
    let mut firing = Firing::of(timer, open, now);
    for &at in slots {
        let (timer, fired, origin) = (timer.name().clone(), now, Origin::Backfill);
        let job = firing.timer.agreed.job_for(&TimerSlot { timer, at, fired, origin, past_due: true });
        // The key that they share keeps their order. They are not among the open jobs: whoever decides a slot neither
        // skips it for them nor cancels them.
        firing.timer.fired = Some(now);
        let fate = Fate::Ran { job: job.id };
        firing.records.push(SlotRecord::of_one(firing.timer.name(), at, origin, fate, now));
        firing.jobs.push(job);
    }
    firing
}
