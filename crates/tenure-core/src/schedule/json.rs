//! A schedule as JSON: one object with one rule, and what bounds it.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::length::Length;
use super::text::{check_length, one_of};
use super::{
    At, BadSchedule, Bounds, Calendar, Cron, Delay, Dialect, Every, Jitter, Rrule, Rule, Schedule, Times,
    Zone,
};
use crate::{Timestamp, limits};

/// The version of this form. A reader refuses one that it does not know.
const VERSION: u32 = 1;

/// The object. Of the first group exactly one is there.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    #[serde(default = "version")]
    version: u32,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    cron: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    every: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delay: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<OneOrMany<Timestamp>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    daily: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rrule: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    weekly: Option<std::collections::BTreeMap<String, Vec<String>>>,
    /// Several rules, each as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    any_of: Option<Vec<String>>,

    /// Belongs to `cron`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dialect: Option<Dialect>,
    /// Belongs to `every`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    zone: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    starts_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ends_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    most_runs: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    jitter: Option<String>,
    #[serde(default, skip_serializing_if = "Calendar::is_empty")]
    except: Calendar,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

fn version() -> u32 {
    VERSION
}

impl Form {
    fn of(schedule: &Schedule) -> Self {
        let bounds = schedule.bounds;
        let form = Self {
            version: VERSION,
            zone: (schedule.zone != Zone::utc()).then(|| schedule.zone.to_string()),
            starts_at: bounds.starts_at,
            ends_at: bounds.ends_at,
            most_runs: bounds.most_runs,
            jitter: schedule.jitter.map(|jitter| Length(jitter.longest()).to_string()),
            except: schedule.except.clone(),
            ..Self::default()
        };
        match &schedule.rule {
            Rule::Cron(cron) => {
                Self { cron: Some(cron.text().to_owned()), dialect: Some(cron.dialect()), ..form }
            }
            Rule::Every(every) => {
                Self { every: Some(Length(every.span()).to_string()), from: every.anchor(), ..form }
            }
            Rule::Delay(delay) => Self { delay: Some(Length(delay.span()).to_string()), ..form },
            Rule::Rrule(rule) => Self { rrule: Some(rule.text().to_owned()), ..form },
            Rule::At(at) => Self { at: Some(OneOrMany::Many(at.instants().to_vec())), ..form },
            Rule::AnyOf(rules) => {
                Self { any_of: Some(rules.iter().map(ToString::to_string).collect()), ..form }
            }
            Rule::Times(times) if times.are_daily() => {
                Self { daily: Some(times.on(0).iter().map(ToString::to_string).collect()), ..form }
            }
            Rule::Times(times) => {
                let show = |(days, list): (Vec<&str>, &[super::wall::TimeOfDay])| {
                    (days.join(","), list.iter().map(ToString::to_string).collect())
                };
                Self { weekly: Some(times.by_list().into_iter().map(show).collect()), ..form }
            }
        }
    }

    fn rule(&mut self) -> Result<Rule, BadSchedule> {
        let steps = Schedule::count_steps();
        let zone = self.zone.as_deref().map(Zone::named).transpose()?;
        let mut rules = Vec::new();
        if let Some(text) = self.cron.take() {
            rules.push(Rule::Cron(Cron::parse(self.dialect.take().unwrap_or_default(), &text)?));
        }
        if let Some(text) = self.every.take() {
            let every = Every::new(Length::interval("every", &text)?.0)?;
            rules.push(Rule::Every(self.from.take().map_or(every, |from| every.anchored_at(from))));
        }
        if let Some(text) = self.delay.take() {
            rules.push(Rule::Delay(Delay::new(Length::interval("delay", &text)?.0)?));
        }
        if let Some(at) = self.at.take() {
            rules.push(Rule::At(match at {
                OneOrMany::One(at) => At::new([at])?,
                OneOrMany::Many(at) => At::new(at)?,
            }));
        }
        if let Some(times) = self.daily.take() {
            rules.push(Rule::Times(Times::daily(&times)?));
        }
        if let Some(text) = self.rrule.take() {
            let (rule, own) = Rrule::parse_in(&text, zone.as_ref(), &steps)?;
            self.agree(own)?;
            rules.push(Rule::Rrule(Box::new(rule)));
        }
        if let Some(texts) = self.any_of.take() {
            let mut all = Vec::new();
            for text in texts.iter().take(limits::SCHEDULE_RULES + 1) {
                check_length(text)?;
                let (rule, own) = Rule::parse(text, zone.as_ref(), &steps)?;
                self.agree(own)?;
                all.push(rule);
            }
            rules.push(Rule::any_of(all)?);
        }
        if let Some(days) = self.weekly.take() {
            rules.push(Rule::Times(Times::weekly(days)?));
        }
        if self.dialect.is_some() || self.from.is_some() {
            let field = if self.dialect.is_some() { "dialect" } else { "from" };
            return Err(BadSchedule::new(field, "this kind of rule has none"));
        }
        let number = rules.len();
        match rules.pop() {
            Some(rule) if number == 1 => Ok(rule),
            _ => Err(BadSchedule::new("schedule", format_args!("{number} rules"))
                .instead("exactly one of cron, every, delay, at, daily, weekly, rrule, any_of")),
        }
    }

    /// Takes over the zone that a rule names itself.
    fn agree(&mut self, zone: Option<Zone>) -> Result<(), BadSchedule> {
        let given = self.zone.take().map(|name| Zone::named(&name)).transpose()?;
        self.zone = one_of(zone, given)?.map(|zone| zone.to_string());
        Ok(())
    }

    fn schedule(mut self) -> Result<Schedule, BadSchedule> {
        if self.version != VERSION {
            let wrong = format_args!("{} is not supported by this version", self.version);
            return Err(BadSchedule::new("version", wrong).instead(format_args!("write {VERSION}")));
        }
        let mut rule = self.rule()?;
        let bounds = Bounds { starts_at: self.starts_at, ends_at: self.ends_at, most_runs: self.most_runs };
        bounds.check()?;
        let jitter = self.jitter.map(|text| Jitter::within(Length::parse("jitter", &text)?.0)).transpose()?;
        let zone = self.zone.map_or(Ok(Zone::utc()), |name| Zone::named(&name))?;
        rule.count_in(&zone, &Schedule::count_steps())?;
        Schedule { rule, zone, bounds, except: self.except, jitter }.checked()
    }
}

impl Serialize for Schedule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Form::of(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Schedule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrForm)
    }
}

/// Reads either, and keeps the words of whatever is wrong.
struct TextOrForm;

impl<'de> Visitor<'de> for TextOrForm {
    type Value = Schedule;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a schedule as text or as an object")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Schedule, E> {
        Schedule::parse(text).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Schedule, A::Error> {
        Form::deserialize(MapAccessDeserializer::new(map))?.schedule().map_err(A::Error::custom)
    }
}
