//! What was done minute by minute, as bars.

use maud::{Markup, html};
use serde_json::Value;

use crate::parts::{count, text};
use crate::visit::Visit;

const HEIGHT: f64 = 80.0;
/// From one bar to the next.
const STEP: usize = 10;

pub(super) fn chart(visit: &Visit, series: &[Value]) -> Markup {
    let number = |step: &Value, key: &str| step[key].as_u64().unwrap_or_default();
    let of = |step: &Value| (number(step, "succeeded"), number(step, "failed"));
    let most = series.iter().map(|step| of(step).0 + of(step).1).max().unwrap_or_default();
    let enqueued: u64 = series.iter().map(|step| number(step, "enqueued")).sum();
    let (succeeded, failed) =
        series.iter().map(of).fold((0, 0), |(good, bad), (more, worse)| (good + more, bad + worse));
    let tall = |jobs: u64| jobs as f64 / most.max(1) as f64 * HEIGHT;
    html! {
        figure {
            svg.chart viewBox={ "0 0 " (series.len() * STEP) " " (HEIGHT) } preserveAspectRatio="none" role="img"
                aria-label={ (count(succeeded)) " jobs succeeded and " (count(failed)) " failed in the last hour" } {
                @for (place, step) in series.iter().enumerate() {
                    @let (good, bad) = of(step);
                    g {
                        title { (visit.exact(text(step, "at"))) ": " (good) " succeeded, " (bad) " failed" }
                        rect.good x=(place * STEP + 1) y=(HEIGHT - tall(good)) width=(STEP - 2) height=(tall(good)) {}
                        rect.bad x=(place * STEP + 1) y=(HEIGHT - tall(good) - tall(bad)) width=(STEP - 2) height=(tall(bad)) {}
                    }
                }
            }
            figcaption {
                "Last hour, by minute: " (count(succeeded)) " succeeded, " (count(failed)) " failed, " (count(enqueued))
                " enqueued. Peak: " (count(most)) " finished in a minute."
            }
        }
        details { summary { "Show as table" } (table(visit, series)) }
    }
}

/// The same in words, of the minutes in which something happened, the latest first.
fn table(visit: &Visit, series: &[Value]) -> Markup {
    const KEYS: [&str; 3] = ["enqueued", "succeeded", "failed"];
    let some: Vec<&Value> =
        series.iter().rev().filter(|step| KEYS.iter().any(|key| step[key].as_u64() > Some(0))).collect();
    html! {
        table {
            caption.sr { "By minute, latest first" }
            thead { tr { th scope="col" { "Minute" } @for key in KEYS { th.number scope="col" { (key) } } } }
            tbody {
                @for step in &some { tr {
                    th scope="row" { (visit.exact(text(step, "at"))) }
                    @for key in KEYS { td.number { (count(step[key].as_u64().unwrap_or_default())) } }
                } }
                @if some.is_empty() { tr { td.faint colspan="4" { "No jobs were enqueued or finished." } } }
            }
        }
    }
}
