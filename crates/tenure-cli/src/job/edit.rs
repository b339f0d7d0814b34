//! `tenure job edit`: changing where a job waits, its place in line, and when it is due.

use std::time::Duration;

use clap::Args;
use serde_json::{Map, Value, json};

use super::With;
use super::document::{self, Document};
use crate::client::{Ask, escaped};
use crate::exit::Failure;
use crate::output::safe;
use crate::span::span;

/// What can be said to `tenure job edit`.
#[derive(Debug, Args)]
pub(super) struct Edit {
    /// Which
    id: String,
    /// Where it waits
    #[arg(long, value_name = "NAME")]
    queue: Option<String>,
    /// Its place among the due jobs of its queue: from -100, the first, to 100
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i64>,
    /// When it is due, such as 2026-03-28T12:00:00Z
    #[arg(long, value_name = "INSTANT", conflicts_with = "delay")]
    at: Option<String>,
    /// In how long it is due, such as 10m
    #[arg(long = "in", id = "delay", value_name = "SPAN", value_parser = span)]
    delay: Option<Duration>,
}

pub(super) fn run(edit: &Edit, with: &mut With) -> Result<(), Failure> {
    let mut body = Map::new();
    let mut say = |name: &str, value: Option<Value>| body.extend(value.map(|value| (name.to_owned(), value)));
    say("queue", edit.queue.as_ref().map(|queue| json!(queue)));
    say("priority", edit.priority.map(|priority| json!(priority)));
    say("run_at", edit.at.as_ref().map(|at| json!(at)));
    say("delay_seconds", edit.delay.map(|delay| json!(delay.as_secs_f64())));
    if body.is_empty() {
        return Err(Failure::Usage(
            "nothing is to be changed; say --queue, --priority, --at or --in".to_owned(),
        ));
    }
    let path = format!("/v1/jobs/{}", escaped(&edit.id));
    let looked_at = with.client.ask(&Ask::get(path.clone()))?;
    let answer = with.client.ask(&Ask::patch(path, &body.into(), looked_at.tag.as_deref()))?;
    let job = Document::of(answer.text())?;
    if with.out.chosen().is_some() {
        return document::rows(&mut with.out, std::slice::from_ref(&job), true);
    }
    with.out.tell(&format!("job {} is now {}", job.id(), safe::line(job.state())));
    Ok(())
}
