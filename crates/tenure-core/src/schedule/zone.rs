//! Where the clock hangs: a zone of the IANA database, and the one rule by which local times become instants.

use std::fmt;

use jiff::tz::{AmbiguousOffset, TimeZone};

use super::BadSchedule;
use super::wall::Wall;
use super::zones::database;
use crate::Timestamp;

/// A time zone of the IANA database, such as `Europe/Berlin`.
///
/// The database is compiled into the program. All hosts with the same version agree on every run, regardless of their
/// operating systems. A legal change of a time zone arrives with a new version, or with the directory that
/// [`Zone::read_from`] names.
///
/// ```
/// use tenure_core::schedule::Zone;
///
/// let zone = Zone::named("europe/berlin")?;
/// assert_eq!(zone.to_string(), "Europe/Berlin");
/// assert!(Zone::named("Berlin").unwrap_err().to_string().contains("Europe/Berlin"));
/// # Ok::<(), tenure_core::schedule::BadSchedule>(())
/// ```
#[derive(Clone)]
pub struct Zone {
    name: std::sync::Arc<str>,
    zone: TimeZone,
    /// The one offset of a zone that never changed it.
    fixed: Option<i64>,
}

/// A change of a zone's clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// The first instant of the new offset.
    pub at: Timestamp,
    /// Seconds east of Greenwich until then.
    pub before: i64,
    /// Seconds east of Greenwich from then on. If it is more, the clocks jump forward.
    pub after: i64,
}

const SECOND: i64 = 1_000_000;

/// A stretch of time in which a zone has one offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// Seconds east of Greenwich.
    pub offset: i64,
    /// When it began, and the offset until then.
    pub since: Option<(i64, i64)>,
    /// The first second that is not in it any more.
    pub until: Option<i64>,
}

/// To which seconds since 1970 a local time belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Instants {
    /// To this one.
    One(i64),
    /// To none: the clocks jump over it. This is where it is if the offset before the jump goes on.
    Gap { shifted: i64 },
    /// To two: the clocks go back and show it again.
    Fold { first: i64, second: i64 },
}

impl Zone {
    /// Coordinated universal time.
    #[must_use]
    pub fn utc() -> Self {
        Self { name: "UTC".into(), zone: TimeZone::UTC, fixed: Some(0) }
    }

    /// The zone of that name, in any case of letters.
    ///
    /// # Errors
    /// Refuses what is not in the database, and says which names are like it.
    pub fn named(name: &str) -> Result<Self, BadSchedule> {
        if name.eq_ignore_ascii_case("utc") || name == "Z" {
            return Ok(Self::utc());
        }
        let Ok(zone) = database().zones.get(name) else {
            return Err(unknown(name));
        };
        let fixed = zone.to_fixed_offset().ok().map(|offset| i64::from(offset.seconds()));
        Ok(Self { name: zone.iana_name().unwrap_or(name).into(), zone, fixed })
    }

    /// The names of all zones.
    #[must_use]
    pub fn names() -> Vec<String> {
        database().zones.available().map(|name| name.to_string()).collect()
    }

    /// Its name in the database.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// An instant as the clocks of the zone show it, with their offset: `2026-03-29T03:30:00+02:00`.
    #[must_use]
    pub fn show(&self, at: Timestamp) -> String {
        let (second, micros) = (at.as_micros().div_euclid(SECOND), at.as_micros().rem_euclid(SECOND));
        let offset = self.offset(second);
        let fraction = if micros == 0 { String::new() } else { format!(".{micros:06}") };
        let sign = if offset < 0 { '-' } else { '+' };
        let (hours, minutes) = (offset.abs() / 3600, offset.abs() / 60 % 60);
        format!("{}{fraction}{sign}{hours:02}:{minutes:02}", Wall(second + offset))
    }

    /// The changes of the zone's clocks after `from` and up to `to`, and no more than `most`.
    #[must_use]
    pub fn changes(&self, from: Timestamp, to: Timestamp, most: usize) -> Vec<Change> {
        let after = instant(from.as_micros().div_euclid(SECOND));
        let mut changes = Vec::new();
        for change in self.zone.following(after) {
            let second = change.timestamp().as_second();
            let Ok(at) = Timestamp::from_micros(second.saturating_mul(SECOND)) else {
                break;
            };
            if at > to || changes.len() >= most {
                break;
            }
            let (before, after) = (self.offset(second - 1), self.offset(second));
            // A zone can change the name of its time, and nothing that its clocks show.
            if before != after {
                changes.push(Change { at, before, after });
            }
        }
        changes
    }

    pub(crate) fn offset(&self, second: i64) -> i64 {
        match self.fixed {
            Some(offset) => offset,
            None => self.zone.to_offset(instant(second)).seconds().into(),
        }
    }

    pub(crate) fn wall(&self, second: i64) -> Wall {
        Wall(second + self.offset(second))
    }

    /// The stretch of one offset that a second is in.
    pub(crate) fn stretch(&self, second: i64) -> Stretch {
        if let Some(offset) = self.fixed {
            return Stretch { offset, since: None, until: None };
        }
        let since = self.zone.preceding(instant(second + 1)).next().map(|change| {
            let began = change.timestamp().as_second();
            (began, self.offset(began - 1))
        });
        let until = self.zone.following(instant(second)).next().map(|change| change.timestamp().as_second());
        Stretch { offset: self.offset(second), since, until }
    }

