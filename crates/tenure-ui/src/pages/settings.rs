//! How somebody likes the pages.

use axum::response::Response;
use maud::{Markup, html};
use tenure::schedule::Zone;

use crate::layout::show;
use crate::likes::{BY_SCHEDULE, DENSITIES, SWITCH, THEMES};
use crate::parts::proof;
use crate::visit::Visit;

/// Zones that are offered; any other can be written.
const OFFERED: [&str; 12] = [
    "UTC",
    "Europe/London",
    "Europe/Berlin",
    "Europe/Copenhagen",
    "America/New_York",
    "America/Chicago",
    "America/Los_Angeles",
    "America/Sao_Paulo",
    "Asia/Kolkata",
    "Asia/Shanghai",
    "Asia/Tokyo",
    "Australia/Sydney",
];

/// `GET settings`
pub(crate) async fn page(visit: Visit) -> Response {
    let form = form(&visit, &visit.said("zone"));
    show(&visit, "Settings", "Settings", form).await
}

/// The form; a zone that nobody knows is told where it was written.
fn form(visit: &Visit, wrong: &str) -> Markup {
    let likes = &visit.likes;
    let zone = if likes.by_schedule { "UTC" } else { likes.zone.name() };
    html! {
        h1 { "Settings" }
        p.faint { "They are kept in this browser, and change nothing for anybody else." }
        form.card.settings method="post" action=(visit.at("settings")) {
            (proof(visit))
            (choice("Colours", "theme", &THEMES, likes.theme, &["as the system says", "light", "dark"]))
            fieldset {
                legend { "Times are shown by the clocks of" }
                label.option { input type="radio" name="clocks" value="zone" checked[!likes.by_schedule]; " one zone" }
                label.option { input type="radio" name="clocks" value=(BY_SCHEDULE) checked[likes.by_schedule];
                    " each schedule's own zone, and UTC elsewhere" }
                label.field { "The zone, such as Europe/Berlin"
                    input #zone name="zone" list="zones" value=(if wrong.is_empty() { zone } else { wrong }) autocomplete="off" spellcheck="false"
                        aria-invalid=[(!wrong.is_empty()).then_some("true")] aria-describedby=[(!wrong.is_empty()).then_some("wrong")]; }
                @if !wrong.is_empty() { p #wrong .wrong role="alert" { (why_not(wrong)) } }
                datalist #zones { @for zone in OFFERED { option value=(zone) {} } }
                button.quiet #own-zone type="button" hidden { "This browser's zone" }
            }
            (choice("Room", "density", &DENSITIES, likes.density, &["roomy", "dense: more rows on a screen"]))
            (choice("Live updates", "live", &SWITCH, likes.live, &["pages keep themselves up to date", "only when they are loaded"]))
            (choice("Keys", "keys", &SWITCH, likes.keys, &["single keys do something; ? tells what", "no single key does anything"]))
            button { "Keep these" }
        }
    }
}

fn why_not(zone: &str) -> String {
    Zone::named(zone).map_or_else(|wrong| wrong.to_string(), |_| String::new())
}

fn choice(title: &str, name: &str, values: &[&str], chosen: &str, labels: &[&str]) -> Markup {
    html! {
        fieldset {
            legend { (title) }
            @for (value, label) in values.iter().zip(labels) {
                label.option { input type="radio" name=(name) value=(value) checked[*value == chosen]; " " (label) }
            }
        }
    }
}
