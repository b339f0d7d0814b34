//! Records and the entries of journals: small documents that are not jobs.

use std::fmt;
use std::sync::Arc;

use crate::{Invalid, Name, Timestamp, invalid, json, limits};

/// The key of a record on its shelf: any text without NUL. Keys are in the order of their bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordKey(Arc<str>);

/// What an entry of a journal is about: any text without NUL. It is searched for as a whole.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subject(Arc<str>);

/// JSON text that is kept as it was given, byte for byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document(Arc<[u8]>);

/// A document under a key, on the shelf of its sort.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Among what it stands: a word that the program chose.
    pub shelf: Name,
    /// What it is called there.
    pub key: RecordKey,
    /// Which state of it this is. Each change brings a greater one, also over a removal.
    pub version: u64,
    /// What it says.
    pub value: Document,
    /// From then on it is as if it were not there.
    pub expires: Option<Timestamp>,
}

/// What was written down in a journal, once and for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalEntry {
    /// In which journal.
    pub journal: Name,
    /// Its place there. Later ones have greater numbers; some are left out.
    pub number: u64,
    /// When it was written, by the store's clock.
    pub at: Timestamp,
    /// What it is about.
    pub subject: Subject,
    /// What it says.
    pub value: Document,
    /// From then on it is as if it were not there.
    pub expires: Option<Timestamp>,
}

impl RecordKey {
    /// Accepts a key.
    ///
    /// # Errors
    /// Refuses an empty or too long one, and one with NUL.
    pub fn new(text: &str) -> Result<Self, Invalid> {
        check("key", text, limits::RECORD_KEY_BYTES)?;
        Ok(Self(text.into()))
    }

    /// The key as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Subject {
    /// Accepts a subject.
    ///
    /// # Errors
    /// Refuses an empty or too long one, and one with NUL.
    pub fn new(text: &str) -> Result<Self, Invalid> {
        check("subject", text, limits::SUBJECT_BYTES)?;
        Ok(Self(text.into()))
    }

    /// The subject as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Document {
    /// Accepts what may be JSON text. It is not parsed.
    ///
    /// # Errors
    /// Refuses what is too long for a record, nested too deep, not UTF-8, or has NUL in it.
    pub fn new(text: impl Into<Arc<[u8]>>) -> Result<Self, Invalid> {
        let text = text.into();
        json::check("value", &text, limits::RECORD_BYTES)?;
        Ok(Self(text))
    }

    /// The JSON text.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Record {
    /// Whether it is there for somebody who looks now.
    #[must_use]
    pub fn is_alive(&self, now: Timestamp) -> bool {
        self.expires.is_none_or(|expires| expires > now)
    }
}

impl JournalEntry {
    /// Whether it is there for somebody who looks now.
    #[must_use]
    pub fn is_alive(&self, now: Timestamp) -> bool {
        self.expires.is_none_or(|expires| expires > now)
    }
}

fn check(field: &str, text: &str, most: usize) -> Result<(), Invalid> {
    if text.is_empty() {
        return Err(Invalid::new(field, "empty", format_args!("1 to {most} bytes")));
    }
    invalid::at_most_bytes(field, text.len(), most)?;
    if let Some(place) = text.find('\0') {
        return Err(Invalid::new(field, format_args!("a NUL byte at {place}"), "text without NUL"));
    }
    Ok(())
}

impl fmt::Display for RecordKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_any_text_of_its_length_without_nul() {
        for good in ["a", "50%_\u{e9}\u{10FFFF} /'\"\n", &"k".repeat(limits::RECORD_KEY_BYTES)] {
            assert_eq!(RecordKey::new(good).unwrap().as_str(), good);
            assert_eq!(Subject::new(good).unwrap().as_str(), good);
        }
        for bad in ["", "a\0", &"k".repeat(limits::RECORD_KEY_BYTES + 1)] {
            assert!(RecordKey::new(bad).is_err() && Subject::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_document_is_bounded_text() {
        let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2)).into_bytes();
        assert!(Document::new(text(limits::RECORD_BYTES)).is_ok());
        assert!(Document::new(text(limits::RECORD_BYTES + 1)).is_err());
        assert!(Document::new(*b"\"\0\"").is_err() && Document::new([0xff]).is_err());
    }
}
