//! `tenure queue set`, `tenure queue purge` and `tenure queue delete`.

use std::time::Duration;

use clap::Args;
use serde_json::{Map, Value, json};

use super::QUEUES;
use crate::client::{Ask, Trouble};
use crate::exit::Failure;
use crate::job::followed;
use crate::output::safe;
use crate::with::With;

/// Arguments of `tenure queue set`.
#[derive(Debug, Args)]
pub(crate) struct Set {
    /// Name of the queue
    name: String,
    /// Maximum number of running jobs, over all workers
    #[arg(long, value_name = "N|none", value_parser = bound)]
    max_running: Option<Bound<u32>>,
    /// Maximum number of starts in a time, such as 100/60s
    #[arg(long, value_name = "N/SPAN|none", value_parser = rate_or_none)]
    rate: Option<Bound<(u32, f64)>>,
    /// Maximum number of waiting jobs
    #[arg(long, value_name = "N|none", value_parser = bound)]
    max_depth: Option<Bound<u32>>,
    /// Default number of attempts
    #[arg(long, value_name = "N|none", value_parser = bound)]
    max_attempts: Option<Bound<u32>>,
    /// Delays between attempts, such as 10s,1m,1h; the last one repeats [default: doubling]
    #[arg(long, value_name = "SPAN,…", value_delimiter = ',', value_parser = crate::span::span, requires = "max_attempts")]
    backoff: Vec<Duration>,
    /// Default retention of ended jobs
    #[arg(long, value_name = "SPAN|none", value_parser = span)]
    retain: Option<Bound<f64>>,
    /// Default retention of failed and cancelled jobs [default: that of --retain]
    #[arg(long, value_name = "SPAN", value_parser = crate::span::span, requires = "retain")]
    retain_failed: Option<Duration>,
    /// Default lease of a running job
    #[arg(long, value_name = "SPAN|none", value_parser = span)]
    lease: Option<Bound<f64>>,
}

/// Arguments of `tenure queue purge`.
#[derive(Debug, Args)]
pub(crate) struct Purge {
    /// Name of the queue
    name: String,
    /// Name of the queue again, to confirm
    #[arg(long, value_name = "NAME")]
    confirm: String,
    /// States to delete [default: scheduled,queued,blocked]
    #[arg(long, value_name = "STATE", value_delimiter = ',')]
    state: Vec<String>,
}

/// A bound, or that there is none.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Bound<T> {
    To(T),
    None,
}

fn bound(text: &str) -> Result<Bound<u32>, String> {
    match text {
        "none" => Ok(Bound::None),
        number => number.parse().map(Bound::To).map_err(|_| "expected a whole number, or none".to_owned()),
    }
}

fn span(text: &str) -> Result<Bound<f64>, String> {
    if text == "none" {
        return Ok(Bound::None);
    }
    let told = crate::span::span(text).map_err(|wrong| format!("{wrong}, or none"))?;
    Ok(Bound::To(told.as_secs_f64()))
}

fn rate_or_none(text: &str) -> Result<Bound<(u32, f64)>, String> {
    if text == "none" {
        return Ok(Bound::None);
    }
    rate(text).map(Bound::To).map_err(|wrong| format!("{wrong}, or none"))
}

/// Reads a number of starts and the time in seconds in which they are allowed.
pub(crate) fn rate(text: &str) -> Result<(u32, f64), String> {
    const ALLOWED: &str = "expected a number and a time, such as 100/60s";
    let (limit, per) = text.split_once('/').ok_or(ALLOWED)?;
    let per = crate::span::span(per).map_err(|_| ALLOWED)?;
    Ok((limit.parse().map_err(|_| ALLOWED)?, per.as_secs_f64()))
}

pub(super) fn set(set: &Set, with: &mut With) -> Result<(), Failure> {
    let body = changes(set);
    if body.is_empty() {
        let detail =
            "nothing to change; pass --max-running, --rate, --max-depth, --max-attempts, --retain or --lease";
        return Err(Failure::Usage(detail.to_owned()));
    }
    let answer = match with.client.ask(&Ask::patch(QUEUES.of(&set.name), &body.clone().into(), None)) {
        // It is agreed about before its first job as well.
        Err(Trouble::Refused(refused)) if refused.is_not_there() => {
            let said: Map<String, Value> = body.into_iter().filter(|(_, value)| !value.is_null()).collect();
            with.client.ask(&Ask::make(QUEUES.of(&set.name), &said.into()))?
        }
        answer => answer?,
    };
    QUEUES.told(with, &answer.text(), &format!("updated queue {}", safe::line(&set.name)))
}

/// What the server is asked to change.
fn changes(set: &Set) -> Map<String, Value> {
    let retry = |most: u32| match set.backoff.as_slice() {
        [] => json!({ "max_attempts": most }),
        waits => {
            let waits: Vec<f64> = waits.iter().map(Duration::as_secs_f64).collect();
            json!({ "max_attempts": most, "waits_seconds": waits })
        }
    };
    let retain = |span: f64| {
        let failed = set.retain_failed.map_or(span, |failed| failed.as_secs_f64());
        json!({ "succeeded": span, "failed": failed })
    };
    let rate = |(limit, per): (u32, f64)| json!({ "limit": limit, "per_seconds": per });
    let said = [
        ("max_running", said(set.max_running, |most| json!(most))),
        ("rate", said(set.rate, rate)),
        ("max_depth", said(set.max_depth, |most| json!(most))),
        ("default_retry", said(set.max_attempts, retry)),
        ("retain_seconds", said(set.retain, retain)),
        ("lease_seconds", said(set.lease, |span| json!(span))),
    ];
    said.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn said<T>(bound: Option<Bound<T>>, as_json: impl Fn(T) -> Value) -> Option<Value> {
    bound.map(|bound| match bound {
        Bound::To(value) => as_json(value),
        Bound::None => Value::Null,
    })
}

pub(super) fn delete(name: &str, with: &mut With) -> Result<(), Failure> {
    with.client.ask(&Ask::delete(QUEUES.of(name)))?;
    with.out.tell(&format!("deleted queue {}", safe::line(name)));
    Ok(())
}

pub(super) fn purge(purge: &Purge, with: &mut With) -> Result<(), Failure> {
    let mut body = json!({ "confirm": purge.confirm });
    if !purge.state.is_empty() {
        body["states"] = json!(purge.state);
    }
    let answer = with.client.ask(&Ask::post(format!("{}/purge", QUEUES.of(&purge.name)), &body))?;
    followed(with, answer.text())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_read_and_lifted() {
        assert_eq!((bound("7"), bound("none")), (Ok(Bound::To(7)), Ok(Bound::None)));
        assert_eq!(
            (rate_or_none("100/1m"), rate_or_none("none")),
            (Ok(Bound::To((100, 60.0))), Ok(Bound::None))
        );
        assert_eq!((span("2d"), span("none")), (Ok(Bound::To(172_800.0)), Ok(Bound::None)));
        assert!(span("long").unwrap_err().ends_with(", or none"));
        for bad in ["", "-1", "1.5", "many"] {
            assert!(bound(bad).is_err(), "{bad}");
        }
        for bad in ["100", "100/", "/1s", "x/1s", "100/x"] {
            assert!(rate_or_none(bad).is_err(), "{bad}");
        }
    }
}
