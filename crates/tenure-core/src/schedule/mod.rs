//! Schedules: when something shall happen, as a function of a rule, a zone and an instant.
//!
//! Nothing here reads a clock. Whoever asks says after which instant, and each host gets the same answer.
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
//! A rule that speaks of local times ([`Cron`], [`Times`], [`Rrule`]) meets days on which clocks change:
//!
//! * What the clocks jump over is shifted forward by as much as they jump. Nothing is lost: `0 15,45 2 * * *` fires
//!   at 03:15 and 03:45. What meets another slot by that is one with it: `0 30 2,3 * * *` fires at 03:30 once.
//! * What the clocks show twice depends on what was written. If any field for second, minute or hour has a `*`, a
//!   range or a step, the rule names an *interval*, and fires both times. If all of them are single values and lists,
//!   it names *points* of the day, and fires the first time only. A recurrence rule names an interval if its
//!   frequency is shorter than a day.
//!
//! The timers of WebJobs decide the latter by the expression as they print it, where `0 0 1,2 * * *` has become
//! `0 0 1-2 * * *` and fires twice at 1 o'clock. Here it is what was written, and fires once. They also lose what
//! does not fit into the skipped hour, such as the 02:45 above.

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
mod slots;
mod text;
mod times;
mod wall;
mod zone;

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
pub use slots::Slot;
pub use times::Times;
pub use zone::{Change, Zone};

use crate::Timestamp;

/// A rule with its zone and its bounds: `f(schedule, after) → instant`.
///
/// As text it is read by [`Schedule::parse`] and printed by `Display`; as JSON it is either such a text or an object,
/// and is always written as an object:
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
    /// A schedule of this rule, in UTC and without bounds.
    #[must_use]
    pub fn new(rule: Rule) -> Self {
        Self { rule, zone: Zone::utc(), bounds: Bounds::default(), except: Calendar::default(), jitter: None }
    }

    /// The same rule on the clocks of another zone.
    ///
    /// # Errors
    /// Refuses a zone in which nothing would be left of it.
    pub fn in_zone(self, zone: Zone) -> Result<Self, BadSchedule> {
        Self { zone, ..self }.checked()
    }

    /// The same rule within bounds.
    ///
    /// # Errors
    /// Refuses an end before the start, and no runs at all.
    pub fn within(self, bounds: Bounds) -> Result<Self, BadSchedule> {
        bounds.check()?;
        Self { bounds, ..self }.checked()
    }

    /// The same interval on the grid that contains an instant; see [`Every::anchored_at`].
    ///
    /// # Errors
    /// Refuses any rule that is no steady interval.
    pub fn on_grid_of(self, instant: Timestamp) -> Result<Self, BadSchedule> {
        let Rule::Every(every) = self.rule else {
            return Err(BadSchedule::new("grid", "only a steady interval lies on one")
                .instead("for other rules, `from` says when they begin"));
        };
        Self { rule: Rule::Every(every.anchored_at(instant)), ..self }.checked()
    }

    /// The same rule without the slots that fall on these days.
    ///
    /// # Errors
    /// Refuses a calendar that leaves nothing of it.
    pub fn except(self, calendar: Calendar) -> Result<Self, BadSchedule> {
        Self { except: calendar, ..self }.checked()
    }

    /// The same rule, spread.
    #[must_use]
    pub fn with_jitter(self, jitter: Jitter) -> Self {
        Self { jitter: Some(jitter), ..self }
    }

    /// The rule.
    #[must_use]
    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    /// On whose clocks.
    #[must_use]
    pub fn zone(&self) -> &Zone {
        &self.zone
    }

    /// From when until when, and how often.
    #[must_use]
    pub fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// The days that are left out.
    #[must_use]
    pub fn calendar(&self) -> &Calendar {
        &self.except
    }

    /// The spread, if there is any.
    #[must_use]
    pub fn jitter(&self) -> Option<Jitter> {
        self.jitter
    }

    /// Does the next slot depend on when the last run ended? Then [`Schedule::next_after`] wants that instant, and
    /// there are no slots to be missed.
    #[must_use]
    pub fn follows_runs(&self) -> bool {
        matches!(self.rule, Rule::Delay(_))
    }

    /// When the slot of a timer is due: its instant, put off by the jitter.
    #[must_use]
    pub fn due(&self, timer: &str, slot: Timestamp) -> Timestamp {
        match self.jitter {
            Some(jitter) => slot.after(jitter.of(timer, slot)),
            None => slot,
        }
    }

    /// Refuses what has no slot at all.
    fn checked(self) -> Result<Self, BadSchedule> {
        if self.next_after(Timestamp::EPOCH).is_some() {
            return Ok(self);
        }
        let wrong = BadSchedule::new("schedule", "with this calendar and these bounds it never fires");
        Err(wrong.instead("leave out fewer days, or a later end"))
    }
}
