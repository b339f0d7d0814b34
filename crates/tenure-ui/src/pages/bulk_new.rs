//! Before something is done with many jobs: which they are, and what is to be done.

use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Value, json};
use tenure::StateName;

use crate::asking::Trouble;
use crate::layout;
use crate::parts::{count, empty, list, proof, short};
use crate::visit::Visit;

/// Actions: the name in the API and for people, the jobs it applies to, and the words around their number on the button.
pub(crate) const ACTS: [(&str, &str, &str, [&str; 2]); 6] = [
    ("retry", "Retry", "finished jobs, with a full set of attempts", ["Retry ", ""]),
    ("run_now", "Run now", "scheduled jobs", ["Run ", " now"]),
    ("cancel", "Cancel", "unfinished jobs; running ones are asked to stop", ["Cancel ", ""]),
    ("move", "Move to another queue", "waiting jobs", ["Move ", ""]),
    ("reprioritize", "Change priority", "waiting jobs", ["Change priority of ", ""]),
    ("delete", "Delete", "jobs that are not running; this cannot be undone", ["Delete ", ""]),
];
/// Beyond so many jobs their number has to be written.
pub(crate) const SURE: u64 = 100;

/// Which jobs are meant.
pub(crate) struct Meant {
    pub search: String,
    pub ids: Vec<String>,
}

impl Meant {
    /// In the words of the contract.
    pub(crate) fn ask(&self, action: &str) -> Value {
        if self.ids.is_empty() {
            json!({ "action": action, "filter": { "q": self.search } })
        } else {
            json!({ "action": action, "ids": self.ids })
        }
    }

    pub(crate) fn is_nobody(&self) -> bool {
        self.ids.is_empty() && self.search.trim().is_empty()
    }

    /// How many there are at the moment.
    pub(crate) async fn count(&self, visit: &Visit) -> Result<Value, Trouble> {
        let mut ask = self.ask("retry");
        ask["dry_run"] = json!(true);
        visit.ask(axum::http::Method::POST, "/v1/bulk", &ask).await
    }
}

/// Whether the number has to be written: by accident nobody does something with so many.
pub(crate) fn has_to_be_sure(preview: &Value) -> bool {
    preview["capped"] == true || preview["matched"].as_u64() > Some(SURE)
}

/// `GET bulk/new`
pub(crate) async fn page(visit: Visit) -> Response {
    let body = body(&visit).await;
    layout::page(&visit, "Bulk action", "Bulk", body).await
}

async fn body(visit: &Visit) -> Result<Markup, Trouble> {
    let meant = Meant { search: visit.said("q"), ids: visit.all_said("id") };
    if meant.is_nobody() {
        return Ok(html! {
            (empty("No jobs selected", "Select jobs in the list, or search for them."))
            p.empty { a.button href=(visit.at("jobs")) { "Go to jobs" } }
        });
    }
    let preview = meant.count(visit).await?;
    let matched = preview["matched"].as_u64().unwrap_or_default();
    let is_cut = preview["capped"] == true;
    let many =
        format!("{} {}", or_more(matched, is_cut), if matched == 1 && !is_cut { "job" } else { "jobs" });
    let chosen = proposed(&meant.search);
    Ok(html! {
        h1 { @if matched > 0 { (many) @if matched == 1 && !is_cut { " matches" } @else { " match" } } @else { @if is_cut { "No match found yet" } @else { "No matching jobs" } } }
        @if !meant.search.is_empty() { p { "Search: " code { (meant.search) } ". It runs again when the operation starts." } }
        @if matched > 0 {
            p { "Newest: " @for id in list(&preview, "sample").iter().filter_map(Value::as_str) {
                a.id href=(visit.at(&format!("jobs/{id}"))) title=(id) { (short(id)) } " " } }
            form.card.stack method="post" action=(visit.at("bulk/new")) {
                (proof(visit))
                input type="hidden" name="q" value=(meant.search);
                input type="hidden" name="ids" value=(meant.ids.join(" "));
                input type="hidden" name="matched" value=(matched);
                @if is_cut { input type="hidden" name="cut" value="true"; }
                fieldset {
                    legend { "Action" }
                    @for (act, name, with, [before, behind]) in ACTS {
                        label.option { input type="radio" name="action" value=(act) checked[act == chosen] required data-says={ (before) (many) (behind) };
                            " " (name) " " span.faint { "(" (with) ")" } }
                    }
                }
                label.field.for-move { "Move to queue" input name="queue" autocomplete="off"; }
                label.field.for-priority { "New priority, from -100 (first) to 100 (last)" input name="priority" type="number" min="-100" max="100"; }
                label.field.for-cancel { "Reason (recorded with the cancellation)" input name="reason" autocomplete="off"; }
                @if has_to_be_sure(&preview) {
                    label.field { "To confirm, type the number of jobs: " (matched) input name="typed" required autocomplete="off" inputmode="numeric"; }
                }
                button.main { "Apply to " (many) }
            }
            p.faint { "It runs as a background job: you can leave this page, follow its progress and cancel it." }
        } @else if is_cut {
            (empty("The search stopped early", "It found no match among the newest jobs in 5 seconds. Older jobs may match: add a state, queue or kind to search fewer jobs."))
        } @else { (empty("No matching jobs", "Change the search and try again.")) }
    })
}

/// How many, if there may have been more than were counted.
pub(crate) fn or_more(jobs: u64, is_cut: bool) -> String {
    format!("{}{}", count(jobs), if is_cut { " or more" } else { "" })
}

/// What is likely to be wanted with jobs that are searched so.
fn proposed(search: &str) -> &'static str {
    let of = |state: StateName| search.contains(&format!("state:{}", state.as_str()));
    if of(StateName::Scheduled) {
        "run_now"
    } else if of(StateName::Queued) || of(StateName::Running) || of(StateName::Blocked) {
        "cancel"
    } else {
        "retry"
    }
}
