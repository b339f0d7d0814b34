//! Programs of folders that hosts offer to run: how each stands, when it runs next, and why one does not.

use std::collections::BTreeMap;

use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use crate::asking::{Trouble, encoded};
use crate::layout;
use crate::parts::{self, empty, list, state, text, time};
use crate::visit::Visit;

/// What a set is called if nobody says it.
pub(crate) const SET: &str = "apps";
/// Apps on one page.
const SHOWN: usize = 50;
/// The latest jobs of the set, among which the last run of nearly each is.
const LATEST: usize = 200;
/// Pages of schedules that are looked through.
const PAGES: usize = 20;

/// Flavours of apps, as they are told, and as they stand in an address.
const FLAVOURS: [(&str, &str); 4] = [
    ("scheduled", "scheduled"),
    ("on demand", "on-demand"),
    ("continuous", "continuous"),
    ("failing", "in-trouble"),
];

/// `GET apps`
pub(crate) async fn page(visit: Visit) -> Response {
    let body = body(&visit).await;
    layout::page(&visit, "Apps", "Apps", body).await
}

/// The set that is looked at.
pub(crate) fn set_of(visit: &Visit) -> String {
    let said = visit.said("set");
    if said.is_empty() { SET.to_owned() } else { said }
}

/// The address of a page of apps within a set.
pub(crate) fn within(set: &str, page: &str) -> String {
    if set == SET {
        return page.to_owned();
    }
    let sign = if page.contains('?') { '&' } else { '?' };
    format!("{page}{sign}set={}", encoded(set))
}

/// The address of an app's page.
pub(crate) fn place(set: &str, sort: &str, name: &str) -> String {
    within(set, &format!("apps/{sort}/{}", encoded(name)))
}

/// An app, and what is known of it beside.
struct Known<'v> {
    app: &'v Value,
    last: Option<&'v Value>,
    schedule: Option<&'v Value>,
}

impl Known<'_> {
    fn flavour(&self) -> &'static str {
        flavour(self.app)
    }

    fn is_in_trouble(&self) -> bool {
        let has_failed = self.last.is_some_and(|run| run["state"] == "failed");
        is_stuck(self.app) || self.app["stopped"].is_null() && has_failed
    }

    fn is_of(&self, chosen: &str) -> bool {
        match chosen {
            "" => true,
            "in-trouble" => self.is_in_trouble(),
            _ => FLAVOURS.contains(&(self.flavour(), chosen)),
        }
    }
}

/// Whether it does not run on a host where it should, and nobody has stopped it.
pub(super) fn is_stuck(app: &Value) -> bool {
    let hosts = list(app, "hosts");
    app["stopped"].is_null() && hosts.iter().any(|host| matches!(text(host, "state"), "wrong" | "resting"))
}

/// What makes an app run.
pub(crate) fn flavour(app: &Value) -> &'static str {
    match (text(app, "type"), app["schedule"].is_string()) {
        ("continuous", _) => "continuous",
        (_, true) => "scheduled",
        (_, false) => "on demand",
    }
}

/// How an app stands, over all hosts: what is most alive counts.
pub(crate) fn standing(app: &Value) -> &'static str {
    const ALIVE: [&str; 8] =
        ["running", "starting", "stopping", "resting", "ready", "standing_by", "lost", "wrong"];
    if !app["stopped"].is_null() {
        return "stopped";
    }
    let hosts = list(app, "hosts");
    let among = |word: &&&str| hosts.iter().any(|host| host["state"] == **word);
    ALIVE.iter().find(among).copied().unwrap_or(if hosts.is_empty() { "no host" } else { "stopped" })
}

/// What is wrong with an app and why, in sentences.
pub(crate) fn wrong(app: &Value) -> Vec<String> {
    let mut told = Vec::new();
    if let Some(reason) = app["stopped"].as_str() {
        told.push(if reason.is_empty() {
            "Stopped by a user.".to_owned()
        } else {
            format!("Stopped: {reason}")
        });
    }
    for host in list(app, "hosts") {
        let (node, detail) = (text(host, "node"), text(host, "detail"));
        match text(host, "state") {
            "wrong" => told.push(format!("Cannot run on {node}: {detail}")),
            "lost" => told.push(format!("Lost on {node}: its lease has ended")),
            "resting" => told.push(format!("Waiting to restart on {node}: {detail}")),
            _ => {}
        }
    }
    told
}

