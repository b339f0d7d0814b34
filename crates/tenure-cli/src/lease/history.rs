//! `tenure lease history`: the events of a lease, and its holder at an earlier time.

use clap::Args;
use serde_json::{Value, json};
use tenure::Timestamp;

use super::LEASES;
use crate::client::{Ask, escaped};
use crate::exit::Failure;
use crate::output::{Shape, safe};
use crate::span::since;
use crate::with::{Latest, Named, With, text};

const ENTRIES: Named = Named {
    path: "/v1/leases/history",
    columns: &["at", "event", "owner", "fence", "held-since", "expires", "note"],
    cells: |entry, out| {
        vec![
            out.when(entry["at"].as_str()).into(),
            text(entry, "/what").replace('_', " ").into(),
            text(entry, "/by/owner").into(),
            text(entry, "/fence").into(),
            out.when(entry["held_since"].as_str()).into(),
            out.when(entry["expires_at"].as_str()).into(),
            text(entry, "/note").into(),
        ]
    },
};

/// Arguments of `tenure lease history`.
#[derive(Debug, Args)]
pub(crate) struct History {
    /// Name of the lease
    name: String,
    /// Print who held it then: 2026-03-28T04:00:00Z, or 2h for two hours ago
    #[arg(long, value_name = "SPAN|INSTANT", value_parser = since, conflicts_with = "limit")]
    at: Option<Timestamp>,
    #[command(flatten)]
    latest: Latest,
}

pub(super) fn run(history: &History, with: &mut With) -> Result<(), Failure> {
    let path = format!("{}/history", LEASES.of(&history.name));
    match history.at {
        None => ENTRIES.first_at(with, &path, history.latest.limit),
        Some(at) => {
            let held = held_at(with, &path, at)?;
            show(with, &history.name, at, &held)
        }
    }
}

/// State of a lease at an instant.
#[derive(Debug, Clone, PartialEq)]
enum Held {
    /// The entry by which its holder had it.
    By(Value),
    /// Since then it was free.
    FreeSince(String),
    /// The history begins later.
    Unknown,
}

/// Goes back through the history to the last entry before the instant.
fn held_at(with: &With, path: &str, at: Timestamp) -> Result<Held, Failure> {
    let (mut later, mut cursor) = (None, String::new());
    loop {
        let page = with.client.ask(&Ask::get(format!("{path}?limit=1000{cursor}")))?.json()?;
        for entry in page["items"].as_array().into_iter().flatten() {
            if let Some(held) = judged(entry, later.as_ref(), at) {
                return Ok(held);
            }
            if text(entry, "/what") != "refused" {
                later = Some(entry.clone());
            }
        }
        let Some(next) = page["next_cursor"].as_str() else { return Ok(Held::Unknown) };
        cursor = format!("&cursor={}", escaped(next));
    }
}

/// Returns the lease's state if this entry is the last one before the instant; `later` is the next entry.
fn judged(entry: &Value, later: Option<&Value>, at: Timestamp) -> Option<Held> {
    let instant =
        |entry: &Value, field: &str| entry[field].as_str().and_then(|text| text.parse::<Timestamp>().ok());
    if instant(entry, "at")? > at {
        return None;
    }
    match text(entry, "/what") {
        "acquired" | "took_over" | "renewed_late" | "changed" => {}
        "broke" | "lapsed" | "released" | "forgotten" => return Some(Held::FreeSince(ended(entry))),
        _ => return None,
    }
    // The store records an expiry when it notices it.
    let lapsed = later.filter(|later| text(later, "/what") == "lapsed");
    let lapsed = lapsed.filter(|later| instant(later, "expires_at").is_some_and(|expired| expired <= at));
    Some(lapsed.map_or_else(|| Held::By(entry.clone()), |lapsed| Held::FreeSince(ended(lapsed))))
}

/// Since when it is free by this entry.
fn ended(entry: &Value) -> String {
    let of_lapse = entry["expires_at"].as_str().filter(|_| text(entry, "/what") == "lapsed");
    of_lapse.unwrap_or(text(entry, "/at")).to_owned()
}

fn show(with: &mut With, name: &str, at: Timestamp, held: &Held) -> Result<(), Failure> {
    if matches!(with.out.shape(), Shape::Json | Shape::Jsonl) {
        let (state, entry, since) = match held {
            Held::By(entry) => ("held", entry.clone(), json!(null)),
            Held::FreeSince(since) => ("free", json!(null), json!(since)),
            Held::Unknown => ("unknown", json!(null), json!(null)),
        };
        let document = json!({ "at": at.to_string(), "state": state, "free_since": since, "entry": entry });
        return with.out.document(&document.to_string());
    }
    let sentence = match held {
        Held::By(entry) => format!(
            "held by {} since {} with fencing token {}",
            safe::line(text(entry, "/by/owner")),
            safe::line(entry["held_since"].as_str().unwrap_or(text(entry, "/at"))),
            safe::line(text(entry, "/fence")),
        ),
        Held::FreeSince(since) => format!("free since {}", safe::line(since)),
        Held::Unknown => format!("unknown: the history of lease {} begins later", safe::line(name)),
    };
    with.out.line(&sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(at: &str, what: &str, expires: &str) -> Value {
        let at = format!("2026-03-28T{at}:00Z");
        let expires = format!("2026-03-28T{expires}:00Z");
        json!({ "at": at, "what": what, "expires_at": expires, "by": { "owner": "me" }, "fence": "7" })
    }

    fn at(hour: &str) -> Timestamp {
        format!("2026-03-28T{hour}:00Z").parse().unwrap()
    }

    #[test]
    fn a_lease_is_held_from_its_acquisition_to_its_end() {
        let acquired = entry("03:00", "acquired", "03:30");
        assert_eq!(judged(&acquired, None, at("02:59")), None);
        assert_eq!(judged(&acquired, None, at("04:00")), Some(Held::By(acquired.clone())));
        let released = entry("05:00", "released", "05:10");
        assert_eq!(
            judged(&released, None, at("06:00")),
            Some(Held::FreeSince("2026-03-28T05:00:00Z".to_owned()))
        );
        assert_eq!(judged(&entry("05:30", "refused", "06:00"), None, at("06:00")), None);
    }

    #[test]
    fn an_expiry_that_is_noticed_late_counts_from_its_time() {
        let (acquired, lapsed) = (entry("03:00", "acquired", "03:30"), entry("06:00", "lapsed", "04:00"));
        assert_eq!(judged(&acquired, Some(&lapsed), at("03:59")), Some(Held::By(acquired.clone())));
        assert_eq!(
            judged(&acquired, Some(&lapsed), at("05:00")),
            Some(Held::FreeSince("2026-03-28T04:00:00Z".to_owned()))
        );
    }
}
