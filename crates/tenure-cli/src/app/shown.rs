//! What is printed of apps, their runs and their lines.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::client::{AGAIN, Answer, Ask, Patience, Trouble, pause};
use crate::exit::Failure;
use crate::output::{Out, Shape, Table, safe};
use crate::with::{With, text};

/// Runs, or entries of lines, of one request.
pub(super) const PAGE: usize = 100;

#[derive(Deserialize)]
struct Page {
    items: Vec<Box<RawValue>>,
}

/// All apps, one host of one in a row.
pub(super) fn apps(answer: &Answer, out: &mut Out) -> Result<(), Failure> {
    if out.shape() == Shape::Json {
        return out.document(&answer.text());
    }
    let strange = |error: serde_json::Error| Trouble::strange(&error.to_string());
    let page: Page = serde_json::from_slice(&answer.body).map_err(strange)?;
    let mut table = Table::new(&["type", "name", "state", "schedule", "host", "folder", "detail"]);
    for item in &page.items {
        let app: Value = serde_json::from_str(item.get()).map_err(strange)?;
        match out.shape() {
            Shape::Jsonl => out.document(item.get())?,
            Shape::Id => out.id("app", &format!("{}/{}", text(&app, "/type"), text(&app, "/name")))?,
            Shape::Json | Shape::Table | Shape::Wide => {}
        }
        rows(&app, &mut table);
    }
    match out.shape() {
        Shape::Json | Shape::Jsonl | Shape::Id => Ok(()),
        Shape::Table | Shape::Wide => out.table(&table, true),
    }
}

fn rows(app: &Value, table: &mut Table) {
    let mut row = |state: &str, host: &Value, detail: &str| {
        let [node, folder] = ["/node", "/folder"].map(|field| text(host, field));
        let (sort, name, schedule) = (text(app, "/type"), text(app, "/name"), text(app, "/schedule"));
        let cells = [sort, name, state, schedule, node, folder, detail];
        table.row(cells.map(|cell| safe::line(cell).into()).to_vec());
    };
    let hosts = app["hosts"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_off = !app["stopped"].is_null() && app["type"] == "triggered";
    if hosts.is_empty() {
        row("stopped", &Value::Null, text(app, "/stopped"));
    }
    for host in hosts {
        let state = if is_off { "stopped" } else { text(host, "/state") };
        row(state, host, text(host, "/detail"));
    }
}

/// Runs, the latest first, of an app that somebody may have stopped.
pub(super) fn runs(runs: &[Value], stopped: Option<&str>, out: &mut Out) -> Result<(), Failure> {
    let mut table = Table::new(&["id", "state", "began", "ended", "attempt", "detail"]);
    let documents: Vec<Value> = runs.iter().map(|run| document(run, stopped)).collect();
    for run in &documents {
        match out.shape() {
            Shape::Jsonl => out.document(&run.to_string())?,
            Shape::Id => out.id("job", text(run, "/id"))?,
            Shape::Json | Shape::Table | Shape::Wide => {}
        }
        let when = |field: &str| out.when(run[field].as_str());
        let cells = [
            safe::line(text(run, "/id")),
            safe::line(text(run, "/state")),
            when("started_at"),
            when("ended_at"),
            run["attempt"].to_string(),
            safe::line(text(run, "/detail")),
        ];
        table.row(cells.into_iter().map(Into::into).collect());
    }
    match out.shape() {
        Shape::Json => out.document(&json!({ "items": documents }).to_string()),
        Shape::Jsonl | Shape::Id => Ok(()),
        Shape::Table | Shape::Wide => out.table(&table, true),
    }
}

/// A run in the words of programs. One whose host is gone runs no more, whatever the store was told last; one that waits of an
/// app that somebody has stopped says so.
fn document(job: &Value, stopped: Option<&str>) -> Value {
    let has_lapsed = job["lease"]["lapsed"] == true;
    let waits = has_lapsed || ["scheduled", "queued", "blocked"].contains(&text(job, "/state"));
    let detail = match (stopped.filter(|_| waits), has_lapsed) {
        (Some(""), _) => json!("stopped"),
        (Some(reason), _) => json!(format!("stopped: {reason}")),
        (None, true) => json!("its host is gone; it will run again"),
        (None, false) => job["error"]["detail"].clone(),
    };
    json!({
        "id": job["id"],
        "state": if has_lapsed { json!("lapsed") } else { job["state"].clone() },
        "started_at": job["started_at"],
        "ended_at": job["finished_at"],
        "attempt": job["attempt"],
        "by_schedule": job["schedule"].is_string() && job["args"]["by"].is_null(),
        "detail": detail,
    })
}

/// Prints what a continuous app has said, and goes on with what it says if that is wanted.
pub(super) fn said(
    with: &mut With,
    path: &str,
    at: impl Fn(&str) -> String,
    follow: bool,
) -> Result<(), Failure> {
    let (mut behind, mut patience) = (None::<u64>, Patience::new());
    loop {
        let from = behind.map_or_else(String::new, |behind| format!("&behind={behind}"));
        let answer = match with.client.ask(&Ask::get(at(&format!("{path}?limit={PAGE}{from}")))) {
            Ok(answer) => answer.json()?,
            Err(trouble) => {
                patience.endure(trouble)?;
                continue;
            }
        };
        patience.heard();
        let entries = answer["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        for entry in entries {
            behind = entry["number"].as_u64().or(behind);
            for line in entry["lines"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                match with.out.shape() {
                    Shape::Json | Shape::Jsonl => {
                        let line = json!({ "at": entry["at"], "node": entry["node"], "text": line });
                        with.out.document(&line.to_string())?;
                    }
                    Shape::Table | Shape::Wide | Shape::Id => {
                        with.out.line(&format!(
                            "{} {}",
                            safe::line(text(entry, "/node")),
                            safe::line(line)
                        ))?;
                    }
                }
            }
        }
        with.out.flush()?;
        if entries.is_empty() {
            if !follow {
                return Ok(());
            }
            behind = behind.or(Some(0));
            pause(AGAIN);
        }
    }
}
