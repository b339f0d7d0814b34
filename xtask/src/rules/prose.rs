//! The prose rule: text that people read is plain English.
//!
//! It reads Markdown, the string literals of the product, and the doc comments that become `--help` or OpenAPI text.
//! It finds crude mistakes only; idiom is left to reviewers.

use crate::files::TextFile;
use crate::source::Source;

/// Words that keep readers out, with their replacement.
const REFUSED: &[(&str, &str)] = &[
    ("whoever", "name the actor"),
    ("whomever", "name the actor"),
    ("whatever", "name the thing"),
    ("whom", "name the actor"),
    ("somebody", "name the actor"),
    ("nobody", "name the actor"),
    ("he", "write `you`, or name the actor"),
    ("him", "write `you`, or name the actor"),
    ("his", "write `your`, or name the actor"),
    ("is told", "use an active verb"),
    ("are told", "use an active verb"),
    ("was told", "use an active verb"),
    ("of its own accord", "leave it out"),
    ("all the same", "leave it out"),
    ("as it were", "leave it out"),
];

/// Words that a doc comment shown to users does not begin with.
const OPENINGS: &[&str] = &["What", "Whether", "How", "Who", "That"];

/// The longest sentence, in words.
const SENTENCE_WORDS: usize = 35;
/// The longest heading, in characters.
const HEADING: usize = 72;

/// The lines that may break the rule: the file, a part of the line, and why. At most 20.
pub const ALLOWED: &[(&str, &str, &str)] =
    &[("xtask/src/rules/prose.rs", "", "it names the words that it refuses")];

/// Folders whose text no user of the product reads, or that a later change rewrites.
const UNREAD: &[&str] = &["docs/decisions/", "crates/tenure-conformance/", "crates/tenure-sim/"];
const UNREAD_SOURCES: &[&str] = &["crates/tenure-models/", "crates/own-postgres/"];
/// The derives whose doc comments become text that users see.
const SHOWN: &[&str] = &["Parser", "Args", "Subcommand", "ValueEnum", "JsonSchema"];

/// A piece of prose and the line it begins on.
struct Passage {
    line: usize,
    text: String,
}

/// Every mistake in a file, each with its place and what to do about it.
pub fn refused(file: &TextFile) -> Vec<String> {
    let mut findings = Vec::new();
    for passage in passages(file) {
        for mistake in mistakes(&passage.text) {
            findings.push(finding(file, passage.line, &mistake));
        }
    }
    if is_page(&file.path) {
        for (line, heading) in headings(&file.text).filter(|(_, heading)| heading.chars().count() > HEADING) {
            findings.push(finding(
                file,
                line,
                &format!("the heading `{heading}` is over {HEADING} characters"),
            ));
        }
    }
    for Passage { line, text } in shown_comments(file) {
        if let Some(word) = OPENINGS.iter().find(|word| text.split_whitespace().next() == Some(word)) {
            let advice = format!("`{word}` begins a description: begin with a verb or a noun");
            findings.push(finding(file, line, &advice));
        }
    }
    findings.retain(|finding| !is_allowed(file, finding));
    findings
}

fn finding(file: &TextFile, line: usize, mistake: &str) -> String {
    format!("{}:{line}: {mistake}", file.path)
}

fn is_allowed(file: &TextFile, finding: &str) -> bool {
    let line = finding.strip_prefix(&format!("{}:", file.path)).and_then(|rest| rest.split(':').next());
    let line = line.and_then(|number| number.parse::<usize>().ok()).unwrap_or_default();
    let text = file.text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    ALLOWED.iter().any(|(path, part, _)| *path == file.path && text.contains(part))
}

fn passages(file: &TextFile) -> Vec<Passage> {
    if UNREAD.iter().any(|folder| file.path.starts_with(folder)) {
        return Vec::new();
    }
    if is_page(&file.path) {
        return of_page(&file.text);
    }
    let mut passages = shown_comments(file);
    if is_product(&file.path) {
        passages.extend(literals(&file.text));
    }
    passages
}

fn is_page(path: &str) -> bool {
    path.ends_with(".md") && !UNREAD.iter().any(|folder| path.starts_with(folder))
}

