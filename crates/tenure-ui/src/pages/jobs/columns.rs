//! The columns of the list of jobs: which there are is said in its address.

use maud::{Markup, html};
use serde_json::Value;

use crate::asking::encoded;
use crate::parts::{between, list, span, text, time};
use crate::tree::written;
use crate::visit::Visit;

/// A column: how it is called in addresses and by people, whether it is shown unless somebody chooses, and whether numbers
/// stand in it.
pub(super) struct Column {
    pub name: &'static str,
    pub title: &'static str,
    is_usual: bool,
    pub is_number: bool,
}

const fn column(name: &'static str, title: &'static str) -> Column {
    Column { name, title, is_usual: true, is_number: false }
}

/// All beside the state and the job itself, which always are there.
static COLUMNS: [Column; 12] = [
    column("kind", "Kind"),
    column("queue", "Queue"),
    Column { is_number: true, ..column("attempt", "Attempt") },
    Column { is_number: true, ..column("took", "Duration") },
    column("created", "Created"),
    Column { is_usual: false, ..column("due", "Due") },
    Column { is_usual: false, ..column("ended", "Finished") },
    Column { is_usual: false, is_number: true, ..column("priority", "Priority") },
    Column { is_usual: false, ..column("tags", "Tags") },
    Column { is_usual: false, ..column("schedule", "Schedule") },
    Column { is_usual: false, ..column("args", "Args") },
    column("says", "Message"),
];

/// Letters of args that are shown.
const ARGS_CHARS: usize = 80;

/// Those that are shown, in their order.
pub(super) fn chosen(visit: &Visit) -> Vec<&'static Column> {
    let said = visit.all_said("col");
    let is_shown = |column: &&Column| {
        if said.is_empty() { column.is_usual } else { said.iter().any(|name| name == column.name) }
    };
    COLUMNS.iter().filter(is_shown).collect()
}

/// What the address of another page of the same list needs to show the same columns.
pub(super) fn kept(visit: &Visit) -> String {
    let said = visit.all_said("col");
    let known = COLUMNS.iter().filter(|column| said.iter().any(|name| name == column.name));
    known.map(|column| format!("&col={}", column.name)).collect()
}

/// The same in a form.
pub(super) fn kept_hidden(visit: &Visit) -> Markup {
    let said = visit.all_said("col");
    html! { @for column in COLUMNS.iter().filter(|column| said.iter().any(|name| name == column.name)) {
        input type="hidden" name="col" value=(column.name);
    } }
}

/// Where they are chosen.
pub(super) fn chooser(visit: &Visit, search: &str, state: &str) -> Markup {
    let shown = chosen(visit);
    html! {
        details.ask { summary { "Columns" }
            form.stack method="get" action=(visit.at("jobs")) {
                @if !search.is_empty() { input type="hidden" name="q" value=(search); }
                @if !state.is_empty() { input type="hidden" name="state" value=(state); }
                fieldset {
                    legend { "Columns after state and ID" }
                    @for column in &COLUMNS {
                        label.option { input type="checkbox" name="col" value=(column.name)
                            checked[shown.iter().any(|shown| shown.name == column.name)]; " " (column.title) }
                    }
                }
                button { "Apply" }
            }
        }
    }
}

/// What stands in a column.
pub(super) fn cell(visit: &Visit, column: &Column, job: &Value) -> Markup {
    let to = |room: &str, key: &str| visit.at(&format!("{room}/{}", encoded(text(job, key))));
    match column.name {
        "kind" => html! { td { a.plain href=(to("kinds", "kind")) { (text(job, "kind")) } } },
        "queue" => html! { td { a.plain href=(to("queues", "queue")) { (text(job, "queue")) } } },
        "attempt" => html! { td.number { (job["attempt"]) } },
        "priority" => html! { td.number { (job["priority"]) } },
        "took" => {
            let took = between(text(job, "started_at"), text(job, "finished_at"));
            html! { td.number { (took.map_or_else(|| "–".to_owned(), span)) } }
        }
        "created" => html! { td { (time(visit, text(job, "created_at"))) } },
        "due" => html! { td { (time(visit, text(job, "run_at"))) } },
        "ended" => html! { td { (time(visit, text(job, "finished_at"))) } },
        "tags" => {
            html! { td { @for tag in list(job, "tags").iter().filter_map(Value::as_str) { span.tag { (tag) } " " } } }
        }
        "schedule" => {
            html! { td { @if job["schedule"].is_string() { a.plain href=(to("schedules", "schedule")) { (text(job, "schedule")) } } } }
        }
        "args" => {
            html! { td.says { code { (written(job, "args").chars().take(ARGS_CHARS).collect::<String>()) } } }
        }
        _ => html! { td.says { (says(job)) } },
    }
}

/// How far it has come while it runs, and what went wrong unless that is over.
fn says(job: &Value) -> &str {
    let progress = job["progress"]["message"].as_str().filter(|_| job["state"] == "running");
    let error = job["error"]["detail"].as_str().filter(|_| job["state"] != "succeeded");
    progress.or(error).unwrap_or_default()
}
