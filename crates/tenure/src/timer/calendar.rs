//! The calendar: what became of slots between two instants, and which will come.

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_core::schedule::{ClockChange, Slot};
use tenure_core::{Invalid, Name, SlotRecord, Timer, Timestamp};
use tenure_store::{Order, SlotCursor, SlotsAsk, TimersAsk};

use super::coming::{Coming, coming_between};
use crate::{Error, Tenure};

/// Most timers of one page: each costs a walk through its slots.
const TIMERS: usize = 100;
/// Slots that one page looks at before it stops counting.
const COUNTED: usize = 20_000;
/// Timers whose records on one page are compared with their schedules.
const COMPARED: usize = 100;

/// Which part of the calendar is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalendarAsk {
    /// From this instant on.
    pub from: Timestamp,
    /// Until before this one.
    pub to: Timestamp,
    /// Of timers whose names begin so; of all if it is empty.
    pub prefix: String,
    /// Behind this timer, as the last page said.
    pub behind_timer: Option<Name>,
    /// Behind this record, as the last page said.
    pub behind_record: Option<SlotCursor>,
    /// How many timers and how many records at most: up to 100 and up to 1,000.
    pub at_most: (usize, usize),
}

/// A page of the calendar. Timers and records go on by themselves: either may end before the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Calendar {
    /// What the store's clock showed: what is before is past, what is after will come.
    pub now: Timestamp,
    /// What will come of each timer, by name.
    pub coming: Vec<Coming>,
    /// What became of slots, the oldest first.
    pub past: Vec<Past>,
    /// Behind which timer it goes on; `None` at the end.
    pub next_timer: Option<Name>,
    /// Behind which record it goes on; `None` at the end.
    pub next_record: Option<SlotCursor>,
}

/// What became of a slot, or of some that follow one another.
#[derive(Debug, Clone, PartialEq)]
pub struct Past {
    /// The record.
    pub record: SlotRecord,
    /// What a change of the clocks did to its last slot, by the schedule that the timer has now.
    pub change: Option<ClockChange>,
}

impl CalendarAsk {
    /// The first page between two instants.
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
    let now = tenure.now();
    let timers = TimersAsk {
        prefix: ask.prefix.clone(),
        behind: ask.behind_timer.clone(),
        at_most: ask.at_most.0.clamp(1, TIMERS),
    };
    let page = tenure.store().timers(timers).await?;
    let coming = coming_of(&page.timers, (ask.from, ask.to));
    let records = SlotsAsk {
        timer: None,
        from: Some(ask.from),
        before: Some(ask.to),
        order: Order::OldestFirst,
        behind: ask.behind_record,
        at_most: ask.at_most.1,
    };
    let records = tenure.store().slots(records).await?;
    let mut known: BTreeMap<Name, Option<Timer>> =
        page.timers.into_iter().map(|timer| (timer.name().clone(), Some(timer))).collect();
    let (mut past, mut compared) = (Vec::new(), 0);
    for record in records.slots.into_iter().filter(|record| record.timer.as_str().starts_with(&ask.prefix)) {
        if !known.contains_key(&record.timer) && compared < COMPARED {
            compared += 1;
            known.insert(record.timer.clone(), tenure.store().timer(&record.timer).await?);
        }
        let timer = known.get(&record.timer).and_then(Option::as_ref);
        let change = timer.and_then(|timer| slot_at(timer, record.last)).and_then(|slot| slot.change);
        past.push(Past { record, change });
    }
    Ok(Calendar { now, coming, past, next_timer: page.next, next_record: records.next })
}

/// What will come of each of these. What one of them does not use of its share is left for the others.
fn coming_of(timers: &[Timer], range: (Timestamp, Timestamp)) -> Vec<Coming> {
    let (mut left, mut all) = (COUNTED, Vec::with_capacity(timers.len()));
    for (index, timer) in timers.iter().enumerate() {
        let share = left / (timers.len() - index);
        let mut of_this = share;
        all.push(coming_between(timer, range, &mut of_this));
        left -= share - of_this;
    }
    all
}

/// The slot at an instant, if the timer's schedule has one there.
fn slot_at(timer: &Timer, at: Timestamp) -> Option<Slot> {
    let before = at.before(Duration::from_micros(1));
    let schedule = &timer.agreed.schedule;
    (!schedule.follows_runs()).then(|| schedule.next(before))?.filter(|slot| slot.at == at)
}
