//! The sentence with which the overview begins: whether all is well, and else what is not, most pressing first.

use maud::{Markup, html};
use serde_json::Value;

use super::overview::Lately;
use crate::asking::encoded;
use crate::parts::{count, list, span, text};
use crate::visit::Visit;

/// From so many seconds on it is told that the oldest job waits.
const LONG: f64 = 300.0;
/// Paused queues that are named.
const NAMED: usize = 5;

/// What is told, and where more of it is.
struct Said {
    words: String,
    to: String,
}

/// What is not well, from how all stands; `alive` are those who run jobs, if that could be read.
pub(super) fn sentence(
    visit: &Visit,
    stats: &Value,
    alive: Option<u64>,
    lately: Option<&Lately>,
    stuck: usize,
) -> Markup {
    let mut found = troubles(visit, stats, alive, lately);
    if stuck > 0 {
        let words = if stuck == 1 {
            "1 app is failing".to_owned()
        } else {
            format!("{} apps are failing", count(stuck as u64))
        };
        found.push(Said { words, to: visit.at("apps?of=in-trouble") });
    }
    html! {
        @if found.is_empty() && list(stats, "items").is_empty() {
            p.faint { "No jobs yet." }
        } @else if found.is_empty() {
            p.faint { "No problems: " @if lately.is_some() { "no job failed in the last 15 minutes, and " } "no job has waited for more than 5 minutes." }
        } @else {
            p.why { @for (at, said) in found.iter().enumerate() {
                @if at > 0 { " · " }
                a href=(said.to) { (said.words) " →" }
            } }
        }
    }
}

/// So many jobs, such as `1 job` or `39 jobs`.
fn jobs(number: u64) -> String {
    format!("{} {}", count(number), if number == 1 { "job" } else { "jobs" })
}

fn troubles(visit: &Visit, stats: &Value, alive: Option<u64>, lately: Option<&Lately>) -> Vec<Said> {
    let queues = list(stats, "items");
    let waits = |queue: &Value| queue["jobs"]["queued"].as_u64().unwrap_or_default();
    let is_paused = |queue: &&Value| queue["paused"] == true;
    let all: u64 = queues.iter().map(waits).sum();
    let mut found = Vec::new();
    if alive == Some(0) && all > 0 {
        found.push(Said {
            words: format!("No workers online, {} queued", jobs(all)),
            to: visit.at("workers"),
        });
    }
    for queue in queues.iter().filter(is_paused).filter(|queue| waits(queue) > 0).take(NAMED) {
        let name = text(queue, "queue");
        let since = queue["oldest_due_seconds"].as_f64().map(|due| format!(", the oldest for {}", span(due)));
        let words =
            format!("queue {name} is paused, {} waiting{}", jobs(waits(queue)), since.unwrap_or_default());
        found.push(Said { words, to: visit.at(&format!("queues/{}", encoded(name))) });
    }
    let oldest = queues.iter().filter(|queue| !is_paused(queue)).filter_map(|queue| {
        let due = queue["oldest_due_seconds"].as_f64().filter(|due| *due > LONG)?;
        Some((due, text(queue, "queue")))
    });
    if let Some((due, name)) = oldest.max_by(|one, other| one.0.total_cmp(&other.0)) {
        let words = format!("a job in queue {name} has waited for {}", span(due));
        found.push(Said { words, to: visit.at(&format!("queues/{}", encoded(name))) });
    }
    if let Some(lately) = lately.filter(|lately| lately.failed > 0) {
        found.push(Said {
            words: format!("{} failed in the last 15 min", jobs(lately.failed)),
            to: lately.failures(visit),
        });
    }
    found
}
