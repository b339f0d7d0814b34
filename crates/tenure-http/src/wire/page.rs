//! Pages of what there may be much of.

use schemars::JsonSchema;
use serde::Serialize;
use tenure::{LogLine, UnreadableJob};

use super::JobDocument;

/// A page of jobs. A page may be short or empty although more follow.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JobPage {
    /// Jobs, newest first.
    pub items: Vec<JobDocument>,
    /// Jobs that cannot be read; omitted if there are none. All others are unaffected. They may match the request, as far
    /// as can be told; only their IDs, queues and kinds are compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<UnreadableDocument>,
    /// Cursor of the next page; omitted on the last page.
    pub next_cursor: Option<String>,
}

/// A job that cannot be read.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "UnreadableJob")]
pub struct UnreadableDocument {
    /// ID; omitted if it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Position in the order of acceptance.
    pub number: u64,
    /// Queue; omitted if it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Kind; omitted if it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Column that cannot be read, and the reason; omitted if args and errors are hidden, because it may quote them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl UnreadableDocument {
    /// Creates the document of a job.
    #[must_use]
    pub fn of(job: &UnreadableJob) -> Self {
        Self {
            id: job.id.map(|id| id.to_string()),
            number: job.seq,
            queue: job.queue.as_ref().map(ToString::to_string),
            kind: job.kind.as_ref().map(ToString::to_string),
            reason: Some(job.reason.clone()),
        }
    }

    /// Leaves out the reason.
    #[must_use]
    pub fn hidden(self) -> Self {
        Self { reason: None, ..self }
    }
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
