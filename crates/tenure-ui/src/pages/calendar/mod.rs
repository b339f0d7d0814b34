//! A week of schedules hour by hour, or a month of them day by day: what was, what comes, and where there is room.

mod gathered;
mod hour;
mod month;
mod walls;

use std::collections::{BTreeMap, BTreeSet};

use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;
use tenure::schedule::Schedule;

use self::gathered::{Hours, Line, changes, constant, hours, lines, parts, uncounted};
use self::walls::{DAY, HOUR, date, day_of, month_of, said, wall, weekday};

pub(super) use self::walls::{instant, minute, shown_minute};

use crate::asking::{Trouble, encoded};
use crate::layout;
use crate::parts::{count, empty, span, text, time};
use crate::visit::Visit;

const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// From so many fires in an hour on it is shown as denser; in a day, from 24 times as many.
const DENSER: [u64; 4] = [1, 3, 10, 60];
const HOURS_OF_DAY: u64 = 24;

/// `GET calendar`
pub(crate) async fn page(visit: Visit) -> Response {
    let body = body(&visit).await;
    layout::page(&visit, "Calendar", "Calendar", body).await
}

/// What is looked at: midnights as the clocks show them, from the first to the one after the last.
struct Range {
    first: i64,
    last: i64,
    /// The midnight at which its month began, if it is a month.
    month: Option<i64>,
}

/// What was found of it.
struct Seen<'v> {
    hours: Hours,
    lines: BTreeMap<&'v str, Line<'v>>,
    /// Stretches in which nothing begins.
    free: Vec<(i64, i64)>,
    /// Who fires so often that it would hide all others.
    constant: BTreeSet<&'v str>,
    /// Of whom is not known how often they fire in some hours.
    uncounted: BTreeSet<&'v str>,
    /// Behind which schedule nobody was asked about any more; empty if all were.
    stopped: &'v str,
}

impl Range {
    fn week(wall: i64) -> Self {
        let first = day_of(wall) - weekday(wall) * DAY;
        Self { first, last: first + 7 * DAY, month: None }
    }

    /// Whole weeks, so that each row is one.
    fn month(wall: i64) -> Self {
        let month = month_of(wall);
        let end = month_of(month + 31 * DAY);
        let first = month - weekday(month) * DAY;
        let last = end + (7 - weekday(end)) % 7 * DAY;
        Self { first, last, month: Some(month) }
    }
}

async fn body(visit: &Visit) -> Result<Markup, Trouble> {
    let zone = &visit.likes.zone;
    let today = wall(zone, visit.ui.tenure.now());
    let (week, month) = (visit.said("week"), visit.said("month"));
    let chosen = hour::of(&visit.said("hour")).filter(|_| month.is_empty());
    let range = if month.is_empty() {
        Range::week(chosen.or_else(|| said(&week)).unwrap_or(today))
    } else {
        Range::month(said(&format!("{month}-01")).unwrap_or(today))
    };
    let begin = range.first.max(today - today.rem_euclid(HOUR) + HOUR);
    let instants = (instant(zone, range.first), instant(zone, range.last));
    // A month is counted by the hour where the schedules are: all their slots would be very many.
    let (month, week);
    let (found, seen): (&[Value], Seen<'_>) = if range.month.is_some() {
        month = month::asked(visit, instants.0, instants.1).await?;
        (&month.pages, month.seen(zone, (range.first, begin, range.last), instants.0))
    } else {
        week = parts(visit, instants.0, instants.1).await?;
        let constant = constant(&week);
        let free = hour::free(&hour::taken(&week, zone, &constant), begin, range.last);
        let hours = hours(&week, zone, range.first, &constant);
        let uncounted = uncounted(&week, &constant);
        (&week, Seen { hours, lines: lines(&week), free, constant, uncounted, stopped: "" })
    };
    let Seen { hours, lines, free, constant, uncounted, stopped } = seen;
    // The first of the longest that has not begun.
    let freest = free.into_iter().rev().max_by_key(|(from, to)| to - from);
    let cut_before = found.first().map_or("", |page| text(page, "cut_before"));
    let looked = match chosen {
        Some(hour) => Some(hour::section(visit, hour, today, &constant).await?),
        None => None,
    };
    Ok(html! {
        (head(visit, &range, today))
        @for (zone, at) in changes(found) { p.notice { "Clocks in " (zone) " change at " (visit.exact(at)) "." } }
        @if lines.is_empty() {
            (empty("No runs in this period", "Create a schedule here, in your program, or with `tenure schedule add`."))
            p.empty { a.button href=(visit.at("new-schedule")) { "New schedule" } }
        } @else {
            @if let Some(looked) = &looked { (looked) }
            section.card { @if range.month.is_some() { (month_table(visit, &hours, &range, today)) } @else { (heat(visit, &hours, &range, today)) }
                @if let Some((from, to)) = freest { (freest_said(visit, from, to)) }
                @if !cut_before.is_empty() { p.why { "Too many runs to count: those before " (visit.exact(cut_before)) " are left out. Open their week to see them." } }
                @if !constant.is_empty() { p.faint { "Not counted, because they run more than once a minute: "
                    (constant.iter().copied().collect::<Vec<_>>().join(", ")) "." } }
                @if !uncounted.is_empty() { p.faint { "These schedules run too often to count in some hours. Such an hour is not counted, and never shown as free: "
                    (uncounted.iter().copied().collect::<Vec<_>>().join(", ")) "." } }
                @if !stopped.is_empty() { p.why { "Only schedules up to " (stopped) ", by name, are counted. The longest free period is therefore unknown." } } }
            section.card { (table(visit, &lines)) }
        }
    })
}

