//! Schedules: the next run as a pure function of a rule, a time zone and a time.
//!
//! Nothing here reads a clock. The caller passes the time, and every host gets the same answer.
//!
//! ```
//! use tenure_core::Timestamp;
//! use tenure_core::schedule::{Schedule, Zone};
//!
//! let schedule = Schedule::parse("0 30 2 * * *")?.in_zone(Zone::named("Europe/Berlin")?)?;
//! let saturday: Timestamp = "2026-03-28T12:00:00Z".parse()?;
//!
//! // The clocks jump from 02:00 to 03:00 on that Sunday: what would be at 02:30 is at 03:30.
//! let sunday = schedule.next_after(saturday).unwrap();
//! assert_eq!(sunday.to_string(), "2026-03-29T01:30:00.000000Z");
//! let monday = schedule.next_after(sunday).unwrap();
//! assert_eq!(monday.to_string(), "2026-03-30T00:30:00.000000Z");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Clock changes
//!
//! Rules in local time ([`Cron`], [`Times`], [`Rrule`]) handle clock changes (DST) as follows:
//!
//! * A run in the skipped hour moves forward by the size of the jump. No run is lost: `0 15,45 2 * * *` runs at 03:15
//!   and 03:45. Two runs that meet become one: `0 30 2,3 * * *` runs at 03:30 once.
//! * A run in the repeated hour depends on the rule. If the field for second, minute or hour has a `*`, a range or a
//!   step, the rule is an *interval* and runs both times. If all of them are single values and lists, the rule names
//!   *points* of the day and runs the first time only. A recurrence rule is an interval if its frequency is shorter
//!   than a day.
//!
//! WebJobs timers decide the second case by the printed expression, in which `0 0 1,2 * * *` has become
//! `0 0 1-2 * * *` and runs twice at 1 o'clock. They also lose runs in the skipped hour, such as 02:45 above.

mod at;
mod bounds;
mod calendar;
mod cron;
mod describe;
mod error;
mod every;
mod hourly;
mod jitter;
mod json;
mod length;
mod passage;
mod preview;
mod rrule;
mod rule;
mod search;
mod slots;
mod text;
mod times;
mod wall;
mod zone;
mod zones;

pub use at::At;
pub use bounds::Bounds;
pub use calendar::Calendar;
pub use cron::{Cron, Dialect};
pub use error::BadSchedule;
pub use every::{Delay, Every};
pub use jitter::Jitter;
pub use passage::ClockChange;
pub use preview::Preview;
pub use rrule::Rrule;
pub use rule::Rule;
pub use search::{Search, Steps};
pub use slots::Slot;
pub use times::Times;
pub use zone::{Change, Zone};

use crate::{Timestamp, limits};

/// A rule with its time zone and its bounds: `f(schedule, after) → time`.
///
/// [`Schedule::parse`] reads its text form and `Display` prints it. As JSON it is such a text or an object, and is
/// always written as an object:
///
/// ```
/// use tenure_core::schedule::Schedule;
///
/// let schedule: Schedule = serde_json::from_str(r#"{"cron": "30 9 * * MON-FRI", "zone": "Europe/Berlin"}"#)?;
/// assert_eq!(schedule, "30 9 * * MON-FRI in Europe/Berlin".parse()?);
/// assert_eq!(
///     serde_json::to_string(&schedule)?,
///     r#"{"version":1,"cron":"30 9 * * MON-FRI","dialect":"ncrontab","zone":"Europe/Berlin"}"#
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    rule: Rule,
    zone: Zone,
    bounds: Bounds,
    except: Calendar,
    jitter: Option<Jitter>,
}

impl Schedule {
    /// Creates a schedule from a rule, in UTC and without bounds.
    #[must_use]
    pub fn new(mut rule: Rule) -> Self {
        // A rule that another schedule counted ends as before if it cannot be counted here.
        rule.count_in(&Zone::utc(), &Self::count_steps()).ok();
        Self { rule, zone: Zone::utc(), bounds: Bounds::default(), except: Calendar::default(), jitter: None }
    }

    /// Sets the time zone.
    ///
    /// # Errors
    /// Refuses a time zone in which no run would be left.
    pub fn in_zone(mut self, zone: Zone) -> Result<Self, BadSchedule> {
        self.rule.count_in(&zone, &Self::count_steps())?;
        Self { zone, ..self }.checked()
    }

    /// Returns the steps in which the rules of one schedule are counted.
    fn count_steps() -> Steps {
        Steps::new(limits::RRULE_COUNT_STEPS)
    }

    /// Refuses rules with COUNT that take too long to count each time the schedule is read.
    pub(crate) fn check_counts(&self) -> Result<(), BadSchedule> {
        self.rule.clone().count_in(&self.zone, &Self::count_steps())
    }

    /// Sets the bounds.
    ///
    /// # Errors
    /// Refuses an end before the start, and zero runs.
    pub fn within(self, bounds: Bounds) -> Result<Self, BadSchedule> {
        bounds.check()?;
        Self { bounds, ..self }.checked()
    }

    /// Sets the grid of an interval to the one that contains a time; see [`Every::anchored_at`].
    ///
    /// # Errors
    /// Refuses any rule other than a fixed interval.
    pub fn on_grid_of(self, instant: Timestamp) -> Result<Self, BadSchedule> {
        let Rule::Every(every) = self.rule else {
            return Err(BadSchedule::new("grid", "only a fixed interval has a grid")
                .instead("use `from` to set the start of other rules"));
        };
        Self { rule: Rule::Every(every.anchored_at(instant)), ..self }.checked()
    }

    /// Skips runs on these days.
    ///
    /// # Errors
    /// Refuses days that leave no run.
    pub fn except(self, calendar: Calendar) -> Result<Self, BadSchedule> {
        Self { except: calendar, ..self }.checked()
    }

    /// Sets the jitter.
    #[must_use]
    pub fn with_jitter(self, jitter: Jitter) -> Self {
        Self { jitter: Some(jitter), ..self }
    }

    /// Returns the rule.
    #[must_use]
    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    /// Returns the time zone.
    #[must_use]
    pub fn zone(&self) -> &Zone {
        &self.zone
    }

    /// Returns the bounds.
    #[must_use]
    pub fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// Returns the skipped days.
    #[must_use]
    pub fn calendar(&self) -> &Calendar {
        &self.except
    }

    /// Returns the jitter, if there is any.
    #[must_use]
    pub fn jitter(&self) -> Option<Jitter> {
        self.jitter
    }

    /// Returns `true` if the next run depends on the end of the last one. [`Schedule::next_after`] needs that time
    /// then, and no runs can be missed.
    #[must_use]
    pub fn follows_runs(&self) -> bool {
        matches!(self.rule, Rule::Delay(_))
    }

    /// Returns the time at which the job of a run is enqueued: the scheduled time plus the jitter.
    #[must_use]
    pub fn due(&self, timer: &str, slot: Timestamp) -> Timestamp {
        match self.jitter {
            Some(jitter) => slot.after(jitter.of(timer, slot)),
            None => slot,
        }
    }

    /// Refuses what has no slot at all. A schedule whose first run takes too long to find stays readable: a store refuses to
    /// take it, but may have one of an earlier version.
    fn checked(self) -> Result<Self, BadSchedule> {
        let steps = Steps::default();
        if Search::new(&self, &steps).has_run(Timestamp::EPOCH) || steps.are_spent() {
            return Ok(self);
        }
        let wrong = BadSchedule::new("schedule", "with these skipped days and bounds it never runs");
        Err(wrong.instead("skip fewer days, or set a later end"))
    }
}
