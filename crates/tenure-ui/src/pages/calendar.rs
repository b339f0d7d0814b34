//! A week of schedules, hour by hour: what was, what comes, and where there is room.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;
use tenure::Timestamp;

use crate::asking::{Trouble, encoded};
use crate::layout;
use crate::parts::{count, empty, exact, list, text, time};
use crate::visit::Visit;

const DAY: Duration = Duration::from_secs(24 * 3600);
const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
/// From so many fires in an hour on it is shown as denser.
const DENSER: [u64; 4] = [1, 3, 10, 60];

const HOUR: i64 = 3_600_000_000;
/// Pages of a day at most.
const PAGES: usize = 20;
/// For so many fires counts what is too much to be counted.
const MUCH: u64 = 1_000_000;

/// How often something fires, by day and hour.
type Hours = [[u64; 24]; 7];

/// What a schedule did and is going to do in the week.
#[derive(Default)]
struct Line<'v> {
    schedule: &'v str,
    ran: u64,
    not_run: u64,
    coming: u64,
    next: &'v str,
}

/// `GET calendar`
pub(crate) async fn page(visit: Visit) -> Response {
    let body = body(&visit).await;
    layout::page(&visit, "Calendar", "Calendar", body).await
}

async fn body(visit: &Visit) -> Result<Markup, Trouble> {
    let now = visit.ui.tenure.now();
    let said = format!("{}T00:00:00Z", visit.said("week")).parse().unwrap_or(now);
    let monday = monday_of(said);
    let until = monday.after(DAY * 7);
    let days = days(visit, monday).await?;
    let hours = hours(&days, monday);
    let lines = lines(&days);
    let mut changes: Vec<(&str, &str)> = days
        .iter()
        .flat_map(|found| list(found, "clock_changes"))
        .map(|change| (text(change, "time_zone"), text(change, "at")))
        .collect();
    changes.sort_unstable();
    changes.dedup();
    let week = |monday: Timestamp| visit.at(&format!("calendar?week={}", day(monday)));
    Ok(html! {
        div.head {
            h1 { "Calendar" }
            p.faint { (day(monday)) " to " (day(monday.after(DAY * 6))) ", UTC" }
            div.acts {
                a href=(week(monday.before(DAY * 7))) { "← Week before" }
                a href=(visit.at("calendar")) { "This week" }
                a href=(week(until)) { "Week after →" }
            }
        }
        @for (zone, at) in changes { p.notice { "The clocks of " (zone) " change at " (exact(at)) "." } }
        @if lines.is_empty() {
            (empty("Nothing fires in this week", "A schedule is made with PUT /v1/schedules/NAME, or with tenure schedule add."))
        } @else {
            section.card { (heat(&hours, monday, now)) }
            section.card { (table(visit, &lines)) }
        }
    })
}

/// The Monday of the week, at midnight. 1970 began with a Thursday.
fn monday_of(at: Timestamp) -> Timestamp {
    let days = at.as_micros().div_euclid(micros(DAY));
    let monday = days - (days + 3).rem_euclid(7);
    Timestamp::from_micros(monday * micros(DAY)).unwrap_or(Timestamp::EPOCH)
}

fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

fn day(at: Timestamp) -> String {
    at.to_string().chars().take(10).collect()
}

/// What the contract tells of each half of a day: of so much it tells hour by hour, and counts what fires every few seconds.
async fn days(visit: &Visit, monday: Timestamp) -> Result<Vec<Value>, Trouble> {
    let mut found = Vec::new();
    for half in 0..14 {
        let (from, to) = (monday.after(DAY / 2 * half), monday.after(DAY / 2 * (half + 1)));
        let mut behind = String::new();
        for _ in 0..PAGES {
            let page = visit.get(&format!("/v1/calendar?from={from}&to={to}{behind}")).await?;
            let places = [("after_schedule", "next_schedule"), ("after_run", "next_run")];
            let next = places.map(|(name, key)| (name, text(&page, key).to_owned()));
            found.push(page);
            if next.iter().all(|(_, place)| place.is_empty()) {
                break;
            }
            let said = next.iter().filter(|(_, place)| !place.is_empty());
            behind = said.map(|(name, place)| format!("&{name}={}", encoded(place))).collect();
        }
    }
    Ok(found)
}

