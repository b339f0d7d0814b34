//! A job: why it is where it is, its attempts, what it was given and what it said.

use axum::extract::Path;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use super::app::of_kind;
use super::logs::{self, Lines, Sought};
use super::{copied, job_new, timeline};
use crate::acts::back;
use crate::asking::{Trouble, encoded};
use crate::ids;
use crate::layout;
use crate::masked::HIDDEN;
use crate::parts::{
    self, between, button, json, json_of, list, part, proof, short, span, state, text, time, unread, whole_id,
};
use crate::said::sentence;
use crate::tree::written;
use crate::visit::Visit;

/// `GET jobs/{id}`
pub(crate) async fn page(visit: Visit, Path(id): Path<String>) -> Response {
    match ids::meant(&visit, &id).await.as_slice() {
        [] => {}
        [only] => return back(&visit.at(&format!("jobs/{only}"))),
        _ => return back(&visit.at(&format!("jobs?q={}", encoded(&id)))),
    }
    let body = body(&visit, &id, Shown::Usual).await;
    layout::page(&visit, &format!("Job {id}"), "Jobs", body).await
}

/// `POST jobs/{id}/reveal`: the same with what is hidden on it, for this once.
pub(crate) async fn revealed(visit: Visit, id: &str) -> Response {
    let body = body(&visit, id, Shown::Revealed).await;
    layout::page(&visit, &format!("Job {id}"), "Jobs", body).await
}

/// How much of a job is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Usual,
    /// Also what is hidden; that somebody was shown it is written down by the contract.
    Revealed,
}

async fn body(visit: &Visit, id: &str, shown: Shown) -> Result<Markup, Trouble> {
    let path = format!("/v1/jobs/{}", encoded(id));
    let (asked, is_live) = match shown {
        Shown::Usual => ("", Some("")),
        // What is shown once is not asked for again and again.
        Shown::Revealed => ("?reveal=true", None),
    };
    let job = visit.get(&format!("{path}{asked}")).await?;
    let why = visit.get(&format!("{path}/explain")).await;
    let attempts = visit.get(&format!("{path}/attempts{asked}")).await;
    let acts = visit.may("manage").await;
    let hides = is_live.is_some() && visit.has("manage").await && has_hidden(&job);
    let another = !job_new::is_reserved(&job) && job_new::may(visit).await;
    let (standing, tried) =
        (text(&job, "state"), attempts.as_ref().map_or(&[][..], |all| list(all, "items")));
    let delivery = logs::wanted(visit, tried);
    let lines = Lines::sought(visit, id, delivery, &Sought::of(visit), visit.said("lines") == "all").await;
    let app = of_kind(visit, text(&job, "kind"), text(&job, "queue")).await;
    let now = visit.ui.tenure.now().to_string();
    Ok(html! {
        @if is_live.is_none() {
            p.notice { "Hidden values are shown this once, except in the log. The audit log records that you saw them. "
                a href=(visit.at(&format!("jobs/{}", encoded(id)))) { "Hide them again" } }
        }
        div #job data-live=[is_live] {
            div.head {
                div { h1 { (text(&job, "kind")) } (whole_id("job-id", id)) }
                (state(parts::standing(&job)))
                div.acts {
                    @if acts { (buttons(visit, id, &job)) }
                    @if another { a.button href=(visit.at(&format!("new-job?like={}", encoded(id)))) { "Duplicate" } }
                    @if hides { (revealing(visit, id)) }
                }
            }
            (part(&why, |why| html! { p.why { (sentence(visit, &visit.likes.zone, text(why, "detail"))) } }))
            @if let Some(left) = unused(&job) {
                p.faint { "It is not retried, although " (left) (if left == 1 { " attempt was" } else { " attempts were" }) " left: the error is final." }
            }
            @if let Some(fraction) = job["progress"]["fraction"].as_f64().filter(|_| standing == "running") {
                p.progress {
                    progress max="1" value=(fraction) aria-label="Progress" {}
                    " " (format!("{:.0} %", fraction * 100.0)) " " (text(&job["progress"], "message"))
                    @if let Some(left) = left(fraction, text(&job, "started_at"), &now) { span.faint { ", about " (span(left)) " left" } }
                }
            }
            (timeline::chart(visit, &job, tried, &now))
            (facts(visit, &job, app.as_ref()))
            @if job["error"].is_object() {
                section.card { h2 { (if standing == "succeeded" { "Last error before success" } else { "Error" }) } pre.error tabindex="0" { code { (text(&job["error"], "detail")) } } }
            }
            section.card { (part(&attempts, |all| html! { div.wide tabindex="0" role="region" aria-label="Attempts" { (attempt_table(visit, list(all, "items"))) } })) }
            div.columns {
                section.card { h2 { "Args" } (json_of(&job, "args")) }
                section.card { h2 { "Result" } (json_of(&job, "result")) }
                @if job["meta"].as_object().is_some_and(|meta| !meta.is_empty()) {
                    section.card { h2 { "Metadata" } (json(&job["meta"])) }
                }
            }
        }
        section.card { @match &lines {
            Ok(lines) => {
                @if lines.has_some() { (logs::search(visit, id, delivery)) }
                div #said data-live=[is_live] { (logs::shown(visit, id, tried, lines, "Logs")) }
            },
            Err(trouble) => { h2 { "Logs" } (unread(trouble)) },
        } }
        (copied::of_job(visit, &job))
    })
}

