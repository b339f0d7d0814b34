//! A month as the contract counts it by the hour: how often schedules fire in each, and did.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use tenure::Timestamp;
use tenure::schedule::Zone;

use super::Seen;
use super::gathered::{Hours, Line, OFTEN};
use super::walls::{DAY, HOUR, wall};
use crate::asking::{Trouble, encoded};
use crate::parts::{list, text};
use crate::visit::Visit;

/// Pages at most: each is a hundred schedules.
const PAGES: usize = 20;

/// What was found of a range, without what was told hour by hour of each schedule.
#[derive(Default)]
pub(super) struct Month {
    /// The pages, without their schedules.
    pub pages: Vec<Value>,
    schedules: BTreeMap<String, Schedule>,
    /// How often something is going to fire in an hour, by its number, without who fires very often.
    fires: BTreeMap<usize, u64>,
    /// The hours in which something begins, or may.
    taken: BTreeSet<usize>,
    /// Behind which schedule nobody was asked about any more; empty if all were.
    stopped: String,
}

#[derive(Default)]
struct Schedule {
    rule: String,
    next: String,
    ran: u64,
    coming: u64,
    past: Vec<(usize, u64)>,
    is_constant: bool,
    /// Of some hours is not known how often it fires in them.
    is_uncounted: bool,
}

/// All of a range, page by page.
pub(super) async fn asked(visit: &Visit, from: Timestamp, to: Timestamp) -> Result<Month, Trouble> {
    let (mut month, mut behind) = (Month::default(), String::new());
    for _ in 0..PAGES {
        let page = visit.get(&format!("/v1/calendar/hours?from={from}&to={to}{behind}")).await?;
        text(&page, "next_schedule").clone_into(&mut month.stopped);
        month.take(page);
        if month.stopped.is_empty() {
            break;
        }
        behind = format!("&after_schedule={}", encoded(&month.stopped));
    }
    Ok(month)
}

impl Month {
    /// Takes what a page tells. Its hours are summed up here: those of all pages would be very many.
    fn take(&mut self, mut page: Value) {
        for told in list(&page, "items") {
            let schedule = self.schedules.entry(text(told, "name").to_owned()).or_default();
            let coming = || list(told, "coming").iter().map(Value::as_u64).enumerate();
            schedule.is_constant |=
                coming().any(|(_, fires)| fires.is_some_and(|fires| fires as f64 > OFTEN));
            schedule.is_uncounted |= coming().any(|(_, fires)| fires.is_none());
            schedule.coming += coming().filter_map(|(_, fires)| fires).sum::<u64>();
            schedule.ran += told["ran"].as_u64().unwrap_or_default();
            schedule.past.extend(
                list(told, "past")
                    .iter()
                    .filter_map(|hour| Some((usize::try_from(hour[0].as_u64()?).ok()?, hour[1].as_u64()?))),
            );
            if schedule.rule.is_empty() {
                text(told, "schedule").clone_into(&mut schedule.rule);
                text(told, "next_at").clone_into(&mut schedule.next);
            }
            if !schedule.is_constant {
                for (at, fires) in coming().filter(|(_, fires)| *fires != Some(0)) {
                    self.taken.insert(at);
                    *self.fires.entry(at).or_default() += fires.unwrap_or_default();
                }
            }
        }
        if let Some(page) = page.as_object_mut() {
            page.remove("items");
        }
        self.pages.push(page);
    }

