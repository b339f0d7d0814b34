//! The attempts of a job on a line of time: what it waited, and what it ran.

use maud::{Markup, html};
use serde_json::Value;

use crate::parts::{between, span, text};

const WIDTH: f64 = 1000.0;

pub(super) fn chart(job: &Value, attempts: &[Value], now: &str) -> Markup {
    let from = text(job, "created_at");
    let to = job["finished_at"].as_str().unwrap_or(now);
    let all = between(from, to).unwrap_or_default().max(0.000_001);
    let place = |at: &str| between(from, at).unwrap_or_default() / all * WIDTH;
    html! {
        figure {
            svg.timeline viewBox="0 0 1000 24" preserveAspectRatio="none" role="img"
                aria-label={ (attempts.len()) " attempts within " (span(all)) } {
                rect.wait x="0" y="10" width=(WIDTH) height="4" {}
                @for attempt in attempts {
                    @let start = place(text(attempt, "started_at"));
                    @let end = place(attempt["finished_at"].as_str().unwrap_or(now));
                    @let outcome = attempt["outcome"].as_str().unwrap_or("running");
                    rect class={ "ran " (outcome) } x=(start.min(WIDTH - 4.0)) y="3" width=((end - start).max(4.0)) height="18" {
                        title { "Attempt " (attempt["attempt"]) ": " (outcome) }
                    }
                }
            }
            figcaption { "From its acceptance, " (span(all)) " in all: the line is waiting, a block is an attempt." }
        }
    }
}
