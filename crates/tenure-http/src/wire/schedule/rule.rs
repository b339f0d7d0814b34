//! The rule of a schedule: one of a few sorts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenure::schedule::{At, BadSchedule, Cron, Delay, Dialect, Every, Rrule, Rule, Zone};
use tenure::{Invalid, Schedule, seconds};

use super::super::submit::instant;
use crate::problem::Problem;
use crate::schedules::bad::told;

/// The rule of a schedule. Set exactly one kind of rule.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Rule")]
pub struct RuleSpec {
    /// Cron expression of 5 to 7 fields; with 6 or 7, the first is the second, and the seventh the year.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// Dialect of the cron expression; default `ncrontab`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dialect: Option<DialectName>,
    /// Fixed interval, on a grid that late runs do not shift.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every_seconds: Option<f64>,
    /// A point of that grid; default 1970-01-01T00:00:00Z.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grid_from: Option<String>,
    /// Delay after the end of each run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_seconds: Option<f64>,
    /// Times of single runs: RFC 3339 with an offset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Vec<String>>,
    /// iCalendar recurrence rule, such as `DTSTART:20260105T093000 RRULE:FREQ=WEEKLY;BYDAY=MO`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rrule: Option<String>,
    /// Schedule as text, such as `weekly mon-fri 09:30`; ` or ` between several rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// The cron dialect, for expressions that cron programs interpret differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Dialect")]
pub enum DialectName {
    /// A day must match both day of month and weekday.
    Ncrontab,
    /// A day must match day of month or weekday, if both are restricted.
    Unix,
}

impl RuleSpec {
    /// What there is to tell of a rule.
    #[must_use]
    pub fn of(rule: &Rule) -> Self {
        let none = Self::default();
        match rule {
            Rule::Cron(cron) => Self {
                cron: Some(cron.text().to_owned()),
                dialect: Some(match cron.dialect() {
                    Dialect::Ncrontab => DialectName::Ncrontab,
                    Dialect::Unix => DialectName::Unix,
                }),
                ..none
            },
            Rule::Every(every) => Self {
                every_seconds: Some(every.span().as_secs_f64()),
                grid_from: every.anchor().map(|anchor| anchor.to_string()),
                ..none
            },
            Rule::Delay(delay) => Self { delay_seconds: Some(delay.span().as_secs_f64()), ..none },
            Rule::At(at) => {
                Self { at: Some(at.instants().iter().map(ToString::to_string).collect()), ..none }
            }
            Rule::Rrule(rule) => Self { rrule: Some(rule.text().to_owned()), ..none },
            // Whatever sort is added can be written as a line.
            other @ (Rule::Times(_) | _) => Self { text: Some(other.to_string()), ..none },
        }
    }

    /// The rule that is meant, and the zone that its text names.
    pub(crate) fn rule(&self) -> Result<(Rule, Option<Zone>), Problem> {
        let mut rules: Vec<(Rule, Option<Zone>)> = Vec::new();
        let mut add = |field: &str, rule: Result<(Rule, Option<Zone>), BadSchedule>| -> Result<(), Problem> {
            rules.push(rule.map_err(|bad| told(field, bad))?);
            Ok(())
        };
        if let Some(text) = &self.cron {
            let dialect = match self.dialect {
                None | Some(DialectName::Ncrontab) => Dialect::Ncrontab,
                Some(DialectName::Unix) => Dialect::Unix,
            };
            add("spec.cron", Cron::parse(dialect, text).map(|cron| (Rule::Cron(cron), None)))?;
        }
        if let Some(span) = self.every_seconds {
            let span = seconds("spec.every_seconds", span)?;
            let from = self.grid_from.as_deref().map(|from| instant("spec.grid_from", from)).transpose()?;
            let every =
                |every: Every| (Rule::Every(from.map_or(every, |from| every.anchored_at(from))), None);
            add("spec.every_seconds", Every::new(span).map(every))?;
        }
        if let Some(span) = self.delay_seconds {
            let span = seconds("spec.delay_seconds", span)?;
            add("spec.delay_seconds", Delay::new(span).map(|delay| (Rule::Delay(delay), None)))?;
        }
        if let Some(texts) = &self.at {
            let instants: Result<Vec<_>, Invalid> =
                texts.iter().map(|text| instant("spec.at", text)).collect();
            add("spec.at", At::new(instants?).map(|at| (Rule::At(at), None)))?;
        }
        if let Some(text) = &self.rrule {
            add("spec.rrule", Rrule::parse(text).map(|(rule, zone)| (Rule::Rrule(Box::new(rule)), zone)))?;
        }
        if let Some(text) = &self.text {
            let line = Schedule::parse(text);
            let named = |line: Schedule| {
                let zone = Some(line.zone().clone()).filter(|zone| *zone != Zone::utc());
                (line.rule().clone(), zone)
            };
            add("spec.text", line.map(named))?;
        }
        for (field, is_said, of) in [
            ("spec.dialect", self.dialect.is_some(), self.cron.is_some()),
            ("spec.grid_from", self.grid_from.is_some(), self.every_seconds.is_some()),
        ] {
            if is_said && !of {
                return Err(Invalid::new(field, "a value", "none with this kind of rule").into());
            }
        }
        let number = rules.len();
        match (rules.pop(), number) {
            (Some(rule), 1) => Ok(rule),
            (Some(_) | None, _) => {
                let allowed = "exactly one of cron, every_seconds, delay_seconds, at, rrule, text";
                Err(Invalid::new("spec", format_args!("{number} rules"), allowed).into())
            }
        }
    }
}
