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

/// The same without what proves who somebody is in the URLs that stand in it.
pub(crate) fn without_passwords(text: &str) -> String {
    const SCHEME_ENDS: &str = "://";
    let mut safe = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(SCHEME_ENDS) {
        let (before, behind) = rest.split_at(at + SCHEME_ENDS.len());
        let ends = |sign: char| sign.is_whitespace() || "\"'`<>|,;".contains(sign);
        let (url, others) = behind.split_at(behind.find(ends).unwrap_or(behind.len()));
        let host = &url[..url.find(['/', '?', '#']).unwrap_or(url.len())];
        // Whoever writes a / of his password as it is has none less: what looks like a port and is none is a password.
        let has_no_port =
            |host: &str| host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_err());
        let shown = match (host.rfind('@'), url.rfind('@')) {
            (Some(at), _) => &url[at..],
            (None, Some(at)) if has_no_port(host) && !host.starts_with('[') => &url[at..],
            (None, _) => url,
        };
        safe.push_str(before);
        safe.push_str(if shown.len() < url.len() { "***" } else { "" });
        safe.push_str(shown);
        rest = others;
    }
    safe.push_str(rest);
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
    fn no_password_of_a_url_is_left() {
        for (told, shown) in [
            ("postgres://me:secret@h/jobs", "postgres://***@h/jobs"),
            ("http://token@h:4318/v1 and http://b/c@d", "http://***@h:4318/v1 and http://b/c@d"),
            (
                "url: \"http://me:a@b:80\"; allowed: http://, a host",
                "url: \"http://***@b:80\"; allowed: http://, a host",
            ),
            ("postgres://me:se/cr@et@h/jobs", "postgres://***@h/jobs"),
            ("http://h:80/@me", "http://h:80/@me"),
            ("http://[::1]:80/a@b", "http://[::1]:80/a@b"),
            ("a@b, c://", "a@b, c://"),
        ] {
            assert_eq!(without_passwords(told), shown);
        }
    }

    #[test]
    fn json_keeps_its_meaning() {
        let hostile = serde_json::to_string("a\u{9b}31m\u{202e}\x7f\x1b").unwrap();
        let shown = json(&hostile);
        assert!(!shown.chars().any(steers), "{shown:?}");
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), "a\u{9b}31m\u{202e}\x7f\x1b");
    }
}
