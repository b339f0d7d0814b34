//! `tenure audit`: changes, revealed values and refused clients.

mod export;

use clap::{Args, Subcommand};
use serde_json::Value;

use crate::client::Connect;
use crate::exit::Failure;
use crate::output::{Cell, Output};
use crate::screen::Tone;
use crate::with::{Latest, Named, done, text};
use export::Export;

/// Arguments of `tenure audit`.
#[derive(Debug, Args)]
pub(crate) struct Audit {
    #[command(flatten)]
    connect: Connect,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    latest: Latest,
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Export audit entries, oldest first
    Export(Export),
}

const ENTRIES: Named = Named {
    path: "/v1/audit",
    columns: &["at", "who", "source", "address", "method", "path", "object", "change", "status", "count"],
    cells: |entry, out| {
        let status = entry["status"].as_u64().unwrap_or_default();
        let tone = if status >= 400 { Tone::Bad } else { Tone::Plain };
        vec![
            out.when(entry["at"].as_str()).into(),
            text(entry, "/who").into(),
            text(entry, "/source").into(),
            text(entry, "/address").into(),
            text(entry, "/method").into(),
            text(entry, "/path").into(),
            object(entry).into(),
            change(entry).into(),
            Cell::from(status.to_string()).toned(tone),
            entry["count"].to_string().into(),
        ]
    },
};

/// Returns the kind and name of the object.
fn object(entry: &Value) -> String {
    format!("{} {}", text(entry, "/object/kind"), text(entry, "/object/name")).trim().to_owned()
}

/// Returns the names of the changed fields.
fn change(entry: &Value) -> String {
    let fields =
        |at: &str| entry[at].as_object().into_iter().flat_map(serde_json::Map::keys).collect::<Vec<_>>();
    let (before, after) = (fields("before"), fields("after"));
    match (before.as_slice(), after.as_slice()) {
        ([], []) => String::new(),
        ([], _) => "created".to_owned(),
        (_, []) => "deleted".to_owned(),
        (_, after) => after.iter().map(|field| field.as_str()).collect::<Vec<_>>().join(","),
    }
}

pub(crate) fn run(audit: Audit) -> Result<(), Failure> {
    let Audit { connect, output, latest, what } = audit;
    done(&connect, output, move |with| match what {
        None => ENTRIES.first_at(with, ENTRIES.path, latest.limit),
        Some(What::Export(export)) => export::run(&export, with),
    })
}
