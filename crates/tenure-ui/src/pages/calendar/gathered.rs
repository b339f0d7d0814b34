//! What the contract tells of a range of time, gathered by hour, by day and by schedule.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use tenure::Timestamp;
use tenure::schedule::Zone;

use crate::asking::{Trouble, encoded};
use crate::parts::{list, text};
use crate::visit::Visit;

use super::walls::{DAY, HOUR, wall};

/// Beyond so many fires in an hour a schedule is left out of what is counted by hour.
pub(super) const OFTEN: f64 = 60.0;
/// What is asked for in one go.
const PART: Duration = Duration::from_micros(DAY as u64);
/// Pages of a part at most.
const PAGES: usize = 20;
/// What a schedule did and is going to do in the range.
#[derive(Default)]
pub(super) struct Line<'v> {
    pub schedule: &'v str,
    pub ran: u64,
    pub not_run: u64,
    pub coming: u64,
    /// Not all of what comes could be counted.
    pub is_uncounted: bool,
    pub next: &'v str,
}

/// How often something fires, by the day since the first one and the hour that the clocks show.
#[derive(Default)]
pub(super) struct Hours(BTreeMap<(i64, i64), u64>);

impl Hours {
    /// Adds so many fires to what an hour has.
    pub(super) fn add(&mut self, day: i64, hour: i64, fires: u64) {
        *self.0.entry((day, hour)).or_default() += fires;
    }

    pub(super) fn at(&self, day: i64, hour: i64) -> u64 {
        self.0.get(&(day, hour)).copied().unwrap_or_default()
    }

    pub(super) fn of_day(&self, day: i64) -> u64 {
        self.0.range((day, 0)..(day, 24)).map(|(_, fires)| fires).sum()
    }
}

/// What the contract tells of each part of the range: of a day it tells hour by hour what fires often, and every part is a look
/// at all schedules. Of a longer one it would count less of what fires every few seconds.
pub(super) async fn parts(visit: &Visit, from: Timestamp, to: Timestamp) -> Result<Vec<Value>, Trouble> {
    let mut found = Vec::new();
    let mut begin = from;
    while begin < to {
        let end = begin.after(PART).min(to);
        let mut behind = String::new();
        for _ in 0..PAGES {
            let page = visit.get(&format!("/v1/calendar?from={begin}&to={end}{behind}")).await?;
            let places = [("after_schedule", "next_schedule"), ("after_run", "next_run")];
            let next = places.map(|(name, key)| (name, text(&page, key).to_owned()));
            found.push(page);
            if next.iter().all(|(_, place)| place.is_empty()) {
                break;
            }
            let said = next.iter().filter(|(_, place)| !place.is_empty());
            behind = said.map(|(name, place)| format!("&{name}={}", encoded(place))).collect();
        }
        begin = end;
    }
    Ok(found)
}

/// Schedules that fire more than once in a minute: they would fill every hour, and hide where there is room.
pub(super) fn constant(parts: &[Value]) -> BTreeSet<&str> {
    with_a_group(parts, is_constant).collect()
}

/// Schedules of which is not known how often they fire in some hours, and not that they fire all the time.
pub(super) fn uncounted<'v>(parts: &'v [Value], constant: &BTreeSet<&str>) -> BTreeSet<&'v str> {
    with_a_group(parts, |group| fires(group).is_none()).filter(|name| !constant.contains(name)).collect()
}

fn with_a_group(parts: &[Value], is_such: impl Fn(&Value) -> bool) -> impl Iterator<Item = &str> {
    let all = parts.iter().flat_map(|found| list(found, "coming"));
    let found = all.filter(move |schedule| list(schedule, "groups").iter().any(&is_such));
    found.map(|schedule| text(schedule, "name"))
}

fn is_constant(group: &Value) -> bool {
    let (Ok(from), Ok(to)) =
        (text(group, "from").parse::<Timestamp>(), text(group, "to").parse::<Timestamp>())
    else {
        return false;
    };
    fires(group).is_some_and(|fires| fires as f64 > OFTEN * to.since(from).as_secs_f64() / 3600.0)
}

/// By the clocks of a zone, from the midnight on that they show as `first`, without those that are left out.
pub(super) fn hours(parts: &[Value], zone: &Zone, first: i64, without: &BTreeSet<&str>) -> Hours {
    let mut hours = Hours::default();
    let mut add = |at: &str, fires: u64| {
        let Ok(at) = at.parse::<Timestamp>() else { return };
        let since = wall(zone, at) - first;
        *hours.0.entry((since.div_euclid(DAY), since.rem_euclid(DAY) / HOUR)).or_default() += fires;
    };
    for found in parts {
        for schedule in
            list(found, "coming").iter().filter(|schedule| !without.contains(text(schedule, "name")))
        {
            list(schedule, "slots").iter().for_each(|slot| add(text(slot, "at"), 1));
            list(schedule, "groups").iter().for_each(|group| spread(group, &mut add));
        }
        for past in list(found, "past").iter().filter(|past| !without.contains(text(past, "schedule"))) {
            add(text(past, "first_at"), past["count"].as_u64().unwrap_or_default());
        }
    }
    hours
}

