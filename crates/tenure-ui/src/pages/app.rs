//! An app: how it stands on each host, its runs or what it says, and its settings as the hosts have read them.

use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use super::apps::{began, flavour, is_singleton, place, set_of, standing, within, wrong};
use super::log_rows::{Rows, colourful};
use super::logs::{self, Lines};
use crate::asking::{Trouble, encoded};
use crate::layout;
use crate::parts::{self, between, button_with, list, proof, span, state, text, time};
use crate::unreadable;
use crate::visit::Visit;

/// Runs that are shown.
const RUNS: usize = 20;
/// Lines of a continuous one that are shown.
const LINES: usize = 300;

/// `GET apps/{sort}/{name}`
pub(crate) async fn page(visit: Visit, Path((sort, name)): Path<(String, String)>) -> Response {
    let body = body(&visit, &sort, &name).await;
    layout::page(&visit, &format!("App {name}"), "Apps", body).await
}

async fn body(visit: &Visit, sort: &str, name: &str) -> Result<Markup, Trouble> {
    let set = set_of(visit);
    let path = format!("/v1/apps/{}/{}", encoded(sort), encoded(name));
    let app = visit.get(&format!("{path}?set={}", encoded(&set))).await;
    let (runs, said) = match sort {
        "triggered" => (visit.get(&runs_of(&set, name)).await.unwrap_or_default(), Rows::new()),
        _ => (Value::Null, said(visit, &path, &set).await?),
    };
    let listed = runs;
    let runs = list(&listed, "items");
    let app = match app {
        // What it has done is there although nobody offers it any more.
        Err(trouble) if trouble.status == StatusCode::NOT_FOUND && !(runs.is_empty() && said.is_empty()) => {
            serde_json::json!({ "type": sort, "name": name, "hosts": [] })
        }
        other => other?,
    };
    let schedule = match app["kind"].as_str() {
        Some(kind) => visit.get(&format!("/v1/schedules/{}", encoded(kind))).await.unwrap_or_default(),
        None => Value::Null,
    };
    let last = match runs.first() {
        Some(run) => last_lines(visit, run).await,
        None => None,
    };
    Ok(html! {
        div #app data-live {
            div.head {
                div { h1 { (name) } p.faint { (flavour(&app)) @if is_singleton(&app) { ", on one host at a time" } } }
                (state(standing(&app)))
                (acts(visit, &set, &app).await)
            }
            @if list(&app, "hosts").is_empty() {
                p.notice.old { "No host runs this app now; its past runs are shown. It comes back when a host runs its folder." }
            }
            @for told in wrong(&app) { p.why { (told) } }
            (facts(visit, &set, &app, &schedule))
            section.card { (hosts(visit, &app)) }
            @if sort == "triggered" { section.card { (run_table(visit, name, &set, runs)) (unreadable::note(&listed)) } }
            @if let (Some(run), Some(lines)) = (runs.first(), &last) {
                section.card { (logs::shown(visit, text(run, "id"), &[], lines, "Log of the last run")) }
            }
            @if sort == "continuous" { section.card { (lines(&said)) } }
            (settings(&app))
        }
    })
}

fn runs_of(set: &str, name: &str) -> String {
    format!("/v1/jobs?kind={}&limit={RUNS}", encoded(&format!("{set}.{name}")))
}

/// What its last run has said.
async fn last_lines(visit: &Visit, run: &Value) -> Option<Lines> {
    let id = text(run, "id");
    let attempts = visit.get(&format!("/v1/jobs/{}/attempts", encoded(id))).await.unwrap_or_default();
    let delivery = list(&attempts, "items").last()?["delivery"].as_u64()?;
    Lines::last(visit, id, delivery).await.ok()
}

