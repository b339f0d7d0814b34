//! Builders for the schedule of a timer.
//!
//! ```
//! use tenure::when::{cron, daily, every};
//! use std::time::Duration;
//!
//! let nightly = cron("0 0 2 * * *").zone("Europe/Copenhagen");
//! let working_days = daily(["09:30", "17:00"]).zone("Europe/Berlin").except(["sat", "sun"]);
//! let steadily = every(Duration::from_secs(30)).until("2027-01-01T00:00:00Z".parse()?);
//! # Ok::<(), tenure::Invalid>(())
//! ```

use std::time::Duration;

use tenure_core::Timestamp;
use tenure_core::schedule::{
    At, BadSchedule, Bounds, Calendar, Cron, Delay, Dialect, Every, Jitter, Rule, Schedule, Times, Zone,
};

/// A schedule for a timer. An error in it is reported when the timer is set, with its field and its position in the
/// text.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct When {
    schedule: Result<Schedule, BadSchedule>,
}

/// Runs at the times of a cron expression of 5 to 7 fields; with 6, the first field is the second. A day must match
/// both day of month and weekday.
pub fn cron(expression: &str) -> When {
    rule(Cron::parse(Dialect::Ncrontab, expression).map(Rule::Cron))
}

/// Runs at the times of a Unix cron expression: a day must match day of month or weekday, and `@daily`, `L`, `W` and
/// `#` are supported.
pub fn unix_cron(expression: &str) -> When {
    rule(Cron::parse(Dialect::Unix, expression).map(Rule::Cron))
}

/// Runs at a fixed interval, on a grid that a late run does not shift. Every five minutes means :00, :05, :10;
/// [`When::on_grid_of`] sets another grid.
pub fn every(span: Duration) -> When {
    rule(Every::new(span).map(Rule::Every))
}

/// Runs at a fixed delay after the end of each run.
pub fn delay(span: Duration) -> When {
    rule(Delay::new(span).map(Rule::Delay))
}

/// Runs once at each of these times.
pub fn at(instants: impl IntoIterator<Item = Timestamp>) -> When {
    rule(At::new(instants).map(Rule::At))
}

/// Runs at these times of each day, such as `09:30`.
pub fn daily<T: AsRef<str>>(times: impl IntoIterator<Item = T>) -> When {
    let times: Vec<T> = times.into_iter().collect();
    rule(Times::daily(&times).map(Rule::Times))
}

/// Parses a schedule from text, which may name the time zone: `weekly mon-fri 09:30 in Europe/Berlin`. See
/// [`Schedule::parse`].
pub fn text(line: &str) -> When {
    When { schedule: Schedule::parse(line) }
}

fn rule(rule: Result<Rule, BadSchedule>) -> When {
    When { schedule: rule.map(Schedule::new) }
}

impl When {
    fn with(self, change: impl FnOnce(Schedule) -> Result<Schedule, BadSchedule>) -> Self {
        Self { schedule: self.schedule.and_then(change) }
    }

    fn within(self, change: impl FnOnce(&mut Bounds)) -> Self {
        self.with(|schedule| {
            let mut bounds = schedule.bounds();
            change(&mut bounds);
            schedule.within(bounds)
        })
    }

    /// Sets the time zone, such as `Europe/Copenhagen`; default UTC.
    pub fn zone(self, name: &str) -> Self {
        self.with(|schedule| schedule.in_zone(Zone::named(name)?))
    }

    /// Sets the grid of an interval to the one that contains this time: every eight hours on that of 06:00 means
    /// 06:00, 14:00 and 22:00. It applies to [`every`] only and does not set when the schedule begins; `every 8h from
    /// …` in a text is the same.
    pub fn on_grid_of(self, instant: Timestamp) -> Self {
        self.with(|schedule| schedule.on_grid_of(instant))
    }

    /// Sets the start. It shifts no run: every eight hours from 06:00 on means 08:00, 16:00 and midnight, unless
    /// [`When::on_grid_of`] says otherwise.
    pub fn from(self, instant: Timestamp) -> Self {
        self.within(|bounds| bounds.starts_at = Some(instant))
    }

    /// Sets the end.
    pub fn until(self, instant: Timestamp) -> Self {
        self.within(|bounds| bounds.ends_at = Some(instant))
    }

    /// Limits the number of runs in total.
    pub fn times(self, most: u64) -> Self {
        self.within(|bounds| bounds.most_runs = Some(most))
    }

    /// Skips these days: weekdays, days of each year or dates, as [`Calendar::of`] parses them.
    pub fn except<T: AsRef<str>>(self, days: impl IntoIterator<Item = T>) -> Self {
        self.with(|schedule| schedule.except(Calendar::of(days)?))
    }

    /// Delays each run by up to this time, so that not all timers run on the hour. The delay depends only on the
    /// timer's name and the run.
    pub fn jitter(self, longest: Duration) -> Self {
        self.with(|schedule| Ok(schedule.with_jitter(Jitter::within(longest)?)))
    }

    pub(crate) fn schedule(self) -> Result<Schedule, BadSchedule> {
        self.schedule
    }
}

impl From<Schedule> for When {
    fn from(schedule: Schedule) -> Self {
        Self { schedule: Ok(schedule) }
    }
}

impl From<&str> for When {
    fn from(line: &str) -> Self {
        text(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(when: When, after: &str) -> String {
        when.schedule().unwrap().next_after(after.parse().unwrap()).unwrap().to_string()
    }

    #[test]
    fn a_grid_is_shifted_by_its_instant_and_not_by_a_beginning() {
        let eight_hours = || every(Duration::from_secs(8 * 3600));
        let six = "2026-01-01T06:00:00Z";
        let (before, on_grid) = ("2026-01-01T05:00:00Z", eight_hours().on_grid_of(six.parse().unwrap()));
        assert_eq!(next(on_grid.clone(), six), "2026-01-01T14:00:00.000000Z");
        assert_eq!(next(on_grid.clone(), before), "2026-01-01T06:00:00.000000Z");
        assert_eq!(on_grid, text(&format!("every 8h from {six}")));
        assert_eq!(next(eight_hours().from(six.parse().unwrap()), before), "2026-01-01T08:00:00.000000Z");
    }

    #[test]
    fn what_lies_on_no_grid_says_so() {
        let refused = daily(["06:00"]).on_grid_of(Timestamp::EPOCH).schedule().unwrap_err();
        assert_eq!(refused.field, "grid");
    }
}
