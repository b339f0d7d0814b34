//! Jobs that are listed and cannot be read.

use maud::{Markup, html};
use serde_json::Value;

use crate::parts::{list, state, text};

/// The unreadable jobs of a page of jobs.
pub(crate) fn of(page: &Value) -> &[Value] {
    list(page, "unreadable")
}

/// Rows of a table of jobs with so many columns: state, ID, and the reason in place of the other columns.
pub(crate) fn rows(page: &Value, has_ticks: bool, columns: usize) -> Markup {
    html! { @for job in of(page) {
        tr {
            @if has_ticks { td.tick {} }
            td { (state("unreadable")) }
            td { (named(job)) }
            td.says colspan=(columns) { (kind(job)) (text(job, "reason")) }
        }
    } }
}

/// A note where a table has no room for them.
pub(crate) fn note(page: &Value) -> Markup {
    html! { @if !of(page).is_empty() {
        ul.why { @for job in of(page) { li { (state("unreadable")) " " (named(job)) " " (text(job, "reason")) } } }
        (hint())
    } }
}

/// The next step for an operator.
pub(crate) fn hint() -> Markup {
    html! { p.faint { "Run " code { "tenure db check" } " to find damaged data, and " code { "tenure db repair" } " to set it aside." } }
}

fn named(job: &Value) -> Markup {
    match job["id"].as_str() {
        Some(id) => html! { span.id title=(id) { (id) } },
        None => html! { "number " (job["number"]) },
    }
}

fn kind(job: &Value) -> Markup {
    html! { @if let Some(kind) = job["kind"].as_str() { (kind) ": " } }
}
