//! Text of somebody else's, so that it cannot steer a terminal.

/// One line: whatever is no ordinary sign is shown as its number.
pub(crate) fn line(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '\n' => safe.push_str("\\n"),
            '\t' => safe.push_str("\\t"),
            '\r' => safe.push_str("\\r"),
            sign if steers(sign) => safe.push_str(&format!("\\u{{{:x}}}", u32::from(sign))),
            sign => safe.push(sign),
        }
    }
    safe
}

/// Several lines, and tabs between what stands in them.
pub(crate) fn lines(text: &str) -> String {
    let safe = |text: &str| text.split('\t').map(line).collect::<Vec<_>>().join("\t");
    text.split('\n').map(safe).collect::<Vec<_>>().join("\n")
}

/// JSON, with the same meaning: what may stand raw in its texts and steers a terminal is written by its number.
pub(crate) fn json(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for sign in text.chars() {
        if steers(sign) && !sign.is_ascii_whitespace() {
            // All of them are in the plane that one such number reaches.
            safe.push_str(&format!("\\u{:04x}", u32::from(sign)));
        } else {
            safe.push(sign);
        }
    }
    safe
}

/// Control signs of both sets, and those that change the direction of what follows.
fn steers(sign: char) -> bool {
    sign.is_control()
        || matches!(sign, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_steers_a_terminal_is_left() {
        let hostile = "a\x1b[2J\u{9b}31m\x07\u{202e}b\nc\td\x7f";
        let shown = line(hostile);
        assert!(!shown.chars().any(steers), "{shown:?}");
        assert_eq!(line("plain ü 漢 😀"), "plain ü 漢 😀");
        assert_eq!(lines("a\tb\nc\rd\x1b"), "a\tb\nc\\rd\\u{1b}");
    }

    #[test]
    fn json_keeps_its_meaning() {
        let hostile = serde_json::to_string("a\u{9b}31m\u{202e}\x7f\x1b").unwrap();
        let shown = json(&hostile);
        assert!(!shown.chars().any(steers), "{shown:?}");
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), "a\u{9b}31m\u{202e}\x7f\x1b");
    }
}
