//! Recurrence rules against a second implementation, which tries each second, minute or day from the start on.

use std::collections::BTreeMap;

use jiff::civil::{Date, DateTime};

use crate::schedule::dice::Dice;
use crate::schedule::given::{at, show};

const RULES: usize = 75;
/// Rules that `--long` draws.
const MORE_RULES: usize = 1_600;
const WEEKDAYS: [&str; 7] = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"];

/// A rule by the names of its parts.
struct Drawn {
    start: DateTime,
    parts: BTreeMap<&'static str, String>,
}

impl Drawn {
    fn new(dice: &mut Dice) -> Self {
        let freq = dice.of(&["SECONDLY", "MINUTELY", "HOURLY", "DAILY", "WEEKLY", "MONTHLY", "YEARLY"]);
        let start = Date::new(2020, 1, 1).unwrap().at(0, 0, 0, 0);
        let start = start + jiff::SignedDuration::from_secs(dice.roll(5 * 31_557_600));
        let mut parts = BTreeMap::from([("FREQ", freq.to_owned())]);
        let short = freq.ends_with("LY") && ["SECONDLY", "MINUTELY", "HOURLY"].contains(&freq);
        let mut add = |dice: &mut Dice, name, one_in: i64, draw: &dyn Fn(&mut Dice) -> String| {
            if dice.roll(one_in) == 0 {
                parts.insert(name, draw(dice));
            }
        };
        let either_end = |dice: &mut Dice, most| (dice.between(1, most) * dice.of(&[1, 1, -1])).to_string();
        add(dice, "INTERVAL", 2, &|dice| dice.between(1, 9).to_string());
        add(dice, "WKST", 4, &|dice| dice.of(&WEEKDAYS).to_owned());
        add(dice, "BYMONTH", 4, &|dice| dice.list(|dice| dice.between(1, 12).to_string()));
        if freq != "WEEKLY" {
            add(dice, "BYMONTHDAY", 4, &|dice| dice.list(|dice| either_end(dice, 31)));
        }
        if freq == "YEARLY" || short {
            add(dice, "BYYEARDAY", 6, &|dice| dice.list(|dice| either_end(dice, 366)));
        }
        let counts = freq == "MONTHLY" || freq == "YEARLY";
        add(dice, "BYDAY", 3, &|dice| {
            dice.list(|dice| {
                let nth = if counts && dice.roll(2) == 0 { either_end(dice, 5) } else { String::new() };
                format!("{nth}{}", dice.of(&WEEKDAYS))
            })
        });
        add(dice, "BYHOUR", 4, &|dice| dice.list(|dice| dice.roll(24).to_string()));
        add(dice, "BYMINUTE", 5, &|dice| dice.list(|dice| dice.roll(60).to_string()));
        add(dice, "BYSECOND", 6, &|dice| dice.list(|dice| dice.roll(60).to_string()));
        add(dice, "BYSETPOS", 4, &|dice| dice.list(|dice| either_end(dice, 4)));
        add(dice, "COUNT", 4, &|dice| dice.between(1, 40).to_string());
        Self { start, parts }
    }

    fn text(&self) -> String {
        let parts: Vec<String> = self.parts.iter().map(|(name, value)| format!("{name}={value}")).collect();
        format!("DTSTART:{} RRULE:{}", self.start.strftime("%Y%m%dT%H%M%S"), parts.join(";"))
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.parts.get(name).map(String::as_str)
    }

    fn has(&self, name: &str, values: &[i64]) -> bool {
        let any = |list: &str| list.split(',').any(|value| values.contains(&value.parse().unwrap()));
        self.get(name).is_none_or(any)
    }

    /// The number of the period that a date or time is in, from some beginning.
    fn period(&self, at: DateTime) -> i64 {
        let second = at.to_zoned(jiff::tz::TimeZone::UTC).unwrap().timestamp().as_second();
        match self.get("FREQ").unwrap() {
            "SECONDLY" => second,
            "MINUTELY" => second.div_euclid(60),
            "HOURLY" => second.div_euclid(3_600),
            "DAILY" => second.div_euclid(86_400),
            "WEEKLY" => {
                let first =
                    WEEKDAYS.iter().position(|day| Some(*day) == self.get("WKST").or(Some("MO"))).unwrap();
                // The fifth of January 1970 was a Monday.
                (second.div_euclid(86_400) - 4 - first as i64).div_euclid(7)
            }
            "MONTHLY" => i64::from(at.year()) * 12 + i64::from(at.month()),
            _ => at.year().into(),
        }
    }

