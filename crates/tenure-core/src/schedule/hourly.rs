//! How many slots lie in each of some hours that follow one another, without visiting each slot.

use super::cron::Cron;
use super::wall::{DAY, Wall};
use super::zone::Stretch;
use super::{Rule, Schedule, Search, Steps};
use crate::Timestamp;

const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60;
const HOUR: i64 = 3_600;

/// The stretch that the last hour lay in, and what a day of it was found to be.
#[derive(Default)]
struct Known {
    stretch: Option<Stretch>,
}

impl Schedule {
    /// How many slots lie in each of so many hours, the first of which begins at `from`. What is told of an hour costs the
    /// same for a rule that fires once in it and for one that fires each second, unless clocks change close to it; the
    /// slots of rules that name single times are visited, and `visits` says how many may be: of an hour behind that is
    /// not known how many it has. The same holds once no step is left. Nothing is known of a [`Delay`](super::Delay).
    #[must_use]
    pub fn hourly(
        &self,
        from: Timestamp,
        hours: usize,
        (visits, steps): (&mut usize, &Steps),
    ) -> Vec<Option<u64>> {
        let mut search = Search::new(self, steps);
        let mut known = Known::default();
        let begin = from.as_micros();
        let mut counted = Vec::with_capacity(hours);
        // Up to here there is no slot any more, as far as was looked.
        let mut next = Some(i64::MIN);
        for at in 0..i64::try_from(hours).unwrap_or(i64::MAX) {
            let (low, high) = (begin + at * HOUR * SECOND, begin + (at + 1) * HOUR * SECOND);
            let quickly = self.by_fields(low, high, &mut known);
            let count = match (quickly, next) {
                (Some(count), _) => Some(count),
                (None, None) => (!steps.are_spent()).then_some(0),
                (None, Some(slot)) if slot >= high => Some(0),
                (None, Some(_)) => by_visits(&mut search, (low, high), &mut next, visits),
            };
            counted.push(count);
        }
        counted
    }

    /// By what the fields of the rule say, where nothing else has to be known.
    fn by_fields(&self, low: i64, high: i64, known: &mut Known) -> Option<u64> {
        let bounds = self.bounds;
        let (starts, ends) =
            (bounds.starts_at.map(Timestamp::as_micros), bounds.ends_at.map(Timestamp::as_micros));
        if starts.is_some_and(|starts| starts >= high) || ends.is_some_and(|ends| ends < low) {
            return Some(0);
        }
        if starts.is_some_and(|starts| starts > low) || ends.is_some_and(|ends| ends < high) {
            return None;
        }
        match &self.rule {
            Rule::Every(every) if self.except.is_empty() => {
                let slots = |until: i64| every.slots_before(Timestamp::from_micros(until).ok()?);
                Some(u64::try_from(slots(high)? - slots(low)?).unwrap_or(0))
            }
            Rule::Cron(cron) => self.of_cron(cron, low, high, known),
            Rule::Every(_)
            | Rule::Times(_)
            | Rule::Delay(_)
            | Rule::Rrule(_)
            | Rule::At(_)
            | Rule::AnyOf(_) => None,
        }
    }

    /// Where the clocks have gone steadily for a day and still do, an hour has what its fields say.
    fn of_cron(&self, cron: &Cron, low: i64, high: i64, known: &mut Known) -> Option<u64> {
        if low.rem_euclid(MINUTE * SECOND) != 0 {
            return None;
        }
        let (low, high) = (low.div_euclid(SECOND), high.div_euclid(SECOND));
        let holds = |stretch: &Stretch| {
            stretch.since.is_none_or(|(since, _)| since + DAY <= low)
                && stretch.until.is_none_or(|until| high <= until)
        };
        let stretch = match known.stretch.filter(holds) {
            Some(stretch) => stretch,
            None => {
                let stretch = Some(self.zone.stretch(low)).filter(holds)?;
                *known.stretch.insert(stretch)
            }
        };
        let (mut wall, end) = (low + stretch.offset, high + stretch.offset);
        let mut count = 0;
        while wall < end {
            let until = end.min((wall.div_euclid(HOUR) + 1) * HOUR);
            if !self.except.leaves_out(Wall(wall)) {
                count += cron.within_hour(Wall(wall), u32::try_from((until - wall) / MINUTE).unwrap_or(0));
            }
            wall = until;
        }
        Some(count)
    }
}