fn head(visit: &Visit, range: &Range, today: i64) -> Markup {
    let week = |day: i64| visit.at(&format!("calendar?week={}", date(day)));
    let month = |day: i64| visit.at(&format!("calendar?month={}", &date(day)[..7]));
    html! {
        div.head {
            h1 { "Calendar" }
            p.faint {
                @match range.month {
                    Some(begun) => { (month_name(begun)) },
                    None => { (date(range.first)) " to " (date(range.last - DAY)) },
                }
                ", " (visit.likes.zone.name())
            }
            div.acts {
                @match range.month {
                    Some(begun) => {
                        a.button href=(visit.at("calendar")) { "Week view" }
                        a.button href=(month(begun - DAY)) { "← Previous" }
                        a.button href=(month(today)) { "This month" }
                        a.button href=(month(begun + 31 * DAY)) { "Next →" }
                    },
                    None => {
                        a.button href=(month(range.first + 3 * DAY)) { "Month view" }
                        a.button href=(week(range.first - 7 * DAY)) { "← Previous" }
                        a.button href=(visit.at("calendar")) { "This week" }
                        a.button href=(week(range.last)) { "Next →" }
                    },
                }
            }
        }
    }
}

fn month_name(begun: i64) -> String {
    let date = date(begun);
    let month = date.get(5..7).and_then(|month| month.parse::<usize>().ok()).unwrap_or(1);
    format!("{} {}", MONTHS.get(month - 1).copied().unwrap_or_default(), date.get(..4).unwrap_or_default())
}

/// A day in a few letters, such as `Tue 24 Nov`.
fn day_name(day: i64) -> String {
    let date = date(day);
    let part = |range: std::ops::Range<usize>| date.get(range).and_then(|part| part.parse::<usize>().ok());
    let name = usize::try_from(weekday(day)).ok().and_then(|at| DAYS.get(at)).copied().unwrap_or_default();
    let month = MONTHS.get(part(5..7).unwrap_or(1) - 1).and_then(|name| name.get(..3)).unwrap_or_default();
    format!("{name} {} {month}", part(8..10).unwrap_or(1))
}

/// Where most time lies in which nothing begins.
fn freest_said(visit: &Visit, from: i64, to: i64) -> Markup {
    let other = day_of(to) != day_of(from) && to != day_of(from) + DAY;
    html! {
        p #freest { "Longest free period: " a href=(visit.at(&format!("calendar?hour={}", hour::named(from)))) {
            (day_name(day_of(from))) ", " (hour::clock(from)) " to " @if other { (day_name(day_of(to))) ", " } (hour::clock(to)) }
            ", " (span((to - from) as f64 / 1_000_000.0)) " without a run." }
    }
}

fn heat(visit: &Visit, hours: &Hours, range: &Range, today: i64) -> Markup {
    html! {
        h2 { "Runs by hour" }
        div.wide tabindex="0" role="region" aria-label="Runs by hour" {
            table.heat {
                caption.sr { "Runs by hour" }
                thead { tr { td {} @for hour in 0..24 { th scope="col" { (format!("{hour:02}")) } } } }
                tbody { @for at in 0..7_i64 {
                    @let name = day_name(range.first + at * DAY);
                    tr {
                        th scope="row" { (name) }
                        @for hour in 0..24 {
                            @let fires = hours.at(at, hour);
                            @let begin = range.first + at * DAY + hour * HOUR;
                            @let is_now = begin == today - today.rem_euclid(HOUR);
                            @let is_over = begin + HOUR <= today;
                            td class=(if is_over { "past" } else { density(fires, 1) }) aria-current=[is_now.then_some("time")] {
                                (cell(visit, begin, fires, is_over))
                            }
                        }
                    }
                } }
            }
        }
        p.faint { "Select an hour to see its minutes. Gray: past. Empty: free. Framed: now. Times in " (visit.likes.zone.name()) "." }
    }
}

