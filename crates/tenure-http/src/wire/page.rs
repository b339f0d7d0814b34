//! Pages of what there may be much of.

use schemars::JsonSchema;
use serde::Serialize;
use tenure::LogLine;

use super::JobDocument;

/// A page of jobs. It may be short, or even empty, and still go on.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JobPage {
    /// The jobs, the newest first.
    pub items: Vec<JobDocument>,
    /// What to give as `cursor` for the next page; none at the end.
    pub next_cursor: Option<String>,
}

/// A line that an attempt has logged.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "LogLine")]
pub struct LogLineDocument {
    /// Which grant of the job wrote it.
    pub delivery: u32,
    /// Its number in that.
    pub number: u32,
    /// When.
    pub at: String,
    /// What.
    pub text: String,
}

/// A page of log lines.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LogPage {
    /// The lines, in order.
    pub items: Vec<LogLineDocument>,
    /// What to give as `after` for the lines behind; none if this is the end for now.
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
