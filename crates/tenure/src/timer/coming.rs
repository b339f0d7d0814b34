//! The slots of a timer that will come.

use std::time::Duration;

use tenure_core::schedule::{ClockChange, Schedule, Search, Slot, Steps};
use tenure_core::{Name, Timer, Timestamp, limits};

const TICK: Duration = Duration::from_micros(1);
/// A timer with more slots than this in a range is told in groups.
const EACH: usize = 100;
/// Most groups of one timer.
const GROUPS: u64 = 62;
const HOUR: u64 = 3_600_000_000;
/// How long groups are, in microseconds: the first with which there are not too many.
const LENGTHS: [u64; 6] = [HOUR, 6 * HOUR, 24 * HOUR, 7 * 24 * HOUR, 28 * 24 * HOUR, 364 * 24 * HOUR];

/// Coming runs of one timer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coming {
    /// The timer.
    pub timer: Name,
    /// Its schedule as text.
    pub schedule: String,
    /// Time at which it was paused; it does not run until resumed.
    pub paused: Option<Timestamp>,
    /// The runs.
    pub slots: Slots,
}

/// The runs of a timer in a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Slots {
    /// Individual runs.
    Each(Vec<Slot>),
    /// Groups of runs, if there are many; empty groups are left out.
    Groups(Vec<Group>),
}

/// A group of consecutive runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    /// Start of the group, inclusive.
    pub from: Timestamp,
    /// End of the group, exclusive.
    pub to: Timestamp,
    /// Number of runs; `None` if too many to count.
    pub count: Option<u64>,
    /// Effect of a clock change on one of the runs.
    pub change: Option<ClockChange>,
}

/// Its next slots, as far as it may still enqueue jobs.
pub(super) fn coming(timer: &Timer, most: usize) -> Vec<Slot> {
    let most = most.min(limits::SLOTS_ASKED);
    let steps = Steps::default();
    match Walk::of(timer, &steps) {
        Some(mut walk) => std::iter::from_fn(|| walk.step(Timestamp::LAST)).take(most).collect(),
        None => known_of_runs(timer).into_iter().take(most).collect(),
    }
}

/// The one slot that is known of a timer that follows its runs. While its job runs, nobody knows.
fn known_of_runs(timer: &Timer) -> Option<Slot> {
    let is_known = timer.agreed.schedule.follows_runs() && timer.open.is_empty();
    timer.next.filter(|_| is_known).map(|at| Slot { at, change: None })
}

/// What will come of it from an instant until before another, for a page of the calendar, which looks at so many slots
/// at most, in so many steps.
pub(super) fn coming_between(
    timer: &Timer,
    (from, to): (Timestamp, Timestamp),
    (left, steps): (&mut usize, &Steps),
) -> Coming {
    let paused = timer.paused.as_ref().map(|pause| pause.since);
    let slots = match Walk::of(timer, steps).filter(|_| paused.is_none()) {
        Some(walk) => slots_between(walk, (from, to), left),
        None => {
            let known = known_of_runs(timer).filter(|slot| paused.is_none() && (from..to).contains(&slot.at));
            Slots::Each(known.into_iter().collect())
        }
    };
    let schedule = timer.agreed.schedule.to_string();
    Coming { timer: timer.name().clone(), schedule, paused, slots }
}

/// How many slots of it will come in each of so many hours from an instant on; so many may be visited.
pub(super) fn hours_of(
    timer: &Timer,
    from: Timestamp,
    hours: usize,
    (left, steps): (&mut usize, &Steps),
) -> Vec<Option<u64>> {
    let end = |at: usize| from.after(Duration::from_micros(HOUR.saturating_mul(at as u64 + 1)));
    let walk = Walk::of(timer, steps).filter(|_| timer.paused.is_none());
    let Some(mut walk) = walk else {
        let known = known_of_runs(timer).filter(|_| timer.paused.is_none()).map(|slot| slot.at);
        let is_in = |at: usize| {
            known.is_some_and(|slot| slot >= from && slot < end(at) && (at == 0 || slot >= end(at - 1)))
        };
        return (0..hours).map(|at| Some(u64::from(is_in(at)))).collect();
    };
    if walk.runs.is_some() {
        let mut is_known = walk.go_to(from, left);
        return (0..hours)
            .map(|at| {
                let count = is_known.then(|| walk.count(end(at), left)).flatten();
                is_known = count.is_some();
                count.map(|(count, _)| count)
            })
            .collect();
    }
    let first = walk.after.after(TICK);
    let mut counted = walk.schedule.hourly(from, hours, (left, steps));
    for (at, count) in counted.iter_mut().enumerate() {
        if end(at) <= first {
            *count = Some(0);
        } else {
            // Of the hour in which it goes on a part has passed.
            let has_passed = first > from && (at == 0 || end(at - 1) < first);
            if has_passed {
                *count = walk.count(end(at), left).map(|(count, _)| count);
            }
            break;
        }
    }
    counted
}

