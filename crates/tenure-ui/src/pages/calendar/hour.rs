//! An hour, minute by minute: what fires in it, what did, and where there is room.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use serde_json::Value;
use tenure::Timestamp;
use tenure::schedule::Zone;

use super::day_name;
use super::gathered::{fires, parts};
use super::walls::{DAY, HOUR, MINUTE, date, day_of, instant, said, wall};
use crate::asking::{Trouble, encoded};
use crate::parts::{count, list, text};
use crate::visit::Visit;

/// A schedule in a minute: its name, what became of it or is to come, and how often.
type Entry<'v> = (&'v str, &'v str, u64);

/// The hour that somebody said, such as `2026-11-24T14`, as the clocks show it.
pub(super) fn of(said_hour: &str) -> Option<i64> {
    let (day, hour) = said_hour.split_once('T')?;
    let hour: i64 = hour.parse().ok().filter(|hour| (0..24).contains(hour))?;
    Some(said(day)? + hour * HOUR)
}

/// As it stands in an address.
pub(super) fn named(hour: i64) -> String {
    format!("{}T{:02}", date(hour), hour.rem_euclid(DAY) / HOUR)
}

/// The time of day, such as `14:08`; midnight at the end of a day is its end.
pub(super) fn clock(wall: i64) -> String {
    let minutes = wall.rem_euclid(DAY) / MINUTE;
    format!("{:02}:{:02}", minutes / 60, minutes % 60)
}

/// Stretches of whole minutes in which nothing begins, the first one first.
pub(super) fn free(taken: &BTreeSet<i64>, from: i64, to: i64) -> Vec<(i64, i64)> {
    let mut free = Vec::new();
    let mut begin = from.div_euclid(MINUTE) * MINUTE;
    if begin < from {
        begin += MINUTE;
    }
    if begin >= to {
        return free;
    }
    for &minute in taken.range(begin..to).chain(&[to]) {
        if minute > begin {
            free.push((begin, minute));
        }
        begin = begin.max(minute + MINUTE);
    }
    free
}

/// The minutes in which something is going to begin, by the clocks of a zone. Whoever fires more than once a minute takes none.
pub(super) fn taken(parts: &[Value], zone: &Zone, without: &BTreeSet<&str>) -> BTreeSet<i64> {
    let mut taken = BTreeSet::new();
    let at = |text: &str| Some(wall(zone, text.parse::<Timestamp>().ok()?).div_euclid(MINUTE) * MINUTE);
    let coming = parts.iter().flat_map(|found| list(found, "coming"));
    for schedule in coming.filter(|schedule| !without.contains(text(schedule, "name"))) {
        taken.extend(list(schedule, "slots").iter().filter_map(|slot| at(text(slot, "at"))));
        // Of a group is not told where in it something fires.
        for group in list(schedule, "groups") {
            if let (Some(from), Some(to)) = (at(text(group, "from")), at(text(group, "to"))) {
                taken.extend((from..to).step_by(MINUTE as usize));
            }
        }
    }
    taken
}

/// The hour in a table, and what is free in it.
pub(super) async fn section(
    visit: &Visit,
    hour: i64,
    today: i64,
    without: &BTreeSet<&str>,
) -> Result<Markup, Trouble> {
    let zone = &visit.likes.zone;
    let found = parts(visit, instant(zone, hour), instant(zone, hour + HOUR)).await?;
    let free = free(&taken(&found, zone, without), hour.max(today), hour + HOUR);
    let minutes = minutes(&found, zone, without);
    Ok(html! {
        section.card #hour {
            div.wide tabindex="0" role="region" aria-label="Runs in this hour" { table {
                caption { (day_name(day_of(hour))) ", " (clock(hour)) " to " (clock(hour + HOUR)) }
                thead { tr { th scope="col" { "Time" } th scope="col" { "Schedules" } } }
                tbody {
                    @for (minute, entries) in &minutes { tr { td.slot { (clock(*minute)) } td { (row(visit, entries)) } } }
                    @if minutes.is_empty() { tr { td.faint colspan="2" { "No runs in this hour." } } }
                }
            } }
            @if !free.is_empty() {
                p { "Free: " @for (at, (from, to)) in free.iter().enumerate() { @if at > 0 { ", " } (clock(*from)) " to " (clock(*to)) } "." }
            }
        }
    })
}

