//! Asking something of jobs.

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::With;
use super::bulk::{self, Meant};
use super::document::{self, Document};
use crate::client::{Ask, escaped};
use crate::exit::Failure;
use crate::ids;
use crate::output::{Shape, safe};
use crate::screen;
use crate::span::span;

/// Which jobs.
#[derive(Debug, Args)]
struct Ids {
    /// Job ids, or at least eight characters of each
    #[arg(value_name = "ID", required_unless_present = "query")]
    ids: Vec<String>,
    #[command(flatten)]
    meant: Meant,
}

/// Arguments of `tenure job cancel`.
#[derive(Debug, Args)]
pub(super) struct Cancel {
    #[command(flatten)]
    ids: Ids,
    /// Reason, shown with the job
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Time for a running handler to stop [default: 30s]
    #[arg(long, value_name = "SPAN", value_parser = span)]
    grace: Option<Duration>,
}

/// Arguments of `tenure job retry`.
#[derive(Debug, Args)]
pub(super) struct Retry {
    #[command(flatten)]
    ids: Ids,
}

/// Arguments of `tenure job run-now`.
#[derive(Debug, Args)]
pub(super) struct RunNow {
    #[command(flatten)]
    ids: Ids,
}

/// Arguments of `tenure job rm`.
#[derive(Debug, Args)]
pub(super) struct Rm {
    #[command(flatten)]
    ids: Ids,
}

pub(super) fn cancel(cancel: &Cancel, with: &mut With) -> Result<(), Failure> {
    let mut body = serde_json::Map::new();
    body.extend(cancel.reason.as_ref().map(|reason| ("reason".to_owned(), json!(reason))));
    body.extend(cancel.grace.map(|grace| ("grace_seconds".to_owned(), json!(grace.as_secs_f64()))));
    let body = body.into();
    each(&cancel.ids, ("cancel", &body), with, |id| Ask::post(format!("/v1/jobs/{id}/cancel"), &body))
}

pub(super) fn retry(retry: &Retry, with: &mut With) -> Result<(), Failure> {
    each(&retry.ids, ("retry", &json!({})), with, |id| Ask::post(format!("/v1/jobs/{id}/retry"), &json!({})))
}

pub(super) fn run_now(run_now: &RunNow, with: &mut With) -> Result<(), Failure> {
    each(&run_now.ids, ("run_now", &json!({})), with, |id| {
        Ask::post(format!("/v1/jobs/{id}/run-now"), &json!({}))
    })
}

pub(super) fn rm(rm: &Rm, with: &mut With) -> Result<(), Failure> {
    each(&rm.ids, ("delete", &json!({})), with, |id| Ask::delete(format!("/v1/jobs/{id}")))
}

/// Asks for one after the other, or for all that a search means. Who is refused one thing is still given the others; it
/// ends as the first that was refused.
fn each(
    ids: &Ids,
    (action, params): (&str, &Value),
    with: &mut With,
    ask: impl Fn(&str) -> Ask,
) -> Result<(), Failure> {
    if let Some(query) = &ids.meant.query {
        return bulk::run(&ids.meant, query, action, params, with);
    }
    let (mut refused, mut first) = (None::<Failure>, true);
    for id in &ids.ids {
        let asked = ids::job(&with.client, id).and_then(|id| Ok(with.client.ask(&ask(&escaped(&id)))?));
        match asked {
            Ok(answer) if answer.status == 204 => with.out.tell(&format!("deleted job {}", safe::line(id))),
            Ok(answer) => {
                told(with, &Document::of(answer.text())?, answer.status, std::mem::take(&mut first))?
            }
            Err(failure) => match refused {
                None => refused = Some(failure),
                Some(_) => screen::complain(&failure.to_string()),
            },
        }
    }
    with.out.flush()?;
    refused.map_or(Ok(()), Err)
}

fn told(with: &mut With, job: &Document, status: u16, first: bool) -> Result<(), Failure> {
    match with.out.chosen() {
        Some(Shape::Table | Shape::Wide | Shape::Json | Shape::Jsonl | Shape::Id) => {
            document::rows(&mut with.out, std::slice::from_ref(job), first)
        }
        None => {
            let asked = status == 202 && job.read["cancel_requested_at"].is_string() && !job.has_ended();
            let stands = if asked { "is running and was asked to stop" } else { "is now" };
            let state = if asked { String::new() } else { format!(" {}", safe::line(job.state())) };
            with.out.tell(&format!("job {} {stands}{state}", job.id()));
            Ok(())
        }
    }
}
