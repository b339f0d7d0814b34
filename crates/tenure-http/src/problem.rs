//! What is told when something was not done: one kind a reason, one document each (RFC 9457).

use std::time::Duration;

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use tenure::JobId;

use crate::troubles::Trouble;

/// The type of a problem document, by which a client can decide what to do. The page `docs/guide/problems.md`
/// describes each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProblemType {
    /// The request cannot be parsed: invalid JSON, header or parameter.
    Malformed,
    /// A value in the request is invalid.
    Validation,
    /// The type of the body is not supported.
    UnsupportedMediaType,
    /// The request needs a valid access token.
    Unauthenticated,
    /// The access token does not grant this.
    Forbidden,
    /// The server is read-only.
    ReadOnly,
    /// The resource does not exist.
    NotFound,
    /// The path does not support the method.
    MethodNotAllowed,
    /// Events after this cursor are no longer kept.
    CursorExpired,
    /// The state of the resource does not allow the request.
    StateConflict,
    /// The job ID belongs to another job.
    IdTaken,
    /// The idempotency key was used for another request.
    KeyReused,
    /// Another job holds the unique key.
    UniqueConflict,
    /// The queue has reached its maximum depth.
    QueueFull,
    /// The request exceeds a quota of the server or of the access token.
    QuotaExceeded,
    /// Too many requests from one address.
    RateLimited,
    /// The worker was told to claim no more jobs.
    WorkerQuiet,
    /// Another owner holds the lease.
    LeaseHeld,
    /// The job or lease was taken from the caller.
    LeaseLost,
    /// The resource has changed since it was read.
    PreconditionFailed,
    /// The request needs the header `If-Match`.
    PreconditionRequired,
    /// The job failed, so it has no result.
    JobFailed,
    /// The job was cancelled, so it has no result.
    JobCancelled,
    /// The body is too large.
    PayloadTooLarge,
    /// The headers are too large.
    HeadersTooLarge,
    /// The store is unavailable.
    StorageUnavailable,
    /// The server is shutting down.
    Draining,
    /// The request comes from a page of another site.
    CrossSite,
    /// The `Host` header names an unknown host.
    HostNotAllowed,
    /// The request did not arrive in time.
    RequestTimeout,
    /// The server is already reading too many request bodies.
    Overloaded,
    /// A stored value cannot be read.
    UnreadableData,
    /// An internal error.
    Internal,
}

impl ProblemType {
    /// Every type.
    pub const ALL: [Self; 33] = [
        Self::Malformed,
        Self::Validation,
        Self::UnsupportedMediaType,
        Self::Unauthenticated,
        Self::Forbidden,
        Self::ReadOnly,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::CursorExpired,
        Self::StateConflict,
        Self::IdTaken,
        Self::KeyReused,
        Self::UniqueConflict,
        Self::QueueFull,
        Self::QuotaExceeded,
        Self::RateLimited,
        Self::WorkerQuiet,
        Self::LeaseHeld,
        Self::LeaseLost,
        Self::PreconditionFailed,
        Self::PreconditionRequired,
        Self::JobFailed,
        Self::JobCancelled,
        Self::PayloadTooLarge,
        Self::HeadersTooLarge,
        Self::StorageUnavailable,
        Self::Draining,
        Self::CrossSite,
        Self::HostNotAllowed,
        Self::RequestTimeout,
        Self::Overloaded,
        Self::UnreadableData,
        Self::Internal,
    ];

