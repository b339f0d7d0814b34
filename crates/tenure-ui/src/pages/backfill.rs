//! Jobs for slots of a schedule that have passed: first which slots there are, and then the jobs.

use maud::{Markup, html};
use serde_json::{Value, json};
use tenure::Timestamp;
use tenure::schedule::Zone;

use super::bulk_new::SURE;
use super::calendar::{instant, minute, shown_minute};
use crate::asking::{Trouble, encoded};
use crate::parts::{count, list, proof, text};
use crate::visit::Visit;

/// How far back the form reaches at first.
const DAY_SECONDS: u64 = 86_400;
/// Slots that are named.
const NAMED: usize = 5;

/// Between which instants, as somebody has said by the clocks that he likes.
struct Wanted {
    from: Timestamp,
    to: Timestamp,
    again: bool,
}

impl Wanted {
    fn of(visit: &Visit) -> Option<Self> {
        let zone = &visit.likes.zone;
        let at = |name: &str| Some(instant(zone, minute(&visit.said(name))?));
        Some(Self { from: at("from")?, to: at("to")?, again: visit.said("again") == "yes" })
    }

    fn ask(&self, dry_run: bool) -> Value {
        json!({ "from": self.from.to_string(), "to": self.to.to_string(), "again": self.again, "dry_run": dry_run })
    }
}

/// The form, and which slots it means once that was asked.
pub(super) async fn section(visit: &Visit, name: &str, own: &Zone) -> Markup {
    let here = format!("schedules/{}", encoded(name));
    let wanted = Wanted::of(visit);
    let found = match &wanted {
        Some(wanted) => Some(look(visit, name, wanted).await),
        None => None,
    };
    let now = visit.ui.tenure.now();
    let (from, to) = match &wanted {
        Some(wanted) => (wanted.from, wanted.to),
        None => (now.before(std::time::Duration::from_secs(DAY_SECONDS)), now),
    };
    let field = |label: &str, name: &str, at: Timestamp| {
        html! { label { (label) input type="datetime-local" name=(name) value=(shown_minute(&visit.likes.zone, at)) required; } }
    };
    html! {
        section.card #backfill {
            h2 { "Backfill" }
            p { "Enqueues jobs for past runs that got none, for example during a pause or an outage. No run gets a second job unless you ask for it." }
            form.bar method="get" action={ (visit.at(&here)) "#backfill" } {
                (field("From", "from", from)) (field("To", "to", to))
                label.option { input type="checkbox" name="again" value="yes" checked[wanted.as_ref().is_some_and(|wanted| wanted.again)]; " also rerun those that had a job" }
                button { "Preview runs" }
            }
            p.faint { "Times in " (visit.likes.zone.name()) "." }
            @match (&found, &wanted) {
                (Some(Err(trouble)), _) => { p.wrong role="alert" { (trouble.detail) } },
                (Some(Ok(found)), Some(wanted)) => (meant(visit, &here, found, wanted, own)),
                _ => {},
            }
        }
    }
}

async fn look(visit: &Visit, name: &str, wanted: &Wanted) -> Result<Value, Trouble> {
    let path = format!("/v1/schedules/{}/backfill", encoded(name));
    visit.ask(axum::http::Method::POST, &path, &wanted.ask(true)).await
}

/// What the clocks of the schedule show then, to the second.
fn local(slot: &Value) -> String {
    text(slot, "local").chars().take("2026-11-24 14:08:00".len()).collect::<String>().replace('T', " ")
}

fn meant(visit: &Visit, here: &str, found: &Value, wanted: &Wanted, own: &Zone) -> Markup {
    let slots = list(found, "slots");
    let many =
        format!("{}{}", count(slots.len() as u64), if found["capped"] == true { " or more" } else { "" });
    if slots.is_empty() {
        return html! { p.why { "No missed runs in this period." } };
    }
    html! {
        p.why { (many) " " (if slots.len() == 1 { "run" } else { "runs" }) ": "
            @for (at, slot) in slots.iter().take(NAMED).enumerate() { @if at > 0 { ", " } (local(slot)) }
            @if slots.len() > NAMED { " …" } " (" (own.name()) ")." }
        form.stack method="post" action=(visit.at(&format!("{here}/backfill"))) {
            (proof(visit))
            input type="hidden" name="from" value=(wanted.from);
            input type="hidden" name="to" value=(wanted.to);
            @if wanted.again { input type="hidden" name="again" value="yes"; }
            input type="hidden" name="slots" value=(slots.len());
            @if slots.len() as u64 > SURE {
                label { "To confirm, type the number of jobs: " (slots.len()) input name="typed" required autocomplete="off" inputmode="numeric"; }
            }
            button.main { "Enqueue " (many) " " (if slots.len() == 1 { "job" } else { "jobs" }) }
        }
    }
}
