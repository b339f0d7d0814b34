//! `tenure limit`: limits of limit keys, over all queues.

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use crate::client::Ask;
use crate::exit::Failure;
use crate::output::safe;
use crate::queue::{rate, shown_rate};
use crate::with::{Asked, Named, With, done, text};

const LIMITS: Named = Named {
    path: "/v1/limits",
    columns: &["key", "max-running", "rate", "set-by", "running", "queued", "blocked"],
    cells: |limit, _| {
        let number = |field: &str| limit[field].as_u64().map(|number| number.to_string()).unwrap_or_default();
        vec![
            text(limit, "/key").into(),
            number("max_running").into(),
            shown_rate(&limit["rate"]).into(),
            if limit["is_set"] == true { "operator" } else { "jobs" }.into(),
            number("running").into(),
            number("queued").into(),
            number("blocked").into(),
        ]
    },
};

/// Commands for limits.
#[derive(Debug, Subcommand)]
pub(crate) enum Limits {
    /// List limits by limit key
    List(Asked<Nothing>),
    /// Show the limit of a limit key, and its usage
    Get(Asked<Name>),
    /// Set the limit of a limit key
    Set(Asked<Set>),
    /// Remove the limit of a limit key: its jobs set the number
    #[command(aliases = ["delete", "remove"])]
    Rm(Asked<Name>),
}

#[derive(Debug, Args)]
pub(crate) struct Nothing {}

#[derive(Debug, Args)]
pub(crate) struct Name {
    /// Limit key
    key: String,
}

#[derive(Debug, Args)]
pub(crate) struct Set {
    /// Limit key
    key: String,
    /// Maximum number of running jobs, over all workers
    #[arg(long, value_name = "N")]
    max_running: Option<u32>,
    /// Maximum number of starts in a time, such as 100/60s
    #[arg(long, value_name = "N/SPAN", value_parser = rate)]
    rate: Option<(u32, f64)>,
    /// Starts at once after a quiet time [default: the rate's number]
    #[arg(long, value_name = "N", requires = "rate")]
    burst: Option<u32>,
}

pub(crate) fn run(limits: Limits) -> Result<(), Failure> {
    match limits {
        Limits::List(Asked { connect, output, what: Nothing {} }) => {
            done(&connect, output, |with| LIMITS.list(with, None))
        }
        Limits::Get(Asked { connect, output, what }) => done(&connect, output, move |with| {
            let answer = with.client.ask(&Ask::get(LIMITS.of(&what.key)))?;
            LIMITS.one(with, &answer.text())
        }),
        Limits::Set(Asked { connect, output, what }) => done(&connect, output, move |with| set(with, &what)),
        Limits::Rm(Asked { connect, output, what }) => done(&connect, output, move |with| {
            with.client.ask(&Ask::delete(LIMITS.of(&what.key)))?;
            with.out.tell(&format!("removed the limit of key {}", safe::line(&what.key)));
            Ok(())
        }),
    }
}

fn set(with: &mut With, set: &Set) -> Result<(), Failure> {
    if set.max_running.is_none() && set.rate.is_none() {
        return Err(Failure::Usage("nothing to set; pass --max-running or --rate".to_owned()));
    }
    let mut body = Map::new();
    if let Some(most) = set.max_running {
        body.insert("max_running".to_owned(), json!(most));
    }
    if let Some((limit, per)) = set.rate {
        let mut rate = json!({ "limit": limit, "per_seconds": per });
        if let Some(burst) = set.burst {
            rate["burst"] = json!(burst);
        }
        body.insert("rate".to_owned(), rate);
    }
    let ask = Ask::put(LIMITS.of(&set.key), Value::from(body).to_string().into_bytes());
    let answer = with.client.ask(&ask)?;
    LIMITS.told(with, &answer.text(), &format!("set the limit of key {}", safe::line(&set.key)))
}
