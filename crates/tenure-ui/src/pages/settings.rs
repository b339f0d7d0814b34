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
        p.faint { "Settings are saved in this browser and affect only you." }
        form.card.settings method="post" action=(visit.at("settings")) {
            (proof(visit))
            (choice("Theme", "theme", &THEMES, likes.theme, &["system", "light", "dark"]))
            fieldset {
                legend { "Time zone" }
                label.option { input type="radio" name="clocks" value="zone" checked[!likes.by_schedule]; " one time zone" }
                label.option { input type="radio" name="clocks" value=(BY_SCHEDULE) checked[likes.by_schedule];
                    " each schedule's own time zone, elsewhere UTC" }
                label.field { "Time zone name, such as Europe/Berlin"
                    input #zone name="zone" list="zones" value=(if wrong.is_empty() { zone } else { wrong }) autocomplete="off" spellcheck="false"
                        aria-invalid=[(!wrong.is_empty()).then_some("true")] aria-describedby=[(!wrong.is_empty()).then_some("wrong")]; }
                @if !wrong.is_empty() { p #wrong .wrong role="alert" { (why_not(wrong)) } }
                datalist #zones { @for zone in OFFERED { option value=(zone) {} } }
                button.quiet #own-zone type="button" hidden { "Use the browser's time zone" }
            }
            (choice("Density", "density", &DENSITIES, likes.density, &["comfortable", "compact"]))
            (choice("Live updates", "live", &SWITCH, likes.live, &["on", "off: pages change only when you reload them"]))
            (choice("Keyboard shortcuts", "keys", &SWITCH, likes.keys, &["on: press ? to list them", "off"]))
            button { "Save" }
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