fn is_product(path: &str) -> bool {
    let in_crate = ["crates/", "adapters/"].iter().any(|folder| path.starts_with(folder));
    let in_source = in_crate && path.contains("/src/") && path.ends_with(".rs");
    let is_test = path.ends_with("tests.rs") || path.contains("/tests/");
    in_source && !is_test && !UNREAD_SOURCES.iter().any(|folder| path.starts_with(folder))
}

/// The literals that are sentences rather than names, codes or SQL; tests at the end of a file are left out.
fn literals(text: &str) -> Vec<Passage> {
    let end = text.find("#[cfg(test)]\nmod ").unwrap_or(text.len());
    let strings = Source::split(&text[..end]).strings.into_iter();
    strings
        .filter(|string| string.text.split_whitespace().count() > 2 && !is_sql(&string.text))
        .map(|string| Passage {
            line: string.line,
            text: string.text.replace("\\n", ". ").replace("\\\n", " "),
        })
        .collect()
}

fn is_sql(text: &str) -> bool {
    [
        "SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "ALTER", "WITH", "DROP", "BEGIN", "SET", "FROM",
        "WHERE",
    ]
    .iter()
    .any(|verb| text.split_whitespace().any(|word| word == *verb))
}

/// The doc comments of types that derive a description for users, joined paragraph by paragraph.
fn shown_comments(file: &TextFile) -> Vec<Passage> {
    if !is_product(&file.path) {
        return Vec::new();
    }
    let lines: Vec<&str> = file.text.lines().collect();
    let mut passages = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        if !is_shown(lines[at]) {
            at += 1;
            continue;
        }
        let mut first = at;
        while first > 0 && (lines[first - 1].starts_with("///") || lines[first - 1].starts_with("#[")) {
            first -= 1;
        }
        let last =
            (at..lines.len()).find(|line| lines[*line].starts_with('}') || lines[*line].ends_with(';'));
        let last = last.unwrap_or(lines.len() - 1);
        passages.extend(comments(&lines[first..=last], first + 1));
        at = last + 1;
    }
    passages
}

fn is_shown(line: &str) -> bool {
    let Some(list) = line.trim_start().strip_prefix("#[derive(") else {
        return false;
    };
    list.trim_end_matches(")]")
        .split(',')
        .any(|name| SHOWN.contains(&name.trim().rsplit("::").next().unwrap_or_default()))
}

/// Neighboring comment lines form one passage; an empty one ends it.
fn comments(lines: &[&str], from: usize) -> Vec<Passage> {
    let mut passages: Vec<Passage> = Vec::new();
    let mut open = false;
    for (index, line) in lines.iter().enumerate() {
        let text = line.trim_start().strip_prefix("///").map(str::trim).unwrap_or_default();
        if text.is_empty() {
            open = false;
        } else if open && let Some(last) = passages.last_mut() {
            last.text = format!("{} {text}", last.text);
        } else {
            passages.push(Passage { line: from + index, text: text.to_owned() });
            open = true;
        }
    }
    passages
}

/// Paragraphs, list items and table cells outside of code.
fn of_page(text: &str) -> Vec<Passage> {
    let mut passages: Vec<Passage> = Vec::new();
    let (mut in_code, mut open) = (false, false);
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim_start_matches([' ', '>']);
        if trimmed.starts_with("```") {
            (in_code, open) = (!in_code, false);
            continue;
        }
        if in_code || trimmed.starts_with("<!--") || trimmed.is_empty() {
            open = false;
            continue;
        }
        if trimmed.starts_with('|') {
            open = false;
            let cells = trimmed.split(" | ").map(|cell| cell.trim_matches(['|', ' ']));
            passages.extend(cells.map(|cell| Passage { line: index + 1, text: cell.to_owned() }));
        } else if open
            && !begins_item(trimmed)
            && let Some(last) = passages.last_mut()
        {
            last.text = format!("{} {trimmed}", last.text);
        } else {
            passages.push(Passage { line: index + 1, text: trimmed.to_owned() });
            open = !trimmed.starts_with('#');
        }
    }
    passages
}

