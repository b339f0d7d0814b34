//! The name of a lease.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Invalid, limits};

/// A name that can be held: any text of 1 to 1,024 bytes that can be written down and put in a URL.
///
/// Names are compared byte by byte: two that differ in case, or in how an accent is composed, are two.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LeaseName(Arc<str>);

impl LeaseName {
    /// Accepts a name.
    ///
    /// # Errors
    /// Refuses empty and too long text, control characters, and a part between slashes that is `.` or
    /// `..`: whatever handles URLs takes those for steps and would name another lease.
    pub fn new(text: &str) -> Result<Self, Invalid> {
        Self::in_field("lease name", text)
    }

    /// The same for text in another field.
    ///
    /// # Errors
    /// As [`LeaseName::new`].
    pub fn in_field(field: &str, text: &str) -> Result<Self, Invalid> {
        check(field, text, limits::LEASE_NAME_BYTES)?;
        Ok(Self(text.into()))
    }

    /// The name that `text` in this field stands for: with a prefix, of which a complaint says nothing but
    /// that it leaves less room.
    ///
    /// # Errors
    /// As [`LeaseName::new`].
    pub fn behind(field: &str, prefix: &str, text: &str) -> Result<Self, Invalid> {
        check(field, text, limits::LEASE_NAME_BYTES.saturating_sub(prefix.len()))?;
        Self::in_field(field, &format!("{prefix}{text}"))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn check(field: &str, text: &str, most: usize) -> Result<(), Invalid> {
    let allowed = || format!("1 to {most} bytes without control characters, and no path segment . or ..");
    if text.is_empty() {
        return Err(Invalid::new(field, "empty", allowed()));
    }
    if text.len() > most {
        return Err(Invalid::new(field, format_args!("{} bytes", text.len()), allowed()));
    }
    if let Some(odd) = text.chars().find(|c| c.is_control()) {
        return Err(Invalid::new(field, format_args!("invalid character {odd:?}"), allowed()));
    }
    if let Some(step) = text.split('/').find(|part| matches!(*part, "." | "..")) {
        return Err(Invalid::new(field, format_args!("path segment {step:?}"), allowed()));
    }
    Ok(())
}

impl fmt::Display for LeaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for LeaseName {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        Self::new(text)
    }
}

impl From<LeaseName> for String {
    fn from(name: LeaseName) -> Self {
        name.as_str().to_owned()
    }
}

impl TryFrom<String> for LeaseName {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        Self::new(&text)
    }
}
