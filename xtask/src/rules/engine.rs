//! The rules of the contract stand in the engine: a store supplies rows, and calls no function that decides.

use crate::source::Source;

/// Folders of stores.
const STORES: &[&str] =
    &["crates/tenure-sqlite/src/", "crates/tenure-postgres/src/", "crates/tenure-store/src/memory/"];

/// Functions and types, by crate, with which only the engine decides. The list grows with each verb that moves there.
const DECIDE: &[(&str, &[&str])] = &[
    (
        "tenure_core::",
        &["backfill", "edit", "fire", "past_slots", "pause", "remove", "resume", "start", "step", "trigger"],
    ),
    // The condition of a change of a record, and the answer that it is not met.
    ("tenure_store::", &["Only", "Unmet"]),
    ("crate::", &["Only", "Unmet"]),
];

/// Returns a sentence for every name that a store uses to decide in place of the engine.
pub fn refused(path: &str, text: &str) -> Vec<String> {
    if !STORES.iter().any(|store| path.starts_with(store)) {
        return Vec::new();
    }
    let source = Source::split(text);
    let names = DECIDE.iter().flat_map(|(place, decide)| {
        source.names_after(place).into_iter().filter(|(_, name)| decide.contains(name))
    });
    names
        .map(|(line, name)| {
            format!("{path}:{line}: `{name}` decides: call the verbs of `tenure_store::engine` instead")
        })
        .collect()
}
