//! A second implementation, which shares nothing with the first: it reads the text by itself, walks over the local
//! time of a zone by brute force, and asks the zone database for each match where it is.

use jiff::civil::Date;
use jiff::tz::TimeZone;

/// What a day may fire at.
pub enum Rule {
    Cron(Box<Fields>),
    /// For each weekday from Sunday on, seconds of the day, sorted.
    Times([Vec<i64>; 7]),
}

/// The six fields of a cron expression, written out.
pub struct Fields {
    seconds: Vec<i64>,
    minutes: Vec<i64>,
    hours: Vec<i64>,
    months: Vec<i64>,
    day: String,
    weekday: String,
    unix: bool,
}

pub struct Oracle {
    pub rule: Rule,
    /// Both of two equal local times count.
    pub twice: bool,
    /// Weekdays that are left out, from Sunday on.
    pub left_out: [bool; 7],
}

const DAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];

impl Oracle {
    pub fn cron(text: &str, unix: bool) -> Self {
        let mut fields: Vec<&str> = text.split_whitespace().collect();
        let twice = fields[..fields.len() - 3].iter().any(|field| field.contains(['*', '-', '/']));
        if fields.len() == 5 {
            fields.insert(0, "0");
        }
        let all = |field: &str, low: i64, high: i64, names: &[&str]| -> Vec<i64> {
            (low..=high).filter(|value| any(field, *value, low, high, names)).collect()
        };
        let fields = Fields {
            seconds: all(fields[0], 0, 59, &[]),
            minutes: all(fields[1], 0, 59, &[]),
            hours: all(fields[2], 0, 23, &[]),
            months: all(fields[4], 1, 12, &MONTHS),
            day: fields[3].to_owned(),
            weekday: fields[5].to_owned(),
            unix,
        };
        Self { rule: Rule::Cron(Box::new(fields)), twice, left_out: [false; 7] }
    }

    /// The first second after `after` at which the rule fires, if any within a hundred years.
    pub fn next(&self, zone: &TimeZone, widest: i64, after: i64) -> Option<i64> {
        let local = |second: i64| second + i64::from(zone.to_offset(at(second)).seconds());
        let start = local(after) - widest - 1;
        let first = date_of(start);
        let mut best: Option<i64> = None;
        let mut date = first;
        for _ in 0..36_525 {
            let midnight = date.to_datetime(jiff::civil::Time::midnight());
            let wall = seconds_of(date);
            if best.is_some_and(|best| wall > local(best) + widest + 1) {
                break;
            }
            self.each(date, start - wall, &mut |second| {
                let at = zone.to_ambiguous_timestamp(midnight + jiff::SignedDuration::from_secs(second));
                let first = at.compatible().unwrap().as_second();
                let mut hits = vec![first];
                if self.twice && matches!(at.offset(), jiff::tz::AmbiguousOffset::Fold { .. }) {
                    hits.push(at.later().unwrap().as_second());
                }
                for hit in hits.into_iter().filter(|hit| *hit > after) {
                    best = Some(best.map_or(hit, |best| best.min(hit)));
                }
                best.is_none_or(|best| wall + second <= local(best) + widest)
            });
            date = date.tomorrow().unwrap();
        }
        best
    }

    /// Calls for each second of a day that matches, from one on, until the call says that it is enough.
    fn each(&self, date: Date, from: i64, visit: &mut dyn FnMut(i64) -> bool) {
        let weekday = usize::from(date.weekday().to_sunday_zero_offset() as u8);
        if self.left_out[weekday] {
            return;
        }
        let fields = match &self.rule {
            Rule::Times(days) => {
                days[weekday].iter().filter(|second| **second >= from).all(|second| visit(*second));
                return;
            }
            Rule::Cron(fields) => fields,
        };
        if !fields.has(date) {
            return;
        }
        for hour in fields.hours.iter().filter(|hour| *hour * 3600 + 3599 >= from) {
            for minute in fields.minutes.iter().map(|minute| hour * 3600 + minute * 60) {
                if minute + 59 < from {
                    continue;
                }
                let seconds = fields.seconds.iter().map(|second| minute + second);
                if !seconds.filter(|second| *second >= from).all(&mut *visit) {
                    return;
                }
            }
        }
    }
}

impl Fields {
    fn has(&self, date: Date) -> bool {
        if !self.months.contains(&i64::from(date.month())) {
            return false;
        }
        let given = |field: &str| field != "*" && field != "?";
        let day = self.day.split(',').any(|element| day_fits(element, date));
        let weekday = self.weekday.split(',').any(|element| weekday_fits(element, date));
        match (given(&self.day), given(&self.weekday)) {
            (true, true) if self.unix => day || weekday,
            _ => day && weekday,
        }
    }
}

fn day_fits(element: &str, date: Date) -> bool {
    let (day, length) = (i64::from(date.day()), i64::from(date.days_in_month()));
    let works = |day: i64| {
        let that = Date::new(date.year(), date.month(), i8::try_from(day).unwrap()).unwrap();
        !matches!(that.weekday().to_sunday_zero_offset(), 0 | 6)
    };
    match element {
        "?" => true,
        "L" => day == length,
        "LW" => (1..=length).rev().find(|day| works(*day)) == Some(day),
        _ if element.starts_with("L-") => day == length - element[2..].parse::<i64>().unwrap(),
        _ if element.ends_with('W') => {
            let wanted: i64 = element[..element.len() - 1].parse().unwrap();
            let near = (1..=length).filter(|day| works(*day)).min_by_key(|day| (day - wanted).abs());
            wanted <= length && near == Some(day)
        }
        _ => any(element, day, 1, 31, &[]),
    }
}

fn weekday_fits(element: &str, date: Date) -> bool {
    let weekday = i64::from(date.weekday().to_sunday_zero_offset());
    let is = |text: &str| number(text, 0, &DAYS) % 7 == weekday;
    if element == "?" {
        return true;
    }
    if let Some((day, nth)) = element.split_once('#') {
        return is(day) && (i64::from(date.day()) - 1) / 7 + 1 == nth.parse::<i64>().unwrap();
    }
    if let Some(day) = element.strip_suffix('L') {
        return is(day) && date.day() + 7 > date.days_in_month();
    }
    any(element, weekday, 0, 6, &DAYS)
        || weekday == 0 && element.contains('7') && any(element, 7, 0, 7, &DAYS)
}

/// Does any element of a field fit?
fn any(field: &str, value: i64, low: i64, high: i64, names: &[&str]) -> bool {
    field.split(',').any(|element| {
        let (base, step) = element.split_once('/').unwrap_or((element, ""));
        let read = |text: &str| number(text, low, names);
        let (from, to) = match base.split_once('-') {
            _ if base == "*" => (low, high),
            Some((from, to)) => (read(from), read(to)),
            None if step.is_empty() => (read(base), read(base)),
            None => (read(base), high),
        };
        let step = step.parse::<i64>().unwrap_or(1);
        from <= value && value <= to && (value - from) % step == 0
    })
}

fn number(text: &str, low: i64, names: &[&str]) -> i64 {
    match names.iter().position(|name| *name == text) {
        Some(place) => low + i64::try_from(place).unwrap(),
        None => text.parse().unwrap(),
    }
}

pub fn at(second: i64) -> jiff::Timestamp {
    jiff::Timestamp::from_second(second).unwrap()
}

fn date_of(wall: i64) -> Date {
    at(wall).to_zoned(TimeZone::UTC).date()
}

fn seconds_of(date: Date) -> i64 {
    date.to_zoned(TimeZone::UTC).unwrap().timestamp().as_second()
}
