//! Pages of what there may be much of.

use schemars::JsonSchema;
use serde::Serialize;
use tenure::LogLine;

use super::JobDocument;

/// A page of jobs. A page may be short or empty although more follow.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JobPage {
    /// Jobs, newest first.
    pub items: Vec<JobDocument>,
    /// Cursor of the next page; omitted on the last page.
    pub next_cursor: Option<String>,
}

/// A log line of an attempt.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "LogLine")]
pub struct LogLineDocument {
    /// Delivery that wrote the line.
    pub delivery: u32,
    /// Line number within the delivery.
    pub number: u32,
    /// Time at which the line was written.
    pub at: String,
    /// Text.
    pub text: String,
}

/// A page of log lines.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LogPage {
    /// Lines in order.
    pub items: Vec<LogLineDocument>,
    /// Value of `after` for the following lines; omitted if there are none yet.
    pub next_after: Option<String>,
}

impl LogLineDocument {
    /// What there is to tell of a line.
    #[must_use]
    pub fn of(line: &LogLine) -> Self {
        Self {
            delivery: line.delivery,
            number: line.number,
            at: line.at.to_string(),
            text: line.text.clone(),
        }
    }
}
