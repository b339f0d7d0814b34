//! Lines by which a program reports its progress and the location of its result.

/// How far a program has come.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// From 0 to 1.
    pub fraction: f64,
    /// What it is doing.
    pub message: String,
}

/// Longest message, in bytes.
const MESSAGE_BYTES: usize = 200;

impl Progress {
    /// Reads `::progress 0.4 text` and `{"progress":0.4}`; anything else is an ordinary line.
    #[must_use]
    pub fn of(line: &str) -> Option<Self> {
        if let Some(said) = line.strip_prefix("::progress ") {
            let (fraction, message) = said.trim_start().split_once(' ').unwrap_or((said.trim(), ""));
            return Self::new(fraction.parse().ok()?, message.trim());
        }
        if !line.starts_with('{') {
            return None;
        }
        let document: serde_json::Value = serde_json::from_str(line).ok()?;
        Self::new(document.get("progress")?.as_f64()?, document["message"].as_str().unwrap_or_default())
    }

    fn new(fraction: f64, message: &str) -> Option<Self> {
        let mut end = message.len().min(MESSAGE_BYTES);
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        (0.0..=1.0).contains(&fraction).then(|| Self { fraction, message: message[..end].to_owned() })
    }
}

/// Returns the location in `::location /stars/7`; any other line is an ordinary one.
pub(crate) fn location(line: &str) -> Option<&str> {
    line.strip_prefix("::location ").map(str::trim).filter(|location| !location.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_the_rest_of_its_line() {
        assert_eq!(location("::location /stars/7"), Some("/stars/7"));
        assert_eq!(location("::location  https://example.com/a b "), Some("https://example.com/a b"));
        for line in ["::location", "::location ", " ::location /stars/7", "::locations /stars/7", ""] {
            assert_eq!(location(line), None, "{line:?}");
        }
    }

    #[test]
    fn both_ways_of_saying_it_are_understood_and_nothing_else_is() {
        let said = |line| Progress::of(line).map(|progress| (progress.fraction, progress.message));
        assert_eq!(said("::progress 0.4 counting stars"), Some((0.4, "counting stars".to_owned())));
        assert_eq!(said("::progress 1"), Some((1.0, String::new())));
        assert_eq!(said(r#"{"progress":0.25}"#), Some((0.25, String::new())));
        for ordinary in [
            "progress 0.4",
            "::progress",
            "::progress two",
            "::progress 2 x",
            "{\"progress\":NaN}",
            "{}",
            "::progress NaN",
        ] {
            assert_eq!(said(ordinary), None, "{ordinary}");
        }
        assert!(said(&format!("::progress 0 {}", "ü".repeat(500))).unwrap().1.len() <= MESSAGE_BYTES);
    }
}