fn begins_item(line: &str) -> bool {
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    ["* ", "- ", "+ ", "#"].iter().any(|mark| line.starts_with(mark))
        || (number.len() < line.len() && (number.starts_with(". ") || number.starts_with(") ")))
}

fn headings(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        in_code ^= line.starts_with("```");
        let heading = line.trim_start_matches('#');
        (!in_code && heading.len() < line.len()).then_some((index + 1, heading.trim()))
    })
}

fn mistakes(text: &str) -> Vec<String> {
    let text = without_code(text);
    let plain = words(&text).join(" ").to_lowercase();
    let plain = format!(" {plain} ");
    let mut mistakes: Vec<String> = REFUSED
        .iter()
        .filter(|(word, _)| plain.contains(&format!(" {word} ")))
        .map(|(word, advice)| format!("`{word}`: {advice}"))
        .collect();
    let longest = sentences(&text).max_by_key(|sentence| words(sentence).len());
    if let Some(sentence) = longest.filter(|sentence| words(sentence).len() > SENTENCE_WORDS) {
        let start: Vec<&str> = sentence.split_whitespace().take(6).collect();
        let count = words(sentence).len();
        mistakes.push(format!("the sentence `{} …` has {count} words: split it", start.join(" ")));
    }
    mistakes
}

/// The text with each piece of code as one word and each link as its text.
fn without_code(text: &str) -> String {
    let mut plain = String::new();
    for (index, part) in text.split('`').enumerate() {
        plain.push_str(if index % 2 == 0 { part } else { "code" });
    }
    let mut linked = String::new();
    let mut rest = plain.as_str();
    while let Some((before, behind)) = rest.split_once("](") {
        linked.push_str(before);
        rest = behind.split_once(')').map_or("", |(_, behind)| behind);
    }
    linked + rest
}

fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let current = rest?;
        let end = [". ", "? ", "! ", ": ", "; ", " · "].iter().filter_map(|mark| current.find(mark)).min();
        rest = end.map(|end| current[end..].split_once(' ').map_or("", |(_, behind)| behind));
        Some(&current[..end.unwrap_or(current.len())])
    })
}

fn words(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '’')
        .filter(|word| word.chars().any(char::is_alphabetic))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        refused(&TextFile { path: path.into(), text: text.into() })
    }

    #[test]
    fn a_page_is_read_outside_of_code_and_across_lines() {
        let page = "# Title\n\nA worker that\nnobody asks.\n\n```\nnobody\n```\nThe `nobody` account and the [link](he.md).\n";
        assert_eq!(found("docs/guide/a.md", page), ["docs/guide/a.md:3: `nobody`: name the actor"]);
    }

    #[test]
    fn long_sentences_and_headings_are_found_and_lists_and_tables_are_taken_apart() {
        let long = "word ".repeat(SENTENCE_WORDS + 1);
        assert_eq!(found("a.md", &long).len(), 1);
        assert_eq!(found("a.md", &format!("# {}", "x".repeat(HEADING + 1))).len(), 1);
        let half = "word ".repeat(SENTENCE_WORDS - 5);
        for parts in
            [format!("{half}. {half}"), format!("* {half}\n* {half}"), format!("| {half} | {half} |")]
        {
            assert!(found("a.md", &parts).is_empty(), "{parts}");
        }
    }

    #[test]
    fn messages_are_read_and_names_sql_and_tests_are_not() {
        let text = "f(\"he cannot do it\"); g(\"SELECT whatever FROM x\"); h(\"nobody\");\n#[cfg(test)]\nmod tests { f(\"he and his\") }";
        assert_eq!(found("crates/tenure/src/a.rs", text).len(), 1);
        assert!(found("crates/tenure/tests/a.rs", text).is_empty());
    }

    #[test]
    fn help_and_descriptions_are_read_and_other_comments_are_not() {
        let text = "/// What a job is.\nfn f() {}\n\n/// Lists jobs.\n#[derive(Debug, clap::Args)]\nstruct A {\n    /// Whether it is.\n    x: bool,\n}\n/// Who knows.\nfn g() {}\n";
        let found = found("crates/tenure-cli/src/a.rs", text);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains(":7: `Whether`"), "{found:?}");
    }
}
