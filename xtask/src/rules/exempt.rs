//! Who may take time and chance from the machine instead of being handed them.

use crate::source::Source;

/// The files that may. Everything else asks what was injected; tests may do as they need.
const EXEMPT: &[&str] = &[
    "crates/tenure-store/src/clock.rs",
    "crates/tenure-store/src/chance.rs",
    "crates/tenure-sqlite/src/pause.rs",
    "crates/tenure-postgres/src/patience.rs",
    "crates/tenure-program/src/deadline.rs",
    "crates/tenure-program/src/removal.rs",
    "crates/tenure-cli/src/bench/",
    "crates/tenure-http/src/secret.rs",
    "crates/tenure-ui/src/secret.rs",
    "crates/tenure-core/examples/next.rs",
    "crates/tenure-fuzz/src/watch.rs",
    "xtask/src/check.rs",
    "bench/",
];

/// The lints that keep time and chance out, and the groups that would silence them along with others.
const LINTS: &[&str] = &["disallowed_methods", "disallowed_types", "style", "all"];

/// Every exemption from the lints that stands where none may, each with a sentence.
pub fn refused(path: &str, text: &str) -> Vec<String> {
    if !path.ends_with(".rs") || is_test(path) || EXEMPT.iter().any(|exempt| path.starts_with(exempt)) {
        return Vec::new();
    }
    let source = Source::split(text);
    // By convention the tests of a module are the last thing in its file.
    let end = source.code.find("#[cfg(test)]").unwrap_or(source.code.len());
    let mut refused = Vec::new();
    for (at, found) in source.code[..end].match_indices("clippy::") {
        let rest = &source.code[at + found.len()..];
        let lint = rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default();
        if LINTS.contains(&lint) {
            refused.push(format!(
                "{path}:{}: `clippy::{lint}`: only the files in xtask/src/rules/exempt.rs may take time and chance \
                 from the machine; ask the injected Clock and Chance",
                source.line_at(at),
            ));
        }
    }
    refused
}

fn is_test(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("/tests.rs")
}