fn hours(days: &[Value], monday: Timestamp) -> Hours {
    let mut hours = [[0; 24]; 7];
    let mut add = |at: &str, fires: u64| {
        let Ok(at) = at.parse::<Timestamp>() else { return };
        let hour = (at.as_micros() - monday.as_micros()).div_euclid(HOUR);
        let Ok(hour) = usize::try_from(hour) else { return };
        if let Some(cell) = hours.get_mut(hour / 24).and_then(|day| day.get_mut(hour % 24)) {
            *cell += fires;
        }
    };
    for found in days {
        for schedule in list(found, "coming") {
            list(schedule, "slots").iter().for_each(|slot| add(text(slot, "at"), 1));
            list(schedule, "groups").iter().for_each(|group| spread(group, &mut add));
        }
        for past in list(found, "past") {
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
    let each = fires(group).div_ceil(u64::try_from(last - first + 1).unwrap_or(1));
    for hour in first..=last {
        let at = Timestamp::from_micros(hour * HOUR).unwrap_or(from);
        add(&at.to_string(), each);
    }
}

/// How often a group fires; what is too much to be counted is much.
fn fires(group: &Value) -> u64 {
    group["count"].as_u64().unwrap_or(MUCH)
}

fn lines(days: &[Value]) -> BTreeMap<&str, Line<'_>> {
    let mut lines: BTreeMap<&str, Line<'_>> = BTreeMap::new();
    for found in days {
        for schedule in list(found, "coming") {
            let line = lines.entry(text(schedule, "name")).or_default();
            let (slots, groups) = (list(schedule, "slots"), list(schedule, "groups"));
            line.schedule = text(schedule, "schedule");
            line.coming += slots.len() as u64 + groups.iter().map(fires).sum::<u64>();
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
    lines.retain(|_, line| line.ran + line.not_run + line.coming > 0);
    lines
}

fn heat(hours: &Hours, monday: Timestamp, now: Timestamp) -> Markup {
    let here = (now.as_micros() - monday.as_micros()).div_euclid(HOUR);
    html! {
        div.wide tabindex="0" role="region" aria-label="Fires by hour" {
            table.heat {
                caption { "Fires by hour" }
                thead { tr { td {} @for hour in 0..24 { th scope="col" { (format!("{hour:02}")) } } } }
                tbody { @for (at, (name, of_day)) in DAYS.iter().zip(hours).enumerate() {
                    tr {
                        th scope="row" { (name) }
                        @for (hour, fires) in of_day.iter().enumerate() {
                            @let is_now = i64::try_from(at * 24 + hour) == Ok(here);
                            td class=(density(*fires)) aria-current=[is_now.then_some("time")]
                                title=(format!("{name} {hour:02}:00, {}", sum(*fires))) {
                                @if *fires > 0 { (short(*fires)) }
                            }
                        }
                    }
                } }
            }
        }
        p.faint { "An empty hour is a free one. The hour that is now has a frame." }
    }
}

fn density(fires: u64) -> &'static str {
    ["", "d1", "d2", "d3", "d4"][DENSER.iter().filter(|from| fires >= **from).count()]
}

fn short(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..MUCH => format!("{}k", number / 1_000),
        _ => "∞".to_owned(),
    }
}

/// A sum, unless too much is in it to be counted.
fn sum(number: u64) -> String {
    if number < MUCH { count(number) } else { "very many".to_owned() }
}

fn table(visit: &Visit, lines: &BTreeMap<&str, Line<'_>>) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label="Schedules of this week" {
            table {
                caption { "Schedules of this week" }
                thead { tr {
                    th scope="col" { "Schedule" } th scope="col" { "Rule" } th.number scope="col" { "Ran" }
                    th.number scope="col" { "Did not run" } th.number scope="col" { "To come" } th scope="col" { "Next" }
                } }
                tbody { @for (name, line) in lines {
                    tr {
                        th scope="row" { a href=(visit.at(&format!("schedules/{}", encoded(name)))) { (name) } }
                        td { code { (line.schedule) } }
                        td.number { (count(line.ran)) }
                        td.number { span class=[(line.not_run > 0).then_some("failed")] { (count(line.not_run)) } }
                        td.number { (sum(line.coming)) }
                        td { (time(visit, line.next)) }
                    }
                } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_week_begins_with_its_monday() {
        for at in ["2026-11-23T00:00:00Z", "2026-11-25T12:00:00Z", "2026-11-29T23:59:59Z"] {
            assert_eq!(day(monday_of(at.parse().unwrap())), "2026-11-23", "{at}");
        }
        assert_eq!(day(monday_of("1970-01-05T00:00:00Z".parse().unwrap())), "1970-01-05");
    }

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
        let days = [found, wide];
        let hours = hours(&days, "2026-11-23T00:00:00Z".parse().unwrap());
        assert_eq!((hours[1][7], hours[6][23], hours[0][7]), (1, 360, 2));
        assert_eq!((hours[2][6], hours[2][7], hours[2][8], short(hours[2][9])), (5, 5, 0, "∞".to_owned()));
        let lines = lines(&days);
        assert_eq!((lines["a"].coming, lines["a"].not_run, lines["b"].coming), (1, 2, 360));
        assert_eq!((density(0), density(1), density(360)), ("", "d1", "d4"));
    }
}
