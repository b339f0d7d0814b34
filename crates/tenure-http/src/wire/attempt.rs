//! An attempt as clients see it.

use schemars::JsonSchema;
use serde::Serialize;
use tenure::Attempt;

use super::job::cause;

/// One try of a job, and how it went.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Attempt")]
pub struct AttemptDocument {
    /// Which try it is: 1, 2, … One that was given back repeats its number.
    pub attempt: u32,
    /// Which grant of the job it is: every one counts.
    pub delivery: u32,
    /// Who had it.
    pub worker_id: String,
    /// The number of that ownership.
    pub fence: String,
    /// When it began.
    pub started_at: String,
    /// When it ended; none while it runs.
    pub finished_at: Option<String>,
    /// How it ended: `succeeded`, `failed`, `retried`, `snoozed`, `released`, `lost` or `cancelled`.
    pub outcome: Option<&'static str>,
    /// The kind of trouble, if there was any.
    pub error_type: Option<&'static str>,
    /// What was said of it.
    pub error: Option<String>,
}

impl AttemptDocument {
    /// What there is to tell of an attempt.
    #[must_use]
    pub fn of(attempt: &Attempt) -> Self {
        Self {
            attempt: attempt.attempt,
            delivery: attempt.delivery,
            worker_id: attempt.holder.to_string(),
            fence: attempt.fence.to_string(),
            started_at: attempt.started.to_string(),
            finished_at: attempt.ended.map(|(at, _)| at.to_string()),
            outcome: attempt.ended.map(|(_, end)| end.as_str()),
            error_type: attempt.failure.as_ref().map(|failure| cause(failure.cause)),
            error: attempt.failure.as_ref().map(|failure| failure.message.clone()),
        }
    }
}
