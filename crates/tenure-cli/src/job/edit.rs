//! `tenure job edit`: changing what was agreed about a job that waits.

use std::time::Duration;

use clap::Args;
use serde_json::{Map, Value, json};

use super::With;
use super::document::{self, Document};
use super::submit::note;
use crate::client::{Ask, escaped};
use crate::exit::Failure;
use crate::ids;
use crate::output::safe;
use crate::span::span;

/// Arguments of `tenure job edit`.
#[derive(Debug, Args)]
pub(super) struct Edit {
    /// Job id, or at least eight characters of it
    id: String,
    /// Queue to move the job to
    #[arg(long, value_name = "NAME")]
    queue: Option<String>,
    /// Priority from -100 (first) to 100 (last)
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i64>,
    /// Time to run at, such as 2026-03-28T12:00:00Z
    #[arg(long, value_name = "INSTANT", conflicts_with = "delay")]
    at: Option<String>,
    /// Delay from now, such as 10m
    #[arg(long = "in", id = "delay", value_name = "SPAN", value_parser = span)]
    delay: Option<Duration>,
    /// Maximum number of attempts
    #[arg(long, value_name = "N")]
    attempts: Option<u32>,
    /// Replace the tags by this one (repeatable)
    #[arg(long = "tag", value_name = "WORD", conflicts_with = "no_tags")]
    tags: Vec<String>,
    /// Remove all tags
    #[arg(long)]
    no_tags: bool,
    /// Set a metadata entry (repeatable)
    #[arg(long = "meta", value_name = "NAME=TEXT", value_parser = note)]
    meta: Vec<(String, String)>,
    /// Remove a metadata entry (repeatable)
    #[arg(long = "no-meta", value_name = "NAME")]
    no_meta: Vec<String>,
}

pub(super) fn run(edit: &Edit, with: &mut With) -> Result<(), Failure> {
    let mut body = Map::new();
    let mut say = |name: &str, value: Option<Value>| body.extend(value.map(|value| (name.to_owned(), value)));
    say("queue", edit.queue.as_ref().map(|queue| json!(queue)));
    say("priority", edit.priority.map(|priority| json!(priority)));
    say("run_at", edit.at.as_ref().map(|at| json!(at)));
    say("delay_seconds", edit.delay.map(|delay| json!(delay.as_secs_f64())));
    say("max_attempts", edit.attempts.map(|attempts| json!(attempts)));
    say("tags", (edit.no_tags || !edit.tags.is_empty()).then(|| json!(edit.tags)));
    let mut notes: Map<String, Value> =
        edit.meta.iter().map(|(name, text)| (name.clone(), json!(text))).collect();
    notes.extend(edit.no_meta.iter().map(|name| (name.clone(), Value::Null)));
    say("meta", (!notes.is_empty()).then(|| notes.into()));
    if body.is_empty() {
        let all = "--queue, --priority, --at, --in, --attempts, --tag, --no-tags, --meta or --no-meta";
        return Err(Failure::Usage(format!("nothing to change; pass {all}")));
    }
    let path = format!("/v1/jobs/{}", escaped(&ids::job(&with.client, &edit.id)?));
    let looked_at = with.client.ask(&Ask::get(path.clone()))?;
    let answer = with.client.ask(&Ask::patch(path, &body.into(), looked_at.tag.as_deref()))?;
    let job = Document::of(answer.text())?;
    if with.out.chosen().is_some() {
        return document::rows(&mut with.out, std::slice::from_ref(&job), true);
    }
    with.out.tell(&format!("job {} is now {}", job.id(), safe::line(job.state())));
    Ok(())
}
