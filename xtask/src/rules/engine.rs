//! The rules of the contract stand in the engine: a store supplies rows, and calls no function that decides.

use crate::source::Source;

/// Folders of stores.
const STORES: &[&str] =
    &["crates/tenure-sqlite/src/", "crates/tenure-postgres/src/", "crates/tenure-store/src/memory/"];

/// Functions of the domain that only the engine calls. The list grows with each verb that moves there.
const DECIDE: &[&str] =
    &["backfill", "edit", "fire", "past_slots", "pause", "remove", "resume", "start", "step", "trigger"];

/// Returns a sentence for every function of the domain that a store calls in place of the engine.
pub fn refused(path: &str, text: &str) -> Vec<String> {
    if !STORES.iter().any(|store| path.starts_with(store)) {
        return Vec::new();
    }
    let source = Source::split(text);
    let decides = source.names_after("tenure_core::").into_iter().filter(|(_, name)| DECIDE.contains(name));
    decides
        .map(|(line, name)| {
            format!("{path}:{line}: `{name}` decides: call the verbs of `tenure_store::engine` instead")
        })
        .collect()
}
