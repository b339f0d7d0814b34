//! What is wrong with a value that somebody gave.

use std::fmt::Display;

/// A value was refused at the edge: names the field, what was found there, and what is allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {found}; allowed: {allowed}")]
pub struct Invalid {
    /// The field as its user knows it, such as `queue` or `args`.
    pub field: String,
    /// What was found, described so that a secret or a huge value is not repeated.
    pub found: String,
    /// The limit that it breaks.
    pub allowed: String,
}

impl Invalid {
    /// Says that `field` holds `found` where only `allowed` may stand.
    pub fn new(field: impl Into<String>, found: impl Display, allowed: impl Display) -> Self {
        Self { field: field.into(), found: found.to_string(), allowed: allowed.to_string() }
    }

    /// The same complaint about one item of a batch.
    #[must_use]
    pub fn in_item(mut self, index: usize) -> Self {
        self.field = format!("jobs[{index}].{}", self.field);
        self
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
        assert_eq!(complaint.to_string(), "jobs[7].args: 300 bytes; allowed: at most 256 bytes");
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
