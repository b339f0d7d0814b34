//! `tenure stats`: throughput and latency over time.

use std::time::Duration;

use clap::Args;

use crate::client::{Ask, escaped};
use crate::exit::Failure;
use crate::output::{Shape, Table};
use crate::span::span;
use crate::with::{Asked, With, done, text};

/// About so many lines are printed, unless another step is given.
const LINES: u64 = 24;
/// Numbers are kept by the minute.
const MINUTE: u64 = 60;

/// Arguments of `tenure stats`.
#[derive(Debug, Args)]
pub(crate) struct Stats {
    /// Time to look back, at most 7d
    #[arg(long, value_name = "SPAN", value_parser = span, default_value = "1h")]
    since: Duration,
    /// Length of a step [default: a 24th of the time, at least 1m]
    #[arg(long, value_name = "SPAN", value_parser = span)]
    step: Option<Duration>,
    /// Only this queue
    #[arg(long, value_name = "NAME")]
    queue: Option<String>,
}

pub(crate) fn run(asked: Asked<Stats>) -> Result<(), Failure> {
    let Asked { connect, output, what } = asked;
    done(&connect, output, move |with| show(&what, with))
}

impl Stats {
    fn path(&self) -> String {
        let of = self
            .queue
            .as_ref()
            .map_or_else(|| "/v1/stats".to_owned(), |queue| format!("/v1/queues/{}/stats", escaped(queue)));
        let window = self.since.as_secs();
        let step = self.step.map_or_else(|| usual_step(window), |step| step.as_secs());
        format!("{of}?window_seconds={window}&step_seconds={step}")
    }
}

/// Whole minutes, so that a window has about so many lines.
fn usual_step(window: u64) -> u64 {
    (window / LINES).div_ceil(MINUTE).max(1) * MINUTE
}

fn show(stats: &Stats, with: &mut With) -> Result<(), Failure> {
    let answer = with.client.ask(&Ask::get(stats.path()))?;
    let told = answer.json()?;
    let steps = told["series"].as_array().into_iter().flatten();
    match with.out.shape() {
        Shape::Json => return with.out.document(&answer.text()),
        Shape::Jsonl => return steps.into_iter().try_for_each(|step| with.out.document(&step.to_string())),
        Shape::Table | Shape::Wide | Shape::Id => {}
    }
    let mut table = Table::new(&[
        "at",
        "enqueued",
        "succeeded",
        "failed",
        "cancelled",
        "retried",
        "wait-p50",
        "wait-p95",
        "run-p50",
        "run-p95",
    ]);
    for step in steps {
        let count = |name: &str| step[name].as_u64().unwrap_or_default().to_string().into();
        let took = |name: &str| step[name].as_f64().map_or_else(String::new, crate::queue::shown).into();
        table.row(vec![
            with.out.when(Some(text(step, "/at"))).into(),
            count("enqueued"),
            count("succeeded"),
            count("failed"),
            count("cancelled"),
            count("retried"),
            took("wait_p50_seconds"),
            took("wait_p95_seconds"),
            took("run_p50_seconds"),
            took("run_p95_seconds"),
        ]);
    }
    with.out.table(&table, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_shown_by_the_hour_and_an_hour_by_some_minutes() {
        assert_eq!([60, 3_600, 86_400, 604_800].map(usual_step), [60, 180, 3_600, 25_200]);
    }

    #[test]
    fn one_queue_is_asked_for_by_its_name() {
        let stats = Stats { since: Duration::from_secs(600), step: None, queue: Some("a b".to_owned()) };
        assert_eq!(stats.path(), "/v1/queues/a%20b/stats?window_seconds=600&step_seconds=60");
    }
}
