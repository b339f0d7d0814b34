//! What the tests have in common.

use tenure_core::Timestamp;
use tenure_core::schedule::{Schedule, Zone};

pub fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

pub fn parse(text: &str) -> Schedule {
    Schedule::parse(text).unwrap_or_else(|bad| panic!("{text}: {bad}"))
}

/// The words of a refusal.
pub fn refusal(text: &str) -> String {
    match Schedule::parse(text) {
        Ok(schedule) => panic!("{text} was taken for {schedule}"),
        Err(bad) => bad.to_string(),
    }
}

/// The next slots after an instant, with seconds only.
pub fn slots(schedule: &Schedule, after: &str, most: usize) -> Vec<String> {
    let to = Timestamp::LAST;
    schedule.between(at(after), to, most).iter().map(|slot| show(slot.at)).collect()
}

/// `2026-03-29T02:30:00Z`.
pub fn show(at: Timestamp) -> String {
    at.to_string().replace(".000000Z", "Z")
}

/// Slots as local times with offset, as the vectors are written: `03-11 03:30-07`.
pub fn local(schedule: &Schedule, zone: &str, after: &str, most: usize) -> Vec<String> {
    let zone = Zone::named(zone).unwrap();
    let schedule = schedule.clone().in_zone(zone.clone()).unwrap();
    let database = jiff::tz::TimeZoneDatabase::bundled().get(zone.name()).unwrap();
    slots(&schedule, after, most)
        .into_iter()
        .map(|slot| {
            let zoned = slot.parse::<jiff::Timestamp>().unwrap().to_zoned(database.clone());
            let offset = zoned.offset().seconds();
            let minutes = match offset.abs() / 60 % 60 {
                0 => String::new(),
                minutes => format!(":{minutes:02}"),
            };
            let sign = if offset < 0 { '-' } else { '+' };
            format!("{}{sign}{:02}{minutes}", zoned.strftime("%m-%d %H:%M"), offset.abs() / 3600)
        })
        .collect()
}
