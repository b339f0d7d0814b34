//! The kept inputs of a target: a text file, so that a review sees them.

use std::io;
use std::path::Path;

/// Returns the inputs of a corpus, without its comments.
pub(crate) fn read(path: &Path) -> io::Result<Vec<Vec<u8>>> {
    let text = std::fs::read_to_string(path)?;
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| unescaped(line).ok_or_else(|| io::Error::other(format!("not an escaped input: {line}"))))
        .collect()
}

/// Appends inputs to a corpus.
pub(crate) fn append(path: &Path, inputs: &[Vec<u8>]) -> io::Result<()> {
    let mut text = std::fs::read_to_string(path)?;
    for input in inputs {
        text.push_str(&escaped(input));
        text.push('\n');
    }
    std::fs::write(path, text)
}

/// Returns an input as one line. Text in UTF-8 stays readable.
pub(crate) fn escaped(input: &[u8]) -> String {
    let mut line = String::new();
    for chunk in input.utf8_chunks() {
        for sign in chunk.valid().chars() {
            match sign {
                '\\' => line.push_str("\\\\"),
                '\n' => line.push_str("\\n"),
                // A comment begins with this sign.
                '#' if line.is_empty() => line.push_str("\\x23"),
                sign if u32::from(sign) < 0x20 || sign == '\x7f' => {
                    line.push_str(&format!("\\x{:02x}", u32::from(sign)));
                }
                // Invisible, or a line of its own to some readers.
                sign if sign.is_control() || (sign.is_whitespace() && sign != ' ') => {
                    let mut bytes = [0; 4];
                    sign.encode_utf8(&mut bytes)
                        .bytes()
                        .for_each(|byte| line.push_str(&format!("\\x{byte:02x}")));
                }
                sign => line.push(sign),
            }
        }
        chunk.invalid().iter().for_each(|byte| line.push_str(&format!("\\x{byte:02x}")));
    }
    line
}

fn unescaped(line: &str) -> Option<Vec<u8>> {
    let (mut input, mut rest) = (Vec::new(), line.as_bytes());
    while let Some((first, more)) = rest.split_first() {
        if *first != b'\\' {
            input.push(*first);
            rest = more;
            continue;
        }
        let (kind, more) = more.split_first()?;
        rest = more;
        match kind {
            b'n' => input.push(b'\n'),
            b'\\' => input.push(b'\\'),
            b'x' => {
                let (digits, more) = rest.split_at_checked(2)?;
                input.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
                rest = more;
            }
            _ => return None,
        }
    }
    Some(input)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_input_comes_back_from_its_line() {
        let odd: Vec<u8> = (0..=255).collect();
        for input in [&b""[..], b"#\\n\n", "größe\u{2028}\u{85}".as_bytes(), &odd] {
            let line = escaped(input);
            assert!(!line.starts_with('#') && line.lines().count() <= 1, "{line}");
            assert_eq!(unescaped(&line).as_deref(), Some(input), "{line}");
        }
        assert_eq!((unescaped("\\q"), unescaped("\\x4")), (None, None));
    }
}