/// The first slot of it that will come from an instant on and before another; of one that may bring only so many more none
/// is told that lies behind its next one.
pub(super) fn first_between(
    timer: &Timer,
    (from, to): (Timestamp, Timestamp),
    steps: &Steps,
) -> Option<Timestamp> {
    let first = timer.next.filter(|_| timer.paused.is_none())?;
    let schedule = &timer.agreed.schedule;
    let goes_on = !schedule.follows_runs() && schedule.bounds().most_runs.is_none();
    let slot = if first < from && goes_on {
        Search::new(schedule, steps).next_after(from.before(TICK))?
    } else {
        first
    };
    (from..to).contains(&slot).then_some(slot)
}

fn slots_between(mut walk: Walk<'_>, (from, to): (Timestamp, Timestamp), left: &mut usize) -> Slots {
    if !walk.go_to(from, left) {
        // Perhaps it has brought enough by then, perhaps not.
        return Slots::Groups(vec![Group { from, to, count: None, change: None }]);
    }
    let (after, runs) = (walk.after, walk.runs);
    let slots: Vec<Slot> = std::iter::from_fn(|| walk.step(to)).take(EACH + 1).collect();
    *left = left.saturating_sub(slots.len());
    if walk.is_cut() {
        return Slots::Groups(vec![Group { from, to, count: None, change: None }]);
    }
    match slots.first() {
        Some(first) if slots.len() > EACH => {
            Slots::Groups(groups(Walk { after, runs, ..walk }, (first.at, to), left))
        }
        Some(_) | None => Slots::Each(slots),
    }
}

/// The slots from one of them until before an instant, in groups.
fn groups(mut walk: Walk<'_>, (first, to): (Timestamp, Timestamp), left: &mut usize) -> Vec<Group> {
    let span = u64::try_from(to.since(first).as_micros()).unwrap_or(u64::MAX);
    let length = LENGTHS.into_iter().find(|length| span / length < GROUPS).unwrap_or(span / GROUPS + 1);
    let mut groups = Vec::new();
    while let Some(Slot { at, .. }) = walk.peek(to) {
        let into = at.since(Timestamp::EPOCH).as_micros() % u128::from(length);
        let start = at.before(Duration::from_micros(u64::try_from(into).unwrap_or(0)));
        let end = start.after(Duration::from_micros(length)).min(to);
        if end <= at {
            break;
        }
        let from = start.max(first);
        let Some((count, change)) = walk.count(end, left) else {
            if walk.runs.is_some() {
                // It is not known how many it may bring behind this.
                groups.push(Group { from, to, count: None, change: None });
                break;
            }
            groups.push(Group { from, to: end, count: None, change: None });
            walk.go_to(end, left);
            continue;
        };
        groups.push(Group { from, to: end, count: Some(count), change });
    }
    if walk.is_cut() {
        let from = groups.last().map_or(first, |group| group.to);
        groups.extend((from < to).then_some(Group { from, to, count: None, change: None }));
    }
    groups
}

/// A walk along the slots of a timer, which counts what it may still bring.
#[derive(Debug)]
struct Walk<'a> {
    schedule: &'a Schedule,
    search: Search<'a>,
    /// Behind which instant it goes on.
    after: Timestamp,
    /// How many jobs it may bring behind that; `None` if there is no end.
    runs: Option<u64>,
}

impl<'a> Walk<'a> {
    /// From its next slot on; `None` if there is none, or if its slots depend on its runs.
    fn of(timer: &'a Timer, steps: &'a Steps) -> Option<Self> {
        let schedule = &timer.agreed.schedule;
        let next = timer.next.filter(|_| !schedule.follows_runs())?;
        let runs = schedule.bounds().most_runs.map(|most| most.saturating_sub(timer.runs));
        Some(Self { schedule, search: Search::new(schedule, steps), after: next.before(TICK), runs })
    }

    /// The next slot, if it is before an instant.
    fn step(&mut self, to: Timestamp) -> Option<Slot> {
        let slot = self.peek(to)?;
        self.after = slot.at;
        self.runs = self.runs.map(|runs| runs - 1);
        Some(slot)
    }

    /// Returns the next slot if it is before `to`, but does not advance. Returns `None` once no step is left.
    fn peek(&mut self, to: Timestamp) -> Option<Slot> {
        if self.runs == Some(0) || self.is_cut() {
            return None;
        }
        let slot = self.search.next(self.after)?;
        (slot.at < to && !self.is_cut()).then_some(slot)
    }

    /// Returns `true` if no step is left: then slots may be missing.
    fn is_cut(&self) -> bool {
        self.search.is_cut()
    }

    /// Goes on from an instant. What comes before it uses up what the timer may bring; answers whether all of that
    /// could be visited.
    fn go_to(&mut self, from: Timestamp, left: &mut usize) -> bool {
        let is_there = self.runs.is_none() || self.count(from, left).is_some();
        self.after = self.after.max(from.before(TICK));
        is_there
    }

