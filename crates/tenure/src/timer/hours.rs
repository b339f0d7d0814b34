//! The calendar by the hour: how often timers fire in each hour of a range, and how often they did.

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_core::{Fate, Invalid, Name, SlotRecord, Timer, Timestamp, limits};
use tenure_store::{Order, SlotsAsk, TimersAsk};

use super::calendar::{CalendarAsk, STEPS, TIMERS, ZoneChange, changes_of, steps_for};
use super::coming::{first_between, hours_of};
use crate::{Error, Tenure};

const HOUR: Duration = Duration::from_secs(3_600);
/// Hours of a range at most: six weeks, and the one that a change of the clocks may bring.
const HOURS: usize = 6 * 7 * 24 + 1;
/// Slots of one timer that may be visited, where its rule does not tell how many they are.
const VISITED: usize = 2_000;
/// Slots more that may be, of all timers of one page together.
const VISITED_MORE: usize = 20_000;
/// Pages of records that are looked at, the latest first.
const PAGES: usize = 20;
/// Hours of records that are told on one page. One of many slots counts in each hour in which it has some.
const TOLD: usize = 100_000;

/// A page of the hourly calendar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalendarHours {
    /// Current time of the store's clock.
    pub now: Timestamp,
    /// The timers of the page; the first page also has all others with run history in the range.
    pub timers: BTreeMap<Name, TimerHours>,
    /// Run history before this time was not read completely; `None` if all was read.
    pub cut_before: Option<Timestamp>,
    /// Clock changes (DST) within the range, in the time zones of the timers on this page.
    pub changes: Vec<ZoneChange>,
    /// Timer to continue after; `None` at the end.
    pub next_timer: Option<Name>,
}

/// Runs of a timer per hour.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TimerHours {
    /// Its schedule as text; empty if it is not on this page.
    pub schedule: String,
    /// Its first coming run in the range.
    pub next: Option<Timestamp>,
    /// Coming runs per hour; `None` where counting would take too long. Empty if there are none.
    pub coming: Vec<Option<u64>>,
    /// Past runs by hour number, from 0; hours without runs are left out. Runs decided together are spread evenly,
    /// and count as 1,000 if there are too many to count.
    pub past: BTreeMap<usize, u64>,
    /// Number of past runs that got a job.
    pub ran: u64,
}

pub(super) async fn look_up(tenure: &Tenure, ask: CalendarAsk) -> Result<CalendarHours, Error> {
    let hours = hours_between(&ask)?;
    let behind = ask.behind_timer.clone();
    let is_first = behind.is_none();
    let at_most = ask.at_most.0.clamp(1, TIMERS);
    let page = tenure.store().timers(TimersAsk { prefix: ask.prefix.clone(), behind, at_most }).await?;
    let (mut timers, mut cut_before) = (BTreeMap::new(), None);
    let (mut more, mut work) = (VISITED_MORE, STEPS);
    for (index, timer) in page.timers.iter().enumerate() {
        let mut left = VISITED + more;
        let others = page.timers.len() - index;
        timers.insert(timer.name().clone(), coming(timer, (&ask, hours), (&mut left, &mut work), others));
        // What it has for itself nobody else gets, and nobody else can use it up.
        more = more.min(left);
        // One look at a hostile rule may be long: others have their turn.
        tokio::task::yield_now().await;
    }
    if is_first {
        cut_before = past(tenure, &ask, hours, &mut timers).await?;
    }
    let changes = changes_of(&page.timers, (ask.from, ask.to));
    Ok(CalendarHours { now: page.now, timers, cut_before, changes, next_timer: page.next })
}

fn hours_between(ask: &CalendarAsk) -> Result<usize, Error> {
    if ask.to <= ask.from {
        return Err(Invalid::new("to", ask.to, format_args!("later than {}", ask.from)).into());
    }
    let hours = ask.to.since(ask.from).as_micros().div_ceil(HOUR.as_micros());
    usize::try_from(hours).ok().filter(|hours| *hours <= HOURS).ok_or_else(|| {
        let last = ask.from.after(HOUR * u32::try_from(HOURS).unwrap_or(u32::MAX));
        Invalid::new("to", ask.to, format_args!("at most {last}")).into()
    })
}