/// A group of several hours counts in each of them alike.
fn spread(group: &Value, add: &mut impl FnMut(&str, u64)) {
    let (Ok(from), Ok(to)) =
        (text(group, "from").parse::<Timestamp>(), text(group, "to").parse::<Timestamp>())
    else {
        return;
    };
    let first = from.as_micros().div_euclid(HOUR);
    let last = (to.as_micros() - 1).div_euclid(HOUR).max(first);
    let each = fires(group).unwrap_or_default().div_ceil(u64::try_from(last - first + 1).unwrap_or(1));
    for hour in first..=last {
        let at = Timestamp::from_micros(hour * HOUR).unwrap_or(from);
        add(&at.to_string(), each);
    }
}

/// How often a group fires, if it was counted.
pub(super) fn fires(group: &Value) -> Option<u64> {
    group["count"].as_u64()
}

/// What each schedule did and is going to do.
pub(super) fn lines(days: &[Value]) -> BTreeMap<&str, Line<'_>> {
    let mut lines: BTreeMap<&str, Line<'_>> = BTreeMap::new();
    for found in days {
        for schedule in list(found, "coming") {
            let line = lines.entry(text(schedule, "name")).or_default();
            let (slots, groups) = (list(schedule, "slots"), list(schedule, "groups"));
            line.schedule = text(schedule, "schedule");
            line.coming += slots.len() as u64 + groups.iter().filter_map(fires).sum::<u64>();
            line.is_uncounted |= groups.iter().any(|group| fires(group).is_none());
            let first = slots.first().map(|slot| text(slot, "at"));
            let next = first.or(groups.first().map(|group| text(group, "from"))).unwrap_or_default();
            if line.next.is_empty() {
                line.next = next;
            }
        }
        for past in list(found, "past") {
            let line = lines.entry(text(past, "schedule")).or_default();
            let slots = past["count"].as_u64().unwrap_or_default();
            if past["outcome"] == "ran" { line.ran += slots } else { line.not_run += slots }
        }
    }
    lines.retain(|_, line| line.ran + line.not_run + line.coming > 0 || line.is_uncounted);
    lines
}

/// Where the clocks of a zone change.
pub(super) fn changes(parts: &[Value]) -> Vec<(&str, &str)> {
    let all = parts.iter().flat_map(|found| list(found, "clock_changes"));
    let mut changes: Vec<(&str, &str)> =
        all.map(|change| (text(change, "time_zone"), text(change, "at"))).collect();
    changes.sort_unstable();
    changes.dedup();
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_and_what_comes_is_counted_by_hour() {
        let found = serde_json::json!({
            "coming": [{ "name": "a", "schedule": "x", "slots": [{ "at": "2026-11-24T07:30:00Z" }], "groups": null },
                { "name": "b", "schedule": "y", "slots": null,
                    "groups": [{ "from": "2026-11-29T23:00:00Z", "to": "2026-11-30T00:00:00Z", "count": 360 }] }],
            "past": [{ "schedule": "a", "first_at": "2026-11-23T07:30:00Z", "count": 2, "outcome": "skipped" }],
        });
        let wide = serde_json::json!({ "coming": [{ "name": "c", "groups": [
            { "from": "2026-11-25T06:00:00Z", "to": "2026-11-25T08:00:00Z", "count": 9 },
            { "from": "2026-11-25T09:30:00Z", "to": "2026-11-25T10:00:00Z", "count": null }] }] });
        let parts = [found, wide];
        let utc = Zone::utc();
        let first = wall(&utc, "2026-11-23T00:00:00Z".parse().unwrap());
        let none = BTreeSet::new();
        let found = hours(&parts, &utc, first, &none);
        assert_eq!((found.at(1, 7), found.at(6, 23), found.at(0, 7)), (1, 360, 2));
        assert_eq!((found.at(2, 6), found.at(2, 7), found.at(2, 8), found.at(2, 9)), (5, 5, 0, 0));
        assert_eq!((found.of_day(2), found.of_day(3)), (10, 0));
        // What fires every few seconds is left out, if that is wanted.
        let constant = constant(&parts);
        assert_eq!(constant, BTreeSet::from(["b"]));
        // What was not counted may be little: that is not known.
        assert_eq!(uncounted(&parts, &constant), BTreeSet::from(["c"]));
        let without = hours(&parts, &utc, first, &constant);
        assert_eq!((without.at(1, 7), without.at(6, 23), without.at(0, 7)), (1, 0, 2));
        let lines = lines(&parts);
        assert_eq!((lines["a"].coming, lines["a"].not_run, lines["b"].coming), (1, 2, 360));
        assert_eq!((lines["c"].coming, lines["c"].is_uncounted, lines["b"].is_uncounted), (9, true, false));
        // By other clocks it is another hour, and may be another day.
        let there = Zone::named("Asia/Tokyo").unwrap();
        let found = hours(&parts, &there, first, &none);
        assert_eq!((found.at(1, 16), found.at(7, 8), found.at(1, 7)), (1, 360, 0));
    }
}