/// What is done with it. Each asks once more before it does something.
async fn acts(visit: &Visit, set: &str, app: &Value) -> Markup {
    let (sort, name) = (text(app, "type"), text(app, "name"));
    let is_stopped = !app["stopped"].is_null();
    let to = |act: &str| format!("apps/{sort}/{}/{act}", encoded(name));
    let may_change = visit.may("manage").await;
    let may_run = sort == "triggered" && !is_stopped && (may_change || visit.may("enqueue").await);
    if !may_run && !may_change {
        return html! {};
    }
    html! {
        div.acts {
            @if may_run { details.ask { summary { "Run…" } form.stack method="post" action=(visit.at(&to("run"))) {
                (proof(visit)) input type="hidden" name="set" value=(set);
                p { "Runs " strong { (name) } " now, on one host." }
                label { "Arguments, one per line, not parsed by a shell" textarea name="arguments" rows="2" spellcheck="false" {} }
                button.main data-does="run" { "Run now" }
            } } }
            @if may_change && is_stopped { (button_with(visit, &to("start"), "Start", &[("set", set)])) }
            @if may_change && !is_stopped { details.ask { summary { "Stop…" } form.stack method="post" action=(visit.at(&to("stop"))) {
                (proof(visit)) input type="hidden" name="set" value=(set);
                p { @if sort == "triggered" { "No host starts " strong { (name) } " until you start it again, neither on schedule nor on demand. Running jobs continue." }
                    @else { "Every host stops " strong { (name) } ", and does not start it until you start it again." } }
                label { "Reason, shown to others" input name="reason" autocomplete="off" maxlength="200"; }
                button.danger data-does="stop" { "Stop " (name) }
            } } }
        }
    }
}

fn facts(visit: &Visit, set: &str, app: &Value, schedule: &Value) -> Markup {
    let kind = text(app, "kind");
    html! {
        dl.facts {
            div { dt { "Set" } dd { a href=(visit.at(&within(set, "apps"))) { (set) } } }
            @if !kind.is_empty() {
                div { dt { "Job kind" } dd { a href=(visit.at(&format!("kinds/{}", encoded(kind)))) { (kind) } } }
            }
            @if schedule.is_object() {
                div { dt { "Schedule" } dd { a href=(visit.at(&format!("schedules/{}", encoded(kind)))) { (text(schedule, "description")) } } }
                div { dt { "Next run" } dd { @if schedule["paused"].is_null() { (time(visit, text(schedule, "next_run_at"))) } @else { "none while stopped" } } }
            } @else if let Some(says) = app["schedule"].as_str() { div { dt { "Schedule" } dd { (says) } } }
        }
    }
}

fn hosts(visit: &Visit, app: &Value) -> Markup {
    let (hosts, is_continuous) = (list(app, "hosts"), app["type"] == "continuous");
    html! {
        div.wide tabindex="0" role="region" aria-label="Hosts" { table {
            caption { "State by host" }
            thead { tr {
                th scope="col" { "Host" } th scope="col" { "State" } th scope="col" { "Since" }
                @if is_continuous { th.number scope="col" { "Restarts" } } th scope="col" { "Message" } th scope="col" { "Folder" }
            } }
            tbody {
                @for host in hosts { tr {
                    th scope="row" title=(text(host, "host")) { (text(host, "node")) }
                    td { (state(text(host, "state"))) }
                    td { (time(visit, text(host, "since"))) }
                    @if is_continuous { td.number { (host["restarts"]) } }
                    td.says { (text(host, "detail")) }
                    td { code { (text(host, "folder")) } }
                } }
                @if hosts.is_empty() { tr { td.faint colspan="6" { "No hosts." } } }
            }
        } }
    }
}

fn run_table(visit: &Visit, name: &str, set: &str, runs: &[Value]) -> Markup {
    let search = format!("kind:{set}.{name}");
    html! {
        div.wide tabindex="0" role="region" aria-label="Runs" { table.runs {
            caption { "Recent runs" }
            thead { tr {
                th scope="col" { "State" } th scope="col" { "Run" } th scope="col" { "Started" } th.number scope="col" { "Duration" }
                th.number scope="col" { "Attempt" } th scope="col" { "Requested by" } th scope="col" { "Message" }
            } }
            tbody {
                @for run in runs {
                    @let id = text(run, "id");
                    tr {
                        td { (state(parts::standing(run))) }
                        td { a.id href=(visit.at(&format!("jobs/{id}"))) title=(id) { (at_the_clock(visit, began(run))) } }
                        td { (time(visit, began(run))) }
                        td.number { (between(text(run, "started_at"), text(run, "finished_at")).map_or_else(|| "–".to_owned(), span)) }
                        td.number { (run["attempt"]) }
                        td { (run["args"]["by"].as_str().unwrap_or(if run["schedule"].is_string() { "schedule" } else { "–" })) }
                        td.says { @if parts::standing(run) == "lapsed" { "Host lost; the job is due again." } @else { (text(&run["error"], "detail")) } }
                    }
                }
                @if runs.is_empty() { tr { td.faint colspan="7" { "No runs yet, or none retained." } } }
            }
        } }
        @if runs.len() == RUNS { p.more { a href=(visit.at(&format!("jobs?q={}", encoded(&search)))) { "All runs →" } } }
    }
}

