//! `tenure queue set` and `tenure queue purge`.

use clap::Args;
use serde_json::{Map, Value, json};

use super::QUEUES;
use crate::client::Ask;
use crate::exit::Failure;
use crate::job::followed;
use crate::output::safe;
use crate::with::With;

/// What can be said to `tenure queue set`.
#[derive(Debug, Args)]
pub(crate) struct Set {
    /// Its name
    name: String,
    /// How many of its jobs run at once, over all hosts; none for any number
    #[arg(long, value_name = "N|none", value_parser = bound)]
    max_running: Option<Bound<u32>>,
    /// How many of its jobs start in a time, such as 100/60s; none for any number
    #[arg(long, value_name = "N/SPAN|none", value_parser = rate)]
    rate: Option<Bound<(u32, f64)>>,
}

/// What can be said to `tenure queue purge`.
#[derive(Debug, Args)]
pub(crate) struct Purge {
    /// Its name
    name: String,
    /// Its name once more
    #[arg(long, value_name = "NAME")]
    confirm: String,
    /// In which states: scheduled, queued and blocked if it is not said; may be said often
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
        number => number.parse().map(Bound::To).map_err(|_| "allowed: a whole number, or none".to_owned()),
    }
}

fn rate(text: &str) -> Result<Bound<(u32, f64)>, String> {
    const ALLOWED: &str = "allowed: a number and a span, such as 100/60s, or none";
    if text == "none" {
        return Ok(Bound::None);
    }
    let (limit, per) = text.split_once('/').ok_or(ALLOWED)?;
    let per = crate::span::span(per).map_err(|_| ALLOWED)?;
    Ok(Bound::To((limit.parse().map_err(|_| ALLOWED)?, per.as_secs_f64())))
}

pub(super) fn set(set: &Set, with: &mut With) -> Result<(), Failure> {
    let mut body = Map::new();
    let max_running = set.max_running.map(|bound| match bound {
        Bound::To(most) => json!(most),
        Bound::None => Value::Null,
    });
    let rate = set.rate.map(|bound| match bound {
        Bound::To((limit, per)) => json!({ "limit": limit, "per_seconds": per }),
        Bound::None => Value::Null,
    });
    body.extend(max_running.map(|value| ("max_running".to_owned(), value)));
    body.extend(rate.map(|value| ("rate".to_owned(), value)));
    if body.is_empty() {
        return Err(Failure::Usage("nothing is to be changed; say --max-running or --rate".to_owned()));
    }
    let answer = with.client.ask(&Ask::patch(QUEUES.of(&set.name), &body.into(), None))?;
    QUEUES.told(with, &answer.text(), &format!("queue {} is so now", safe::line(&set.name)))
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
        assert_eq!((rate("100/1m"), rate("none")), (Ok(Bound::To((100, 60.0))), Ok(Bound::None)));
        for bad in ["", "-1", "1.5", "many"] {
            assert!(bound(bad).is_err(), "{bad}");
        }
        for bad in ["100", "100/", "/1s", "x/1s", "100/x"] {
            assert!(rate(bad).is_err(), "{bad}");
        }
    }
}
