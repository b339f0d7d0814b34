//! `tenure worker list`, `get`, `quiet`, `resume`, `stop` and `remove`: who runs jobs, and what they are told.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::client::Ask;
use crate::exit::Failure;
use crate::ids::Part;
use crate::near::nearest;
use crate::output::safe;
use crate::with::{Asked, Named, With, done, text};

const WORKERS: Named = Named {
    path: "/v1/workers",
    columns: &["id", "name", "state", "slots", "serves", "since", "last-heartbeat", "lost-jobs", "command"],
    cells: |worker, out| {
        let serves = worker["serves"].as_array().into_iter().flatten().map(|serves| text(serves, "/queue"));
        vec![
            text(worker, "/worker_id").into(),
            text(worker, "/name").into(),
            text(worker, "/state").replace('_', " ").into(),
            worker["slots"].to_string().into(),
            serves.collect::<Vec<_>>().join(",").into(),
            out.when(worker["started_at"].as_str()).into(),
            out.when(worker["last_heartbeat_at"].as_str()).into(),
            lost_jobs(worker).into(),
            text(worker, "/command").into(),
        ]
    },
};

/// Number of jobs that a lost worker had; empty for a live worker.
fn lost_jobs(worker: &Value) -> String {
    worker["lost_jobs"].as_array().map(|jobs| jobs.len().to_string()).unwrap_or_default()
}

/// Commands for the workers of a server.
#[derive(Debug, Subcommand)]
pub(crate) enum Workers {
    /// List workers, and those lost in the last 24 hours
    List(Asked<Nothing>),
    /// Show a worker
    Get(Asked<Which>),
    /// Ask a worker to finish its jobs and take no more
    Quiet(Asked<Which>),
    /// Allow a quiet worker to take jobs again
    Resume(Asked<Which>),
    /// Ask a worker to stop
    Stop(Asked<Which>),
    /// Remove a dead worker and release its jobs
    #[command(aliases = ["rm", "delete"])]
    Remove(Asked<Which>),
}

#[derive(Debug, Args)]
pub(crate) struct Nothing {}

#[derive(Debug, Args)]
pub(crate) struct Which {
    /// Worker id, eight characters of it, or name
    worker: String,
}

pub(super) fn run(workers: Workers) -> Result<(), Failure> {
    match workers {
        Workers::List(Asked { connect, output, what: Nothing {} }) => {
            done(&connect, output, |with| WORKERS.list(with, None))
        }
        Workers::Get(Asked { connect, output, what }) => done(&connect, output, move |with| {
            let worker = meant(with, &what.worker)?;
            WORKERS.one(with, &worker.to_string())
        }),
        Workers::Quiet(Asked { connect, output, what }) => {
            done(&connect, output, move |with| command(with, &what.worker, "quiet", "takes no more jobs"))
        }
        Workers::Resume(Asked { connect, output, what }) => {
            done(&connect, output, move |with| command(with, &what.worker, "resume", "takes jobs again"))
        }
        Workers::Stop(Asked { connect, output, what }) => {
            done(&connect, output, move |with| command(with, &what.worker, "terminate", "was asked to stop"))
        }
        Workers::Remove(Asked { connect, output, what }) => done(&connect, output, move |with| {
            let worker = meant(with, &what.worker)?;
            with.client.ask(&Ask::delete(WORKERS.of(text(&worker, "/worker_id"))))?;
            with.out.tell(&format!("removed worker {}", safe::line(&what.worker)));
            Ok(())
        }),
    }
}

/// Tells a worker something.
fn command(with: &mut With, worker: &str, how: &str, is: &str) -> Result<(), Failure> {
    let id = meant(with, worker)?;
    let path = format!("{}/{how}", WORKERS.of(text(&id, "/worker_id")));
    let answer = with.client.ask(&Ask::post(path, &json!({})))?;
    if with.out.chosen().is_some() {
        return with.out.document(&answer.text());
    }
    with.out.tell(&format!("worker {} {is}", safe::line(worker)));
    Ok(())
}

/// The worker with this id or name.
fn meant(with: &mut With, wanted: &str) -> Result<Value, Failure> {
    let page = with.client.ask(&Ask::get(WORKERS.path))?.json()?;
    let part = Part::of(wanted);
    let is_meant = |worker: &&Value| {
        let id = text(worker, "/worker_id");
        [id, text(worker, "/name")].contains(&wanted) || part.as_ref().is_some_and(|part| part.is_of(id))
    };
    let all: Vec<&Value> = page["items"].as_array().into_iter().flatten().filter(is_meant).collect();
    let alive: Vec<&Value> = all.iter().filter(|worker| text(worker, "/state") != "lost").copied().collect();
    // A worker that was restarted often has the name of one that was lost.
    let meant = if alive.is_empty() { all } else { alive };
    let shown = safe::line(wanted);
    match meant.as_slice() {
        [one] => Ok((*one).clone()),
        [] => {
            let names = page["items"].as_array().into_iter().flatten().map(|worker| text(worker, "/name"));
            let hint = nearest(wanted, names).map_or_else(
                || "list them with `tenure worker list`".to_owned(),
                |near| format!("did you mean {}?", safe::line(near)),
            );
            Err(Failure::NotThere(format!("no worker {shown}; {hint}")))
        }
        _ => Err(Failure::Conflict(format!("{} workers match {shown}; pass the whole id", meant.len()))),
    }
}