    /// Returns the name, which is the last part of the `type` of the document.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Validation => "validation",
            Self::UnsupportedMediaType => "unsupported-media-type",
            Self::Unauthenticated => "unauthenticated",
            Self::Forbidden => "forbidden",
            Self::ReadOnly => "read-only",
            Self::NotFound => "not-found",
            Self::MethodNotAllowed => "method-not-allowed",
            Self::CursorExpired => "cursor-expired",
            Self::StateConflict => "state-conflict",
            Self::IdTaken => "id-taken",
            Self::KeyReused => "idempotency-key-reused",
            Self::UniqueConflict => "unique-conflict",
            Self::QueueFull => "queue-full",
            Self::QuotaExceeded => "quota-exceeded",
            Self::RateLimited => "rate-limited",
            Self::WorkerQuiet => "worker-quiet",
            Self::LeaseHeld => "lease-held",
            Self::LeaseLost => "lease-lost",
            Self::PreconditionFailed => "precondition-failed",
            Self::PreconditionRequired => "precondition-required",
            Self::JobFailed => "job-failed",
            Self::JobCancelled => "job-cancelled",
            Self::PayloadTooLarge => "payload-too-large",
            Self::HeadersTooLarge => "headers-too-large",
            Self::StorageUnavailable => "storage-unavailable",
            Self::Draining => "draining",
            Self::CrossSite => "cross-site",
            Self::HostNotAllowed => "host-not-allowed",
            Self::RequestTimeout => "request-timeout",
            Self::Overloaded => "overloaded",
            Self::UnreadableData => "unreadable-data",
            Self::Internal => "internal",
        }
    }

    /// Returns the title.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Malformed => "Malformed request",
            Self::Validation => "Invalid value",
            Self::UnsupportedMediaType => "Unsupported media type",
            Self::Unauthenticated => "Authentication required",
            Self::Forbidden => "Permission denied",
            Self::ReadOnly => "Server is read-only",
            Self::NotFound => "Not found",
            Self::MethodNotAllowed => "Method not allowed",
            Self::CursorExpired => "Cursor expired",
            Self::StateConflict => "Not possible in the current state",
            Self::IdTaken => "Job ID already in use",
            Self::KeyReused => "Idempotency key reused with a different request",
            Self::UniqueConflict => "Unique key held by another job",
            Self::QuotaExceeded => "Quota exceeded",
            Self::RateLimited => "Too many requests",
            Self::WorkerQuiet => "Worker must not claim jobs",
            Self::QueueFull => "Queue is full",
            Self::LeaseHeld => "Lease held by another owner",
            Self::LeaseLost => "Lease lost",
            Self::PreconditionFailed => "Changed since it was read",
            Self::PreconditionRequired => "If-Match header required",
            Self::JobFailed => "Job failed",
            Self::JobCancelled => "Job cancelled",
            Self::PayloadTooLarge => "Request body too large",
            Self::HeadersTooLarge => "Request headers too large",
            Self::StorageUnavailable => "Store unavailable",
            Self::Draining => "Server is shutting down",
            Self::CrossSite => "Cross-site request refused",
            Self::HostNotAllowed => "Host not allowed",
            Self::RequestTimeout => "Request timed out",
            Self::Overloaded => "Server overloaded",
            Self::UnreadableData => "Unreadable data",
            Self::Internal => "Internal server error",
        }
    }

    /// Returns the status code.
    #[must_use]
    pub fn status(self) -> StatusCode {
        match self {
            Self::Malformed => StatusCode::BAD_REQUEST,
            Self::Validation | Self::KeyReused => StatusCode::UNPROCESSABLE_ENTITY,
            Self::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::CursorExpired => StatusCode::GONE,
            Self::StateConflict
            | Self::IdTaken
            | Self::UniqueConflict
            | Self::WorkerQuiet
            | Self::LeaseHeld
            | Self::LeaseLost
            | Self::JobFailed
            | Self::JobCancelled => StatusCode::CONFLICT,
            Self::PreconditionFailed => StatusCode::PRECONDITION_FAILED,
            Self::PreconditionRequired => StatusCode::PRECONDITION_REQUIRED,
            Self::QueueFull | Self::QuotaExceeded | Self::RateLimited => StatusCode::TOO_MANY_REQUESTS,
            Self::PayloadTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::HeadersTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::StorageUnavailable | Self::Draining | Self::Overloaded => StatusCode::SERVICE_UNAVAILABLE,
            Self::Unauthenticated => StatusCode::UNAUTHORIZED,
            Self::CrossSite | Self::Forbidden | Self::ReadOnly => StatusCode::FORBIDDEN,
            Self::HostNotAllowed => StatusCode::MISDIRECTED_REQUEST,
            Self::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::UnreadableData | Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// The name of a header in lower case, and its value.
pub(crate) type Header = (&'static str, &'static str);

/// A problem document (RFC 9457).
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    problem_type: ProblemType,
    detail: Box<str>,
    retry_after: Option<Duration>,
    header: Option<&'static Header>,
    more: Map<String, Value>,
    trouble: Option<Trouble>,
}

impl Problem {
    /// Creates a problem with a sentence about this case.
    #[must_use]
    pub fn new(problem_type: ProblemType, detail: impl Into<String>) -> Self {
        let detail = detail.into().into_boxed_str();
        Self { problem_type, detail, retry_after: None, header: None, more: Map::new(), trouble: None }
    }

    /// Returns the type.
    #[must_use]
    pub fn problem_type(&self) -> ProblemType {
        self.problem_type
    }

    /// Returns the job that holds a unique key, if the problem names one.
    pub(crate) fn key_holder(&self) -> Option<JobId> {
        let names_holder = self.problem_type == ProblemType::UniqueConflict;
        self.more.get("job_id").filter(|_| names_holder)?.as_str()?.parse().ok()
    }

    /// Adds a field.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.more.insert(name.to_owned(), value.into());
        self
    }

    /// Sets the delay after which the client should retry.
    #[must_use]
    pub fn retry_after(mut self, span: Duration) -> Self {
        self.retry_after = Some(span);
        self
    }

    /// Adds a header that helps the client to go on.
    pub(crate) fn header(mut self, header: &'static Header) -> Self {
        self.header = Some(header);
        self
    }

    /// The same, with what only whoever runs the server is told of.
    pub(crate) fn because(mut self, trouble: Trouble) -> Self {
        self.trouble = Some(trouble);
        self
    }

    /// What only whoever runs the server is told of.
    pub(crate) fn trouble(&self) -> Option<&Trouble> {
        self.trouble.as_ref()
    }

    /// Returns the JSON document.
    #[must_use]
    pub fn document(&self) -> Value {
        let mut document = json!({
            "type": format!("urn:tenure:problem:{}", self.problem_type.name()),
            "title": self.problem_type.title(),
            "status": self.problem_type.status().as_u16(),
            "detail": self.detail,
        });
        if let Some(fields) = document.as_object_mut() {
            // What every document has is never covered by what this one has more.
            for (name, value) in &self.more {
                fields.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
        document
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.problem_type.status(), self.document().to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(span) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(whole_seconds(span)));
        }
        if let Some((name, value)) = self.header {
            response.headers_mut().insert(*name, HeaderValue::from_static(value));
        }
        if let Some(trouble) = self.trouble {
            response.extensions_mut().insert(trouble);
        }
        response
    }
}

