//! An attempt as clients see it.

use schemars::JsonSchema;
use serde::Serialize;
use tenure::Attempt;

/// One attempt of a job.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Attempt")]
pub struct AttemptDocument {
    /// Attempt number: 1, 2, … An attempt that was released keeps its number.
    pub attempt: u32,
    /// Delivery number; every grant of the job counts.
    pub delivery: u32,
    /// ID of the host or worker.
    #[schemars(extend("format" = "uuid"))]
    pub worker_id: String,
    /// Fencing token of this delivery.
    pub fence: String,
    /// Start time.
    pub started_at: String,
    /// End time; omitted while the attempt is running.
    pub finished_at: Option<String>,
    /// Outcome: `succeeded`, `failed`, `retried`, `snoozed`, `released`, `lost` or `cancelled`.
    pub outcome: Option<&'static str>,
    /// Error category, if the attempt failed.
    pub error_type: Option<&'static str>,
    /// Error message.
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
            error_type: attempt.failure.as_ref().map(|failure| failure.cause.as_str()),
            error: attempt.failure.as_ref().map(|failure| failure.message.clone()),
        }
    }
}
