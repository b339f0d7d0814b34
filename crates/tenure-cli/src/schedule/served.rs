//! Schedules of a server: what is done again and again.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tenure::{Chance, Clock, JobId, SystemClock};

use crate::client::{Ask, Patience};
use crate::exit::Failure;
use crate::files;
use crate::job::args;
use crate::output::{Shape, Table, safe};
use crate::with::{Latest, Named, With, text};

/// So much is read of a file that says a schedule: more than any server takes.
const FILE_BYTES: u64 = 4 << 20;

pub(super) const SCHEDULES: Named = Named {
    path: "/v1/schedules",
    columns: &["name", "kind", "next", "last", "paused", "description"],
    cells: |schedule, out| {
        let paused = if schedule["paused"].is_null() { "no" } else { "paused" };
        vec![
            text(schedule, "/name").into(),
            text(schedule, "/job/kind").into(),
            out.when(schedule["next_run_at"].as_str()).into(),
            out.when(schedule.pointer("/last_run/at").and_then(Value::as_str)).into(),
            paused.into(),
            text(schedule, "/description").into(),
        ]
    },
};

#[derive(Debug, Args)]
pub(crate) struct Prefix {
    /// Only names that begin with this
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Name {
    /// Name of the schedule
    pub(super) name: String,
}

/// Arguments of `tenure schedule add`.
#[derive(Debug, Args)]
pub(crate) struct Add {
    /// Name of the schedule
    name: String,
    /// Times, such as "30 2 * * *", "every 10m" or "weekly mon-fri 09:30"
    #[arg(required_unless_present = "file", conflicts_with = "file")]
    expression: Option<String>,
    /// Kind of the job to enqueue
    #[arg(required_unless_present = "file")]
    kind: Option<String>,
    /// Args of the job: JSON, @FILE, or - for standard input [default: null]
    #[arg(value_name = "JSON|@FILE|-", allow_negative_numbers = true)]
    args: Option<String>,
    /// Time zone, such as Europe/Berlin [default: that of the expression, else UTC]
    #[arg(long, value_name = "ZONE", conflicts_with = "file")]
    zone: Option<String>,
    /// Queue of the jobs [default: default]
    #[arg(long, value_name = "NAME", conflicts_with = "file")]
    queue: Option<String>,
    /// Rule for a run whose predecessor is still running [default: skip]
    #[arg(long, value_name = "WHAT", conflicts_with = "file")]
    overlap: Option<Overlap>,
    /// Missed runs to make up for [default: one]
    #[arg(long, value_name = "WHAT", conflicts_with = "file")]
    catch_up: Option<CatchUp>,
    /// Read the whole schedule from this JSON file
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Overlap {
    Skip,
    QueueOne,
    QueueAll,
    CancelPrevious,
    Allow,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum CatchUp {
    Skip,
    One,
    All,
}

/// Arguments of `tenure schedule next`.
#[derive(Debug, Args)]
pub(crate) struct Next {
    /// Name of the schedule
    name: String,
    /// Number of runs
    #[arg(short = 'n', long = "number", value_name = "N", default_value_t = 10)]
    number: u64,
}

/// Arguments of `tenure schedule trigger`.
#[derive(Debug, Args)]
pub(crate) struct Trigger {
    /// Name of the schedule
    name: String,
    /// Other args for this job: JSON, @FILE, or - for standard input
    #[arg(value_name = "JSON|@FILE|-", allow_negative_numbers = true)]
    args: Option<String>,
}

/// Arguments of `tenure schedule pause`.
#[derive(Debug, Args)]
pub(crate) struct Pause {
    /// Name of the schedule
    name: String,
    /// Reason, shown with the schedule
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
}

pub(super) fn list(prefix: &Prefix, with: &mut With) -> Result<(), Failure> {
    SCHEDULES.list(with, prefix.prefix.as_deref())
}

pub(super) fn get(name: &Name, with: &mut With) -> Result<(), Failure> {
    let answer = with.client.ask(&Ask::get(SCHEDULES.of(&name.name)))?;
    SCHEDULES.one(with, &answer.text())
}

pub(super) fn add(add: &Add, with: &mut With) -> Result<(), Failure> {
    let answer = with.client.ask(&Ask::put(SCHEDULES.of(&add.name), add.body()?.into_bytes()))?;
    let document = answer.json()?;
    let next = with.out.when(document["next_run_at"].as_str());
    let is = safe::line(text(&document, "/description"));
    SCHEDULES.told(with, &answer.text(), &format!("schedule {}: {is}; next {next}", safe::line(&add.name)))
}

impl Add {
    fn body(&self) -> Result<String, Failure> {
        if let Some(file) = &self.file {
            return files::text_of(file, FILE_BYTES);
        }
        // The args are put in as they are, sign by sign.
        let args = self.args.as_deref().map(args).transpose()?;
        let args = args.as_deref().map_or("null", RawValue::get);
        let word = |it: Option<clap::builder::PossibleValue>| it.map(|it| it.get_name().replace('-', "_"));
        let mut said = vec![
            ("spec", json!({ "text": self.expression })),
            ("time_zone", json!(self.zone)),
            ("overlap", json!(self.overlap.and_then(|overlap| word(overlap.to_possible_value())))),
            ("catch_up", json!(self.catch_up.and_then(|catch_up| word(catch_up.to_possible_value())))),
        ];
        said.retain(|(_, value)| !value.is_null());
        let said: Vec<String> = said.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        let queue =
            self.queue.as_ref().map_or_else(String::new, |queue| format!(",\"queue\":{}", json!(queue)));
        let kind = json!(self.kind);
        Ok(format!("{{{},\"job\":{{\"kind\":{kind}{queue},\"args\":{args}}}}}", said.join(",")))
    }
}

const RUNS: Named = Named {
    path: "/v1/schedules/runs",
    columns: &["at", "outcome", "origin", "runs", "job", "reason", "decided"],
    cells: |run, out| {
        let runs = run["count"].as_u64().map_or_else(|| "many".to_owned(), |count| count.to_string());
        vec![
            out.when(run["last_at"].as_str()).into(),
            text(run, "/outcome").into(),
            text(run, "/origin").into(),
            runs.into(),
            text(run, "/job_id").into(),
            text(run, "/skipped_because").replace('_', " ").into(),
            out.when(run["decided_at"].as_str()).into(),
        ]
    },
};

/// Arguments of `tenure schedule runs`.
#[derive(Debug, Args)]
pub(crate) struct Runs {
    /// Name of the schedule
    name: String,
    #[command(flatten)]
    latest: Latest,
}

pub(super) fn runs(runs: &Runs, with: &mut With) -> Result<(), Failure> {
    RUNS.first_at(with, &format!("{}/runs", SCHEDULES.of(&runs.name)), runs.latest.limit)
}

pub(super) fn next(next: &Next, with: &mut With) -> Result<(), Failure> {
    let path = format!("{}/next?count={}", SCHEDULES.of(&next.name), next.number);
    let answer = with.client.ask(&Ask::get(path))?;
    let slots = answer.json()?;
    let slots = slots["items"].as_array().into_iter().flatten();
    let mut table = Table::new(&["at", "local"]);
    match with.out.shape() {
        Shape::Json => return with.out.document(&answer.text()),
        Shape::Jsonl => return slots.into_iter().try_for_each(|slot| with.out.document(&slot.to_string())),
        Shape::Table | Shape::Wide | Shape::Id => {
            for slot in slots {
                table.row(vec![with.out.when(slot["at"].as_str()).into(), text(slot, "/local").into()]);
            }
        }
    }
    with.out.table(&table, true)
}

/// Asks for a job now, under an id that is drawn here: if the answer is lost, it is asked for again, and is there once.
pub(super) fn trigger(trigger: &Trigger, with: &mut With) -> Result<(), Failure> {
    let id = JobId::new(SystemClock.now(), Chance::from_system().bits());
    let args = trigger.args.as_deref().map(args).transpose()?;
    let args = args.map_or_else(String::new, |args| format!(",\"args\":{}", args.get()));
    let ask = Ask::post_text(
        format!("{}/trigger", SCHEDULES.of(&trigger.name)),
        format!("{{\"id\":\"{id}\"{args}}}"),
    )
    .repeatable();
    let mut patience = Patience::new();
    let answer = loop {
        match with.client.ask(&ask) {
            Ok(answer) => break answer,
            Err(trouble) => {
                let _ = patience.may_be_done(&trouble);
                patience.endure(trouble)?;
            }
        }
    };
    match with.out.chosen() {
        Some(Shape::Json | Shape::Jsonl) => with.out.document(&answer.text()),
        None | Some(Shape::Table | Shape::Wide | Shape::Id) => {
            let job = answer.json()?;
            with.out.line(&safe::line(text(&job, "/id")))
        }
    }
}

pub(super) fn pause(pause: &Pause, with: &mut With) -> Result<(), Failure> {
    let ask = Ask::post(format!("{}/pause", SCHEDULES.of(&pause.name)), &json!({ "reason": pause.reason }));
    let answer = with.client.ask(&ask)?;
    SCHEDULES.told(with, &answer.text(), &format!("paused schedule {}", safe::line(&pause.name)))
}

pub(super) fn explain(name: &Name, with: &mut With) -> Result<(), Failure> {
    SCHEDULES.explain(with, &name.name, "nothing holds it back")
}

pub(super) fn resume(name: &Name, with: &mut With) -> Result<(), Failure> {
    let answer = with.client.ask(&Ask::post(format!("{}/resume", SCHEDULES.of(&name.name)), &json!({})))?;
    SCHEDULES.told(with, &answer.text(), &format!("resumed schedule {}", safe::line(&name.name)))
}

pub(super) fn rm(name: &Name, with: &mut With) -> Result<(), Failure> {
    with.client.ask(&Ask::delete(SCHEDULES.of(&name.name)))?;
    with.out.tell(&format!("deleted schedule {}; its jobs stay", safe::line(&name.name)));
    Ok(())
}