/// As many whole seconds as a client should wait at least: never none.
pub(crate) fn whole_seconds(span: Duration) -> u64 {
    span.as_secs_f64().ceil().max(1.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_names_of_their_own_and_say_so_with_an_error() {
        let names: std::collections::BTreeSet<_> = ProblemType::ALL.iter().map(|kind| kind.name()).collect();
        assert_eq!(names.len(), ProblemType::ALL.len());
        assert!(ProblemType::ALL.iter().all(|kind| kind.status().as_u16() >= 400));
    }

    #[test]
    fn the_page_about_problems_tells_of_every_kind() {
        let page = include_str!("../../../docs/guide/problems.md");
        for kind in ProblemType::ALL {
            let row = format!("| `{}` | {} | {} |", kind.name(), kind.status().as_u16(), kind.title());
            assert!(page.contains(&row), "{row}");
        }
    }

    #[test]
    fn a_document_keeps_its_own_words_whatever_is_added() {
        let problem =
            Problem::new(ProblemType::CursorExpired, "it is too old").with("status", 200).with("field", "id");
        let document = problem.document();
        assert_eq!(document["status"], 410);
        assert_eq!(document["field"], "id");
        assert_eq!(document["type"], "urn:tenure:problem:cursor-expired");
    }

    #[test]
    fn nobody_is_asked_to_come_back_after_no_time() {
        assert_eq!(whole_seconds(Duration::ZERO), 1);
        assert_eq!(whole_seconds(Duration::from_millis(1_001)), 2);
    }
}
