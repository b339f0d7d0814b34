//! `tenure lease history`: the events of a lease, and its holder at an earlier time.

use clap::Args;
use serde_json::Value;
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
    let Some(at) = history.at else { return ENTRIES.first_at(with, &path, history.latest.limit) };
    let ask = Ask::get(format!("{path}?limit=1&at={}", escaped(&at.to_string())));
    let held = with.client.ask(&ask)?.json()?["held_at"].take();
    match with.out.shape() {
        Shape::Json | Shape::Jsonl => with.out.document(&held.to_string()),
        Shape::Table | Shape::Wide | Shape::Id => with.out.line(&sentence(&history.name, &held)),
    }
}

fn sentence(name: &str, held: &Value) -> String {
    let shown = |field: &str| safe::line(text(held, field));
    match text(held, "/state") {
        "held" => format!(
            "held by {} since {} with fencing token {}",
            shown("/holder/owner"),
            shown("/held_since"),
            shown("/fence"),
        ),
        "free" => format!("free since {}", shown("/held_until")),
        _ => format!(
            "unknown: lease {} was not acquired before, or its history begins later",
            safe::line(name)
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_state_at_a_time_is_one_sentence() {
        let (since, until) = ("2026-03-28T03:00:00Z", "2026-03-28T03:30:00Z");
        let mut held =
            json!({ "state": "held", "fence": "7", "holder": { "owner": "web-3" }, "held_since": since });
        assert_eq!(sentence("x", &held), format!("held by web-3 since {since} with fencing token 7"));
        (held["state"], held["held_until"]) = (json!("free"), json!(until));
        assert_eq!(sentence("x", &held), format!("free since {until}"));
        assert!(sentence("x", &json!({ "state": "unknown" })).starts_with("unknown: lease x"));
    }
}