/// Ids of runs that one schedule has made look alike; by its time a person knows a run.
fn at_the_clock(visit: &Visit, at: &str) -> String {
    visit.exact(at).chars().take(19).collect()
}

/// What a continuous one has said last, on all hosts: when, on which one, and what.
async fn said(visit: &Visit, path: &str, set: &str) -> Result<Rows, Trouble> {
    let found = visit.get(&format!("{path}/lines?set={}&limit=100", encoded(set))).await.unwrap_or_default();
    let mut rows = Rows::new();
    for entry in list(&found, "items") {
        for line in list(entry, "lines").iter().filter_map(Value::as_str) {
            let (at, node) = (logs::clock(visit, text(entry, "at")), text(entry, "node"));
            let row = html! { span.faint { (at) " " (node) } " " (colourful(line)) "\n" };
            rows.add_last(visit, row, LINES)?;
        }
    }
    Ok(rows)
}

fn lines(said: &Rows) -> Markup {
    html! {
        h2 { "Output" }
        @if said.is_empty() { p.faint { "No output in the last week." } }
        @else {
            pre.logs data-tail tabindex="0" role="region" aria-label="Lines" { (said) }
        }
    }
}

/// The settings, once where all hosts have read the same.
fn settings(app: &Value) -> Markup {
    let mut read: Vec<(Vec<&str>, &Value)> = Vec::new();
    for host in list(app, "hosts") {
        let settings = &host["settings"];
        match read.iter_mut().find(|(_, known)| *known == settings) {
            Some((nodes, _)) => nodes.push(text(host, "node")),
            None => read.push((vec![text(host, "node")], settings)),
        }
    }
    read.retain(|(_, settings)| settings.as_object().is_some_and(|settings| !settings.is_empty()));
    let notes = list(app, "hosts").iter().flat_map(|host| list(host, "notes")).filter_map(Value::as_str);
    let mut notes: Vec<&str> = notes.collect();
    notes.sort_unstable();
    notes.dedup();
    html! {
        @if read.len() > 1 { p.notice.old { "Settings differ between hosts." } }
        @for (nodes, settings) in &read {
            section.card {
                h2 { "Settings on " (nodes.join(", ")) }
                dl.facts.settled { @for (name, value) in settings.as_object().into_iter().flatten() {
                    div { dt { code { (name) } } dd { (plain(name, value)) } }
                } }
                @for note in &notes { p.faint { "Ignored: " (note) } }
            }
        }
    }
}

/// A setting in a few words.
fn plain(name: &str, value: &Value) -> String {
    const SPANS: [&str; 7] = [
        "again_after",
        "idle_timeout",
        "max_lateness",
        "restart_time",
        "signal_after",
        "stopping_wait_time",
        "timeout",
    ];
    match value {
        Value::Null if SPANS.contains(&name) => "no limit".to_owned(),
        Value::Null => "none".to_owned(),
        Value::Bool(is_so) => if *is_so { "yes" } else { "no" }.to_owned(),
        Value::Number(seconds) if SPANS.contains(&name) => format!("{seconds} s"),
        Value::String(text) => text.clone(),
        Value::Array(all) if all.is_empty() => "none".to_owned(),
        Value::Array(all) => all
            .iter()
            .map(|one| one.as_str().map_or_else(|| one.to_string(), str::to_owned))
            .collect::<Vec<_>>()
            .join(", "),
        Value::Object(all) if all.is_empty() => "none".to_owned(),
        Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}

/// Where the app is whose runs are jobs of this kind in this queue; none if there is none.
pub(super) async fn of_kind(visit: &Visit, kind: &str, queue: &str) -> Option<(String, String)> {
    let name = kind.strip_prefix(queue)?.strip_prefix('.')?;
    visit.get(&format!("/v1/apps/triggered/{}?set={}", encoded(name), encoded(queue))).await.ok()?;
    Some((name.to_owned(), visit.at(&place(queue, "triggered", name))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_told_in_words() {
        let told = |name, value| plain(name, &value);
        assert_eq!(told("timeout", Value::Null), "no limit");
        assert_eq!(told("schedule", Value::Null), "none");
        assert_eq!(told("stopping_wait_time", serde_json::json!(30)), "30 s");
        assert_eq!(told("attempts", serde_json::json!(3)), "3");
        assert_eq!(told("env", serde_json::json!(["A", "B"])), "A, B");
        assert_eq!(told("overlap", serde_json::json!({ "allow": { "most": 3 } })), r#"{"allow":{"most":3}}"#);
    }
}
