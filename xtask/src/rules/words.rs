//! The project speaks of itself, not of the place where it was written: no path of a machine, no word of a workplace.

use crate::files::TextFile;

/// Words of a workplace and paths of a machine, refused in any text. A word counts where it begins.
const WORDS: &[&str] = &["helper agent", "/tmp/", "/work/", "/root/", "/home/"];

/// The lines that may contain one: the file, a part of the line, and why.
const ALLOWED: &[(&str, &str, &str)] = &[
    ("xtask/src/rules/words.rs", "", "it has to name the words that it looks for"),
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
