//! `tenure schedule backfill` and `export`: slots that have passed, and a schedule for another server.

use std::collections::BTreeMap;

use clap::Args;
use serde_json::json;
use serde_json::value::RawValue;

use super::served::{Name, SCHEDULES};
use crate::client::{Ask, Trouble};
use crate::exit::Failure;
use crate::output::{Shape, Table, counted, safe};
use crate::with::{With, text};

/// What a server is told of a schedule; the rest it tells of itself.
const TOLD: [&str; 14] = [
    "spec",
    "time_zone",
    "except",
    "jitter_seconds",
    "starts_at",
    "ends_at",
    "max_runs",
    "overlap",
    "overlap_max",
    "catch_up",
    "catch_up_max",
    "max_lateness_seconds",
    "on_edit",
    "job",
];

/// Arguments of `tenure schedule backfill`.
#[derive(Debug, Args)]
pub(crate) struct Backfill {
    /// Name of the schedule
    name: String,
    /// Start of the range, such as 2026-03-28T12:00:00Z
    #[arg(long, value_name = "INSTANT")]
    from: String,
    /// End of the range, at most now
    #[arg(long, value_name = "INSTANT")]
    to: String,
    /// List the runs and enqueue nothing
    #[arg(long)]
    dry_run: bool,
    /// Include runs that already had a job
    #[arg(long)]
    again: bool,
}

pub(super) fn backfill(backfill: &Backfill, with: &mut With) -> Result<(), Failure> {
    let path = format!("{}/backfill", SCHEDULES.of(&backfill.name));
    let (mut from, mut jobs) = (backfill.from.clone(), 0);
    loop {
        let body =
            json!({ "from": from, "to": backfill.to, "dry_run": backfill.dry_run, "again": backfill.again });
        let answer = with.client.ask(&Ask::post(&path, &body))?;
        if backfill.dry_run {
            return slots(with, &answer.text());
        }
        let told = answer.json()?;
        jobs += told["jobs"].as_u64().unwrap_or_default();
        match told["next_from"].as_str() {
            // To go on where it has begun would be to go on for ever.
            Some(next) if next != from => next.clone_into(&mut from),
            Some(_) | None => break,
        }
    }
    if matches!(with.out.chosen(), Some(Shape::Json | Shape::Jsonl)) {
        return with.out.document(&json!({ "jobs": jobs }).to_string());
    }
    with.out.tell(&format!("schedule {}: {} enqueued", safe::line(&backfill.name), counted(jobs, "job")));
    Ok(())
}

fn slots(with: &mut With, document: &str) -> Result<(), Failure> {
    if matches!(with.out.shape(), Shape::Json | Shape::Jsonl) {
        return with.out.document(document);
    }
    let told: serde_json::Value =
        serde_json::from_str(document).map_err(|error| Trouble::strange(&error.to_string()))?;
    let mut table = Table::new(&["at", "local"]);
    for slot in told["slots"].as_array().into_iter().flatten() {
        table.row(vec![with.out.when(slot["at"].as_str()).into(), text(slot, "/local").into()]);
    }
    with.out.table(&table, true)?;
    if told["capped"] == true {
        with.out.tell("more runs follow; narrow --from and --to");
    }
    Ok(())
}

pub(super) fn export(name: &Name, with: &mut With) -> Result<(), Failure> {
    let answer = with.client.ask(&Ask::get(SCHEDULES.of(&name.name)))?;
    let strange = |error: serde_json::Error| Trouble::strange(&error.to_string());
    // What it says stays sign by sign as it is.
    let mut told: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(&answer.body).map_err(strange)?;
    told.retain(|field, value| TOLD.contains(&field.as_str()) && value.get() != "null");
    if let Some(job) = told.get_mut("job") {
        let mut fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(job.get()).map_err(strange)?;
        fields.retain(|field, value| field == "args" || value.get() != "null");
        *job = RawValue::from_string(serde_json::to_string(&fields).map_err(strange)?).map_err(strange)?;
    }
    with.out.document(&serde_json::to_string(&told).map_err(strange)?)
}
