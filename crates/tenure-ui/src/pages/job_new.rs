//! A new job: filled in by hand, or like one that is there.

use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Value, json};
use tenure::{JobId, Timestamp};

use super::apps::SET;
use super::calendar::{instant, minute, shown_minute};
use crate::asking::{Trouble, encoded};
use crate::ids;
use crate::layout;
use crate::masked::{HIDDEN, has_hidden};
use crate::parts::{list, proof, text};
use crate::secret;
use crate::tree::{large, with};
use crate::visit::Visit;

/// Name of the field for args, which messages also use.
const ARGS: &str = "Args";

/// What is filled in.
#[derive(Default)]
pub(crate) struct Drafted {
    /// Drawn with the form.
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
        let args = match large(job, "args") {
            Some(text) => text.to_owned(),
            None if job["args"].is_null() => String::new(),
            None => serde_json::to_string_pretty(&job["args"]).unwrap_or_default(),
        };
        let tags: Vec<&str> = list(job, "tags").iter().filter_map(Value::as_str).collect();
        Self {
            kind: text(job, "kind").to_owned(),
            queue: text(job, "queue").to_owned(),
            args,
            priority: job["priority"]
                .as_i64()
                .filter(|priority| *priority != 0)
                .map_or_else(String::new, |it| it.to_string()),
            tags: tags.join(" "),
            ..Self::default()
        }
    }

    fn anew(self, visit: &Visit) -> Self {
        Self { id: drawn(visit), ..self }
    }

    /// The id of the job: it follows from that of the form and from all that is filled in, so that a form that is sent twice makes
    /// one job, and one that is changed makes another. None if the form has none: then the server draws it.
    pub(crate) fn job_id(&self) -> Option<JobId> {
        let form = self.id.parse::<JobId>().ok()?;
        let all = [&self.id, &self.kind, &self.queue, &self.args, &self.due, &self.priority, &self.tags];
        let chance = secret::digest(&all.map(String::as_str));
        Some(JobId::new(form.made_at()?, u64::from_str_radix(chance.get(..16)?, 16).ok()?))
    }

    /// What the contract is asked for, as text: args are what somebody has written, to the last digit.
    pub(crate) fn ask(&self, visit: &Visit) -> Result<String, Trouble> {
        let refuse = |detail: String| Trouble::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid job", &detail);
        let args = if self.args.is_empty() { "null" } else { &self.args };
        let is_masked =
            has_hidden(args).map_err(|error| refuse(format!("{ARGS} are not valid JSON: {error}.")))?;
        if is_masked {
            return Err(refuse(format!("{ARGS} contain {HIDDEN}. Replace it with the real value.")));
        }
        let mut ask = json!({ "kind": self.kind });
        if !self.queue.is_empty() {
            ask["queue"] = json!(self.queue);
        }
        if !self.due.is_empty() {
            ask["run_at"] = json!(self.due_at(visit)?.to_string());
        }
        if !self.priority.is_empty() {
            let wrong = |_| refuse(format!("Priority {:?} is not a whole number.", self.priority));
            ask["priority"] = json!(self.priority.parse::<i64>().map_err(wrong)?);
        }
        let tags: Vec<&str> = self.tags.split([' ', ',']).filter(|tag| !tag.is_empty()).collect();
        if !tags.is_empty() {
            ask["tags"] = json!(tags);
        }
        Ok(with(&ask, "args", args))
    }

    fn due_at(&self, visit: &Visit) -> Result<Timestamp, Trouble> {
        let refuse = |detail: String| Trouble::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid time", &detail);
        let zone = &visit.likes.zone;
        let due = minute(&self.due).ok_or_else(|| {
            refuse(format!("Due time {:?} is not a time such as 2026-11-24T14:08.", self.due))
        })?;
        let at = instant(zone, due);
        if !self.due.starts_with(&shown_minute(zone, at)) {
            let detail =
                format!("Due time {:?} does not exist in {}: the clocks skip it.", self.due, zone.name());
            return Err(refuse(detail));
        }
        Ok(at)
    }
}

