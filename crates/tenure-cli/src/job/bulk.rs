//! Something done with all jobs that a search means: shown first, and then done by a job of its own.

use std::io::{IsTerminal, stdin};

use clap::Args;
use serde_json::{Value, json};

use super::With;
use super::document::Document;
use super::fate::{self, Wait};
use crate::client::{Ask, Trouble};
use crate::exit::Failure;
use crate::output::safe;
use crate::screen;

/// Which jobs are meant by a search.
#[derive(Debug, Args)]
pub(super) struct Meant {
    /// All jobs that match this search, such as 'state:failed created:>-12h'
    #[arg(long, value_name = "SEARCH", conflicts_with = "ids")]
    pub query: Option<String>,
    /// Print the number of matching jobs and change nothing
    #[arg(long, requires = "query")]
    dry_run: bool,
    /// Skip the confirmation
    #[arg(long, requires = "query")]
    yes: bool,
}

/// Does something with all jobs that a search means, and waits until that is done.
pub(super) fn run(
    meant: &Meant,
    query: &str,
    action: &str,
    params: &Value,
    with: &mut With,
) -> Result<(), Failure> {
    let mut body = json!({ "action": action, "filter": { "q": query }, "dry_run": true });
    if params.as_object().is_some_and(|params| !params.is_empty()) {
        body["params"] = params.clone();
    }
    let preview = with.client.ask(&Ask::post("/v1/bulk".to_owned(), &body))?;
    let preview: Value =
        serde_json::from_slice(&preview.body).map_err(|error| Trouble::strange(&error.to_string()))?;
    let jobs = preview["matched"].as_u64().unwrap_or_default();
    let more = if preview["capped"] == true { " or more" } else { "" };
    let plural = if jobs == 1 && more.is_empty() { "job matches" } else { "jobs match" };
    if jobs == 0 && !more.is_empty() {
        with.out
            .tell("no match found yet: the search stopped after 5 seconds, before it had examined all jobs");
    } else {
        with.out.tell(&format!("{jobs}{more} {plural}{}", sample(&preview, jobs)));
    }
    if meant.dry_run || (jobs == 0 && more.is_empty()) {
        return Ok(());
    }
    if !meant.yes && !agreed(action)? {
        with.out.tell("nothing was changed");
        return Ok(());
    }
    body["dry_run"] = json!(false);
    let answer = with.client.ask(&Ask::post("/v1/bulk".to_owned(), &body))?;
    followed(with, answer.text())
}

/// Waits for the job that does it, and tells what came of it.
pub(crate) fn followed(with: &mut With, accepted: String) -> Result<(), Failure> {
    let job = Document::of(accepted)?;
    fate::wait(with, &job.id(), Wait::Forever)?;
    told(with, &job.id())
}

/// What came of it.
fn told(with: &mut With, id: &str) -> Result<(), Failure> {
    let answer = with.client.ask(&Ask::get(format!("/v1/jobs/{id}/result")))?;
    let tally: Value =
        serde_json::from_slice(&answer.body).map_err(|error| Trouble::strange(&error.to_string()))?;
    let parts = [
        ("done", "changed"),
        ("asked", "running and asked to stop"),
        ("already", "unchanged: already in that state"),
        ("refused", "unchanged: not possible in their state"),
    ];
    let of = |(name, what): (&str, &str)| {
        let jobs = tally[name].as_u64().filter(|jobs| *jobs > 0)?;
        Some(format!("{jobs} {what}"))
    };
    let said: Vec<String> = parts.into_iter().filter_map(of).collect();
    with.out.tell(&if said.is_empty() { "no job was left to change".to_owned() } else { said.join("; ") });
    Ok(())
}

/// The first few of them.
fn sample(preview: &Value, jobs: u64) -> String {
    let ids = preview["sample"].as_array().map(Vec::as_slice).unwrap_or_default();
    let shown: Vec<String> = ids.iter().filter_map(Value::as_str).take(3).map(safe::line).collect();
    let more = if jobs > shown.len() as u64 { ", …" } else { "" };
    if shown.is_empty() { String::new() } else { format!(": {}{more}", shown.join(", ")) }
}

/// The action as a person says it.
fn verb(action: &str) -> &'static str {
    match action {
        "cancel" => "Cancel",
        "retry" => "Retry",
        "run_now" => "Run",
        "delete" => "Delete",
        _ => "Change",
    }
}

/// Asks a person. Nobody else is asked, and without being asked nobody agrees.
fn agreed(action: &str) -> Result<bool, Failure> {
    if !stdin().is_terminal() {
        return Err(Failure::Usage(
            "cannot ask for confirmation: standard input is not a terminal; pass --yes".to_owned(),
        ));
    }
    screen::tell(&format!("{} these jobs? Type yes to continue: ", verb(action)));
    let mut line = String::new();
    stdin()
        .read_line(&mut line)
        .map_err(|source| Failure::System { what: "cannot read the answer", source })?;
    Ok(line.trim() == "yes")
}
