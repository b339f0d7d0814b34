//! The attempts of a job on a line of time: what it waited, and what it ran.

use maud::{Markup, html};
use serde_json::Value;

use crate::parts::{between, span, text};
use crate::visit::Visit;

const WIDTH: f64 = 1000.0;

pub(super) fn chart(visit: &Visit, job: &Value, attempts: &[Value], now: &str) -> Markup {
    let from = text(job, "created_at");
    let to = job["finished_at"].as_str().unwrap_or(now);
    let all = between(from, to).unwrap_or_default().max(0.000_001);
    let place = |at: &str| between(from, at).unwrap_or_default() / all * WIDTH;
    html! {
        figure {
            svg.timeline viewBox="0 0 1000 24" preserveAspectRatio="none" role="img"
                aria-label={ (attempts.len()) (if attempts.len() == 1 { " attempt" } else { " attempts" }) " in " (span(all)) } {
                rect.wait x="0" y="10" width=(WIDTH) height="4" {}
                @for (ended, next) in rests(attempts, job) {
                    @let (from, to) = (place(ended), place(next.unwrap_or(now)).min(WIDTH));
                    line.back x1=(from) x2=(to.max(from)) y1="12" y2="12" { title { "Waiting for the next attempt, " (between(ended, next.unwrap_or(now)).map_or_else(String::new, span)) } }
                }
                @for attempt in attempts {
                    @let start = place(text(attempt, "started_at"));
                    @let end = place(attempt["finished_at"].as_str().unwrap_or(now));
                    @let outcome = attempt["outcome"].as_str().unwrap_or("running");
                    rect class={ "ran " (outcome) } x=(start.min(WIDTH - 4.0)) y="3" width=((end - start).max(4.0)) height="18" {
                        title { (told(visit, attempt, outcome)) }
                    }
                }
            }
            figcaption { (span(all)) (if job["finished_at"].is_string() { " from enqueue to finish" } else { " since it was enqueued" }) ". Line: waiting. Block: attempt"
                @if attempts.len() > 1 || job["state"] == "scheduled" && !attempts.is_empty() { ". Dashes: delay before a retry" } "." }
        }
    }
}

/// Where it waited after one attempt for the next: from when, and until when unless it still does.
fn rests<'v>(attempts: &'v [Value], job: &Value) -> Vec<(&'v str, Option<&'v str>)> {
    let mut begun: Vec<&Value> = attempts.iter().collect();
    begun.sort_by_key(|attempt| text(attempt, "started_at"));
    let mut rests = Vec::new();
    for (at, attempt) in begun.iter().enumerate() {
        let next = begun.get(at + 1).map(|next| text(next, "started_at"));
        let ended =
            attempt["finished_at"].as_str().filter(|_| next.is_some() || job["finished_at"].is_null());
        rests.extend(ended.map(|ended| (ended, next)));
    }
    rests
}

/// An attempt in a sentence.
fn told(visit: &Visit, attempt: &Value, outcome: &str) -> String {
    let begun = text(attempt, "started_at");
    let took = between(begun, text(attempt, "finished_at"))
        .map_or_else(String::new, |took| format!(" after {}", span(took)));
    let error = text(attempt, "error").lines().next().unwrap_or_default();
    let colon = if error.is_empty() { "" } else { ": " };
    format!("Attempt {}, started {}: {outcome}{took}{colon}{error}", attempt["attempt"], visit.exact(begun))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_waits_between_its_attempts_and_after_the_last_one_until_it_has_ended() {
        let attempts = [
            serde_json::json!({ "started_at": "2026-11-24T02:00:00Z", "finished_at": "2026-11-24T02:00:01Z" }),
            serde_json::json!({ "started_at": "2026-11-24T02:00:31Z", "finished_at": "2026-11-24T02:00:32Z" }),
        ];
        let first = ("2026-11-24T02:00:01Z", Some("2026-11-24T02:00:31Z"));
        let waits = serde_json::json!({ "finished_at": null });
        assert_eq!(rests(&attempts, &waits), [first, ("2026-11-24T02:00:32Z", None)]);
        let ended = serde_json::json!({ "finished_at": "2026-11-24T02:00:32Z" });
        assert_eq!(rests(&attempts, &ended), [first]);
        assert_eq!(rests(&[], &waits), []);
    }
}
