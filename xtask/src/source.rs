//! Rust source, taken apart just far enough to ask about its code and its strings separately.
//!
//! A rule about code must not trip over a comment that explains it, and a rule about SQL must not trip over code.

/// One source text in two layers.
#[derive(Debug, Clone)]
pub struct Source {
    /// The code: comments and the insides of literals are blanks, and every line keeps its number.
    pub code: String,
    /// The string literals, in order.
    pub strings: Vec<Text>,
}

/// A piece of the source and the line it starts on, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// The line it starts on.
    pub line: usize,
    /// What it says.
    pub text: String,
}

impl Source {
    /// Takes a source text apart.
    pub fn split(text: &str) -> Self {
        let mut splitter =
            Splitter { rest: text, code: String::with_capacity(text.len()), strings: Vec::new() };
        while !splitter.rest.is_empty() {
            splitter.step();
        }
        Self { code: splitter.code, strings: splitter.strings }
    }

    /// Every word of the code with its line.
    pub fn words(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code.lines().enumerate().flat_map(|(index, line)| words(line).map(move |word| (index + 1, word)))
    }

    /// Returns the names after each occurrence of a path such as `std::`, with their lines: one, or every name of a group.
    pub fn names_after(&self, path: &str) -> Vec<(usize, &str)> {
        let mut names = Vec::new();
        for (at, found) in self.code.match_indices(path) {
            let rest = &self.code[at + found.len()..];
            let end = rest.find(';').unwrap_or(rest.len());
            let group = rest.strip_prefix('{').map(|_| &rest[..end]);
            match group {
                Some(group) => names.extend(words(group).map(|word| (self.line_at(at), word))),
                None => names.extend(words(rest).next().map(|word| (self.line_at(at), word))),
            }
        }
        names
    }

    /// The line on which a byte of the code stands.
    pub fn line_at(&self, byte: usize) -> usize {
        line_at(&self.code, byte)
    }
}

/// The words of a text: runs of letters, digits and underscores.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !is_word(c)).filter(|word| !word.is_empty())
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn line_at(text: &str, byte: usize) -> usize {
    text.bytes().take(byte).filter(|b| *b == b'\n').count() + 1
}

struct Splitter<'a> {
    rest: &'a str,
    code: String,
    strings: Vec<Text>,
}

impl Splitter<'_> {
    fn step(&mut self) {
        if self.rest.starts_with("//") {
            return self.blank(self.rest.find('\n').unwrap_or(self.rest.len()));
        }
        if self.rest.starts_with("/*") {
            return self.blank(block_comment(self.rest));
        }
        if self.rest.starts_with('"') {
            return self.string(1, quoted(&self.rest[1..], '"'), 1);
        }
        if let Some(hashes) = self.raw_string() {
            let close = format!("\"{}", "#".repeat(hashes));
            let open = hashes + 2;
            let inside = self.rest[open..].find(&close).unwrap_or(self.rest.len() - open);
            return self.string(open, inside, close.len());
        }
        if let Some(length) = char_literal(self.rest) {
            return self.blank(length);
        }
        self.keep(self.rest.chars().next().map_or(0, char::len_utf8));
    }

    /// The number of hashes of the raw string that starts here, if one does.
    fn raw_string(&self) -> Option<usize> {
        let after = self.rest.strip_prefix('r')?;
        // `br"…"` and `cr"…"` are raw strings too; an `r` at the end of any other word is not.
        let before = self.code.trim_end_matches(['b', 'c']);
        if before.chars().next_back().is_some_and(is_word) {
            return None;
        }
        let hashes = after.len() - after.trim_start_matches('#').len();
        after[hashes..].starts_with('"').then_some(hashes)
    }

    fn string(&mut self, open: usize, inside: usize, close: usize) {
        let line = line_at(&self.code, self.code.len());
        self.strings.push(Text { line, text: self.rest[open..open + inside].to_owned() });
        self.keep(open);
        self.blank(inside);
        self.keep(close.min(self.rest.len()));
    }

    fn keep(&mut self, length: usize) {
        self.code.push_str(&self.rest[..length]);
        self.rest = &self.rest[length..];
    }

    fn blank(&mut self, length: usize) {
        self.code.extend(self.rest[..length].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        self.rest = &self.rest[length..];
    }
}

/// The length of the block comment at the start of the text; block comments nest.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// The length of what stands before the closing quote; a backslash takes the quote's meaning away.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at,
            _ => {}
        }
    }
    text.len()
}

/// The length of the character literal at the start of the text; a lifetime is not one.
fn char_literal(text: &str) -> Option<usize> {
    let inside = text.strip_prefix('\'')?;
    let first = inside.chars().next()?;
    if first == '\\' {
        return Some((quoted(inside, '\'') + 2).min(text.len()));
    }
    let length = first.len_utf8();
    inside[length..].starts_with('\'').then_some(length + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(text: &str) -> Vec<String> {
        Source::split(text).strings.into_iter().map(|string| string.text).collect()
    }

    #[test]
    fn a_comment_is_not_code() {
        let source = Source::split("a // b\n/* c /* d */ e */ f");
        assert_eq!(source.words().collect::<Vec<_>>(), [(1, "a"), (2, "f")]);
    }

    #[test]
    fn strings_of_every_kind_are_found_and_are_not_code() {
        let text = r####"let a = "x \" y"; let b = r#"q " q"#; let c = br"z"; let var = 1;"####;
        assert_eq!(strings(text), [r#"x \" y"#, r#"q " q"#, "z"]);
        assert!(!Source::split(text).words().any(|(_, word)| ["x", "y", "q", "z"].contains(&word)));
        assert!(Source::split(text).words().any(|(_, word)| word == "var"));
    }

    #[test]
    fn a_quote_in_a_character_does_not_start_a_string() {
        let text = r#"fn f<'a>(x: &'a str) { g('"', '\'', '\\'); h("s") }"#;
        assert_eq!(strings(text), ["s"]);
    }

    #[test]
    fn a_string_knows_its_line_also_after_one_that_spans_lines() {
        let source = Source::split("f(\"one\ntwo\");\n\ng(\"three\")");
        let lines: Vec<_> = source.strings.iter().map(|string| string.line).collect();
        assert_eq!(lines, [1, 4]);
    }

    #[test]
    fn unfinished_text_ends_quietly() {
        for text in ["\"open", "r#\"open", "/* open", "'\\", "'", "r#"] {
            assert_eq!(Source::split(text).code.chars().count(), text.chars().count(), "{text}");
        }
    }
}
