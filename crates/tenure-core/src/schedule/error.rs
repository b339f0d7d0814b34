//! What is wrong with a schedule that somebody wrote, and where.

use std::fmt;

use crate::Invalid;

/// The error of an invalid schedule: the field, the column, what was found, and what to write instead if that is
/// clear.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadSchedule {
    /// The field as users know it, such as `hour` or `interval`.
    pub field: String,
    /// Column in the text, counted in bytes from 1; `None` if there is no such place.
    pub column: Option<usize>,
    /// What is wrong.
    pub wrong: String,
    /// What to write instead.
    pub instead: Option<String>,
}

impl BadSchedule {
    /// Says that `field` is wrong.
    pub(crate) fn new(field: &str, wrong: impl fmt::Display) -> Self {
        Self { field: field.to_owned(), column: None, wrong: wrong.to_string(), instead: None }
    }

    /// The same complaint about what begins `offset` bytes after the beginning of the text.
    pub(crate) fn at(mut self, offset: usize) -> Self {
        self.column = Some(offset + 1);
        self
    }

    /// The same complaint with something to write instead.
    pub(crate) fn instead(mut self, text: impl fmt::Display) -> Self {
        self.instead = Some(text.to_string());
        self
    }

    /// The same complaint about a text that stands `offset` bytes further to the right in a longer one.
    pub(crate) fn moved(mut self, offset: usize) -> Self {
        self.column = self.column.map(|column| column + offset);
        self
    }
}

impl fmt::Display for BadSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.field)?;
        if let Some(column) = self.column {
            write!(f, " at column {column}")?;
        }
        write!(f, ": {}", self.wrong)?;
        match &self.instead {
            Some(instead) => write!(f, "; {}", crate::invalid::remedy(instead)),
            None => Ok(()),
        }
    }
}

impl std::error::Error for BadSchedule {}

impl From<BadSchedule> for Invalid {
    fn from(bad: BadSchedule) -> Self {
        let place = bad.column.map(|column| format!(" at column {column}")).unwrap_or_default();
        let allowed = bad.instead.unwrap_or_else(|| "see the schedules page of the guide".to_owned());
        let field = if bad.field == "schedule" { bad.field } else { format!("schedule.{}", bad.field) };
        Self::new(field, format_args!("{}{place}", bad.wrong), allowed)
    }
}
