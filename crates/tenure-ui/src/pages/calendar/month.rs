//! A month as the contract counts it by the hour: how often schedules fire in each, and did.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use tenure::Timestamp;
use tenure::schedule::Zone;

use super::Seen;
use super::gathered::{Hours, Line, MUCH, OFTEN};
use super::walls::{DAY, HOUR, wall};
use crate::asking::{Trouble, encoded};
use crate::parts::{list, text};
use crate::visit::Visit;

/// Pages at most: each is a hundred schedules.
const PAGES: usize = 20;

/// All pages of a range.
pub(super) async fn pages(visit: &Visit, from: Timestamp, to: Timestamp) -> Result<Vec<Value>, Trouble> {
    let (mut found, mut behind) = (Vec::new(), String::new());
    for _ in 0..PAGES {
        let page = visit.get(&format!("/v1/calendar/hours?from={from}&to={to}{behind}")).await?;
        let next = text(&page, "next_schedule").to_owned();
        found.push(page);
        if next.is_empty() {
            break;
        }
        behind = format!("&after_schedule={}", encoded(&next));
    }
    Ok(found)
}

/// What they tell, by the clocks of a zone, whose midnight is `first` where the range begins. From `begin` on an hour in
/// which nothing begins is free.
pub(super) fn seen<'v>(
    pages: &'v [Value],
    zone: &Zone,
    (first, begin, last): (i64, i64, i64),
    from: Timestamp,
) -> Seen<'v> {
    let (mut lines, mut constant) = (BTreeMap::new(), BTreeSet::new());
    let schedules = || pages.iter().flat_map(|page| list(page, "items"));
    for schedule in schedules() {
        if coming(schedule).any(|fires| fires as f64 > OFTEN) {
            constant.insert(text(schedule, "name"));
        }
        let line: &mut Line<'v> = lines.entry(text(schedule, "name")).or_default();
        let ran = schedule["ran"].as_u64().unwrap_or_default();
        line.coming += coming(schedule).sum::<u64>();
        line.ran += ran;
        line.not_run += past(schedule).sum::<u64>().saturating_sub(ran);
        if line.schedule.is_empty() {
            (line.schedule, line.next) = (text(schedule, "schedule"), text(schedule, "next_at"));
        }
    }
    lines.retain(|_, line| line.ran + line.not_run + line.coming > 0);
    let (mut fires, mut taken) = (Vec::new(), BTreeSet::new());
    for schedule in schedules().filter(|schedule| !constant.contains(text(schedule, "name"))) {
        add(&mut fires, past(schedule));
        taken.extend(coming(schedule).enumerate().filter(|(_, fires)| *fires > 0).map(|(at, _)| at));
        add(&mut fires, coming(schedule));
    }
    let shown = |at: usize| wall(zone, from.after(Duration::from_micros(HOUR.unsigned_abs() * at as u64)));
    let mut hours = Hours::default();
    for (at, fires) in fires.iter().enumerate().filter(|(_, fires)| **fires > 0) {
        let since = shown(at) - first;
        hours.add(since.div_euclid(DAY), since.rem_euclid(DAY) / HOUR, *fires);
    }
    let taken = taken.into_iter().map(shown).collect();
    Seen { hours, lines, free: free(&taken, begin, last), constant }
}

/// Stretches of whole hours in which nothing begins, the first one first.
fn free(taken: &BTreeSet<i64>, begin: i64, end: i64) -> Vec<(i64, i64)> {
    let (mut free, mut begin) = (Vec::new(), begin);
    if begin >= end {
        return free;
    }
    for &hour in taken.range(begin - HOUR..end).chain(&[end]) {
        if hour > begin {
            free.push((begin, hour));
        }
        begin = begin.max(hour + HOUR);
    }
    free
}

fn add(sums: &mut Vec<u64>, fires: impl Iterator<Item = u64>) {
    for (at, fires) in fires.enumerate() {
        match sums.get_mut(at) {
            Some(sum) => *sum += fires,
            None => sums.push(fires),
        }
    }
}

/// Hour by hour; what is too much to be counted is much.
fn coming(schedule: &Value) -> impl Iterator<Item = u64> {
    list(schedule, "coming").iter().map(|fires| fires.as_u64().unwrap_or(MUCH))
}

fn past(schedule: &Value) -> impl Iterator<Item = u64> {
    list(schedule, "past").iter().filter_map(Value::as_u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_by_the_hour_is_seen_by_the_clocks_of_a_zone() {
        let page = serde_json::json!({ "items": [
            { "name": "a", "schedule": "x", "coming": [0, 0, 2, 0, 0, 1], "past": [1, 3, 0, 0, 0, 0], "ran": 3, "next_at": "n" },
            { "name": "b", "schedule": "y", "coming": [0, 0, 61, 61, 61, 61], "past": [], "ran": 0 },
            { "name": "c", "schedule": "z", "coming": [0, 0, 0, null, null, null], "past": [], "ran": 0 },
            { "name": "d", "schedule": "z", "coming": [], "past": [], "ran": 0 },
        ] });
        let pages = [page];
        let from: Timestamp = "2026-11-23T21:00:00Z".parse().unwrap();
        let there = Zone::named("Europe/Moscow").unwrap();
        let first = wall(&there, from);
        let seen = seen(&pages, &there, (first, first + 2 * HOUR, first + 6 * HOUR), from);
        assert_eq!((seen.hours.at(0, 0), seen.hours.at(0, 1), seen.hours.at(0, 2)), (1, 3, 2));
        assert_eq!((seen.hours.of_day(0), seen.hours.of_day(1)), (7, 0));
        assert_eq!(seen.constant, BTreeSet::from(["b", "c"]));
        assert_eq!(seen.lines.keys().copied().collect::<Vec<_>>(), ["a", "b", "c"]);
        let line = &seen.lines["a"];
        assert_eq!((line.ran, line.not_run, line.coming, line.next), (3, 1, 3, "n"));
        assert_eq!(seen.free, [(first + 3 * HOUR, first + 5 * HOUR)]);
    }
}