async fn body(visit: &Visit) -> Result<Markup, Trouble> {
    let (set, search, chosen) = (set_of(visit), visit.said("q"), visit.said("of"));
    let found = visit.get(&format!("/v1/apps?set={}", encoded(&set))).await?;
    let (runs, schedules) = (last_runs(visit, &set, &found).await, schedules(visit, &set).await);
    let all = list(&found, "items").iter().filter(|app| text(app, "name").contains(&search));
    let all: Vec<Known<'_>> = all
        .map(|app| {
            let kind = text(app, "kind");
            Known { app, last: runs.get(kind), schedule: schedules.get(kind) }
        })
        .collect();
    let behind = visit.said("behind");
    let key = |known: &Known<'_>| format!("{}/{}", text(known.app, "type"), text(known.app, "name"));
    let meant: Vec<&Known<'_>> = all.iter().filter(|known| known.is_of(&chosen)).collect();
    let first = meant.iter().position(|known| behind.is_empty() || order(&key(known)) > order(&behind));
    let rest = first.and_then(|first| meant.get(first..)).unwrap_or_default();
    let shown = rest.get(..SHOWN).unwrap_or(rest);
    let next = (rest.len() > shown.len()).then(|| shown.last().map(|known| key(known))).flatten();
    let to = |of: &str, behind: &str| {
        let behind = if behind.is_empty() { String::new() } else { format!("&behind={}", encoded(behind)) };
        visit.at(&within(&set, &format!("apps?of={of}&q={}{behind}", encoded(&search))))
    };
    Ok(html! {
        div.head { h1 { "Apps" } p.faint { @if set == SET { "programs that hosts run from their folders" } @else { "set " (set) } } }
        (searched(visit, &set, &search, &chosen))
        nav.tabs #tabs data-live aria-label="App types" {
            a href=(to("", "")) aria-current=[chosen.is_empty().then_some("true")] { "all " span.badge { (all.len()) } }
            @for (name, address) in FLAVOURS {
                @let many = all.iter().filter(|known| known.is_of(address)).count();
                a href=(to(address, "")) aria-current=[(chosen == address).then_some("true")] { (name) " " span.badge { (many) } }
            }
        }
        div #list data-live {
            @if list(&found, "items").is_empty() { (nothing(&set)) }
            @else if shown.is_empty() { (empty("No matching apps", "Try another filter or a wider search.")) }
            @else { (table(visit, &set, shown)) }
        }
        @if let Some(next) = next { p.more { a rel="next" href=(to(&chosen, &next)) { "More →" } } }
    })
}

/// Triggered ones come first.
fn order(key: &str) -> (bool, &str) {
    (!key.starts_with("triggered/"), key)
}

fn searched(visit: &Visit, set: &str, search: &str, chosen: &str) -> Markup {
    html! {
        form.search method="get" action=(visit.at("apps")) role="search" {
            label.sr for="q" { "Search apps by name" }
            input #q name="q" type="search" value=(search) placeholder="app name" autocomplete="off" spellcheck="false";
            label.sr for="set" { "Set" }
            input.short #set name="set" value=(set) title="Set of apps, as in tenure run --set" required autocomplete="off" spellcheck="false";
            @if !chosen.is_empty() { input type="hidden" name="of" value=(chosen); }
            button { "Search" }
        }
    }
}

fn nothing(set: &str) -> Markup {
    html! {
        div.empty {
            h2 { "No apps yet" }
            p { "Run the programs of a folder on this or any other host, as set " code { (set) } ":" }
            p { code { @if set == SET { "tenure run ./jobs --db …" } @else { "tenure run ./jobs --set " (set) " --db …" } } }
            p { "The apps of a lost host disappear after a minute." }
        }
    }
}

fn table(visit: &Visit, set: &str, shown: &[&Known<'_>]) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label="Apps" { table.rows {
            caption.sr { "Apps by name, triggered ones first" }
            thead { tr {
                th scope="col" { "App" } th scope="col" { "State" } th scope="col" { "Schedule" } th scope="col" { "Last run" }
                th scope="col" { "Next run" } th scope="col" { "Hosts" } th scope="col" { "Problem" }
            } }
            tbody { @for known in shown { (row(visit, set, known)) } }
        } }
    }
}