/// Attempts that a job had left when it failed for good.
fn unused(job: &Value) -> Option<u64> {
    let left = job["max_attempts"].as_u64()?.checked_sub(job["attempt"].as_u64()?)?;
    Some(left).filter(|left| *left > 0 && job["state"] == "failed" && job["error"].is_object())
}

/// How long an attempt still takes, if it goes on as it has; of its first moments nothing is said.
fn left(fraction: f64, since: &str, now: &str) -> Option<f64> {
    let so_far = between(since, now).filter(|so_far| *so_far >= 1.0 && (0.02..1.0).contains(&fraction))?;
    Some(so_far * (1.0 - fraction) / fraction)
}

fn buttons(visit: &Visit, id: &str, job: &Value) -> Markup {
    let standing = text(job, "state");
    let act =
        |what: &str, label: &str, class: &str| button(visit, &format!("jobs/{id}/{what}"), label, class);
    let ended = matches!(standing, "succeeded" | "failed" | "cancelled");
    html! {
        @if ended { (act("retry", "Retry", "")) (forgotten(visit, id)) }
        @else {
            @if standing == "scheduled" { (act("run-now", "Run now", "")) (called_off(visit, id, job)) }
            @else { (act("cancel", "Cancel job", "danger")) }
        }
    }
}

/// A job that waits for its time would be due at once if it were done again, so its end cannot be taken back: what is meant is
/// said before.
fn called_off(visit: &Visit, id: &str, job: &Value) -> Markup {
    html! {
        details.ask { summary.danger { "Cancel…" } form.stack method="post" action=(visit.at(&format!("jobs/{id}/cancel"))) {
            (proof(visit))
            p { (text(job, "kind")) ", due " (time(visit, text(job, "run_at"))) ", will not run. Clients that wait for its result are notified at once. This cannot be undone." }
            button.danger data-does="cancel" { "Cancel job" }
        } }
    }
}

/// Whether something of it is hidden.
fn has_hidden(job: &Value) -> bool {
    ["args", "result", "meta", "error"].iter().any(|part| written(job, part).contains(HIDDEN))
}

/// What is hidden is shown to whoever asks for it and may: it is written down.
fn revealing(visit: &Visit, id: &str) -> Markup {
    html! {
        details.ask { summary { "Reveal…" } form.stack method="post" action=(visit.at(&format!("jobs/{}/reveal", encoded(id)))) {
            (proof(visit))
            p { "Shows the hidden values of this job once. The audit log records that you saw them." }
            button { "Reveal hidden values" }
        } }
    }
}

/// What cannot be undone is asked for twice.
fn forgotten(visit: &Visit, id: &str) -> Markup {
    html! {
        details.ask { summary { "Delete…" } form.stack method="post" action=(visit.at(&format!("jobs/{id}/delete"))) {
            (proof(visit))
            p { "Deletes the job with its args, result, attempts and log. This cannot be undone." }
            button.danger data-does="delete" { "Delete job" }
        } }
    }
}

