//! The first page: whether all is well.

use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use super::says::Seen;
use super::workers::{is_lost, is_own};
use super::{apps, says, throughput, webhooks};
use crate::asking::{Trouble, encoded};
use crate::layout;
use crate::parts::{STATES, count, jobs_in, list, no_jobs, part, short, span, text, time};
use crate::visit::Visit;

/// `GET /`
pub(crate) async fn page(visit: Visit) -> Response {
    let body = body(&visit).await;
    layout::page(&visit, "Overview", "Overview", body).await
}

/// An hour by minute.
const STATS: &str = "/v1/stats?window_seconds=3600&step_seconds=60";

async fn body(visit: &Visit) -> Result<Markup, Trouble> {
    // Whoever reaches some jobs only is told of those, and not how all went together.
    let stats = match visit.all(STATS).await {
        Ok(stats) => stats,
        Err(_) => visit.all("/v1/stats").await?,
    };
    let workers = visit.all("/v1/workers").await;
    let schedules = visit.get("/v1/schedules?order=next&limit=10").await;
    let (kinds, leases) = (visit.all("/v1/kinds").await, visit.get("/v1/leases?held=true&limit=10").await);
    let running = visit.get("/v1/jobs?state=running&order=oldest&limit=10").await;
    // What a host says of its programs; how their last runs ended is told with the jobs.
    let apps = visit.get("/v1/apps").await.unwrap_or_default();
    let in_trouble = list(&apps, "items").iter().filter(|app| apps::is_stuck(app)).count();
    let hooks = webhooks::failing(visit).await;
    let queues = list(&stats, "items");
    let sum = |state: &str| queues.iter().filter_map(|queue| queue["jobs"][state].as_u64()).sum::<u64>();
    let oldest = queues.iter().filter_map(|queue| queue["oldest_due_seconds"].as_f64()).reduce(f64::max);
    let lately = stats["series"].as_array().map(|series| Lately::of(series));
    let crew = workers.as_ref().ok().map(|workers| list(workers, "items"));
    let alive = crew.map(alive);
    Ok(html! {
        h1.sr { "Overview" }
        div #says data-live { (says::sentence(visit, &Seen { stats: &stats, crew, lately: lately.as_ref(), stuck: in_trouble, hooks: &hooks })) }
        div #health.strip data-live {
            (tile("Running", &count(sum("running")), &visit.at("jobs?state=running"), "running"))
            (tile("Queued", &count(sum("queued")), &visit.at("jobs?state=queued"), "queued"))
            (tile("Longest wait", &oldest.map_or_else(|| "none".to_owned(), span), &visit.at("queues"), "queued"))
            @match &lately {
                Some(lately) => (tile("Failed, last 15 min", &count(lately.failed), &lately.failures(visit), "failed")),
                None => (tile("Failed", &count(sum("failed")), &visit.at("jobs?state=failed"), "failed")),
            }
            @if let Some(waited) = lately.as_ref().and_then(|lately| lately.waited) {
                (tile("p95 wait, last 15 min", &span(waited), &visit.at("queues"), "queued"))
            }
            @match alive {
                Some(0) if sum("queued") > 0 => (tile("Workers online", "none", &visit.at("workers"), "failed")),
                Some(alive) => (tile("Workers online", &count(alive), &visit.at("workers"), "succeeded")),
                None => (tile("Workers online", "unknown", &visit.at("workers"), "failed")),
            }
        }
        @if let Some(series) = stats["series"].as_array() {
            section.card #throughput data-live { h2 { "Throughput" } (throughput::chart(visit, series)) }
        }
        section.card #queues data-live {
            @if queues.is_empty() {
                (no_jobs(visit, "No jobs yet", ""))
            } @else { (queue_table(visit, queues)) }
        }
        div.columns.pair {
            section.card #running data-live { (part(&running, |running| running_table(visit, list(running, "items")))) }
            section.card #kinds data-live { (part(&kinds, |kinds| kind_table(visit, list(kinds, "items")))) }
            section.card #fires data-live { (part(&schedules, |schedules| fires_table(visit, schedules))) }
            section.card #held data-live { (part(&leases, |leases| held_table(visit, leases))) }
        }
    })
}

/// How things went in the last quarter of an hour, and the minute that is not over.
pub(super) struct Lately {
    /// From then on.
    since: String,
    pub(super) failed: u64,
    /// Of the minute in which jobs waited longest: how long 95 of 100 did at most.
    waited: Option<f64>,
}

impl Lately {
    /// Minutes that are over, and the one that is not.
    const STEPS: usize = 16;

    fn of(series: &[Value]) -> Self {
        let steps = &series[series.len().saturating_sub(Self::STEPS)..];
        Self {
            since: steps.first().map(|step| text(step, "at").to_owned()).unwrap_or_default(),
            failed: steps.iter().filter_map(|step| step["failed"].as_u64()).sum(),
            waited: steps.iter().filter_map(|step| step["wait_p95_seconds"].as_f64()).reduce(f64::max),
        }
    }