    /// Visits the slots before an instant: how many they are, and what a change of the clocks did to one of them.
    /// `None` if they are too many.
    fn count(&mut self, to: Timestamp, left: &mut usize) -> Option<(u64, Option<ClockChange>)> {
        let (mut count, mut change) = (0, None);
        let most = if self.runs.is_some() { u64::MAX } else { limits::SLOTS_COUNTED };
        while *left > 0 && count <= most {
            let Some(slot) = self.step(to) else { return (!self.is_cut()).then_some((count, change)) };
            *left -= 1;
            count += 1;
            change = change.or(slot.change);
        }
        None
    }
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

    fn second(seconds: u64) -> Timestamp {
        Timestamp::EPOCH.after(Duration::from_secs(seconds))
    }

    #[test]
    fn of_a_timer_that_follows_its_runs_one_slot_is_known_and_none_while_it_runs() {
        let mut timer = timer(when::delay(Duration::from_secs(60)));
        let known = [Slot { at: second(60), change: None }];
        assert_eq!(coming(&timer, 10), known);
        let between =
            |timer: &Timer, from, to| coming_between(timer, (from, to), (&mut 10, &Steps::default())).slots;
        assert_eq!(between(&timer, second(60), second(61)), Slots::Each(known.to_vec()));
        assert_eq!(between(&timer, second(61), second(90)), Slots::Each(vec![]));
        timer.open.push(tenure_core::JobId::new(second(60), 1));
        assert_eq!(coming(&timer, 10), []);
    }

    #[test]
    fn what_comes_before_a_range_uses_up_what_a_timer_may_enqueue() {
        let timer = timer(when::every(Duration::from_secs(60)).times(5));
        let Slots::Each(slots) =
            coming_between(&timer, (second(181), Timestamp::LAST), (&mut 100, &Steps::default())).slots
        else {
            panic!()
        };
        assert_eq!(slots.len(), 2);
        assert_eq!(coming(&timer, 10).len(), 5);
        assert_eq!(coming(&timer, 3).len(), 3);
    }

    /// The range begins behind more slots than one question about a schedule answers.
    #[test]
    fn a_timer_that_fires_very_often_is_told_right_or_said_to_be_unknown() {
        let timer = timer(when::every(Duration::from_secs(1)).times(15_000));
        let range = (second(14_401), second(21_601));
        let mut left = 20_000;
        let Slots::Groups(groups) = coming_between(&timer, range, (&mut left, &Steps::default())).slots
        else {
            panic!()
        };
        assert_eq!(groups.iter().map(|group| group.count).collect::<Vec<_>>(), [Some(600)]);
        // The way there was visited once, and the range twice: to see whether they are few, and in groups.
        assert_eq!(left, 20_000 - 14_400 - 101 - 600);
        for mut too_few in [0, 5_000, 14_399, 14_800] {
            let Slots::Groups(groups) =
                coming_between(&timer, range, (&mut too_few, &Steps::default())).slots
            else {
                panic!()
            };
            assert_eq!((groups.len(), groups[0].count, too_few), (1, None, 0), "{groups:?}");
        }
    }

    #[test]
    fn groups_lie_side_by_side_and_cover_each_slot_once() {
        let timer = timer(when::cron("0 */7 * * * *"));
        let (from, to) = (
            Timestamp::EPOCH.after(Duration::from_secs(100)),
            Timestamp::EPOCH.after(Duration::from_secs(90_000)),
        );
        let mut left = 10_000;
        let Slots::Groups(groups) = coming_between(&timer, (from, to), (&mut left, &Steps::default())).slots
        else {
            panic!()
        };
        assert!(groups.windows(2).all(|pair| pair[0].to <= pair[1].from), "{groups:?}");
        let counted: u64 = groups.iter().filter_map(|group| group.count).sum();
        let each = timer.agreed.schedule.between(from, to.before(TICK), 10_000).len();
        assert_eq!(counted, each as u64);
        assert!(left < 10_000);
        let mut none_left = 0;
        let Slots::Groups(groups) =
            coming_between(&timer, (from, to), (&mut none_left, &Steps::default())).slots
        else {
            panic!()
        };
        assert!(groups.iter().all(|group| group.count.is_none()));
    }

    #[test]
    fn slots_that_take_too_long_to_find_are_said_to_be_unknown() {
        let rare = "DTSTART:20000229T000000 RRULE:FREQ=YEARLY;BYYEARDAY=60;BYMONTHDAY=29;BYDAY=TU";
        let timer = timer(Schedule::parse(&format!("{rare} or * * * * *")).unwrap().into());
        let range = (second(0), second(3_600));
        let unknown = [Group { from: range.0, to: range.1, count: None, change: None }];
        let few = Steps::new(1);
        let cut = coming_between(&timer, range, (&mut 1_000, &few)).slots;
        assert_eq!(cut, Slots::Groups(unknown.to_vec()));
        assert_eq!(hours_of(&timer, second(0), 2, (&mut 1_000, &few)), [None, None]);
        let Slots::Each(slots) = coming_between(&timer, range, (&mut 1_000, &Steps::default())).slots else {
            panic!()
        };
        assert_eq!(slots.len(), 59);
    }
}