    /// Where a local time is.
    pub(crate) fn instants(&self, wall: Wall) -> Instants {
        if let Some(offset) = self.fixed {
            return Instants::One(wall.0 - offset);
        }
        match self.zone.to_ambiguous_timestamp(civil(wall)).offset() {
            AmbiguousOffset::Unambiguous { offset } => Instants::One(wall.0 - i64::from(offset.seconds())),
            AmbiguousOffset::Gap { before, .. } => {
                Instants::Gap { shifted: wall.0 - i64::from(before.seconds()) }
            }
            AmbiguousOffset::Fold { before, after } => Instants::Fold {
                first: wall.0 - i64::from(before.seconds()),
                second: wall.0 - i64::from(after.seconds()),
            },
        }
    }
}

fn instant(second: i64) -> jiff::Timestamp {
    jiff::Timestamp::from_second(second).unwrap_or(if second < 0 {
        jiff::Timestamp::MIN
    } else {
        jiff::Timestamp::MAX
    })
}

fn civil(wall: Wall) -> jiff::civil::DateTime {
    let (date, second) = (wall.date(), wall.time().0);
    let year = i16::try_from(date.year).unwrap_or(i16::MAX);
    // Each part is below its bound by how it is made.
    let part = |number: u32| i8::try_from(number).unwrap_or(0);
    jiff::civil::DateTime::new(
        year,
        part(date.month.into()),
        part(date.day.into()),
        part(second / 3600),
        part(second / 60 % 60),
        part(second % 60),
        0,
    )
    .unwrap_or(jiff::civil::DateTime::MAX)
}

/// Says that there is no such zone, with those whose place has such a name.
fn unknown(name: &str) -> BadSchedule {
    let shown = crate::invalid::cut(name, 64);
    let wrong = BadSchedule::new("zone", format_args!("{shown:?} is not a zone of the IANA database"));
    let wanted = name.trim().to_ascii_lowercase().replace([' ', '-'], "_");
    if wanted.starts_with(['+', '-', '_']) || wanted.starts_with("gmt+") || wanted.starts_with("utc+") {
        return wrong.instead("use a place, such as Europe/Berlin, whose clock changes are known");
    }
    let last = wanted.rsplit('/').next().unwrap_or(&wanted);
    let like: Vec<String> = Zone::names()
        .into_iter()
        .filter(|known| {
            let known = known.to_ascii_lowercase();
            last.len() >= 3
                && (known.rsplit('/').next() == Some(last)
                    || known.split('/').any(|part| part.starts_with(last)))
        })
        .take(3)
        .collect();
    match like.as_slice() {
        [] => wrong.instead("write a name such as Europe/Berlin or UTC"),
        like => wrong.instead(format_args!("did you mean {}?", like.join(" or "))),
    }
}

impl Default for Zone {
    fn default() -> Self {
        Self::utc()
    }
}

impl PartialEq for Zone {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Zone {}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Zone({})", self.name)
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_shifted_and_a_fold_is_shown_twice() {
        let zone = Zone::named("Europe/Berlin").unwrap();
        let second = |text: &str| text.parse::<jiff::Timestamp>().unwrap().as_second();
        let instants = |text: &str| zone.instants(Wall::parse(text).unwrap());
        assert_eq!(instants("2026-03-29T02:30"), Instants::Gap { shifted: second("2026-03-29T01:30:00Z") });
        let (first, second) = (second("2026-10-25T00:30:00Z"), second("2026-10-25T01:30:00Z"));
        assert_eq!(instants("2026-10-25T02:30"), Instants::Fold { first, second });
        assert_eq!(instants("2026-10-25T03:30"), Instants::One(second + 3600));
    }

    #[test]
    fn a_stretch_ends_where_the_next_begins() {
        let zone = Zone::named("Australia/Lord_Howe").unwrap();
        let stretch = zone.stretch(1_790_000_000);
        let end = stretch.until.unwrap();
        let next = zone.stretch(end);
        assert_eq!(next.since, Some((end, stretch.offset)));
        assert_eq!((next.offset - stretch.offset).abs(), 1800);
        assert_eq!(Zone::utc().stretch(0), Stretch { offset: 0, since: None, until: None });
    }

    #[test]
    fn changes_are_listed_and_instants_shown_as_the_clocks_do() {
        let zone = Zone::named("Europe/Berlin").unwrap();
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let changes = zone.changes(at("2026-01-01T00:00:00Z"), at("2026-12-31T00:00:00Z"), 10);
        let [spring, autumn] = changes.as_slice() else { panic!("{changes:?}") };
        assert_eq!(*spring, Change { at: at("2026-03-29T01:00:00Z"), before: 3600, after: 7200 });
        assert_eq!(*autumn, Change { at: at("2026-10-25T01:00:00Z"), before: 7200, after: 3600 });
        assert_eq!(zone.changes(at("2026-03-29T01:00:00Z"), autumn.at, 10), [*autumn]);
        assert_eq!(zone.changes(at("2000-01-01T00:00:00Z"), Timestamp::LAST, 3).len(), 3);
        assert_eq!(Zone::utc().changes(Timestamp::EPOCH, Timestamp::LAST, 3), []);
        assert_eq!(zone.show(spring.at), "2026-03-29T03:00:00+02:00");
        assert_eq!(zone.show(at("2026-03-29T00:59:59.5Z")), "2026-03-29T01:59:59.500000+01:00");
        let newfoundland = Zone::named("America/St_Johns").unwrap();
        assert_eq!(newfoundland.show(at("2026-01-01T00:00:00Z")), "2025-12-31T20:30:00-03:30");
    }

    #[test]
    fn the_message_for_an_unknown_zone_helps() {
        let message = |name: &str| Zone::named(name).unwrap_err().to_string();
        assert!(message("Copenhagen").contains("Europe/Copenhagen"));
        assert!(message("new york").contains("America/New_York"));
        assert!(message("+02:00").contains("use a place"));
        assert!(message("Nowhere/Atall").contains("such as Europe/Berlin"));
    }
}
