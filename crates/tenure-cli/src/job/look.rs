//! Looking at one job.

use clap::Args;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::With;
use super::document::{self, Document};
use super::fate::{self, Wait};
use crate::client::{Ask, Followed, Patience, Trouble, escaped, follow};
use crate::exit::Failure;
use crate::ids;
use crate::output::{Cell, Shape, Table, safe, tone_of};
use crate::with::text;

/// Arguments of `tenure job get`.
#[derive(Debug, Args)]
pub(super) struct Get {
    /// Job id, or at least eight characters of it
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
}

/// Arguments of `tenure job explain`.
#[derive(Debug, Args)]
pub(super) struct Explain {
    /// Job id, or at least eight characters of it
    #[arg(value_name = "ID")]
    id: String,
}

/// Arguments of `tenure job watch`.
#[derive(Debug, Args)]
pub(super) struct Watch {
    /// Job id, or at least eight characters of it
    #[arg(value_name = "ID")]
    id: String,
    /// Exit with 1 if the job failed or was cancelled
    #[arg(long)]
    exit_status: bool,
    /// Stop watching after this time, with exit code 124
    #[arg(long, value_name = "SPAN")]
    timeout: Option<Wait>,
}

/// Arguments of `tenure job attempts`.
#[derive(Debug, Args)]
pub(super) struct Attempts {
    /// Job id, or at least eight characters of it
    #[arg(value_name = "ID")]
    id: String,
}

/// Arguments of `tenure job result`.
#[derive(Debug, Args)]
pub(super) struct Returned {
    /// Job id, or at least eight characters of it
    #[arg(value_name = "ID")]
    id: String,
}

pub(super) fn explain(explain: &Explain, with: &mut With) -> Result<(), Failure> {
    let id = ids::job(&with.client, &explain.id)?;
    let answer = with.client.ask(&Ask::get(format!("/v1/jobs/{}/explain", escaped(&id))))?;
    if matches!(with.out.shape(), Shape::Json | Shape::Jsonl) {
        return with.out.document(&answer.text());
    }
    with.out.line(&safe::line(text(&answer.json()?, "/detail")))
}

pub(super) fn get(get: &Get, with: &mut With) -> Result<(), Failure> {
    for (index, id) in get.ids.iter().enumerate() {
        let id = ids::job(&with.client, id)?;
        let answer = with.client.ask(&Ask::get(format!("/v1/jobs/{}", escaped(&id))))?;
        if index > 0 && matches!(with.out.shape(), Shape::Table | Shape::Wide) {
            with.out.line("")?;
        }
        document::card(&mut with.out, &Document::of(answer.text())?)?;
    }
    Ok(())
}

pub(super) fn watch(watch: &Watch, with: &mut With) -> Result<(), Failure> {
    let whole = ids::job(&with.client, &watch.id)?;
    let id = safe::line(&whole);
    with.goes.on(format!("job {id} continues"));
    let until = watch.timeout.and_then(Wait::until);
    let mut first = true;
    let With { client, out, .. } = with;
    // Whatever has happened is shown at once, also to a program.
    let followed = follow(client, &whole, until, Patience::new(), |text| {
        document::rows(out, &[Document::of(text.to_owned())?], std::mem::take(&mut first))?;
        out.flush()
    })?;
    match followed {
        Followed::Ended(text) if watch.exit_status => fate::of(&Document::of(text)?),
        Followed::Ended(_) => Ok(()),
        Followed::Removed => Err(Failure::NotThere(format!("job {id} was deleted"))),
        Followed::Over => Err(Failure::WaitOver(format!("timed out waiting for job {id}, which continues"))),
    }
}

/// Attempts of a job, as they are.
#[derive(Deserialize)]
struct Tries {
    items: Vec<Box<RawValue>>,
}

pub(super) fn attempts(attempts: &Attempts, with: &mut With) -> Result<(), Failure> {
    let id = ids::job(&with.client, &attempts.id)?;
    let answer = with.client.ask(&Ask::get(format!("/v1/jobs/{}/attempts", escaped(&id))))?;
    if with.out.shape() == Shape::Json {
        return with.out.document(&answer.text());
    }
    let tries: Tries =
        serde_json::from_slice(&answer.body).map_err(|error| Trouble::strange(&error.to_string()))?;
    let mut table = Table::new(&["attempt", "delivery", "started", "ended", "outcome", "worker", "error"]);
    for attempt in Document::all(&tries.items)? {
        let outcome = attempt.text_of("outcome").unwrap_or("running");
        match with.out.shape() {
            Shape::Jsonl => with.out.document(&attempt.text)?,
            Shape::Id => with.out.line(&attempt.read["attempt"].to_string())?,
            Shape::Table | Shape::Wide | Shape::Json => table.row(vec![
                attempt.read["attempt"].to_string().into(),
                attempt.read["delivery"].to_string().into(),
                with.out.when(attempt.text_of("started_at")).into(),
                with.out.when(attempt.text_of("finished_at")).into(),
                Cell::from(outcome).toned(tone_of(outcome)),
                attempt.text_of("worker_id").unwrap_or_default().into(),
                attempt.text_of("error").unwrap_or_default().lines().next().unwrap_or_default().into(),
            ]),
        }
    }
    if matches!(with.out.shape(), Shape::Table | Shape::Wide) { with.out.table(&table, true) } else { Ok(()) }
}

pub(super) fn result(returned: &Returned, with: &mut With) -> Result<(), Failure> {
    let id = ids::job(&with.client, &returned.id)?;
    let answer = with.client.ask(&Ask::get(format!("/v1/jobs/{}/result", escaped(&id))))?;
    let id = safe::line(&id);
    match answer.status {
        202 => Err(Failure::Conflict(format!("job {id} has not ended; wait with `tenure job watch {id}`"))),
        204 => {
            with.out.tell(&format!("job {id} succeeded without a result"));
            Ok(())
        }
        _ => with.out.document(&answer.text()),
    }
}
