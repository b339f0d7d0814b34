//! The project speaks of itself, not of the place where somebody worked on it: no path of a machine, no word of a
//! workplace.

use crate::files::TextFile;

/// What must not stand in any text. A word counts where it begins: `possession` is not a `session`.
const WORDS: &[&str] = &["session", "helper agent", "/tmp/", "/work/", "/root/", "/home/"];

/// The lines that may all the same: the file, a part of the line, and why.
const ALLOWED: &[(&str, &str, &str)] = &[
    ("xtask/src/rules/words.rs", "", "it has to name the words that it looks for"),
    ("crates/tenure-postgres/src/database.rs", "target_session_attrs", "the driver calls it so"),
    ("crates/tenure-postgres/src/url.rs", "target_session_attrs", "PostgreSQL calls it so"),
    ("docs/guide/postgres.md", "target_session_attrs", "PostgreSQL calls it so"),
    ("CHANGELOG.md", "target_session_attrs", "PostgreSQL calls it so"),
    ("crates/tenure/tests/outages/effects.rs", "target_session_attrs", "the driver calls it so"),
    (
        "crates/tenure-postgres/src/database.rs",
        "idle_in_transaction_session_timeout",
        "PostgreSQL calls it so",
    ),
    (
        "crates/tenure-postgres/src/connection.rs",
        "idle_in_transaction_session_timeout",
        "PostgreSQL calls it so",
    ),
    ("crates/tenure-postgres/src/pooled.rs", "idle_in_transaction_session_timeout", "PostgreSQL calls it so"),
    ("xtask/tests/architecture.rs", "breaks the rule", "it shows the rule a text that breaks it"),
];

/// Every place where such a word stands, each with a sentence.
pub fn refused(file: &TextFile) -> Vec<String> {
    let mut refused = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let lower = line.to_lowercase();
        let Some(word) = WORDS.iter().find(|word| begins_in(&lower, word)) else {
            continue;
        };
        if !is_allowed(&file.path, line) {
            refused.push(format!(
                "{}:{}: `{word}` speaks of a workplace; if it does not, allow the line in xtask/src/rules/words.rs",
                file.path,
                index + 1,
            ));
        }
    }
    refused
}

fn begins_in(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| !line[..at].chars().next_back().is_some_and(char::is_alphanumeric))
}

fn is_allowed(path: &str, line: &str) -> bool {
    ALLOWED.iter().any(|(file, part, _)| *file == path && line.contains(part))
}
