//! `tenure schedule preview`: what an expression means, and when it comes next.

use clap::{Args, ValueEnum};
use serde::Serialize;
use tenure::schedule::{self, BadSchedule, Schedule, Slot, Zone};
use tenure::{Clock, Error, Invalid, SystemClock, Timestamp};

use crate::exit::Failure;
use crate::screen;

/// How many slots may be asked for.
const MOST: u16 = 1_000;

/// Arguments of `tenure schedule preview`.
#[derive(Debug, Args)]
pub(crate) struct Preview {
    /// Such as "0 */5 * * * *", "30 9 * * MON-FRI in Europe/Berlin" or "every 10m"
    expression: String,
    /// Cron dialect: ncrontab matches day and weekday, unix day or weekday [default: ncrontab]
    #[arg(long, value_name = "NAME")]
    dialect: Option<Dialect>,
    /// Time zone, such as Europe/Berlin [default: that of the expression, else UTC]
    #[arg(long, value_name = "ZONE")]
    zone: Option<String>,
    /// Start after this time, such as 2026-03-28T12:00:00Z [default: now]
    #[arg(long, value_name = "INSTANT")]
    from: Option<String>,
    /// Number of runs
    #[arg(short = 'n', long = "number", value_name = "N", default_value_t = 10,
        value_parser = clap::value_parser!(u16).range(1..=i64::from(MOST)))]
    number: u16,
    /// Output format
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    output: Form,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Dialect {
    Ncrontab,
    Unix,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    Table,
    Json,
}

/// The answer for programs.
#[derive(Serialize)]
struct Answer<'a> {
    description: &'a str,
    next: Vec<String>,
    warnings: &'a [String],
}

pub(crate) fn run(preview: &Preview) -> Result<(), Failure> {
    let schedule = preview.schedule().map_err(|bad| Failure::Library(Error::Invalid(bad.into())))?;
    let from = preview.from.as_deref().map_or_else(|| Ok(SystemClock.now()), from)?;
    let shown = schedule.preview(from, usize::from(preview.number));
    match preview.output {
        Form::Json => screen::print(&json(&shown)),
        Form::Table => table(&schedule, &shown),
    }
    Ok(())
}

fn from(text: &str) -> Result<Timestamp, Failure> {
    let named = |bad: Invalid| Error::Invalid(Invalid { field: "from".to_owned(), ..bad });
    Ok(text.parse().map_err(named)?)
}

impl Preview {
    fn schedule(&self) -> Result<Schedule, BadSchedule> {
        let schedule = match self.dialect {
            Some(dialect) => self.cron_of(dialect)?,
            None => Schedule::parse(&self.expression)?,
        };
        let Some(zone) = self.zone.as_deref().map(Zone::named).transpose()? else { return Ok(schedule) };
        let own = schedule.zone();
        if *own != Zone::utc() && *own != zone {
            let wrong = format!("the expression is in {own}, but --zone is {zone}");
            let instead = Some("pass only one of them".to_owned());
            return Err(BadSchedule { field: "zone".to_owned(), column: None, wrong, instead });
        }
        schedule.in_zone(zone)
    }

    /// The dialect is the first word of a line that says it.
    fn cron_of(&self, dialect: Dialect) -> Result<Schedule, BadSchedule> {
        let word = match dialect {
            Dialect::Ncrontab => "ncrontab ",
            Dialect::Unix => "unix ",
        };
        Schedule::parse(&format!("{word}{}", self.expression)).map_err(|bad| {
            let column = bad.column.map(|column| column.saturating_sub(word.len()).max(1));
            BadSchedule { column, ..bad }
        })
    }
}

fn json(shown: &schedule::Preview) -> String {
    let next = shown.next.iter().map(|slot| instant(slot.at)).collect();
    let answer = Answer { description: &shown.description, next, warnings: &shown.warnings };
    // Strings and lists of them are always JSON.
    serde_json::to_string(&answer).unwrap_or_default()
}

fn table(schedule: &Schedule, shown: &schedule::Preview) {
    screen::print(&shown.description);
    for Slot { at, .. } in &shown.next {
        let local = schedule.zone().show(*at);
        let utc = instant(*at);
        let is_utc = *schedule.zone() == Zone::utc();
        screen::print(&if is_utc { format!("  {utc}") } else { format!("  {utc}  {local}") });
    }
    for warning in &shown.warnings {
        screen::tell(&format!("warning: {warning}"));
    }
}

/// Without a fraction of a second, if it has none.
fn instant(at: Timestamp) -> String {
    at.to_string().replace(".000000Z", "Z")
}
