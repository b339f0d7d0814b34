//! Days on which nothing fires.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::BadSchedule;
use super::cron::ones;
use super::times::weekday;
use super::wall::{Date, Wall, days_in_month, digits};
use crate::limits;

/// Days that a schedule skips: dates, days of every year, and weekdays, by local time.
///
/// ```
/// use tenure_core::schedule::{Calendar, Schedule};
///
/// let holidays = Calendar::of(["2026-04-06", "12-25", "12-26"])?;
/// let schedule = Schedule::parse("0 30 9 25-27 12 *")?.except(holidays)?;
/// let next = schedule.next_after("2026-12-01T00:00:00Z".parse()?).unwrap();
/// assert_eq!(next.to_string(), "2026-12-27T09:30:00.000000Z");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct Calendar {
    dates: BTreeSet<Date>,
    /// Month and day.
    yearly: BTreeSet<(u8, u8)>,
    /// Bit 0 for Sunday.
    weekdays: u64,
}

impl Calendar {
    /// Creates a list of skipped days: `2026-12-25` once, `12-25` every year, `sat` every week.
    ///
    /// # Errors
    /// Refuses invalid days, and more than [`limits::CALENDAR_DAYS`].
    pub fn of<T: AsRef<str>>(days: impl IntoIterator<Item = T>) -> Result<Self, BadSchedule> {
        let mut calendar = Self::default();
        for (number, day) in days.into_iter().enumerate() {
            if number >= limits::CALENDAR_DAYS {
                let most = format_args!("at most {} of them", limits::CALENDAR_DAYS);
                return Err(BadSchedule::new("except", "too many days").instead(most));
            }
            calendar.add(day.as_ref())?;
        }
        Ok(calendar)
    }

    fn add(&mut self, text: &str) -> Result<(), BadSchedule> {
        let text = text.trim();
        if let Some(date) = Date::parse(text) {
            self.dates.insert(date);
        } else if let Some(day) = day_of_year(text) {
            self.yearly.insert(day);
        } else if let Ok(day) = weekday(text) {
            self.weekdays |= 1 << day;
        } else {
            let wrong = format_args!("{:?} is not a day", crate::invalid::cut(text, 32));
            return Err(BadSchedule::new("except", wrong).instead("write 2026-12-25, 12-25 or sat"));
        }
        Ok(())
    }

    /// Returns `true` if it has no days.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.dates.is_empty() && self.yearly.is_empty() && self.weekdays == 0
    }

    pub(crate) fn leaves_out(&self, wall: Wall) -> bool {
        let date = wall.date();
        self.weekdays & 1 << date.weekday() != 0
            || self.dates.contains(&date)
            || self.yearly.contains(&(date.month, date.day))
    }
}

fn day_of_year(text: &str) -> Option<(u8, u8)> {
    let (month, day) = text.split_once('-').filter(|(month, day)| month.len() == 2 && day.len() == 2)?;
    let (month, day) = (u8::try_from(digits(month)?).ok()?, u8::try_from(digits(day)?).ok()?);
    // In a leap year, so that the 29th of February is a day.
    ((1..=12).contains(&month) && day >= 1 && day <= days_in_month(2000, month)).then_some((month, day))
}

impl From<Calendar> for Vec<String> {
    fn from(calendar: Calendar) -> Self {
        const SHORT: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
        let weekdays = ones(calendar.weekdays).map(|day| SHORT[usize::from(day)].to_owned());
        let yearly = calendar.yearly.iter().map(|(month, day)| format!("{month:02}-{day:02}"));
        weekdays.chain(yearly).chain(calendar.dates.iter().map(ToString::to_string)).collect()
    }
}

impl TryFrom<Vec<String>> for Calendar {
    type Error = BadSchedule;

    fn try_from(days: Vec<String>) -> Result<Self, BadSchedule> {
        Self::of(days)
    }
}
