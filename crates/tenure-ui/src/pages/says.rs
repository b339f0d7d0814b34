//! The sentence with which the overview begins: whether all is well, and else what is not, most pressing first.

use maud::{Markup, html};
use serde_json::Value;

use super::overview::{Lately, alive};
use super::workers::is_lost;
use crate::asking::encoded;
use crate::parts::{between, count, list, span, text};
use crate::visit::Visit;

/// From so many seconds on it is told that the oldest job waits.
const LONG: f64 = 300.0;
/// A lost worker is told of for so many seconds.
const LATELY: f64 = 900.0;
/// Paused queues that are named, and queues without a worker.
const NAMED: usize = 5;

/// What is told, and where more of it is.
struct Said {
    words: String,
    to: String,
}

/// Data of the overview.
pub(super) struct Seen<'a> {
    pub stats: &'a Value,
    /// The workers, if they could be read.
    pub crew: Option<&'a [Value]>,
    pub lately: Option<&'a Lately>,
    /// Apps that fail.
    pub stuck: usize,
    /// Webhooks whose latest delivery has not arrived, and why.
    pub hooks: &'a [(Value, String)],
}

/// Renders the sentence about the most important problems.
pub(super) fn sentence(visit: &Visit, seen: &Seen<'_>) -> Markup {
    let Seen { stats, crew, lately, stuck, hooks } = *seen;
    let mut found = troubles(visit, stats, crew, lately);
    found.extend(failing(visit, hooks));
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

/// Queues with due jobs that no worker serves. A paused queue is told of as such.
fn unserved(visit: &Visit, queues: &[Value], crew: &[Value]) -> Vec<Said> {
    let serves = |worker: &Value, name: &str| {
        list(worker, "serves").iter().any(|serves| text(serves, "queue") == name)
    };
    let is_served = |name: &str| crew.iter().any(|worker| !is_lost(worker) && serves(worker, name));
    let lacking = queues.iter().filter_map(|queue| {
        let (name, due) = (text(queue, "queue"), queue["jobs"]["queued"].as_u64().unwrap_or_default());
        (queue["paused"] != true && due > 0 && !is_served(name)).then(|| Said {
            words: format!("queue {name} has no worker, {} due", jobs(due)),
            to: visit.at(&format!("queues/{}", encoded(name))),
        })
    });
    lacking.take(NAMED).collect()
}

/// Workers whose heartbeats are overdue, and those that were lost lately.
fn silent(visit: &Visit, crew: &[Value]) -> Vec<Said> {
    let now = visit.ui.tenure.now().to_string();
    let is_late = |worker: &&Value| {
        let since = between(text(worker, "alive_until"), &now);
        // A worker that had no job when it vanished appears only on the page of workers.
        let has_lost = is_lost(worker) && !list(worker, "lost_jobs").is_empty();
        has_lost && since.is_some_and(|since| since < LATELY)
    };
    let say = |words: Option<String>| words.map(|words| Said { words, to: visit.at("workers") });
    let overdue: Vec<&Value> =
        crew.iter().filter(|worker| text(worker, "state") == "not_responding").collect();
    let lost: Vec<&Value> = crew.iter().filter(is_late).collect();
    let overdue = of_workers(&overdue, "is not responding", "are not responding");
    let lost = of_workers(&lost, "was lost", "were lost in the last 15 min");
    [say(overdue), say(lost)].into_iter().flatten().collect()
}

/// A webhook by its URL, several by their number.
fn failing(visit: &Visit, hooks: &[(Value, String)]) -> Option<Said> {
    match hooks {
        [] => None,
        [(hook, why)] => Some(Said {
            words: format!("webhook {} is failing: {why}", text(hook, "url")),
            to: visit.at(&format!("webhooks/{}", encoded(text(hook, "id")))),
        }),
        more => Some(Said {
            words: format!("{} webhooks are failing", count(more.len() as u64)),
            to: visit.at("webhooks"),
        }),
    }
}

/// Names a single worker, and counts several.
fn of_workers(workers: &[&Value], one_is: &str, more_are: &str) -> Option<String> {
    match workers {
        [] => None,
        [one] => Some(format!("worker {} {one_is}", text(one, "name"))),
        more => Some(format!("{} workers {more_are}", count(more.len() as u64))),
    }
}

fn troubles(visit: &Visit, stats: &Value, crew: Option<&[Value]>, lately: Option<&Lately>) -> Vec<Said> {
    let queues = list(stats, "items");
    let waits = |queue: &Value| queue["jobs"]["queued"].as_u64().unwrap_or_default();
    let is_paused = |queue: &&Value| queue["paused"] == true;
    let all: u64 = queues.iter().map(waits).sum();
    let mut found = Vec::new();
    match crew {
        Some(crew) if all > 0 && alive(crew) == 0 => found.push(Said {
            words: format!("No workers online, {} queued", jobs(all)),
            to: visit.at("workers"),
        }),
        Some(crew) => found.extend(unserved(visit, queues, crew)),
        None => {}
    }
    found.extend(silent(visit, crew.unwrap_or_default()));
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
