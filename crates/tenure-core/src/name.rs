//! Names: of queues, kinds and tags.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Invalid, limits};

/// A short name that is safe in a URL, a log line and a shell: letters, digits, `.`, `_`, `:`, `-`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(Arc<str>);

/// The kind of a job, which selects its handler.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Kind(Name);

/// The name of a queue.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct QueueName(Name);

/// The prefix of Tenure's own kinds and queues.
pub const OWN: &str = "tenure.";
/// The prefix of the kinds of programs that `tenure run` runs.
const PROGRAMS: &str = "apps.";

impl Name {
    /// Accepts a name for `field`.
    ///
    /// # Errors
    /// Refuses an empty or too long name and any character outside `A-Z a-z 0-9 . _ : -`.
    pub fn new(field: &str, text: &str) -> Result<Self, Invalid> {
        check(field, text, limits::NAME_BYTES)?;
        Ok(Self(text.into()))
    }

    /// The name that `text` in this field stands for: with a prefix, of which a complaint says nothing but
    /// that it leaves less room.
    ///
    /// # Errors
    /// As [`Name::new`].
    pub fn behind(field: &str, prefix: &str, text: &str) -> Result<Self, Invalid> {
        check(field, text, limits::NAME_BYTES.saturating_sub(prefix.len()))?;
        Self::new(field, &format!("{prefix}{text}"))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn check(field: &str, text: &str, most: usize) -> Result<(), Invalid> {
    let allowed = || format!("1 to {most} characters of A-Z a-z 0-9 . _ : -");
    if text.is_empty() {
        return Err(Invalid::new(field, "empty", allowed()));
    }
    if text.len() > most {
        return Err(Invalid::new(field, format_args!("{} bytes", text.len()), allowed()));
    }
    let odd = text.chars().find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ':' | '-')));
    match odd {
        Some(odd) => Err(Invalid::new(field, format_args!("invalid character {odd:?}"), allowed())),
        None => Ok(()),
    }
}

impl Kind {
    /// Accepts the name of a kind.
    ///
    /// # Errors
    /// As [`Name::new`].
    pub fn new(text: &str) -> Result<Self, Invalid> {
        Name::new("kind", text).map(Self)
    }

    /// Whether it is one of Tenure's own, which nobody else's jobs have.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.0.as_str().starts_with(OWN)
    }

    /// Returns `true` for Tenure's own kinds and those of programs. Clients cannot enqueue such jobs directly.
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        self.is_own() || self.0.as_str().starts_with(PROGRAMS)
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl QueueName {
    /// The queue of jobs that name none.
    pub const DEFAULT: &'static str = "default";

    /// Accepts the name of a queue.
    ///
    /// # Errors
    /// As [`Name::new`].
    pub fn new(text: &str) -> Result<Self, Invalid> {
        Name::new("queue", text).map(Self)
    }

    /// Whether it is one of Tenure's own, which nobody else's jobs have.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.0.as_str().starts_with(OWN)
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl Default for QueueName {
    /// The queue named `default`.
    fn default() -> Self {
        Self(Name(Self::DEFAULT.into()))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for QueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0.as_ref().to_owned()
    }
}

impl From<Kind> for String {
    fn from(kind: Kind) -> Self {
        kind.0.into()
    }
}

impl From<QueueName> for String {
    fn from(queue: QueueName) -> Self {
        queue.0.into()
    }
}

impl TryFrom<String> for Name {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        Self::new("name", &text)
    }
}

impl TryFrom<String> for Kind {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        Self::new(&text)
    }
}

impl TryFrom<String> for QueueName {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        Self::new(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_nobody_could_type_are_refused_with_the_limit() {
        let long = "x".repeat(10_000);
        for text in ["", " ", "a b", "a/b", "..\n", "naïve", "nul\0", "a\u{202e}b", long.as_str()] {
            let complaint = QueueName::new(text).unwrap_err();
            assert_eq!(complaint.field, "queue");
            assert!(complaint.allowed.contains("128"), "{complaint}");
            assert!(complaint.to_string().len() < 300, "a complaint never repeats a huge value");
        }
    }

    #[test]
    fn a_complaint_about_a_name_behind_a_prefix_counts_what_its_user_gave() {
        let fits = "x".repeat(121);
        assert_eq!(Name::behind("writer", "prefix.", &fits).unwrap().as_str().len(), limits::NAME_BYTES);
        let complaint = Name::behind("writer", "prefix.", &"x".repeat(122)).unwrap_err();
        let told = "writer: 122 bytes; expected 1 to 121 characters of A-Z a-z 0-9 . _ : -";
        assert_eq!(complaint.to_string(), told);
        assert_eq!(Name::behind("writer", "prefix.", "").unwrap_err().found, "empty");
    }

    #[test]
    fn ordinary_names_pass_and_read_back() {
        for text in ["default", "Mail.Out:eu-1_a", &"x".repeat(128)] {
            let name: String = Kind::new(text).unwrap().into();
            assert_eq!(name, text);
        }
    }
}