/// By visiting one slot after the other; `next` is the first one that was found behind.
fn by_visits(
    search: &mut Search<'_>,
    (low, high): (i64, i64),
    next: &mut Option<i64>,
    visits: &mut usize,
) -> Option<u64> {
    let mut behind = |micros: i64| {
        let slot = search.next_after(Timestamp::from_micros(micros).unwrap_or(Timestamp::EPOCH));
        (!search.is_cut()).then_some(slot.map(Timestamp::as_micros))
    };
    if next.is_some_and(|slot| slot < low) {
        *visits = visits.checked_sub(1)?;
        *next = behind(low - 1)?;
    }
    let mut count = 0;
    while let Some(slot) = next.filter(|slot| *slot < high) {
        *visits = visits.checked_sub(1)?;
        count += 1;
        *next = behind(slot)?;
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{Bounds, Calendar, Zone};

    fn counted(schedule: &Schedule, from: &str, hours: usize) -> Vec<u64> {
        let told = schedule.hourly(from.parse().unwrap(), hours, (&mut 1_000_000, &Steps::new(u32::MAX)));
        told.into_iter().map(|count| count.unwrap()).collect()
    }

    /// One slot after the other.
    fn visited(schedule: &Schedule, from: &str, hours: usize) -> Vec<u64> {
        let from: Timestamp = from.parse().unwrap();
        let hour = |at: usize| from.after(std::time::Duration::from_secs(3_600 * at as u64));
        let tick = std::time::Duration::from_micros(1);
        (0..hours)
            .map(|at| schedule.between(hour(at).before(tick), hour(at + 1).before(tick), 10_000).len() as u64)
            .collect()
    }

    #[test]
    fn hours_have_as_many_slots_as_somebody_finds_who_visits_each() {
        let rules = [
            "0 */5 * * * *",
            "*/7 * * * * *",
            "0 15,45 2-3 * * *",
            "0 30 2 * * MON-FRI",
            "0 0 0 29 2 *",
            "daily 02:30, 23:59",
            "weekly mon-fri 09:30",
            "every 20m",
            "every 45m",
            "every 3d",
            "unix 0 0 L * *",
            "* * * 2-3 *",
        ];
        let ranges = [
            ("2026-03-27T00:00:00Z", 24 * 5),
            ("2026-10-23T22:00:00Z", 24 * 5),
            ("2028-02-27T06:30:00Z", 72),
            ("2026-11-24T13:00:00Z", 24 * 9),
            ("2026-04-04T00:00:00Z", 48),
        ];
        for zone in ["UTC", "Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe", "America/New_York"] {
            for rule in rules {
                let plain = Schedule::parse(rule).unwrap().in_zone(Zone::named(zone).unwrap()).unwrap();
                let sundays = Calendar::of(vec!["sun".to_owned(), "2026-11-25".to_owned()]).unwrap();
                let left_out = plain.clone().except(sundays).unwrap();
                for schedule in [plain, left_out] {
                    for (from, hours) in ranges {
                        let wanted = visited(&schedule, from, hours);
                        assert_eq!(counted(&schedule, from, hours), wanted, "{schedule} from {from}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_out_of_bounds_is_nothing_and_what_fires_each_second_costs_no_visit() {
        let bounds = Bounds {
            starts_at: Some("2026-11-24T13:30:00Z".parse().unwrap()),
            ends_at: Some("2026-11-24T15:10:00Z".parse().unwrap()),
            most_runs: None,
        };
        let bounded = Schedule::parse("0 * * * * *").unwrap().within(bounds).unwrap();
        let from = "2026-11-24T12:00:00Z";
        assert_eq!(counted(&bounded, from, 5), visited(&bounded, from, 5));
        let each = Schedule::parse("* * * * * *").unwrap();
        let mut none = 0;
        let told = each.hourly(from.parse().unwrap(), 1_000, (&mut none, &Steps::default()));
        assert!(told.iter().all(|count| *count == Some(3_600)), "{told:?}");
        // Of what has to be visited is not known what was not.
        let daily = Schedule::parse("daily 13:30").unwrap();
        let hourly = |visits: &mut usize| daily.hourly(from.parse().unwrap(), 3, (visits, &Steps::default()));
        assert_eq!(hourly(&mut none), [None, None, None]);
        assert_eq!(hourly(&mut 2), [Some(0), Some(1), Some(0)]);
    }
}
