//! `tenure bulk`: operations on many jobs, which `tenure job retry --query` and others start.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::client::Ask;
use crate::exit::Failure;
use crate::ids;
use crate::output::{Cell, safe, tone_of};
use crate::with::{Asked, Latest, Named, With, done, text};

/// The kind of the jobs that carry out bulk operations.
const KIND: &str = "tenure.bulk";

const OPERATIONS: Named = Named {
    path: "/v1/jobs",
    columns: &["id", "state", "action", "matched", "done", "created"],
    cells: |job, out| {
        let (args, state) = (&job["args"], text(job, "/state"));
        let more = if args["is_cut"] == true { " or more" } else { "" };
        let done = job["result"]["done"].as_u64().map_or_else(String::new, |done| done.to_string());
        vec![
            text(job, "/id").into(),
            Cell::from(state).toned(tone_of(state)),
            action(args).into(),
            format!("{}{more}", args["meant"].as_u64().unwrap_or_default()).into(),
            done.into(),
            out.when(job["created_at"].as_str()).into(),
        ]
    },
};

/// Commands for bulk operations.
#[derive(Debug, Subcommand)]
pub(crate) enum Bulk {
    /// List bulk operations, latest first
    List(Asked<Latest>),
    /// Cancel a bulk operation; changed jobs stay changed
    Cancel(Asked<Id>),
}

#[derive(Debug, Args)]
pub(crate) struct Id {
    /// Operation id, or at least eight characters of it
    id: String,
}

pub(crate) fn run(bulk: Bulk) -> Result<(), Failure> {
    match bulk {
        Bulk::List(Asked { connect, output, what }) => done(&connect, output, move |with| {
            OPERATIONS.first_at(with, &format!("{}?kind={KIND}", OPERATIONS.path), what.limit)
        }),
        Bulk::Cancel(Asked { connect, output, what }) => {
            done(&connect, output, move |with| cancel(with, &what.id))
        }
    }
}

fn cancel(with: &mut With, said: &str) -> Result<(), Failure> {
    let id = ids::job(&with.client, said)?;
    let job = with.client.ask(&Ask::get(OPERATIONS.of(&id)))?.json()?;
    if text(&job, "/kind") != KIND {
        let kind = safe::line(text(&job, "/kind"));
        return Err(Failure::Invalid(format!(
            "job {} is no bulk operation, but of kind {kind}; use `tenure job cancel`",
            safe::line(&id)
        )));
    }
    let answer = with.client.ask(&Ask::post(format!("{}/cancel", OPERATIONS.of(&id)), &json!({})))?;
    OPERATIONS.told(with, &answer.text(), &format!("cancelled bulk operation {}", safe::line(&id)))
}

/// The action of an operation, such as `retry`, or `move to reports`.
fn action(args: &Value) -> String {
    let act = &args["act"];
    if let Some(word) = act.as_str() {
        return word.replace('_', " ");
    }
    let Some((word, more)) = act.as_object().and_then(|act| act.iter().next()) else { return String::new() };
    match word.as_str() {
        "move" => format!("move to {}", text(more, "/queue")),
        "reprioritise" => format!("set priority {}", more["priority"]),
        other => other.replace('_', " "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_are_named_with_what_they_set() {
        let of = |act: Value| action(&json!({ "act": act }));
        assert_eq!(of(json!("run_now")), "run now");
        assert_eq!(of(json!({ "move": { "queue": "reports" } })), "move to reports");
        assert_eq!(of(json!({ "cancel": { "reason": "" } })), "cancel");
    }
}
