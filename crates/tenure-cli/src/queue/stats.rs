//! `tenure queue stats` and `tenure top`: how queues stand and how things went in them, once or again and again.

use std::io::IsTerminal;
use std::sync::mpsc::channel;
use std::time::Duration;

use clap::Args;
use serde_json::Value;

use super::QUEUES;
use crate::client::{Ask, Patience, escaped};
use crate::exit::Failure;
use crate::output::{Cell, Shape, Table, tone_of};
use crate::screen::Tone;
use crate::with::With;

/// Between two looks, unless somebody says otherwise.
const EVERY: Duration = Duration::from_secs(2);
const COLUMNS: [&str; 11] = [
    "queue",
    "queued",
    "running",
    "scheduled",
    "blocked",
    "oldest",
    "in/min",
    "done/min",
    "failed/min",
    "run p95",
    "paused",
];

/// Arguments of `tenure queue stats` and `tenure top`.
#[derive(Debug, Args)]
pub(crate) struct Stats {
    /// Queue [default: all]
    name: Option<String>,
    /// Refresh every 2 s until Ctrl-C
    #[arg(short, long)]
    watch: bool,
}

/// Arguments of `tenure top`.
#[derive(Debug, Args)]
pub(crate) struct Top {
    /// Queue [default: all]
    name: Option<String>,
    /// Print once and exit
    #[arg(long)]
    once: bool,
}

pub(super) fn run(stats: &Stats, with: &mut With) -> Result<(), Failure> {
    show(stats.name.as_deref(), stats.watch, with)
}

pub(super) fn top(top: &Top, with: &mut With) -> Result<(), Failure> {
    show(top.name.as_deref(), !top.once, with)
}

fn show(name: Option<&str>, watch: bool, with: &mut With) -> Result<(), Failure> {
    let mut patience = Patience::new();
    let over = watch && std::io::stdout().is_terminal() && with.out.chosen().is_none();
    loop {
        match look(name, with) {
            Ok(told) => {
                patience.heard();
                if over {
                    // Back to the upper left corner of a clean screen.
                    with.out.line("\u{1b}[2J\u{1b}[H")?;
                }
                print(&told, with)?;
                with.out.flush()?;
            }
            Err(trouble) => patience.endure(trouble)?,
        }
        if !watch {
            return Ok(());
        }
        let (_kept, never) = channel::<()>();
        let _ = never.recv_timeout(EVERY);
    }
}

/// How the queues stand, and how the last minutes went in each.
fn look(name: Option<&str>, with: &With) -> Result<Vec<Value>, crate::client::Trouble> {
    let names: Vec<String> = match name {
        Some(name) => vec![name.to_owned()],
        None => names(with)?,
    };
    let of = |name: &String| {
        with.client.ask(&Ask::get(format!("{}/stats?window_seconds=180", QUEUES.of(name))))?.json()
    };
    names.iter().map(of).collect()
}

/// Returns the names of all queues, page by page.
fn names(with: &With) -> Result<Vec<String>, crate::client::Trouble> {
    let (mut names, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = with.client.ask(&Ask::get(format!("/v1/queues?limit=1000{cursor}")))?.json()?;
        let named = |queue: &Value| queue["name"].as_str().map(str::to_owned);
        names.extend(page["items"].as_array().into_iter().flatten().filter_map(named));
        let Some(next) = page["next_cursor"].as_str() else { return Ok(names) };
        cursor = format!("&cursor={}", escaped(next));
    }
}

fn print(told: &[Value], with: &mut With) -> Result<(), Failure> {
    let mut table = Table::new(&COLUMNS);
    for queue in told {
        match with.out.shape() {
            Shape::Table | Shape::Wide => table.row(cells(queue)),
            Shape::Json | Shape::Jsonl => with.out.document(&queue.to_string())?,
            Shape::Id => with.out.id("queue", queue["queue"].as_str().unwrap_or_default())?,
        }
    }
    if matches!(with.out.shape(), Shape::Table | Shape::Wide) { with.out.table(&table, true) } else { Ok(()) }
}

fn cells(queue: &Value) -> Vec<Cell> {
    let of = |state: &str| {
        Cell::from(queue["jobs"][state].as_u64().unwrap_or(0).to_string()).toned(tone_of(state))
    };
    let went =
        |name: &str| per_minute(queue, name).map_or_else(String::new, |rate| format!("{rate:.1}")).into();
    let paused = if queue["paused"] == true { "paused" } else { "" };
    let oldest = queue["oldest_due_seconds"].as_f64().map_or_else(String::new, shown);
    let p95 = longest(queue, "run_p95_seconds").map_or_else(String::new, shown);
    let name = queue["queue"].as_str().unwrap_or_default();
    vec![
        name.into(),
        of("queued"),
        of("running"),
        of("scheduled"),
        of("blocked"),
        oldest.into(),
        went("enqueued"),
        went("succeeded"),
        went("failed"),
        p95.into(),
        Cell::from(paused).toned(Tone::Careful),
    ]
}

/// The mean over the steps.
fn per_minute(queue: &Value, name: &str) -> Option<f64> {
    let steps = queue["series"].as_array().filter(|steps| !steps.is_empty())?;
    let sum: u64 = steps.iter().filter_map(|step| step[name].as_u64()).sum();
    Some(sum as f64 / steps.len() as f64)
}

fn longest(queue: &Value, name: &str) -> Option<f64> {
    let steps = queue["series"].as_array()?;
    steps.iter().filter_map(|step| step[name].as_f64()).reduce(f64::max)
}

/// Seconds, as a person reads them.
pub(crate) fn shown(seconds: f64) -> String {
    match seconds {
        under if under < 1.0 => format!("{:.0} ms", under * 1_000.0),
        under if under < 120.0 => format!("{under:.1} s"),
        under if under < 7_200.0 => format!("{:.0} min", under / 60.0),
        long => format!("{:.1} h", long / 3_600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_in_a_minute_is_the_mean_of_the_steps() {
        let queue =
            serde_json::json!({ "series": [{ "enqueued": 60 }, { "enqueued": 30 }, { "enqueued": 0 }] });
        assert_eq!((per_minute(&queue, "enqueued"), per_minute(&queue, "failed")), (Some(30.0), Some(0.0)));
        assert_eq!(per_minute(&serde_json::json!({}), "enqueued"), None);
    }

    #[test]
    fn spans_are_shown_as_people_say_them() {
        assert_eq!([0.0042, 1.26, 600.0, 9_000.0].map(shown), ["4 ms", "1.3 s", "10 min", "2.5 h"]);
    }
}
