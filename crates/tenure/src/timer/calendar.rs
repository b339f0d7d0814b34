//! The calendar: what became of slots between two instants, and which will come.

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_core::schedule::{Change, ClockChange, Search, Slot, Steps, Zone};
use tenure_core::{Invalid, Name, Origin, SlotRecord, Timer, Timestamp, limits};
use tenure_store::{Order, SlotCursor, SlotsAsk, TimersAsk};

use super::coming::{Coming, coming_between};
use crate::{Error, Tenure};

/// Most timers of one page: each costs a walk through its slots.
pub(super) const TIMERS: usize = 100;
/// Slots that one page looks at before it stops counting.
const COUNTED: usize = 20_000;
/// Steps of the search for all slots of one page.
pub(super) const STEPS: u32 = 4 * limits::SCHEDULE_STEPS;
/// Timers whose records on one page are compared with their schedules.
const COMPARED: usize = 100;
/// Records behind the range among which the one is sought that reaches beyond it: those that somebody asked for lie
/// before it.
const SOUGHT: usize = 1_000;
/// Pages of them: one may be short, or even empty, and still go on.
const PAGES: usize = 10;
/// Changes of the clocks of one zone.
const CHANGES: usize = 100;
const TICK: Duration = Duration::from_micros(1);

/// A request for a part of the calendar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalendarAsk {
    /// Start of the range, inclusive.
    pub from: Timestamp,
    /// End of the range, exclusive.
    pub to: Timestamp,
    /// Only timers with this name prefix; empty means all.
    pub prefix: String,
    /// Continue after this timer, as returned by the previous page.
    pub behind_timer: Option<Name>,
    /// Continue after this record, as returned by the previous page.
    pub behind_record: Option<SlotCursor>,
    /// Maximum number of timers and of records: up to 100 and up to 1,000.
    pub at_most: (usize, usize),
}

/// A page of the calendar. Timers and records are paged independently; either may end first.
#[derive(Debug, Clone, PartialEq)]
pub struct Calendar {
    /// Current time of the store's clock; it divides past runs from coming ones.
    pub now: Timestamp,
    /// Coming runs by timer.
    pub coming: Vec<Coming>,
    /// Run history, oldest first. A record of many runs is placed by its last run, and may begin before the range.
    pub past: Vec<Past>,
    /// Records of many runs that extend beyond the range, such as a long pause; only of the timers on this page.
    pub beyond: Vec<Past>,
    /// Clock changes (DST) within the range, in the time zones of the timers on this page.
    pub changes: Vec<ZoneChange>,
    /// Timer to continue after; `None` at the end.
    pub next_timer: Option<Name>,
    /// Record to continue after; `None` at the end.
    pub next_record: Option<SlotCursor>,
}

/// Outcome of one run or of consecutive runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Past {
    /// The record.
    pub record: SlotRecord,
    /// Effect of a clock change on the last run, by the current schedule.
    pub change: Option<ClockChange>,
}

/// A clock change of a time zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZoneChange {
    /// Name of the time zone.
    pub zone: String,
    /// Time and size of the change.
    pub change: Change,
}

impl CalendarAsk {
    /// Requests the first page between two times.
    #[must_use]
    pub fn between(from: Timestamp, to: Timestamp) -> Self {
        let (prefix, at_most) = (String::new(), (TIMERS, tenure_core::limits::PAGE_SLOTS));
        Self { from, to, prefix, behind_timer: None, behind_record: None, at_most }
    }
}

pub(super) async fn look_up(tenure: &Tenure, ask: CalendarAsk) -> Result<Calendar, Error> {
    if ask.to <= ask.from {
        return Err(Invalid::new("to", ask.to, format_args!("later than {}", ask.from)).into());
    }
    let range = (ask.from, ask.to);
    let page = tenure.store().timers(timers_of(&ask)).await?;
    let records = tenure.store().slots(records_of(&ask)).await?;
    let beyond = records_beyond(tenure, &page.timers, ask.to).await?;
    let (coming, changes) = (coming_of(&page.timers, range), changes_of(&page.timers, range));
    let wanted = records.slots.into_iter().filter(|record| record.timer.as_str().starts_with(&ask.prefix));
    let wanted: Vec<SlotRecord> = wanted.collect();
    let known = timers_told_of(tenure, page.timers, &wanted).await?;
    let steps = Steps::new(STEPS);
    let told = |record: SlotRecord| Past { change: change_at(&known, &record, &steps), record };
    Ok(Calendar {
        now: page.now,
        coming,
        past: wanted.into_iter().map(told).collect(),
        beyond: beyond.into_iter().map(told).collect(),
        changes,
        next_timer: page.next,
        next_record: records.next,
    })
}