/// How often something fires in an hour, leading to when. In one that is over and had nothing there is nothing to see.
fn cell(visit: &Visit, begin: i64, fires: u64, is_over: bool) -> Markup {
    let when = format!("{}, {}", day_name(day_of(begin)), hour::clock(begin));
    let says = match (fires, is_over) {
        (0, true) => return html! { span title={ (when) ", no runs" } { "\u{a0}" } },
        (0, false) => format!("{when}, free"),
        (1, _) => format!("{when}, 1 run"),
        _ => format!("{when}, {} runs", count(fires)),
    };
    html! {
        a href=(visit.at(&format!("calendar?hour={}#hour", hour::named(begin)))) title=(says) aria-label=(says) {
            @if fires > 0 { (short(fires)) } @else { "\u{a0}" }
        }
    }
}

fn month_table(visit: &Visit, hours: &Hours, range: &Range, today: i64) -> Markup {
    let weeks = (range.last - range.first) / DAY / 7;
    html! {
        h2 { "Runs by day" }
        div.wide tabindex="0" role="region" aria-label="Runs by day" {
            table.month {
                caption.sr { "Runs by day" }
                thead { tr { @for name in DAYS { th scope="col" { (name) } } } }
                tbody { @for week in 0..weeks { tr { @for day in week * 7..week * 7 + 7 {
                    @let at = range.first + day * DAY;
                    @let fires = hours.of_day(day);
                    @let is_over = at + DAY <= today;
                    @let is_other = range.month.is_some_and(|month| month_of(at) != month);
                    td class={ (if is_over { "past" } else { density(fires, HOURS_OF_DAY) }) (if is_other { " other" } else { "" }) }
                        aria-current=[(at == day_of(today)).then_some("date")] title=(format!("{}, {} {}", date(at), count(fires), if fires == 1 { "run" } else { "runs" })) {
                        a.day href=(visit.at(&format!("calendar?week={}", date(at)))) { (date(at).get(8..).unwrap_or_default()) }
                        @if fires > 0 { (short(fires)) }
                    }
                } } } }
            }
        }
        p.faint { "Select a day to see its week. Framed: today." }
    }
}

/// How dense so many fires in so many hours are. One is always seen.
fn density(fires: u64, hours: u64) -> &'static str {
    let steps = DENSER.iter().filter(|from| fires >= **from * hours).count();
    ["", "d1", "d2", "d3", "d4"][steps.max(usize::from(fires > 0))]
}

fn short(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => format!("{}k", number / 1_000),
        _ => format!("{}M", number / 1_000_000),
    }
}

fn table(visit: &Visit, lines: &BTreeMap<&str, Line<'_>>) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label="Schedules in this period" {
            table {
                caption { "Schedules in this period" }
                thead { tr {
                    th scope="col" { "Schedule" } th scope="col" { "Rule" } th.number scope="col" { "Ran" }
                    th.number scope="col" { "Skipped or missed" } th.number scope="col" { "Upcoming" } th scope="col" { "Next run" }
                } }
                tbody { @for (name, line) in lines {
                    tr {
                        th scope="row" { a href=(visit.at(&format!("schedules/{}", encoded(name)))) { (name) } }
                        td title=(line.schedule) { (in_words(line.schedule)) }
                        td.number { (count(line.ran)) }
                        td.number { span class=[(line.not_run > 0).then_some("failed")] { (count(line.not_run)) } }
                        td.number { @if line.is_uncounted { "not counted" } @else { (count(line.coming)) } }
                        td { (time(visit, line.next)) }
                    }
                } }
            }
        }
    }
}

/// A rule as people say it; as it is written, if that cannot be read here.
fn in_words(rule: &str) -> String {
    rule.parse::<Schedule>().map_or_else(|_| rule.to_owned(), |schedule| schedule.describe())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_told_in_words() {
        let schedule: Schedule = "daily 02:00".parse().unwrap();
        assert_eq!(in_words(&schedule.to_string()), schedule.describe());
        assert_eq!(in_words("whatever comes later"), "whatever comes later");
    }

    #[test]
    fn a_month_is_whole_weeks() {
        let range = Range::month(said("2026-11-23").unwrap());
        assert_eq!((date(range.first), date(range.last)), ("2026-10-26".to_owned(), "2026-12-07".to_owned()));
        let exact = Range::month(said("2027-02-10").unwrap());
        assert_eq!((date(exact.first), date(exact.last)), ("2027-02-01".to_owned(), "2027-03-01".to_owned()));
        assert_eq!(month_name(said("2027-02-01").unwrap()), "February 2027");
        assert_eq!(day_name(said("2026-11-24").unwrap()), "Tue 24 Nov");
    }

    #[test]
    fn more_is_denser() {
        assert_eq!((density(0, 1), density(1, 1), density(360, 1)), ("", "d1", "d4"));
        assert_eq!(
            (density(0, 24), density(1, 24), density(30, 24), density(10_000, 24)),
            ("", "d1", "d1", "d4")
        );
        assert_eq!(
            (short(999), short(1_000), short(2_500_000)),
            ("999".to_owned(), "1k".to_owned(), "2M".to_owned())
        );
    }
}
