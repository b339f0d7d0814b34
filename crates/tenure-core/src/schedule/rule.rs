//! The kinds of rules that a schedule can have.

use super::at::At;
use super::cron::Cron;
use super::every::{Delay, Every};
use super::rrule::Rrule;
use super::times::Times;
use super::wall::Wall;
use super::{BadSchedule, Steps, Zone};
use crate::limits;

/// The rule of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rule {
    /// A cron expression.
    Cron(Cron),
    /// Times of day, every day or on weekdays.
    Times(Times),
    /// A fixed interval.
    Every(Every),
    /// A delay after each run.
    Delay(Delay),
    /// An iCalendar recurrence rule.
    Rrule(Box<Rrule>),
    /// Single times.
    At(At),
    /// Several rules: a time at which more than one of them runs is one run. [`Rule::any_of`] makes it.
    AnyOf(Box<[Rule]>),
}

impl Rule {
    /// Combines rules.
    ///
    /// # Errors
    /// Refuses no rule, more than [`limits::SCHEDULE_RULES`], and a [`Delay`], which is counted from the last run.
    pub fn any_of(rules: impl IntoIterator<Item = Self>) -> Result<Self, BadSchedule> {
        let rules = rules.into_iter().take(limits::SCHEDULE_RULES + 1);
        let mut all: Vec<Self> = rules.flat_map(|rule| rule.parts().to_vec()).collect();
        if all.len() > 1 && all.iter().any(|rule| matches!(rule, Self::Delay(_))) {
            let wrong = BadSchedule::new("schedule", "a delay cannot be combined with other rules");
            return Err(wrong.instead("use `every` for a fixed interval"));
        }
        if all.is_empty() || all.len() > limits::SCHEDULE_RULES {
            let wrong = if all.is_empty() { "no rule given" } else { "too many rules" };
            let most = format_args!("1 to {} rules", limits::SCHEDULE_RULES);
            return Err(BadSchedule::new("schedule", wrong).instead(most));
        }
        Ok(if all.len() == 1 { all.remove(0) } else { Self::AnyOf(all.into()) })
    }

    /// Returns the rules that it consists of.
    pub(super) fn parts(&self) -> &[Self] {
        if let Self::AnyOf(rules) = self { rules } else { std::slice::from_ref(self) }
    }

    /// Finds the end of each recurrence rule with COUNT in a zone, in steps that all of them share.
    pub(super) fn count_in(&mut self, zone: &Zone, steps: &Steps) -> Result<(), BadSchedule> {
        match self {
            Self::Rrule(rule) => rule.count_in(zone, steps),
            Self::AnyOf(rules) => rules.iter_mut().try_for_each(|rule| rule.count_in(zone, steps)),
            Self::Cron(_) | Self::Times(_) | Self::Every(_) | Self::Delay(_) | Self::At(_) => Ok(()),
        }
    }

    pub(super) fn speaks_of_local_time(&self) -> bool {
        let is_local = |rule: &Self| matches!(rule, Self::Cron(_) | Self::Times(_) | Self::Rrule(_));
        self.parts().iter().any(is_local)
    }
}

/// How often a rule means a local time that clocks show twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeats {
    /// It names points of the day: once, when they are shown first.
    Once,
    /// It names an interval, and an hour that comes twice has twice as many of them.
    Twice,
}

/// A rule that speaks of local times.
pub(crate) struct OfWall<'a> {
    pub repeats: Repeats,
    /// The first local time at the given one or after it.
    pub next: &'a dyn Fn(Wall) -> Option<Wall>,
}
