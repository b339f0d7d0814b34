//! The terms of a queue, as clients see and say them.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenure::{Backoff, Invalid, Keep, QueueTerms, Retention, RetryPolicy, seconds};

use super::queue::{QueuePatch, QueueSpec};
use super::{RetrySpec, shape};

/// Retention of finished jobs, by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Retain")]
pub struct RetainDocument {
    /// Retention of succeeded jobs in seconds; if omitted, the default applies.
    #[schemars(range(min = 0.0, max = shape::LONGEST))]
    pub succeeded: Option<f64>,
    /// Retention of failed and cancelled jobs in seconds; if omitted, the default applies.
    #[schemars(range(min = 0.0, max = shape::LONGEST))]
    pub failed: Option<f64>,
}

impl RetainDocument {
    /// What there is to tell of it; for good is not told as a number.
    pub(super) fn of(retention: &Retention) -> Self {
        let span = |keep: Keep| match keep {
            Keep::For(span) => Some(span.as_secs_f64()),
            Keep::Forever => None,
        };
        Self { succeeded: span(retention.succeeded), failed: span(retention.failed) }
    }

    /// What is meant; of what is not said as it was.
    fn retention(self, usual: Retention) -> Result<Retention, Invalid> {
        let keep = |field: &str, span: Option<f64>, usual: Keep| {
            span.map_or(Ok(usual), |span| seconds(&format!("retain_seconds.{field}"), span).map(Keep::For))
        };
        Ok(Retention {
            succeeded: keep("succeeded", self.succeeded, usual.succeeded)?,
            failed: keep("failed", self.failed, usual.failed)?,
        })
    }
}

impl RetrySpec {
    /// As it would be said.
    pub(super) fn of(policy: &RetryPolicy) -> Self {
        let spec = Self { max_attempts: Some(policy.max_attempts), ..Self::default() };
        match &policy.backoff {
            Backoff::Exponential { first, ceiling } => Self {
                first_seconds: Some(first.as_secs_f64()),
                ceiling_seconds: Some(ceiling.as_secs_f64()),
                ..spec
            },
            Backoff::Fixed(span) => Self { waits_seconds: Some(vec![span.as_secs_f64()]), ..spec },
            Backoff::Steps(spans) => {
                Self { waits_seconds: Some(spans.iter().map(Duration::as_secs_f64).collect()), ..spec }
            }
        }
    }
}

impl QueueSpec {
    /// The terms that are meant.
    pub(crate) fn terms(&self) -> Result<QueueTerms, Invalid> {
        checked(QueueTerms {
            max_depth: self.max_depth,
            retry: self.default_retry.clone().map(retry).transpose()?,
            retention: self.retain_seconds.map(|said| said.retention(Retention::default())).transpose()?,
            lease: self.lease_seconds.map(lease).transpose()?,
        })
    }
}

impl QueuePatch {
    /// What becomes of the terms, if they change.
    pub(crate) fn terms(&self, now: &QueueTerms) -> Result<Option<QueueTerms>, Invalid> {
        let mut terms = now.clone();
        if let Some(most) = self.max_depth {
            terms.max_depth = most;
        }
        if let Some(said) = &self.default_retry {
            terms.retry = said.clone().map(retry).transpose()?;
        }
        if let Some(said) = self.retain_seconds {
            let before = terms.retention.unwrap_or_default();
            terms.retention = said.map(|said| said.retention(before)).transpose()?;
        }
        if let Some(said) = self.lease_seconds {
            terms.lease = said.map(lease).transpose()?;
        }
        if terms == *now { Ok(None) } else { checked(terms).map(Some) }
    }
}

fn retry(spec: RetrySpec) -> Result<RetryPolicy, Invalid> {
    spec.policy().map_err(in_default_retry)
}

fn lease(span: f64) -> Result<Duration, Invalid> {
    seconds("lease_seconds", span)
}

/// Terms within the limits; what is wrong with them is told by its field here.
fn checked(terms: QueueTerms) -> Result<QueueTerms, Invalid> {
    let named = |wrong: Invalid| {
        let field = match wrong.field.as_str() {
            "attempts" => "default_retry.max_attempts",
            "backoff.first" => "default_retry.first_seconds",
            "backoff.ceiling" => "default_retry.ceiling_seconds",
            "backoff.steps" => "default_retry.waits_seconds",
            "retention" => "retain_seconds",
            "lease" => "lease_seconds",
            _ => return wrong,
        };
        Invalid { field: field.to_owned(), ..wrong }
    };
    terms.check().map(|()| terms).map_err(named)
}

/// A job calls it `retry`.
fn in_default_retry(wrong: Invalid) -> Invalid {
    match wrong.field.strip_prefix("retry.") {
        Some(field) => Invalid { field: format!("default_retry.{field}"), ..wrong },
        None => wrong,
    }
}
