//! The domain is values and transitions: no async, no I/O, no clock, no chance.

use crate::source::Source;

/// Words that have no place in the code of the domain.
const WORDS: &[&str] = &["async", "await", "Instant", "tokio", "rand", "getrandom"];

/// How code asks for the time. A `SystemTime` that somebody hands over is a value like any other and may be
/// converted; asking for one is reading a clock.
const ASKS_THE_TIME: &[&str] = &["::now(", "::now)", "::now;", ".elapsed(", "::elapsed", "now_v7"];

/// Modules of `std` that have no place in the code of the domain.
const STD: &[&str] = &["fs", "net", "thread", "process", "env", "io"];

/// Every word of a source of the domain that should not be there, each with a sentence.
pub fn refused(path: &str, text: &str) -> Vec<String> {
    let source = Source::split(text);
    let sentence = |line: usize, word: &str| {
        format!(
            "{path}:{line}: `{word}`: the domain has no async, no I/O, no clock and no chance, see ARCHITECTURE.md"
        )
    };
    let mut refused: Vec<String> = source
        .words()
        .filter(|(_, word)| WORDS.contains(word))
        .map(|(line, word)| sentence(line, word))
        .collect();
    for ask in ASKS_THE_TIME {
        refused.extend(source.code.match_indices(ask).map(|(at, _)| sentence(source.line_at(at), ask)));
    }
    // `use std::{fmt, fs}` reaches a disk, too.
    for (line, module) in source.names_after("std::") {
        if STD.contains(&module) {
            refused.push(sentence(line, &format!("std::{module}")));
        }
    }
    refused
}