fn facts(visit: &Visit, job: &Value, app: Option<&(String, String)>) -> Markup {
    let (queue, kind) = (text(job, "queue"), text(job, "kind"));
    html! {
        dl.facts {
            div { dt { "Queue" } dd { a href=(visit.at(&format!("queues/{}", encoded(queue)))) { (queue) } } }
            div { dt { "Kind" } dd { a href=(visit.at(&format!("kinds/{}", encoded(kind)))) { (kind) } } }
            @if let Some((name, place)) = app { div { dt { "App" } dd { a href=(place) { (name) } } } }
            @if let Some(schedule) = job["schedule"].as_str() {
                div { dt { "Schedule" } dd { a href=(visit.at(&format!("schedules/{}", encoded(schedule)))) { (schedule) } } }
            }
            div { dt { "Attempt" } dd { (job["attempt"]) @if let Some(most) = job["max_attempts"].as_u64() { " of " (most) } } }
            div { dt { "Priority" } dd { (job["priority"]) } }
            @for (label, key) in [
                ("Created", "created_at"), ("Due", "run_at"), ("Started", "started_at"), ("Finished", "finished_at"),
                ("Cancel requested", "cancel_requested_at"), ("Retained until", "expires_at"),
            ] {
                @if job[key].is_string() { div { dt { (label) } dd { (time(visit, text(job, key))) } } }
            }
            @if job["lease"].is_object() {
                div { dt { "Worker" } dd.id { a href=(visit.at(&format!("workers/{}", encoded(text(&job["lease"], "worker_id"))))) { (short(text(&job["lease"], "worker_id"))) }
                    @if job["lease"]["lapsed"] == true { " (lost)" } } }
                div { dt { "Fencing token" } dd { (text(&job["lease"], "fence")) } }
            }
            @if let Some(most) = job["timeout_seconds"].as_f64() { div { dt { "Timeout per attempt" } dd { (span(most)) } } }
            @if job["ordering_key"].is_string() { div { dt { "Ordering key" } dd { (text(job, "ordering_key")) } } }
            @if job["limit_key"].is_string() {
                div { dt { "Limit key" } dd {
                    (text(job, "limit_key"))
                    @if let Some(most) = job["limit_max_running"].as_u64() { " (at most " (most) " running)" }
                } }
            }
            @if job["share_key"].is_string() { div { dt { "Share key" } dd { (text(job, "share_key")) } } }
            div { dt { "Events" } dd {
                a href=(visit.at(&format!("events?of=jobs&about={}", encoded(text(job, "id"))))) { "this job" } ", "
                a href=(visit.at(&format!("events?of=jobs&queue={}&kind={}", encoded(queue), encoded(kind)))) { "its kind" } } }
            @if !list(job, "tags").is_empty() {
                div { dt { "Tags" } dd { @for tag in list(job, "tags").iter().filter_map(Value::as_str) {
                    a.tag href=(visit.at(&format!("jobs?q={}", encoded(&format!("tag:{tag}"))))) { (tag) } " " } } }
            }
        }
    }
}

fn attempt_table(visit: &Visit, attempts: &[Value]) -> Markup {
    html! {
        table {
            caption { "Attempts" }
            thead { tr {
                th scope="col" { "No." } th scope="col" { "Outcome" } th scope="col" { "Started" }
                th.number scope="col" { "Duration" } th scope="col" { "Worker" } th scope="col" { "Error" }
            } }
            tbody {
                @for attempt in attempts {
                    tr {
                        td { (attempt["attempt"]) }
                        td { (state(attempt["outcome"].as_str().unwrap_or("running"))) }
                        td.slot { (visit.exact(text(attempt, "started_at"))) }
                        td.number {
                            (between(text(attempt, "started_at"), text(attempt, "finished_at")).map_or_else(|| "–".to_owned(), span))
                        }
                        @let worker = text(attempt, "worker_id");
                        td { a.id href=(visit.at(&format!("workers/{}", encoded(worker)))) title=(worker) { (short(worker)) } }
                        td.says { (text(attempt, "error")) }
                    }
                }
                @if attempts.is_empty() { tr { td.faint colspan="6" { "No attempts yet." } } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_told_once_something_is_known() {
        let (since, now) = ("2026-11-24T02:00:00Z", "2026-11-24T02:00:30Z");
        assert_eq!(left(0.25, since, now), Some(90.0));
        assert_eq!((left(0.01, since, now), left(1.0, since, now), left(0.5, now, now)), (None, None, None));
    }
}
