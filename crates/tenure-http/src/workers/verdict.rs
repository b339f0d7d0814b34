//! How a worker says that it went.

use crate::wire::shape;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;
use tenure::{Cause, Due, Failure, Invalid, Output, Verdict, seconds};

/// An error reported by a worker.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "WorkerError")]
pub(crate) struct WorkerError {
    /// Error type as the worker names it, such as an exception class.
    #[serde(rename = "type")]
    kind: Option<String>,
    /// Error message.
    detail: String,
    /// Stack trace.
    stack: Option<String>,
}

/// Completion of a job.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Complete {
    /// Token of the job.
    pub token: String,
    /// Result: any JSON.
    #[schemars(with = "Option<serde_json::Value>")]
    pub result: Option<Box<RawValue>>,
    /// Path of the resource that the job created, such as `/stars/7`.
    #[schemars(length(min = 1, max = tenure::limits::PLACE_BYTES))]
    pub resource_location: Option<String>,
}

/// Failure of an attempt.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fail {
    /// Token of the job.
    pub token: String,
    /// Error.
    #[serde(default, deserialize_with = "shape::object")]
    #[schemars(with = "Option<WorkerError>")]
    pub error: Option<WorkerError>,
    /// `false` if a retry cannot help; default `true`.
    pub retryable: Option<bool>,
    /// Delay before the retry; default: by the retry policy.
    #[schemars(range(min = 0.0, max = shape::LONGEST))]
    pub retry_after_seconds: Option<f64>,
}

/// Release of a job, without spending an attempt.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Release {
    /// Token of the job.
    pub token: String,
    /// Delay until the job is due again; by default it keeps its place in line.
    #[schemars(range(min = 0.0, max = shape::LONGEST))]
    pub delay_seconds: Option<f64>,
}

impl Complete {
    pub(crate) fn verdict(self) -> Result<Verdict, Invalid> {
        let value = self.result.map_or_else(Vec::new, |result| result.get().as_bytes().to_vec());
        if value.is_empty() && self.resource_location.is_none() {
            return Ok(Verdict::Succeeded(None));
        }
        let named = |wrong: Invalid| match (wrong.field.as_str(), wrong.field.strip_prefix("output")) {
            (_, Some(path)) => Invalid { field: format!("result{path}"), ..wrong },
            ("place", None) => Invalid { field: "resource_location".to_owned(), ..wrong },
            (_, None) => wrong,
        };
        Output::new(value, self.resource_location)
            .map(|output| Verdict::Succeeded(Some(output)))
            .map_err(named)
    }
}

impl Fail {
    pub(crate) fn verdict(self) -> Result<Verdict, Invalid> {
        let failure = self.error.unwrap_or_default().failure();
        let due = self.retry_after_seconds.map(|span| seconds("retry_after_seconds", span)).transpose()?;
        Ok(match self.retryable {
            Some(false) => Verdict::Failed(failure),
            None | Some(true) => Verdict::Retry { failure, due: due.map(Due::In) },
        })
    }
}

impl Release {
    pub(crate) fn verdict(self) -> Result<Verdict, Invalid> {
        let delay = self.delay_seconds.map(|span| seconds("delay_seconds", span)).transpose()?;
        Ok(delay.map_or(Verdict::Released, |delay| Verdict::Snoozed(Due::In(delay))))
    }
}

impl WorkerError {
    fn failure(self) -> Failure {
        let kind = self.kind.map(|kind| format!("{kind}: ")).unwrap_or_default();
        let stack = self.stack.map(|stack| format!("\n{stack}")).unwrap_or_default();
        Failure::new(Cause::Error, &format!("{kind}{}{stack}", self.detail))
    }
}
