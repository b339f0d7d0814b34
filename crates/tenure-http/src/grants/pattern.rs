//! A name, or the beginning of a name with a star behind it.

use std::fmt;

/// A name that must be equal, or the beginning of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pattern {
    Equals(String),
    BeginsWith(String),
}

impl Pattern {
    /// Reads a pattern; `None` if it is empty or has a star that is not at its end.
    pub(super) fn of(text: &str) -> Option<Self> {
        let (name, has_star) = match text.strip_suffix('*') {
            Some(name) => (name, true),
            None => (text, false),
        };
        let is_valid = !text.is_empty() && !name.contains('*');
        let pattern = if has_star { Self::BeginsWith } else { Self::Equals };
        is_valid.then(|| pattern(name.to_owned()))
    }

    /// Returns `true` if this is a star alone.
    pub(super) fn is_star(&self) -> bool {
        matches!(self, Self::BeginsWith(begin) if begin.is_empty())
    }

    /// Returns `true` if this has a star, and the text before it is such.
    pub(super) fn begins_with(&self, is_such: impl Fn(&str) -> bool) -> bool {
        matches!(self, Self::BeginsWith(begin) if is_such(begin))
    }

    pub(super) fn matches(&self, name: &str) -> bool {
        match self {
            Self::Equals(equal) => equal == name,
            Self::BeginsWith(begin) => !name.is_empty() && name.starts_with(begin.as_str()),
        }
    }

    /// Returns the text before the star, or the whole name.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Equals(name) | Self::BeginsWith(name) => name,
        }
    }

    pub(super) fn to_lower_case(&self) -> Self {
        match self {
            Self::Equals(name) => Self::Equals(name.to_ascii_lowercase()),
            Self::BeginsWith(name) => Self::BeginsWith(name.to_ascii_lowercase()),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Equals(name) => f.write_str(name),
            Self::BeginsWith(name) => write!(f, "{name}*"),
        }
    }
}
