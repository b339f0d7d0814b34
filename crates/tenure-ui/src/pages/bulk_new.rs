//! Before something is done with many jobs: which they are, and what is to be done.

use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Value, json};
use tenure::StateName;

use crate::asking::Trouble;
use crate::layout;
use crate::parts::{count, empty, list, proof, short};
use crate::visit::Visit;

/// What can be done with many jobs, and in how many words that is said.
pub(crate) const ACTS: [(&str, &str, &str); 6] = [
    ("retry", "Do again", "those that have ended, with all their attempts"),
    ("run_now", "Run now", "those that wait for their time"),
    ("cancel", "Cancel", "those that have not ended; who runs is asked to stop"),
    ("move", "Move to another queue", "those that wait"),
    ("reprioritize", "Give another priority", "those that wait"),
    ("delete", "Delete", "those that do not run: they are gone for good"),
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
    layout::page(&visit, "Many jobs at once", "Bulk", body).await
}

async fn body(visit: &Visit) -> Result<Markup, Trouble> {
    let meant = Meant { search: visit.said("q"), ids: visit.all_said("id") };
    if meant.is_nobody() {
        return Ok(html! {
            (empty("No job is meant", "Tick some in the list of jobs, or search for those that you mean."))
            p.empty { a.button href=(visit.at("jobs")) { "To the jobs" } }
        });
    }
    let preview = meant.count(visit).await?;
    let matched = preview["matched"].as_u64().unwrap_or_default();
    let is_cut = preview["capped"] == true;
    let many = or_more(matched, is_cut);
    let chosen = proposed(&meant.search);
    Ok(html! {
        h1 { (many) " " (if matched == 1 { "job is" } else { "jobs are" }) " meant" }
        @if !meant.search.is_empty() { p { "By the search " code { (meant.search) } ", at the moment when it is done." } }
        @if matched > 0 {
            p { "The newest: " @for id in list(&preview, "sample").iter().filter_map(Value::as_str) {
                a.id href=(visit.at(&format!("jobs/{id}"))) title=(id) { (short(id)) } " " } }
            form.card.stack method="post" action=(visit.at("bulk/new")) {
                (proof(visit))
                input type="hidden" name="q" value=(meant.search);
                input type="hidden" name="ids" value=(meant.ids.join(" "));
                input type="hidden" name="matched" value=(matched);
                @if is_cut { input type="hidden" name="cut" value="true"; }
                fieldset {
                    legend { "What is done with each" }
                    @for (act, name, with) in ACTS {
                        label.option { input type="radio" name="action" value=(act) checked[act == chosen] required;
                            " " (name) " " span.faint { "(" (with) ")" } }
                    }
                }
                label.field.for-move { "To move: to which queue" input name="queue" autocomplete="off"; }
                label.field.for-priority { "To give another priority: from -100, the first, to 100" input name="priority" type="number" min="-100" max="100"; }
                label.field.for-cancel { "To cancel: why, for the record" input name="reason" autocomplete="off"; }
                @if has_to_be_sure(&preview) {
                    label.field { "They are many. Write how many: " (matched) input name="typed" required autocomplete="off" inputmode="numeric"; }
                }
                button.main { "Do it with " (many) }
            }
            p.faint { "It is done by a job of its own: it goes on if you leave, shows how far it has come, and can be cancelled." }
        } @else { (empty("Nobody is meant", "No job is like that at the moment.")) }
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
