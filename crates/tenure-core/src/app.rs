//! App ids: what the instances of one program share, and what keeps two programs apart on one store.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{HostId, Invalid, Timestamp, invalid, limits};

/// An app id: a configured name that all instances of one program share.
///
/// It is part of lease names, so it must not change with the program's version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AppId(Arc<str>);

impl AppId {
    /// Accepts an app id.
    ///
    /// # Errors
    /// Refuses what is not 1 to 32 small letters, digits and single dashes within.
    pub fn new(text: &str) -> Result<Self, Invalid> {
        let is_known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let is_fine = (1..=limits::APP_ID_BYTES).contains(&text.len())
            && text.chars().all(is_known)
            && !text.starts_with('-')
            && !text.ends_with('-')
            && !text.contains("--");
        if is_fine {
            return Ok(Self(text.into()));
        }
        let shown = invalid::cut(text, 64);
        Err(Invalid::new(
            "app id",
            format_args!("{shown:?}"),
            format_args!(
                "1 to {} characters of a-z, 0-9 and -, with no dash at either end and no two dashes in a row",
                limits::APP_ID_BYTES
            ),
        ))
    }

    /// The app id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AppId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for AppId {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        Self::new(text)
    }
}

impl From<AppId> for String {
    fn from(id: AppId) -> Self {
        id.as_str().to_owned()
    }
}

impl TryFrom<String> for AppId {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        Self::new(&text)
    }
}

/// The program that uses an app id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppUse {
    /// The app id.
    pub app: AppId,
    /// What tells the program from others: a name that stays with its versions, as [`check_program`] accepts.
    pub program: String,
    /// Which of its instances was seen last.
    pub host: HostId,
    /// Since when.
    pub since: Timestamp,
    /// When an instance was last seen.
    pub seen: Timestamp,
}

/// Accepts the name of a program.
///
/// # Errors
/// Refuses empty and too long text and control characters.
pub fn check_program(program: &str) -> Result<(), Invalid> {
    let allowed = || format!("1 to {} bytes without control characters", limits::PROGRAM_BYTES);
    if program.is_empty() {
        return Err(Invalid::new("program", "empty", allowed()));
    }
    if program.len() > limits::PROGRAM_BYTES {
        return Err(Invalid::new("program", format_args!("{} bytes", program.len()), allowed()));
    }
    if let Some(odd) = program.chars().find(|c| c.is_control()) {
        return Err(Invalid::new("program", format_args!("invalid character {odd:?}"), allowed()));
    }
    Ok(())
}

/// What becomes of the use of an app id when a program claims it at its start.
///
/// A program that has not been seen for a month has given it up.
///
/// # Errors
/// Answers the other program that uses it.
pub fn claim_app(known: Option<&AppUse>, claim: AppUse) -> Result<AppUse, AppUse> {
    let Some(known) = known else { return Ok(claim) };
    if known.program == claim.program {
        return Ok(AppUse { since: known.since, ..claim });
    }
    if claim.seen.since(known.seen) >= limits::APP_GIVEN_UP {
        return Ok(claim);
    }
    Err(known.clone())
}
