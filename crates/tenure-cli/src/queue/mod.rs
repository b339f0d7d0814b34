//! `tenure queue`: what is agreed about queues, and how they stand.

mod agree;
mod drain;
mod stats;

pub(crate) use agree::rate;
pub(crate) use stats::shown;

use clap::{Args, Subcommand};
use serde_json::json;

use crate::client::Ask;
use crate::exit::Failure;
use crate::output::safe;
use crate::with::{Asked, Named, With, done, text};

const QUEUES: Named = Named {
    path: "/v1/queues",
    columns: &["name", "paused", "max-running", "rate", "max-depth", "attempts", "lease"],
    cells: |queue, _| {
        let said =
            |value: &serde_json::Value| if value.is_null() { String::new() } else { value.to_string() };
        let paused = if queue["paused"] == true { "paused" } else { "no" };
        vec![
            text(queue, "/name").into(),
            paused.into(),
            said(&queue["max_running"]).into(),
            shown_rate(&queue["rate"]).into(),
            said(&queue["max_depth"]).into(),
            said(&queue["default_retry"]["max_attempts"]).into(),
            said(&queue["lease_seconds"]).into(),
        ]
    },
};

/// A rate limit as tables show it; empty without one.
pub(crate) fn shown_rate(rate: &serde_json::Value) -> String {
    if rate.is_null() {
        return String::new();
    }
    format!("{}/{} s", rate["limit"], rate["per_seconds"])
}

/// Commands for queues.
#[derive(Debug, Subcommand)]
pub(crate) enum Queues {
    /// List queues
    List(Asked<Nothing>),
    /// Show a queue
    Get(Asked<Name>),
    /// Show counts, rates and latency of queues
    Stats(Asked<stats::Stats>),
    /// Set limits and defaults of a queue
    Set(Asked<agree::Set>),
    /// Delete the waiting jobs of a queue
    Purge(Asked<agree::Purge>),
    /// Delete an empty queue
    #[command(aliases = ["rm", "remove"])]
    Delete(Asked<Name>),
    /// Explain why the jobs of a queue do not run
    Explain(Asked<Name>),
    /// Pause a queue; running jobs continue
    Pause(Asked<Name>),
    /// Pause a queue and wait for its running jobs
    Drain(Asked<drain::Drain>),
    /// Resume a queue
    Resume(Asked<Name>),
}

#[derive(Debug, Args)]
pub(crate) struct Nothing {}

#[derive(Debug, Args)]
pub(crate) struct Name {
    /// Name of the queue
    name: String,
}

/// `tenure top`
pub(crate) type Top = Asked<stats::Top>;

pub(crate) fn top(top: Top) -> Result<(), Failure> {
    let Asked { connect, output, what } = top;
    done(&connect, output, move |with| stats::top(&what, with))
}

pub(crate) fn run(queues: Queues) -> Result<(), Failure> {
    match queues {
        Queues::List(Asked { connect, output, what: Nothing {} }) => {
            done(&connect, output, |with| QUEUES.list(with, None))
        }
        Queues::Get(Asked { connect, output, what }) => done(&connect, output, move |with| {
            let answer = with.client.ask(&Ask::get(QUEUES.of(&what.name)))?;
            QUEUES.one(with, &answer.text())
        }),
        Queues::Stats(Asked { connect, output, what }) => {
            done(&connect, output, move |with| stats::run(&what, with))
        }
        Queues::Set(Asked { connect, output, what }) => {
            done(&connect, output, move |with| agree::set(&what, with))
        }
        Queues::Purge(Asked { connect, output, what }) => {
            done(&connect, output, move |with| agree::purge(&what, with))
        }
        Queues::Delete(Asked { connect, output, what }) => {
            done(&connect, output, move |with| agree::delete(&what.name, with))
        }
        Queues::Explain(Asked { connect, output, what }) => done(&connect, output, move |with| {
            QUEUES.explain(with, &what.name, "nothing holds its jobs back")
        }),
        Queues::Pause(Asked { connect, output, what }) => {
            done(&connect, output, move |with| agree(with, &what.name, "pause", "is paused"))
        }
        Queues::Drain(Asked { connect, output, what }) => {
            done(&connect, output, move |with| drain::run(&what, with))
        }
        Queues::Resume(Asked { connect, output, what }) => {
            done(&connect, output, move |with| agree(with, &what.name, "resume", "is not paused"))
        }
    }
}

fn agree(with: &mut With, name: &str, how: &str, is: &str) -> Result<(), Failure> {
    let answer = with.client.ask(&Ask::post(format!("{}/{how}", QUEUES.of(name)), &json!({})))?;
    QUEUES.told(with, &answer.text(), &format!("queue {} {is}", safe::line(name)))
}