    fn day_fits(&self, date: Date) -> bool {
        let (day, length) = (i64::from(date.day()), i64::from(date.days_in_month()));
        let (of_year, year) = (i64::from(date.day_of_year()), i64::from(date.days_in_year()));
        let freq = self.get("FREQ").unwrap();
        let weekday = WEEKDAYS[usize::try_from(date.weekday().to_monday_zero_offset()).unwrap()];
        let by_day = |list: &str| {
            list.split(',').any(|element| {
                let Some(nth) = element.strip_suffix(weekday) else { return false };
                let (day, length) = if freq == "YEARLY" && self.get("BYMONTH").is_none() {
                    (of_year, year)
                } else {
                    (day, length)
                };
                let (from_start, from_end) = ((day + 6) / 7, -((length - day + 7) / 7));
                nth.is_empty() || [from_start, from_end].contains(&nth.parse().unwrap())
            })
        };
        let given = ["BYDAY", "BYMONTHDAY", "BYYEARDAY"].iter().any(|name| self.get(name).is_some());
        let as_at_start = match freq {
            _ if given => true,
            "YEARLY" if self.get("BYMONTH").is_none() => {
                date.month() == self.start.month() && date.day() == self.start.day()
            }
            "YEARLY" | "MONTHLY" => date.day() == self.start.day(),
            "WEEKLY" => date.weekday() == self.start.weekday(),
            _ => true,
        };
        as_at_start
            && self.has("BYMONTH", &[date.month().into()])
            && self.has("BYMONTHDAY", &[day, day - length - 1])
            && self.has("BYYEARDAY", &[of_year, of_year - year - 1])
            && self.get("BYDAY").is_none_or(by_day)
    }

    fn time_fits(&self, at: DateTime) -> bool {
        let units = ["SECONDLY", "MINUTELY", "HOURLY", "DAILY"];
        let place = units.iter().position(|unit| Some(*unit) == self.get("FREQ")).unwrap_or(3);
        let part = |name: &str, longer: usize, value: i8, at_start: i8| match self.get(name) {
            Some(_) => self.has(name, &[value.into()]),
            None => place < longer || value == at_start,
        };
        part("BYSECOND", 1, at.second(), self.start.second())
            && part("BYMINUTE", 2, at.minute(), self.start.minute())
            && part("BYHOUR", 3, at.hour(), self.start.hour())
    }

    /// All slots up to the end of a day.
    fn slots(&self, last: Date) -> Vec<DateTime> {
        let interval: i64 = self.get("INTERVAL").map_or(1, |interval| interval.parse().unwrap());
        let begin = self.period(self.start);
        let of_day = (0..86_400_i32).map(|second| (second / 3_600, second / 60 % 60, second % 60));
        let of_day =
            of_day.map(|(hour, minute, second)| jiff::civil::time(hour as i8, minute as i8, second as i8, 0));
        let times: Vec<_> =
            of_day.filter(|time| self.time_fits(self.start.date().to_datetime(*time))).collect();
        // The places in a period count what lies before the start and after the end as well.
        let around = match self.get("FREQ").filter(|_| self.get("BYSETPOS").is_some()) {
            Some("WEEKLY") => 7,
            Some("MONTHLY") => 31,
            Some("YEARLY") => 366,
            _ => 0,
        };
        let around = jiff::Span::new().days(around);
        let mut periods: BTreeMap<i64, Vec<DateTime>> = BTreeMap::new();
        let mut date = self.start.date().saturating_sub(around);
        while date <= last.saturating_add(around) {
            let fits = self.day_fits(date);
            for time in times.iter().filter(|_| fits) {
                let at = date.to_datetime(*time);
                let period = self.period(at);
                if period >= begin && (period - begin) % interval == 0 {
                    periods.entry(period).or_default().push(at);
                }
            }
            date = date.tomorrow().unwrap();
        }
        let chosen = periods.into_values().flat_map(|all| self.chosen(all)).filter(|at| *at >= self.start);
        let count = self.get("COUNT").map_or(usize::MAX, |count| count.parse().unwrap());
        chosen.take(count).filter(|at| at.date() <= last).collect()
    }

    fn chosen(&self, all: Vec<DateTime>) -> Vec<DateTime> {
        let length = all.len() as i64;
        let numbered = (1..).zip(all);
        numbered
            .filter(|(place, _)| self.has("BYSETPOS", &[*place, place - length - 1]))
            .map(|(_, at)| at)
            .collect()
    }
}

#[test]
fn a_walk_over_every_second_finds_the_same_slots() {
    compare(RULES, 3);
}

#[test]
#[ignore = "takes a minute: `cargo xtask test --long`"]
fn a_walk_over_every_second_finds_the_same_slots_of_more_rules() {
    compare(MORE_RULES, 4);
}

fn compare(rules: usize, seed: u64) {
    let mut dice = Dice(seed);
    let (mut compared, mut some) = (0, 0);
    for _ in 0..rules {
        let drawn = Drawn::new(&mut dice);
        let text = drawn.text();
        // What never comes, and what is too often in a day, is refused; such rules are drawn too.
        let Ok(schedule) = tenure_core::Schedule::parse(&text) else {
            continue;
        };
        let (days, most) = match drawn.get("FREQ").unwrap() {
            "SECONDLY" | "MINUTELY" | "HOURLY" => (2, 200),
            "DAILY" | "WEEKLY" => (30, 200),
            _ => (400, 200),
        };
        let last = drawn.start.date().saturating_add(jiff::Span::new().days(days));
        let expected = drawn.slots(last);
        let end = last.at(23, 59, 59, 0);
        let found = schedule.between(at("2019-01-01T00:00:00Z"), at(&format!("{end}Z")), most);
        let found: Vec<String> = found.iter().map(|slot| show(slot.at)).collect();
        let expected: Vec<String> = expected.iter().take(most).map(|at| format!("{at}Z")).collect();
        assert_eq!(found, expected, "{text}");
        compared += 1;
        some += usize::from(!expected.is_empty());
    }
    assert!(
        compared > rules / 2 && some > rules / 4,
        "{compared} of {rules} rules compared, {some} with slots"
    );
}
