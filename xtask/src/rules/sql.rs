//! SQL lives with its store.

use crate::files::is_crate_source;
use crate::source::Source;

/// Where statements may stand: the stores, and the program's measurement of the bare driver.
const HOMES: &[&str] =
    &["crates/tenure-sqlite/src/", "crates/tenure-postgres/src/", "crates/tenure-cli/src/bench/floor.rs"];

/// How a statement begins. The words are looked for in capitals, as statements are written here: prose about
/// selecting or updating is not SQL.
const VERBS: &[&str] =
    &["SELECT", "INSERT INTO", "INSERT OR", "UPDATE", "DELETE FROM", "CREATE TABLE", "CREATE INDEX"];

/// Every string with a statement in it that stands outside of a store, each with a sentence.
pub fn refused(path: &str, text: &str) -> Vec<String> {
    if !is_crate_source(path) || HOMES.iter().any(|home| path.starts_with(home)) {
        return Vec::new();
    }
    let strings = Source::split(text).strings;
    strings
        .iter()
        .filter_map(|string| {
            let verb = VERBS.iter().find(|verb| holds_statement(&string.text, verb))?;
            Some(format!(
                "{path}:{}: `{verb}`: SQL lives in the store's own crate, see ARCHITECTURE.md",
                string.line
            ))
        })
        .collect()
}

fn holds_statement(text: &str, verb: &str) -> bool {
    text.match_indices(verb).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + verb.len()..].chars().next();
        !before.is_some_and(char::is_alphanumeric) && after.is_some_and(|c| c.is_whitespace() || c == '\\')
    })
}