fn timers_of(ask: &CalendarAsk) -> TimersAsk {
    let at_most = ask.at_most.0.clamp(1, TIMERS);
    TimersAsk { prefix: ask.prefix.clone(), behind: ask.behind_timer.clone(), at_most }
}

fn records_of(ask: &CalendarAsk) -> SlotsAsk {
    SlotsAsk {
        timer: None,
        from: Some(ask.from),
        before: Some(ask.to),
        order: Order::OldestFirst,
        behind: ask.behind_record.clone(),
        at_most: ask.at_most.1,
    }
}

/// Of each timer the record, if there is one, of slots on both sides of an instant.
async fn records_beyond(tenure: &Tenure, timers: &[Timer], to: Timestamp) -> Result<Vec<SlotRecord>, Error> {
    let mut beyond = Vec::new();
    // Of most there is none: nothing of their schedules was decided so late.
    for timer in timers.iter().filter(|timer| timer.decided >= Some(to)) {
        let first = first_decided(tenure, timer.name(), to).await?;
        beyond.extend(first.filter(|record| record.first < to));
    }
    Ok(beyond)
}

/// The first record of slots of its schedule whose last is at an instant or later.
async fn first_decided(tenure: &Tenure, timer: &Name, from: Timestamp) -> Result<Option<SlotRecord>, Error> {
    let mut behind = None;
    for _ in 0..PAGES {
        let ask = SlotsAsk {
            timer: Some(timer.clone()),
            from: Some(from),
            order: Order::OldestFirst,
            behind,
            at_most: SOUGHT,
            ..SlotsAsk::default()
        };
        let page = tenure.store().slots(ask).await?;
        let first = page.slots.into_iter().find(|record| record.origin == Origin::Schedule);
        if first.is_some() || page.next.is_none() {
            return Ok(first);
        }
        behind = page.next;
    }
    Ok(None)
}

/// The timers with whose schedules records are compared, as far as they are there: those of the page, and some more.
async fn timers_told_of(
    tenure: &Tenure,
    page: Vec<Timer>,
    records: &[SlotRecord],
) -> Result<BTreeMap<Name, Option<Timer>>, Error> {
    let mut known: BTreeMap<Name, Option<Timer>> =
        page.into_iter().map(|timer| (timer.name().clone(), Some(timer))).collect();
    let most = known.len() + COMPARED;
    for record in records {
        if known.len() < most && !known.contains_key(&record.timer) {
            known.insert(record.timer.clone(), tenure.store().timer(&record.timer).await?);
        }
    }
    Ok(known)
}

/// What a change of the clocks did to the last slot of a record, if the timer's schedule has one there.
fn change_at(
    known: &BTreeMap<Name, Option<Timer>>,
    record: &SlotRecord,
    steps: &Steps,
) -> Option<ClockChange> {
    let schedule = &known.get(&record.timer)?.as_ref()?.agreed.schedule;
    let slot = |at: Timestamp| {
        Search::new(schedule, steps).next(at.before(TICK)).filter(|slot: &Slot| slot.at == at)
    };
    (!schedule.follows_runs()).then(|| slot(record.last))??.change
}

/// What will come of each of these. What one of them does not use of its share is left for the others.
fn coming_of(timers: &[Timer], range: (Timestamp, Timestamp)) -> Vec<Coming> {
    let (mut left, mut work, mut all) = (COUNTED, STEPS, Vec::with_capacity(timers.len()));
    for (index, timer) in timers.iter().enumerate() {
        let share = left / (timers.len() - index);
        let mut of_this = share;
        let steps = steps_for(work, timers.len() - index);
        work -= steps.left();
        all.push(coming_between(timer, range, (&mut of_this, &steps)));
        work += steps.left();
        left -= share - of_this;
    }
    all
}

/// Returns the next timer's share of the remaining steps: an equal part for each remaining timer.
pub(super) fn steps_for(left: u32, timers: usize) -> Steps {
    Steps::new(left / u32::try_from(timers).unwrap_or(u32::MAX).max(1))
}

/// The changes of the clocks in the zones of these, zone by zone.
pub(super) fn changes_of(timers: &[Timer], (from, to): (Timestamp, Timestamp)) -> Vec<ZoneChange> {
    let zones: BTreeMap<&str, &Zone> =
        timers.iter().map(|timer| timer.agreed.schedule.zone()).map(|zone| (zone.name(), zone)).collect();
    let changes = |(name, zone): (&str, &Zone)| -> Vec<ZoneChange> {
        let changes = zone.changes(from.before(TICK), to.before(TICK), CHANGES).into_iter();
        changes.map(|change| ZoneChange { zone: name.to_owned(), change }).collect()
    };
    zones.into_iter().flat_map(changes).collect()
}