fn coming(
    timer: &Timer,
    (ask, hours): (&CalendarAsk, usize),
    (left, work): (&mut usize, &mut u32),
    timers: usize,
) -> TimerHours {
    let steps = steps_for(*work, timers);
    *work -= steps.left();
    let counted = hours_of(timer, ask.from, hours, (left, &steps));
    let is_some = counted.iter().any(|hour| *hour != Some(0));
    let next = first_between(timer, (ask.from, ask.to), &steps);
    *work += steps.left();
    TimerHours {
        schedule: timer.agreed.schedule.to_string(),
        next,
        coming: if is_some { counted } else { Vec::new() },
        ..TimerHours::default()
    }
}

/// Adds what is on record, the latest first, and answers before which instant that was not looked at.
async fn past(
    tenure: &Tenure,
    ask: &CalendarAsk,
    hours: usize,
    timers: &mut BTreeMap<Name, TimerHours>,
) -> Result<Option<Timestamp>, Error> {
    let (mut behind, mut left) = (None, TOLD);
    for _ in 0..PAGES {
        let wanted = SlotsAsk {
            timer: None,
            from: Some(ask.from),
            before: Some(ask.to),
            order: Order::NewestFirst,
            behind,
            at_most: limits::PAGE_SLOTS,
        };
        let page = tenure.store().slots(wanted).await?;
        for record in page.slots.iter().filter(|record| record.timer.as_str().starts_with(&ask.prefix)) {
            let told = hours_with(record, ask.from, hours);
            if told.len() > left {
                return Ok(Some(record.last));
            }
            left -= told.len();
            add(timers, record, told);
        }
        behind = page.next;
        if behind.is_none() {
            return Ok(None);
        }
    }
    Ok(behind.map(|cursor| cursor.slot))
}

/// In which hours slots lie that were decided together, as if they were evenly spread, and how many in each.
fn hours_with(record: &SlotRecord, from: Timestamp, hours: usize) -> Vec<(usize, u64)> {
    let slots = record.count.unwrap_or(limits::SLOTS_COUNTED);
    let (first, last, from) = (record.first.as_micros(), record.last.as_micros(), from.as_micros());
    let hour = i64::try_from(HOUR.as_micros()).unwrap_or(i64::MAX);
    let before = |instant: i64| {
        if instant > last {
            return slots;
        }
        let (into, span) = (i128::from(instant - first).max(0), i128::from(last - first).max(1));
        let whole = (into * i128::from(slots.saturating_sub(1)) + span - 1) / span;
        u64::try_from(whole).unwrap_or(slots)
    };
    let at = |instant: i64| usize::try_from((instant - from).div_euclid(hour)).unwrap_or(0);
    let begin = |at: usize| from + hour * i64::try_from(at).unwrap_or(0);
    (at(first)..(at(last) + 1).min(hours))
        .map(|at| (at, before(begin(at + 1)) - before(begin(at))))
        .filter(|(_, slots)| *slots > 0)
        .collect()
}

fn add(timers: &mut BTreeMap<Name, TimerHours>, record: &SlotRecord, told: Vec<(usize, u64)>) {
    // Those of a schedule that fires each hour and more are many: it is looked for by a name that is there.
    if !timers.contains_key(&record.timer) {
        timers.insert(record.timer.clone(), TimerHours::default());
    }
    let Some(timer) = timers.get_mut(&record.timer) else { return };
    for (hour, slots) in told {
        *timer.past.entry(hour).or_default() += slots;
        match record.fate {
            Fate::Ran { .. } => timer.ran += slots,
            Fate::Coalesced { .. } | Fate::Skipped { .. } => {}
        }
    }
}
