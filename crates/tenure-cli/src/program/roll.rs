//! `tenure worker list` and `get`: who runs jobs.

use clap::{Args, Subcommand};
use serde_json::Value;

use crate::client::Ask;
use crate::exit::Failure;
use crate::output::safe;
use crate::with::{Asked, Named, done, text};

const WORKERS: Named = Named {
    path: "/v1/workers",
    columns: &["id", "name", "slots", "serves", "since", "alive-until"],
    cells: |worker, out| {
        let serves = worker["serves"].as_array().into_iter().flatten().map(|serves| text(serves, "/queue"));
        vec![
            text(worker, "/worker_id").into(),
            text(worker, "/name").into(),
            worker["slots"].to_string().into(),
            serves.collect::<Vec<_>>().join(",").into(),
            out.when(worker["started_at"].as_str()).into(),
            out.when(worker["alive_until"].as_str()).into(),
        ]
    },
};

/// What can be asked of the workers of a server.
#[derive(Debug, Subcommand)]
pub(crate) enum Workers {
    /// Lists those that are alive
    List(Asked<Nothing>),
    /// Shows one
    Get(Asked<Which>),
}

#[derive(Debug, Args)]
pub(crate) struct Nothing {}

#[derive(Debug, Args)]
pub(crate) struct Which {
    /// Its id, or its name if no other has that
    worker: String,
}

pub(super) fn run(workers: Workers) -> Result<(), Failure> {
    match workers {
        Workers::List(Asked { connect, output, what: Nothing {} }) => {
            done(&connect, output, |with| WORKERS.list(with, None))
        }
        Workers::Get(Asked { connect, output, what }) => done(&connect, output, move |with| {
            let page = with.client.ask(&Ask::get(WORKERS.path))?.json()?;
            let is_meant = |worker: &&Value| {
                [text(worker, "/worker_id"), text(worker, "/name")].contains(&what.worker.as_str())
            };
            let meant: Vec<&Value> =
                page["items"].as_array().into_iter().flatten().filter(is_meant).collect();
            let shown = safe::line(&what.worker);
            match meant.as_slice() {
                [one] => WORKERS.one(with, &one.to_string()),
                [] => Err(Failure::NotThere(format!(
                    "no worker {shown} is alive; `tenure worker list` shows who is"
                ))),
                _ => {
                    Err(Failure::Conflict(format!("{} workers are called {shown}; say the id", meant.len())))
                }
            }
        }),
    }
}
