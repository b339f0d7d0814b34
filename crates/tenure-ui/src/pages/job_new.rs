//! A new job: filled in by hand, or like one that is there.

use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Value, json};
use tenure::JobId;

use super::calendar::{instant, minute};
use crate::asking::{Trouble, encoded};
use crate::layout;
use crate::parts::{list, proof, text};
use crate::secret;
use crate::visit::Visit;

/// What stands where something is hidden.
pub(super) const HIDDEN: &str = "(hidden)";

/// What is filled in.
#[derive(Default)]
pub(crate) struct Drafted {
    /// Its id, drawn with the form: a form that is sent twice makes one job.
    pub id: String,
    pub kind: String,
    pub queue: String,
    pub args: String,
    pub due: String,
    pub priority: String,
    pub tags: String,
}

impl Drafted {
    pub(crate) fn of(said: impl Fn(&str) -> String) -> Self {
        let trimmed = |name: &str| said(name).trim().to_owned();
        Self {
            id: trimmed("id"),
            kind: trimmed("kind"),
            queue: trimmed("queue"),
            args: trimmed("args"),
            due: trimmed("due"),
            priority: trimmed("priority"),
            tags: trimmed("tags"),
        }
    }

    fn like(job: &Value) -> Self {
        let args = serde_json::to_string_pretty(&job["args"]).unwrap_or_default();
        let tags: Vec<&str> = list(job, "tags").iter().filter_map(Value::as_str).collect();
        Self {
            kind: text(job, "kind").to_owned(),
            queue: text(job, "queue").to_owned(),
            args: if job["args"].is_null() { String::new() } else { args },
            priority: job["priority"]
                .as_i64()
                .filter(|priority| *priority != 0)
                .map_or_else(String::new, |it| it.to_string()),
            tags: tags.join(" "),
            ..Self::default()
        }
    }

    /// The same, as another job.
    pub(crate) fn anew(self, visit: &Visit) -> Self {
        Self { id: drawn(visit), ..self }
    }

    /// What the contract is asked for.
    pub(crate) fn ask(&self, visit: &Visit) -> Result<Value, Trouble> {
        let refuse =
            |detail: String| Trouble::new(StatusCode::UNPROCESSABLE_ENTITY, "This is no job", &detail);
        let args = if self.args.is_empty() { "null" } else { &self.args };
        let args: Value = serde_json::from_str(args)
            .map_err(|error| refuse(format!("What its handler is given is not JSON: {error}.")))?;
        let mut ask = json!({ "kind": self.kind, "args": args });
        if !self.queue.is_empty() {
            ask["queue"] = json!(self.queue);
        }
        if !self.due.is_empty() {
            let due = minute(&self.due)
                .ok_or_else(|| refuse(format!("When it is due, {:?}, is no time.", self.due)))?;
            ask["run_at"] = json!(instant(&visit.likes.zone, due).to_string());
        }
        if !self.priority.is_empty() {
            let wrong = |_| refuse(format!("Its priority, {:?}, is no whole number.", self.priority));
            ask["priority"] = json!(self.priority.parse::<i64>().map_err(wrong)?);
        }
        let tags: Vec<&str> = self.tags.split([' ', ',']).filter(|tag| !tag.is_empty()).collect();
        if !tags.is_empty() {
            ask["tags"] = json!(tags);
        }
        Ok(ask)
    }
}

/// An id; empty if the system gives no chance: then the server draws it.
fn drawn(visit: &Visit) -> String {
    let chance = secret::drawn().and_then(|text| u64::from_str_radix(text.get(..16)?, 16).ok());
    chance.map_or_else(String::new, |chance| JobId::new(visit.ui.tenure.now(), chance).to_string())
}

/// `GET new-job`
pub(crate) async fn page(visit: Visit) -> Response {
    let body = body(&visit).await;
    layout::page(&visit, "New job", "Jobs", body).await
}

async fn body(visit: &Visit) -> Result<Markup, Trouble> {
    let like = visit.said("like");
    let drafted = if like.is_empty() {
        Drafted::of(|name| visit.said(name))
    } else {
        Drafted::like(&visit.get(&format!("/v1/jobs/{}", encoded(&like))).await?)
    };
    Ok(form(visit, &drafted.anew(visit), None).await)
}

/// Whether somebody may enqueue jobs here.
pub(super) async fn may(visit: &Visit) -> bool {
    visit.may("enqueue").await || visit.may("manage").await
}

/// The form, and what is wrong with what is in it.
pub(crate) async fn form(visit: &Visit, drafted: &Drafted, wrong: Option<&Trouble>) -> Markup {
    let kinds = visit.get("/v1/kinds").await.unwrap_or_default();
    let field = |label: &str, name: &str, value: &str, like: &str| {
        html! { label { (label) input name=(name) value=(value) placeholder=(like) required[name == "kind"] list=[(name == "kind").then_some("kinds")] autocomplete="off" spellcheck="false"; } }
    };
    html! {
        h1 { "New job" }
        @if let Some(wrong) = wrong { p #wrong .wrong role="alert" { (wrong.detail) } }
        @if drafted.args.contains(HIDDEN) { p.why { "What is hidden from you stands here as " (HIDDEN) ". Write it anew: the job would be given just that." } }
        @if may(visit).await {
            form.card.stack method="post" action=(visit.at("new-job")) {
                (proof(visit))
                input type="hidden" name="id" value=(drafted.id);
                (field("Its kind", "kind", &drafted.kind, "report"))
                datalist #kinds { @for kind in list(&kinds, "items") { option value=(text(kind, "kind")) {} } }
                label { "What its handler is given, as JSON" textarea name="args" rows="6" spellcheck="false" placeholder="null" { (drafted.args) } }
                (field("Its queue", "queue", &drafted.queue, "default"))
                label { "Due, by the clocks of " (visit.likes.zone.name()) "; at once if nothing is said" input type="datetime-local" name="due" value=(drafted.due); }
                (field("Its priority, from -100, the first, to 100", "priority", &drafted.priority, "0"))
                (field("Tags to find it by, with spaces between them", "tags", &drafted.tags, "vip urgent"))
                div.bar { button.main { "Enqueue this job" } }
            }
        } @else { p.notice { "To enqueue a job needs the right enqueue, on a server that changes things." } }
    }
}