    /// What was found, by the clocks of a zone, whose midnight is `first` where the range begins. From `begin` on an hour in
    /// which nothing begins is free, if all schedules were asked about.
    pub(super) fn seen(
        &self,
        zone: &Zone,
        (first, begin, last): (i64, i64, i64),
        from: Timestamp,
    ) -> Seen<'_> {
        let (mut lines, mut constant, mut uncounted) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        let mut fires = self.fires.clone();
        for (name, schedule) in &self.schedules {
            let name = name.as_str();
            if schedule.is_constant {
                constant.insert(name);
            } else {
                schedule.past.iter().for_each(|(at, past)| *fires.entry(*at).or_default() += past);
                if schedule.is_uncounted {
                    uncounted.insert(name);
                }
            }
            let past = schedule.past.iter().map(|(_, past)| past).sum::<u64>();
            if past + schedule.coming > 0 || schedule.is_uncounted {
                let line = Line {
                    schedule: schedule.rule.as_str(),
                    ran: schedule.ran,
                    not_run: past.saturating_sub(schedule.ran),
                    coming: schedule.coming,
                    is_uncounted: schedule.is_uncounted,
                    next: schedule.next.as_str(),
                };
                lines.insert(name, line);
            }
        }
        let shown =
            |at: usize| wall(zone, from.after(Duration::from_micros(HOUR.unsigned_abs() * at as u64)));
        let mut hours = Hours::default();
        for (at, fires) in fires.into_iter().filter(|(_, fires)| *fires > 0) {
            let since = shown(at) - first;
            hours.add(since.div_euclid(DAY), since.rem_euclid(DAY) / HOUR, fires);
        }
        let taken = self.taken.iter().copied().map(shown).collect();
        let free = if self.stopped.is_empty() { free(&taken, begin, last) } else { Vec::new() };
        Seen { hours, lines, free, constant, uncounted, stopped: &self.stopped }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_by_the_hour_is_seen_by_the_clocks_of_a_zone() {
        let page = serde_json::json!({ "items": [
            { "name": "a", "schedule": "x", "coming": [0, 0, 2, 0, 0, 1], "past": [[0, 1], [1, 3]], "ran": 3, "next_at": "n" },
            { "name": "b", "schedule": "y", "coming": [0, 0, 61, 61, 61, 61], "past": [], "ran": 0 },
            { "name": "c", "schedule": "z", "coming": [0, 0, 0, 0, null, 0], "past": [], "ran": 0 },
            { "name": "d", "schedule": "z", "coming": [], "past": [], "ran": 0 },
        ] });
        let behind = serde_json::json!({ "items": [
            { "name": "a", "schedule": "x", "coming": [0, 0, 1, 0, 0, 0], "past": [], "ran": 0, "next_at": "m" },
            { "name": "e", "schedule": "w", "coming": [61, 61, 61, 61, 61, null], "past": [], "ran": 0 },
        ] });
        let mut month = Month::default();
        month.take(page);
        month.take(behind);
        assert_eq!(month.pages, [serde_json::json!({}), serde_json::json!({})]);
        let from: Timestamp = "2026-11-23T21:00:00Z".parse().unwrap();
        let there = Zone::named("Europe/Moscow").unwrap();
        let first = wall(&there, from);
        let range = (first, first + 2 * HOUR, first + 6 * HOUR);
        let seen = month.seen(&there, range, from);
        assert_eq!((seen.hours.at(0, 0), seen.hours.at(0, 1), seen.hours.at(0, 2)), (1, 3, 3));
        assert_eq!((seen.hours.of_day(0), seen.hours.of_day(1)), (8, 0));
        assert_eq!((seen.constant, seen.uncounted), (BTreeSet::from(["b", "e"]), BTreeSet::from(["c"])));
        assert_eq!(seen.lines.keys().copied().collect::<Vec<_>>(), ["a", "b", "c", "e"]);
        assert!(
            seen.lines["c"].is_uncounted && seen.lines["e"].is_uncounted && !seen.lines["b"].is_uncounted
        );
        let line = &seen.lines["a"];
        assert_eq!((line.ran, line.not_run, line.coming, line.next), (3, 1, 4, "n"));
        // An hour of which is not known what fires in it is not free.
        assert_eq!(seen.free, [(first + 3 * HOUR, first + 4 * HOUR)]);
        // Of schedules that nobody was asked about is not known where they leave room.
        month.stopped = "e".to_owned();
        let seen = month.seen(&there, range, from);
        assert_eq!((seen.free, seen.stopped), (vec![], "e"));
    }
}
