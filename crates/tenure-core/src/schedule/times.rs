//! Times of day: the same every day, or others on each weekday.

use std::fmt;

use super::BadSchedule;
use super::cron::WEEKDAYS;
use super::wall::{DAY, TimeOfDay, Wall, weekday_of};
use crate::limits;

/// Times of day for each weekday.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Times {
    /// From Sunday on, each sorted.
    days: [Vec<TimeOfDay>; 7],
}

impl Times {
    /// Creates a schedule with the same times every day, such as `["09:30", "17:00"]`.
    ///
    /// # Errors
    /// Refuses invalid times of day, an empty list, and more than [`limits::SCHEDULE_TIMES`].
    pub fn daily<T: AsRef<str>>(times: &[T]) -> Result<Self, BadSchedule> {
        let mut list = Vec::new();
        for time in times {
            list.push(time_of_day("daily", time.as_ref())?);
        }
        Self::checked("daily", std::array::from_fn(|_| list.clone()))
    }

    /// Creates a schedule with times on weekdays, such as `[("mon-fri", ["09:30"])]`. Lists of the same weekday are
    /// merged.
    ///
    /// # Errors
    /// Like [`Times::daily`]; also refuses invalid weekdays and ranges.
    pub fn weekly<T: AsRef<str>>(
        entries: impl IntoIterator<Item = (impl AsRef<str>, impl AsRef<[T]>)>,
    ) -> Result<Self, BadSchedule> {
        let mut days: [Vec<TimeOfDay>; 7] = Default::default();
        for (on, times) in entries {
            let mut list = Vec::new();
            for time in times.as_ref() {
                list.push(time_of_day("weekly", time.as_ref())?);
            }
            for day in weekdays(on.as_ref())? {
                days[usize::from(day)].extend_from_slice(&list);
            }
        }
        Self::checked("weekly", days)
    }

    fn checked(field: &str, mut days: [Vec<TimeOfDay>; 7]) -> Result<Self, BadSchedule> {
        for day in &mut days {
            day.sort_unstable();
            day.dedup();
        }
        if days.iter().all(Vec::is_empty) {
            return Err(BadSchedule::new(field, "missing time of day").instead("write a time such as 09:30"));
        }
        if days.iter().any(|day| day.len() > limits::SCHEDULE_TIMES) {
            let most = format_args!("at most {} of them", limits::SCHEDULE_TIMES);
            return Err(BadSchedule::new(field, "too many times in a day").instead(most));
        }
        Ok(Self { days })
    }

    /// Reads `09:30, 17:00`.
    pub(crate) fn parse_daily(text: &str) -> Result<Self, BadSchedule> {
        let times = list("daily", text)?;
        Self::checked("daily", std::array::from_fn(|_| times.clone()))
    }

    /// Reads `mon-fri 09:30, 17:00; sat 10:00`.
    pub(crate) fn parse_weekly(text: &str) -> Result<Self, BadSchedule> {
        let mut days: [Vec<TimeOfDay>; 7] = Default::default();
        let mut offset = 0;
        for entry in text.split(';') {
            let lead = entry.len() - entry.trim_start().len();
            // The days end where the first time begins.
            let cut = entry.find(|c: char| c.is_ascii_digit()).unwrap_or(entry.len());
            let (on, times) = entry.split_at(cut);
            let on = weekdays(on).map_err(|bad| bad.at(offset + lead))?;
            let times = list("weekly", times).map_err(|bad| bad.moved(offset + cut))?;
            for day in on {
                days[usize::from(day)].extend_from_slice(&times);
            }
            offset += entry.len() + 1;
        }
        Self::checked("weekly", days)
    }

    /// The times of a weekday, 0 for Sunday.
    pub(crate) fn on(&self, weekday: usize) -> &[TimeOfDay] {
        self.days.get(weekday).map_or(&[], Vec::as_slice)
    }

    /// The same times on all days?
    pub(crate) fn are_daily(&self) -> bool {
        self.days.iter().all(|day| *day == self.days[0])
    }

    /// The first time at `from` or after it.
    pub(crate) fn next(&self, from: Wall) -> Option<Wall> {
        let today = from.0.div_euclid(DAY);
        (0..=7).find_map(|ahead| {
            let day = today + ahead;
            let times = self.on(usize::from(weekday_of(day)));
            let passed = if ahead == 0 { times.partition_point(|time| *time < from.time()) } else { 0 };
            times.get(passed).map(|time| Wall(day * DAY + i64::from(time.0)))
        })
    }
}

fn time_of_day(field: &str, text: &str) -> Result<TimeOfDay, BadSchedule> {
    TimeOfDay::parse(text.trim()).ok_or_else(|| {
        let shown = crate::invalid::cut(text.trim(), 32);
        BadSchedule::new(field, format_args!("{shown:?} is not a time of day")).instead("00:00 to 23:59:59")
    })
}

fn list(field: &str, text: &str) -> Result<Vec<TimeOfDay>, BadSchedule> {
    let mut offset = 0;
    let mut times = Vec::new();
    for part in text.split(',') {
        let lead = part.len() - part.trim_start().len();
        times.push(time_of_day(field, part).map_err(|bad| bad.at(offset + lead))?);
        offset += part.len() + 1;
    }
    Ok(times)
}

/// `mon`, `mon-fri` or `sat,sun`.
fn weekdays(text: &str) -> Result<Vec<u8>, BadSchedule> {
    let mut days = Vec::new();
    for part in text.trim().split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to) = (weekday(from)?, weekday(to)?);
        // The week of this list goes around, so that fri-mon is four days.
        days.extend((0..=(to + 7 - from) % 7).map(|ahead| (from + ahead) % 7));
    }
    Ok(days)
}

/// The number of a weekday by its English name or the first three letters of it.
pub(crate) fn weekday(text: &str) -> Result<u8, BadSchedule> {
    let name = text.trim().to_ascii_lowercase();
    let known =
        (0..).zip(WEEKDAYS).find(|(_, day)| name.len() >= 3 && day.to_ascii_lowercase().starts_with(&name));
    known.map(|(number, _)| number).ok_or_else(|| {
        let shown = crate::invalid::cut(text.trim(), 32);
        BadSchedule::new("weekday", format_args!("{shown:?} is not a weekday"))
            .instead("write mon, tue, wed, thu, fri, sat or sun")
    })
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |times: &[TimeOfDay]| times.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        if self.are_daily() {
            return write!(f, "daily {}", show(self.on(0)));
        }
        let entries: Vec<String> = self
            .by_list()
            .into_iter()
            .map(|(days, times)| format!("{} {}", days.join(","), show(times)))
            .collect();
        write!(f, "weekly {}", entries.join("; "))
    }
}

impl Times {
    /// The weekdays, from Monday on, that have the same list, with that list.
    pub(crate) fn by_list(&self) -> Vec<(Vec<&'static str>, &[TimeOfDay])> {
        let mut lists: Vec<(Vec<&'static str>, &[TimeOfDay])> = Vec::new();
        for day in [1, 2, 3, 4, 5, 6, 0] {
            let times = self.on(day);
            let short = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"][day];
            match lists.iter_mut().find(|(_, known)| *known == times) {
                _ if times.is_empty() => {}
                Some((days, _)) => days.push(short),
                None => lists.push((vec![short], times)),
            }
        }
        lists
    }
}