/// Returns true for a job that only Tenure itself or the page of a program may enqueue.
pub(super) fn is_reserved(job: &Value) -> bool {
    let [kind, queue] = ["kind", "queue"].map(|name| text(job, name));
    let is_programs = kind.strip_prefix(SET).is_some_and(|rest| rest.starts_with('.')) || queue == SET;
    is_programs || [kind, queue].iter().any(|name| name.starts_with("tenure."))
}

/// In which field that is what is wrong, by the words with which it is told.
fn field_of(wrong: &str) -> Option<&'static str> {
    const WORDS: [(&str, &str); 3] = [(ARGS, "args"), ("Due time", "due"), ("Priority", "priority")];
    let own = WORDS.iter().find(|(words, _)| wrong.starts_with(words)).map(|(_, field)| *field);
    own.or_else(|| {
        ["kind", "queue", "args", "priority", "tags"].into_iter().find(|name| wrong.starts_with(name))
    })
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
        let like = ids::whole(visit, like).await;
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
    let kinds = visit.all("/v1/kinds").await.unwrap_or_default();
    let at = wrong.and_then(|wrong| field_of(&wrong.detail));
    let (invalid, told) = (
        |name: &str| (at == Some(name)).then_some("true"),
        |name: &str| (at == Some(name)).then_some("wrong"),
    );
    let field = |label: &str, name: &str, value: &str, like: &str| {
        html! { label { (label) input name=(name) value=(value) placeholder=(like) required[name == "kind"] list=[(name == "kind").then_some("kinds")]
        aria-invalid=[invalid(name)] aria-describedby=[told(name)] autofocus[at == Some(name)] autocomplete="off" spellcheck="false"; } }
    };
    html! {
        h1 { "New job" }
        @if let Some(wrong) = wrong { p #wrong .wrong role="alert" { (wrong.detail) } }
        @if drafted.args.contains(HIDDEN) { p.why { "Hidden values are shown as " (HIDDEN) ". Replace them with the real values before you enqueue the job." } }
        @if may(visit).await {
            form.card.stack method="post" action=(visit.at("new-job")) {
                (proof(visit))
                input type="hidden" name="id" value=(drafted.id);
                (field("Kind", "kind", &drafted.kind, "report"))
                datalist #kinds { @for kind in list(&kinds, "items") { option value=(text(kind, "kind")) {} } }
                label { (ARGS) " (JSON)" textarea name="args" rows="6" spellcheck="false" placeholder="null"
                    aria-invalid=[invalid("args")] aria-describedby=[told("args")] autofocus[at == Some("args")] { (drafted.args) } }
                (field("Queue", "queue", &drafted.queue, "default"))
                label { "Due time, in " (visit.likes.zone.name()) " (empty: now)" input type="datetime-local" name="due" value=(drafted.due)
                    aria-invalid=[invalid("due")] aria-describedby=[told("due")] autofocus[at == Some("due")]; }
                (field("Priority, from -100 (first) to 100 (last)", "priority", &drafted.priority, "0"))
                (field("Tags, separated by spaces", "tags", &drafted.tags, "vip urgent"))
                div.bar { button.main { "Enqueue job" } }
            }
        } @else { p.notice { "To enqueue a job you need the scope enqueue and a server that is not read-only." } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_its_own_route_creates_has_no_duplicate() {
        let is = |kind: &str, queue: &str| is_reserved(&json!({ "kind": kind, "queue": queue }));
        assert!(is("apps.report", "apps") && is("apps.report", "default") && is("mail", "apps"));
        assert!(is("tenure.deliver", "tenure.webhooks") && is("tenure.bulk", "tenure.bulk"));
        assert!(!is("mail", "default") && !is("apps", "default") && !is("apps-x", "apps-x"));
    }
}
