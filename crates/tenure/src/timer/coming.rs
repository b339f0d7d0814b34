//! The slots of a timer that will come.

use std::time::Duration;

use tenure_core::schedule::{ClockChange, Slot};
use tenure_core::{Name, Timer, Timestamp, limits};

const TICK: Duration = Duration::from_micros(1);
/// A timer with more slots than this in a range is told in groups.
const EACH: usize = 100;
/// Most groups of one timer.
const GROUPS: u64 = 62;
const HOUR: u64 = 3_600_000_000;
/// How long groups are, in microseconds: the first with which there are not too many.
const LENGTHS: [u64; 6] = [HOUR, 6 * HOUR, 24 * HOUR, 7 * 24 * HOUR, 28 * 24 * HOUR, 364 * 24 * HOUR];

/// What will come of one timer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coming {
    /// The timer.
    pub timer: Name,
    /// Its schedule, as a line of text.
    pub schedule: String,
    /// Since when it is paused: then nothing will come before it goes on.
    pub paused: Option<Timestamp>,
    /// The slots.
    pub slots: Slots,
}

/// The slots of a timer in a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Slots {
    /// Each of them.
    Each(Vec<Slot>),
    /// So many that they are told in groups, the empty ones left out.
    Groups(Vec<Group>),
}

/// Some slots that follow one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    /// From this instant on.
    pub from: Timestamp,
    /// Until before this one.
    pub to: Timestamp,
    /// How many slots; `None` if they are too many to be counted.
    pub count: Option<u64>,
    /// What a change of the clocks did to one of them.
    pub change: Option<ClockChange>,
}

/// Its slots from an instant until another, both included, as far as it may still enqueue jobs.
pub(super) fn coming(timer: &Timer, (from, until): (Timestamp, Timestamp), most: usize) -> Vec<Slot> {
    let schedule = &timer.agreed.schedule;
    let Some(next) = timer.next else { return Vec::new() };
    if schedule.follows_runs() {
        // While its job runs, nobody knows.
        let is_known = timer.open.is_empty() && (from..=until).contains(&next);
        return if is_known && most > 0 { vec![Slot { at: next, change: None }] } else { Vec::new() };
    }
    let Some(runs) = schedule.bounds().most_runs else {
        return schedule.between(next.max(from).before(TICK), until, most);
    };
    // What comes before the range uses up what it may enqueue.
    let left = usize::try_from(runs.saturating_sub(timer.runs)).unwrap_or(usize::MAX);
    let all = schedule.between(next.before(TICK), until, left);
    all.into_iter().filter(|slot| slot.at >= from).take(most).collect()
}

/// The same for a page of the calendar, which looks at so many slots at most.
pub(super) fn coming_between(timer: &Timer, (from, to): (Timestamp, Timestamp), left: &mut usize) -> Coming {
    let (paused, schedule) =
        (timer.paused.as_ref().map(|pause| pause.since), timer.agreed.schedule.to_string());
    let told = |slots| Coming { timer: timer.name().clone(), schedule, paused, slots };
    if paused.is_some() {
        return told(Slots::Each(Vec::new()));
    }
    let slots = coming(timer, (from, to.before(TICK)), EACH + 1);
    *left = left.saturating_sub(slots.len());
    match slots.first() {
        Some(first) if slots.len() > EACH => told(Slots::Groups(groups(timer, (first.at, to), left))),
        Some(_) | None => told(Slots::Each(slots)),
    }
}

/// The slots from one of them until before an instant, in groups.
fn groups(timer: &Timer, (first, to): (Timestamp, Timestamp), left: &mut usize) -> Vec<Group> {
    let span = u64::try_from(to.since(first).as_micros()).unwrap_or(u64::MAX);
    let length = LENGTHS.into_iter().find(|length| span / length < GROUPS).unwrap_or(span / GROUPS + 1);
    let mut groups = Vec::new();
    let mut slot = Some(first);
    while let Some(at) = slot.filter(|at| *at < to) {
        let into = at.since(Timestamp::EPOCH).as_micros() % u128::from(length);
        let from = at.before(Duration::from_micros(u64::try_from(into).unwrap_or(0)));
        let end = from.after(Duration::from_micros(length)).min(to);
        if end <= at {
            break;
        }
        let most = usize::try_from(limits::SLOTS_COUNTED).unwrap_or(usize::MAX).min(*left);
        let slots = coming(timer, (at, end.before(TICK)), most.saturating_add(1));
        *left = left.saturating_sub(slots.len());
        if slots.is_empty() {
            break;
        }
        let count = (slots.len() <= most).then_some(slots.len() as u64);
        let change = slots.iter().find_map(|slot| slot.change);
        groups.push(Group { from: from.max(first), to: end, count, change });
        slot = coming(timer, (end, to), 1).first().map(|slot| slot.at);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Chance, Job, MemoryStore, SystemClock, Tenure, TimerDraft, when};

    #[derive(serde::Serialize, serde::Deserialize)]
    struct Ping {}

    impl Job for Ping {
        const KIND: &'static str = "ping";
        type Output = ();
    }

    fn timer(when: when::When) -> Timer {
        let store = MemoryStore::new(std::sync::Arc::new(SystemClock));
        let tenure = Tenure::on(std::sync::Arc::new(store), Chance::seeded(1));
        let new = TimerDraft::new("ping", when, &Ping {}).finish(&tenure).unwrap();
        Timer::accepted(new, Timestamp::EPOCH)
    }

    const ALL: (Timestamp, Timestamp) = (Timestamp::EPOCH, Timestamp::LAST);

    #[test]
    fn of_a_timer_that_follows_its_runs_one_slot_is_known_and_none_while_it_runs() {
        let mut timer = timer(when::delay(Duration::from_secs(60)));
        let next = Timestamp::EPOCH.after(Duration::from_secs(60));
        assert_eq!(coming(&timer, ALL, 10), [Slot { at: next, change: None }]);
        timer.open.push(tenure_core::JobId::new(next, 1));
        assert_eq!(coming(&timer, ALL, 10), []);
    }

    #[test]
    fn what_comes_before_a_range_uses_up_what_a_timer_may_enqueue() {
        let timer = timer(when::every(Duration::from_secs(60)).times(5));
        let range = (Timestamp::EPOCH.after(Duration::from_secs(181)), Timestamp::LAST);
        assert_eq!(coming(&timer, range, 10).len(), 2);
        assert_eq!(coming(&timer, ALL, 10).len(), 5);
    }

    #[test]
    fn groups_lie_side_by_side_and_cover_each_slot_once() {
        let timer = timer(when::cron("0 */7 * * * *"));
        let (from, to) = (
            Timestamp::EPOCH.after(Duration::from_secs(100)),
            Timestamp::EPOCH.after(Duration::from_secs(90_000)),
        );
        let mut left = 10_000;
        let Slots::Groups(groups) = coming_between(&timer, (from, to), &mut left).slots else { panic!() };
        assert!(groups.windows(2).all(|pair| pair[0].to <= pair[1].from), "{groups:?}");
        let counted: u64 = groups.iter().filter_map(|group| group.count).sum();
        let each = timer.agreed.schedule.between(from, to.before(TICK), 10_000).len();
        assert_eq!(counted, each as u64);
        assert!(left < 10_000);
        let mut none_left = 0;
        let Slots::Groups(groups) = coming_between(&timer, (from, to), &mut none_left).slots else {
            panic!()
        };
        assert!(groups.iter().all(|group| group.count.is_none()));
    }
}