fn row(visit: &Visit, entries: &[Entry<'_>]) -> Markup {
    html! { @for (at, (name, what, fires)) in entries.iter().enumerate() {
        @if at > 0 { ", " }
        a href=(visit.at(&format!("schedules/{}", encoded(name)))) { (name) }
        @if *fires > 1 { " ×" (count(*fires)) }
        @if !what.is_empty() { " " span.faint { (what.replace('_', " ")) } }
    } }
}

/// What there is in each minute.
fn minutes<'v>(parts: &'v [Value], zone: &Zone, without: &BTreeSet<&str>) -> BTreeMap<i64, Vec<Entry<'v>>> {
    let mut minutes: BTreeMap<i64, Vec<Entry<'v>>> = BTreeMap::new();
    let mut add = |at: &str, entry: Entry<'v>| {
        if let Ok(at) = at.parse::<Timestamp>() {
            minutes.entry(wall(zone, at).div_euclid(MINUTE) * MINUTE).or_default().push(entry);
        }
    };
    for found in parts {
        for past in list(found, "past").iter().filter(|past| !without.contains(text(past, "schedule"))) {
            let slots = past["count"].as_u64().unwrap_or(1);
            add(text(past, "first_at"), (text(past, "schedule"), text(past, "outcome"), slots));
        }
        let coming = list(found, "coming").iter();
        for schedule in coming.filter(|schedule| !without.contains(text(schedule, "name"))) {
            let name = text(schedule, "name");
            list(schedule, "slots").iter().for_each(|slot| add(text(slot, "at"), (name, "", 1)));
            for group in list(schedule, "groups") {
                let (how, fires) = match fires(group) {
                    Some(fires) => ("throughout the hour", fires),
                    None => ("too often to count", 1),
                };
                add(text(group, "from"), (name, how, fires));
            }
        }
    }
    minutes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_is_said_as_it_is_named() {
        let hour = of("2026-11-24T14").unwrap();
        assert_eq!(named(hour), "2026-11-24T14");
        assert_eq!(
            (clock(hour + 8 * MINUTE), clock(hour + 10 * HOUR)),
            ("14:08".to_owned(), "00:00".to_owned())
        );
        for nonsense in ["", "2026-11-24", "2026-11-24T24", "T4", "2026-11-24T-1"] {
            assert_eq!(of(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn what_is_free_lies_between_what_is_taken() {
        let found = serde_json::json!({ "coming": [
            { "name": "a", "slots": [{ "at": "2026-11-24T14:07:30Z" }, { "at": "2026-11-24T14:20:00Z" }] },
            { "name": "b", "groups": [{ "from": "2026-11-24T14:40:00Z", "to": "2026-11-24T15:00:00Z", "count": 5 }] },
            { "name": "often", "slots": [{ "at": "2026-11-24T14:10:00Z" }] }] });
        let taken = taken(&[found], &Zone::utc(), &BTreeSet::from(["often"]));
        let hour = of("2026-11-24T14").unwrap();
        let at = |minute: i64| hour + minute * MINUTE;
        let wanted = [(at(0), at(7)), (at(8), at(20)), (at(21), at(40))];
        assert_eq!(free(&taken, hour, hour + HOUR), wanted);
        // What is over is not free any more, and a begun minute has begun.
        assert_eq!(free(&taken, at(9) + 1, hour + HOUR), [(at(10), at(20)), (at(21), at(40))]);
        assert_eq!(free(&BTreeSet::new(), at(0), at(2)), [(at(0), at(2))]);
        assert_eq!(free(&taken, at(90), at(60)), []);
    }
}