fn row(visit: &Visit, set: &str, known: &Known<'_>) -> Markup {
    let (app, sort, name) = (known.app, text(known.app, "type"), text(known.app, "name"));
    let failed = known.last.filter(|run| run["state"] == "failed").map(|run| text(&run["error"], "detail"));
    let told = wrong(app).into_iter().next().or(failed.map(|why| format!("Last run failed: {why}")));
    html! {
        tr data-key={ (sort) "/" (name) } {
            th scope="row" { a href=(visit.at(&place(set, sort, name))) { (name) } }
            td { (state(standing(app))) }
            td title=(text(app, "schedule")) { (when(known)) }
            td { @match known.last {
                Some(run) => { a.plain href=(visit.at(&format!("jobs/{}", text(run, "id")))) { (state(parts::standing(run))) } " " span.faint { (time(visit, began(run))) } },
                None => { span.faint { "–" } },
            } }
            td { (time(visit, known.schedule.map_or("", |schedule| text(schedule, "next_run_at")))) }
            td.nodes { (nodes(app)) }
            td.says title=[told.as_deref()] { (told.as_deref().unwrap_or_default()) }
        }
    }
}

/// When a run began, or was asked for if it has not.
pub(crate) fn began(run: &Value) -> &str {
    run["started_at"].as_str().unwrap_or(text(run, "created_at"))
}

/// What makes it run, in a few words.
fn when(known: &Known<'_>) -> String {
    let says = known.schedule.map(|schedule| text(schedule, "description")).filter(|says| !says.is_empty());
    match known.flavour() {
        "continuous" if is_singleton(known.app) => "continuous, on one host".to_owned(),
        "continuous" => "continuous".to_owned(),
        "scheduled" => says.unwrap_or(text(known.app, "schedule")).to_owned(),
        _ => "on demand".to_owned(),
    }
}

pub(crate) fn is_singleton(app: &Value) -> bool {
    list(app, "hosts").iter().any(|host| host["settings"]["is_singleton"] == true)
}

fn nodes(app: &Value) -> Markup {
    let hosts = list(app, "hosts");
    html! {
        @match hosts {
            [] => { span.faint { "none" } },
            [one] => { (text(one, "node")) },
            [one, other] => { (text(one, "node")) ", " (text(other, "node")) },
            [one, ..] => { (text(one, "node")) " " span.faint title=(hosts.iter().map(|host| text(host, "node")).collect::<Vec<_>>().join(", ")) { "and " (hosts.len() - 1) " more" } },
        }
    }
}

/// The last run of each triggered app by its kind: of nearly all from one look, of the others one by one. Whatever has no job
/// is not asked for.
async fn last_runs(visit: &Visit, set: &str, found: &Value) -> BTreeMap<String, Value> {
    let latest = visit.get(&format!("/v1/jobs?queue={}&limit={LATEST}", encoded(set))).await;
    let mut runs = BTreeMap::new();
    for run in latest.as_ref().map_or(&[][..], |latest| list(latest, "items")) {
        runs.entry(text(run, "kind").to_owned()).or_insert_with(|| run.clone());
    }
    if has_all(&latest) {
        return runs;
    }
    let kinds = visit.all("/v1/kinds").await.unwrap_or_default();
    let has_run = |kind: &str| list(&kinds, "items").iter().any(|known| known["kind"] == kind);
    let missing = list(found, "items").iter().map(|app| text(app, "kind"));
    let missing: Vec<&str> = missing
        .filter(|kind| !kind.is_empty() && !runs.contains_key(*kind) && has_run(kind))
        .take(SHOWN)
        .collect();
    for kind in missing {
        let mut last =
            visit.get(&format!("/v1/jobs?kind={}&limit=1", encoded(kind))).await.unwrap_or_default();
        if let Some(run) = last["items"].get_mut(0) {
            runs.insert(kind.to_owned(), run.take());
        }
    }
    runs
}

/// Returns `true` if a list was answered and there is no more of it. A page of large jobs ends before its limit.
fn has_all(list: &Result<Value, Trouble>) -> bool {
    list.as_ref().is_ok_and(|list| list["next_cursor"].is_null())
}

/// The schedules of the set by their names.
async fn schedules(visit: &Visit, set: &str) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    let mut cursor = String::new();
    for _ in 0..PAGES {
        let path = format!("/v1/schedules?prefix={}.&limit=100{cursor}", encoded(set));
        let Ok(page) = visit.get(&path).await else { break };
        all.extend(list(&page, "items").iter().map(|one| (text(one, "name").to_owned(), one.clone())));
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={}", encoded(next));
    }
    all
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_that_was_refused_is_no_list_without_more() {
        assert!(has_all(&Ok(json!({ "items": [], "next_cursor": null }))));
        assert!(!has_all(&Ok(json!({ "items": [{}], "next_cursor": "7" }))));
        assert!(!has_all(&Err(Trouble::new(StatusCode::TOO_MANY_REQUESTS, "Quota exceeded", ""))));
    }
}