    /// Where those are listed that are counted.
    pub(super) fn failures(&self, visit: &Visit) -> String {
        visit.at(&format!("jobs?q={}", encoded(&format!("state:failed ended:\">={}\"", self.since))))
    }
}

/// Number of workers that run jobs of others.
pub(super) fn alive(workers: &[Value]) -> u64 {
    workers.iter().filter(|worker| !is_lost(worker) && !is_own(worker)).count() as u64
}

fn fires_table(visit: &Visit, schedules: &Value) -> Markup {
    let fires = list(schedules, "items");
    html! {
        table {
            caption { "Next runs" @if schedules["capped"] == true { ", of the first 10,000 schedules by name" } }
            thead { tr { th scope="col" { "Schedule" } th scope="col" { "Next run" } } }
            tbody {
                @for schedule in fires {
                    @let name = text(schedule, "name");
                    tr {
                        td { a href=(visit.at(&format!("schedules/{}", encoded(name)))) { (name) } }
                        td { (time(visit, text(schedule, "next_run_at"))) }
                    }
                }
                @if fires.is_empty() { tr { td.faint colspan="2" { "No upcoming runs." } } }
            }
        }
    }
}

fn held_table(visit: &Visit, leases: &Value) -> Markup {
    let (held, is_cut) = (list(leases, "items"), leases["next_cursor"].is_string());
    html! {
        table {
            caption { "Held leases" }
            thead { tr { th scope="col" { "Lease" } th scope="col" { "Holder" } } }
            tbody {
                @for lease in held {
                    @let name = text(lease, "name");
                    tr {
                        td { a href=(visit.at(&format!("leases/{}", encoded(name)))) { (name) } }
                        td { (text(&lease["holder"], "owner")) }
                    }
                }
                @if is_cut { tr { td colspan="2" { a href=(visit.at("leases")) { "More leases →" } } } }
                @else if held.is_empty() { tr { td.faint colspan="2" { "No leases are held." } } }
            }
        }
    }
}

fn tile(name: &str, value: &str, to: &str, state: &str) -> Markup {
    html! { a.tile href=(to) { span.name { (name) } span class={ "value " (if value == "0" { "none" } else { state }) } { (value) } } }
}

fn queue_table(visit: &Visit, queues: &[Value]) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label="Queues" {
            table {
                caption { "Queues" }
                thead { tr {
                    th scope="col" { "Queue" }
                    @for (state, _) in STATES { th.number scope="col" { (state) } }
                    th.number scope="col" { "longest wait" }
                } }
                tbody {
                    @for queue in queues {
                        @let name = text(queue, "queue");
                        tr {
                            th scope="row" { a href=(visit.at(&format!("queues/{}", encoded(name)))) { (name) } @if queue["paused"] == true { " " span.state.paused { "Ⅱ paused" } } }
                            @for (state, _) in STATES { (jobs_in(visit, state, &queue["jobs"], &format!("queue:{name}"))) }
                            td.number { (queue["oldest_due_seconds"].as_f64().map_or_else(|| "–".to_owned(), span)) }
                        }
                    }
                }
            }
        }
    }
}

fn running_table(visit: &Visit, jobs: &[Value]) -> Markup {
    html! {
        table {
            caption { "Running jobs, oldest first" }
            thead { tr { th scope="col" { "Job" } th scope="col" { "Kind" } th scope="col" { "Started" } th scope="col" { "Message" } } }
            tbody {
                @for job in jobs {
                    @let id = text(job, "id");
                    tr {
                        td { a.id href=(visit.at(&format!("jobs/{id}"))) title=(id) { (short(id)) } }
                        td { (text(job, "kind")) }
                        td { (time(visit, text(job, "started_at"))) }
                        td.says {
                            @if let Some(fraction) = job["progress"]["fraction"].as_f64() { (format!("{:.0} % ", fraction * 100.0)) }
                            (text(&job["progress"], "message"))
                        }
                    }
                }
                @if jobs.is_empty() { tr { td.faint colspan="4" { "No running jobs." } } }
            }
        }
    }
}

fn kind_table(visit: &Visit, kinds: &[Value]) -> Markup {
    let of = |kind: &Value, state: &str| kind["jobs"][state].as_u64().unwrap_or_default();
    let mut busy: Vec<&Value> =
        kinds.iter().filter(|kind| of(kind, "running") + of(kind, "failed") > 0).collect();
    busy.sort_by_key(|kind| std::cmp::Reverse((of(kind, "failed"), of(kind, "running"))));
    busy.truncate(10);
    html! {
        table {
            caption { "Kinds with running or failed jobs" }
            thead { tr { th scope="col" { "Kind" } th.number scope="col" { "running" } th.number scope="col" { "failed" } } }
            tbody {
                @for kind in &busy {
                    @let name = text(kind, "kind");
                    tr {
                        th scope="row" { a href=(visit.at(&format!("kinds/{}", encoded(name)))) { (name) } }
                        @for state in ["running", "failed"] { (jobs_in(visit, state, &kind["jobs"], &format!("kind:{name}"))) }
                    }
                }
                @if busy.is_empty() { tr { td.faint colspan="3" { "No running or failed jobs." } } }
            }
        }
    }
}
