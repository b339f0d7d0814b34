//! `tenure job export`: jobs, one document a line.

use std::collections::BTreeMap;

use clap::Args;
use serde_json::value::RawValue;

use super::With;
use super::document::Document;
use super::list::{Which, pages};
use crate::client::Trouble;
use crate::exit::Failure;

/// Arguments of `tenure job export`.
#[derive(Debug, Args)]
pub(super) struct Export {
    #[command(flatten)]
    which: Which,
    /// Print only what `tenure job import` reads: no state, result or errors
    #[arg(long)]
    for_import: bool,
}

/// What of a document says what a job was to be.
const ORDERS: [&str; 14] = [
    "id",
    "kind",
    "args",
    "queue",
    "run_at",
    "priority",
    "max_attempts",
    "timeout_seconds",
    "ordering_key",
    "limit_key",
    "limit_max_running",
    "share_key",
    "tags",
    "meta",
];

pub(super) fn export(export: &Export, with: &mut With) -> Result<(), Failure> {
    pages(&export.which, usize::MAX, with, |with, items| {
        for document in Document::all(items)? {
            match export.for_import {
                true => with.out.document(&order(&document.text)?)?,
                false => with.out.document(&document.text)?,
            }
        }
        Ok(())
    })
    .map(drop)
}

/// What a job was to be, sign by sign as the document says it.
fn order(document: &str) -> Result<String, Failure> {
    let strange = |error: serde_json::Error| Failure::from(Trouble::strange(&error.to_string()));
    let said: BTreeMap<String, &RawValue> = serde_json::from_str(document).map_err(strange)?;
    let kept =
        said.into_iter().filter(|(name, value)| ORDERS.contains(&name.as_str()) && value.get() != "null");
    serde_json::to_string(&kept.collect::<BTreeMap<_, _>>()).map_err(strange)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_became_of_a_job_is_left_out_and_its_args_stay_as_they_are() {
        let document = r#"{"id":"a","kind":"k","args":[1.10,12345678901234567890123],"state":"failed","queue":"q","limit_key":null}"#;
        assert_eq!(
            order(document).unwrap(),
            r#"{"args":[1.10,12345678901234567890123],"id":"a","kind":"k","queue":"q"}"#
        );
    }
}
