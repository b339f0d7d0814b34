//! The error about an invalid value.

use std::fmt::Display;

/// An invalid value: the field, what was found there, and what is allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {found}; {}", remedy(.allowed))]
pub struct Invalid {
    /// The field as users know it, such as `queue` or `args`.
    pub field: String,
    /// What was found, without repeating a secret or a huge value.
    pub found: String,
    /// What is allowed.
    pub allowed: String,
}

impl Invalid {
    /// Creates the error for a field.
    pub fn new(field: impl Into<String>, found: impl Display, allowed: impl Display) -> Self {
        Self { field: field.into(), found: found.to_string(), allowed: allowed.to_string() }
    }

    /// Returns the same error for one item of a batch.
    #[must_use]
    pub fn in_item(mut self, index: usize) -> Self {
        self.field = format!("jobs[{index}].{}", self.field);
        self
    }
}

/// Returns the end of a complaint: advice as it is, and anything else as an expectation.
pub(crate) fn remedy(allowed: &str) -> String {
    const ADVICE: [&str; 7] = ["write ", "use ", "set ", "see ", "remove ", "skip ", "did you mean "];
    match ADVICE.iter().any(|verb| allowed.starts_with(verb)) {
        true => allowed.to_owned(),
        false => format!("expected {allowed}"),
    }
}

/// Refuses text longer than `most` bytes.
pub(crate) fn at_most_bytes(field: &str, length: usize, most: usize) -> Result<(), Invalid> {
    if length <= most {
        return Ok(());
    }
    Err(Invalid::new(field, format_args!("{length} bytes"), format_args!("at most {most} bytes")))
}

/// Text as a store can keep it: within `most` bytes, and without NUL, which a text column of
/// PostgreSQL refuses. An attempt must never fail to be settled because of what its error said.
pub(crate) fn storable(text: &str, most: usize) -> String {
    if text.contains('\0') {
        return cut(&text.replace('\0', "\u{fffd}"), most);
    }
    cut(text, most)
}

/// Cuts text to at most `most` bytes at a character boundary and marks the cut.
pub(crate) fn cut(text: &str, most: usize) -> String {
    const MARK: &str = " … (cut)";
    if text.len() <= most {
        return text.to_owned();
    }
    let mut end = most.saturating_sub(MARK.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{MARK}", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_names_the_field_the_value_and_the_limit() {
        let complaint = at_most_bytes("args", 300, 256).unwrap_err().in_item(7);
        assert_eq!(complaint.to_string(), "jobs[7].args: 300 bytes; expected at most 256 bytes");
    }

    #[test]
    fn advice_is_not_an_expectation() {
        let complaint = Invalid::new("schedule.zone", "\"Mars\"", "write a name such as UTC");
        assert_eq!(complaint.to_string(), "schedule.zone: \"Mars\"; write a name such as UTC");
    }

    #[test]
    fn cut_text_is_marked_and_stays_within_the_limit() {
        let text = "ø".repeat(100);
        let short = cut(&text, 50);
        assert!(short.len() <= 50 && short.ends_with("(cut)"), "{short}");
        assert_eq!(cut("as it is", 50), "as it is");
    }

    #[test]
    fn text_that_is_stored_holds_no_nul_and_stays_within_the_limit() {
        assert_eq!(storable("a\0b", 50), "a\u{fffd}b");
        assert!(storable(&"\0".repeat(1000), 50).len() <= 50);
    }
}
