//! Output, cut into lines that can be kept and shown.

/// Longest line that is kept, in bytes. What is beyond is cut, and that is said.
pub const LINE_BYTES: usize = 3_900;

/// Where a line was written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// A line of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Where it was written to.
    pub source: Source,
    /// What it says, harmless: no line break, no NUL, whole signs only.
    pub text: String,
}

/// Cuts a stream of bytes into lines, with no more memory than one line needs.
#[derive(Debug)]
pub(crate) struct Splitter {
    source: Source,
    line: Vec<u8>,
    cut: u64,
}

impl Splitter {
    pub(crate) fn new(source: Source) -> Self {
        Self { source, line: Vec::new(), cut: 0 }
    }

    /// Takes what was read, and hands on each line that is whole.
    pub(crate) fn take(&mut self, mut bytes: &[u8], mut each: impl FnMut(Line)) {
        while let Some(at) = bytes.iter().position(|byte| *byte == b'\n') {
            self.grow(&bytes[..at]);
            bytes = &bytes[at + 1..];
            each(self.line());
        }
        self.grow(bytes);
    }

    /// What is left at the end: a line without its break.
    pub(crate) fn rest(&mut self) -> Option<Line> {
        (!self.line.is_empty()).then(|| self.line())
    }

    fn grow(&mut self, bytes: &[u8]) {
        let room = LINE_BYTES.saturating_sub(self.line.len()).min(bytes.len());
        self.line.extend_from_slice(&bytes[..room]);
        self.cut += (bytes.len() - room) as u64;
    }

    fn line(&mut self) -> Line {
        let (bytes, mut cut) = (std::mem::take(&mut self.line), std::mem::take(&mut self.cut));
        // A sign that the cut went through is not shown as broken.
        let whole = if cut == 0 { &bytes[..] } else { without_half_a_sign(&bytes) };
        let mut text = harmless(whole.strip_suffix(b"\r").unwrap_or(whole));
        // What stands for a broken byte is longer than that.
        let end = boundary(&text, LINE_BYTES);
        cut += (text.len() - end) as u64;
        text.truncate(end);
        if cut > 0 {
            text.push_str(&format!(" … [{cut} bytes more]"));
        }
        Line { source: self.source, text }
    }
}

/// The last place up to there at which no sign is cut.
fn boundary(text: &str, most: usize) -> usize {
    (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

fn without_half_a_sign(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    }
}

/// Text that any store keeps: what is no UTF-8 and what is no text is replaced.
fn harmless(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.chars().map(|sign| if sign == '\0' { char::REPLACEMENT_CHARACTER } else { sign }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&[u8]]) -> Vec<String> {
        let (mut splitter, mut lines) = (Splitter::new(Source::Out), Vec::new());
        for piece in pieces {
            splitter.take(piece, |line| lines.push(line.text));
        }
        lines.extend(splitter.rest().map(|line| line.text));
        lines
    }

    #[test]
    fn lines_are_the_same_however_they_are_read() {
        assert_eq!(lines(&[b"a\nb\r\n\nc"]), ["a", "b", "", "c"]);
        assert_eq!(lines(&[b"a", b"\nb\r", b"\n\n", b"c"]), ["a", "b", "", "c"]);
        assert!(lines(&[b""]).is_empty());
    }

    #[test]
    fn what_is_no_text_becomes_harmless() {
        assert_eq!(lines(&[b"a\0b\xff\xfec\n"]), ["a\u{fffd}b\u{fffd}\u{fffd}c"]);
        assert_eq!(lines(&["ü".as_bytes().split_at(1).0, "ü".as_bytes().split_at(1).1]), ["ü"]);
    }

    #[test]
    fn a_line_without_an_end_is_cut_and_says_so() {
        let endless = vec![b'x'; 10_000];
        let cut = lines(&[&endless, &endless, b"\nnext\n"]);
        assert_eq!(cut.len(), 2);
        assert!(cut[0].ends_with(&format!("x … [{} bytes more]", 20_000 - LINE_BYTES)), "{}", cut[0]);
        assert_eq!(cut[1], "next");
        let nuls = &lines(&[&[0; 10_000]])[0];
        assert!(nuls.len() < LINE_BYTES + 50 && nuls.ends_with("bytes more]"), "{}", nuls.len());
        let signs = "ü".repeat(LINE_BYTES);
        assert!(!lines(&[&b"a"[..], signs.as_bytes()])[0].contains('\u{fffd}'));
    }
}
