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
    let most = series.iter().map(|step| of(step).0 + of(step).1).max().unwrap_or_default().max(1);
    let (succeeded, failed) =
        series.iter().map(of).fold((0, 0), |(good, bad), (more, worse)| (good + more, bad + worse));
    let tall = |jobs: u64| jobs as f64 / most as f64 * HEIGHT;
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
                "Ended in the last hour, by minute: " (count(succeeded)) " succeeded, " (count(failed)) " failed; at most "
                (count(most)) " in a minute."
            }
        }
    }
}
