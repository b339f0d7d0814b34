//! What is told when something was not done: one kind a reason, one document each (RFC 9457).

use std::time::Duration;

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use crate::troubles::Trouble;

/// Why something was not done, as a client can decide by it. `docs/problems.md` tells of each what to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProblemType {
    /// The request cannot be read: it is no JSON, or a header or a parameter makes no sense.
    Malformed,
    /// The request was read, and a value in it is not allowed.
    Validation,
    /// The body is of a type that is not understood.
    UnsupportedMediaType,
    /// Nobody knows who asks.
    Unauthenticated,
    /// Whoever asks may not.
    Forbidden,
    /// Nothing may be changed through this server.
    ReadOnly,
    /// There is no such thing.
    NotFound,
    /// There is something at this path, but it cannot be asked for in this way.
    MethodNotAllowed,
    /// There was such a thing, and its time was over.
    Gone,
    /// What came behind this cursor is not kept any more.
    CursorExpired,
    /// It is in a state in which this cannot be done.
    StateConflict,
    /// There is one with this id, and it is another one.
    IdTaken,
    /// Another request was sent under this key.
    KeyReused,
    /// Another job holds the unique key.
    UniqueConflict,
    /// As many jobs wait in the queue as may.
    QueueFull,
    /// Too much came from one address.
    RateLimited,
    /// The worker is told to take no more jobs.
    WorkerQuiet,
    /// Somebody else has the lease.
    LeaseHeld,
    /// The job or the lease was taken from whoever tells about it.
    LeaseLost,
    /// It has changed since it was looked at.
    PreconditionFailed,
    /// It is changed only by whoever says as what it was looked at.
    PreconditionRequired,
    /// The job whose result was asked for has failed.
    JobFailed,
    /// The job whose result was asked for was cancelled.
    JobCancelled,
    /// The body is larger than is allowed.
    PayloadTooLarge,
    /// The head of the request is too large.
    HeadersTooLarge,
    /// The store cannot answer at the moment.
    StorageUnavailable,
    /// The server is about to end.
    Draining,
    /// A page of somebody else's sent the request.
    CrossSite,
    /// The request is addressed to somebody else.
    HostNotAllowed,
    /// The request did not come to its end in time.
    RequestTimeout,
    /// So much is being sent to the server that it has no room for more at the moment.
    Overloaded,
    /// Something is wrong with the server.
    Internal,
}

impl ProblemType {
    /// Every kind.
    pub const ALL: [Self; 32] = [
        Self::Malformed,
        Self::Validation,
        Self::UnsupportedMediaType,
        Self::Unauthenticated,
        Self::Forbidden,
        Self::ReadOnly,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::Gone,
        Self::CursorExpired,
        Self::StateConflict,
        Self::IdTaken,
        Self::KeyReused,
        Self::UniqueConflict,
        Self::QueueFull,
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
        Self::Internal,
    ];

    /// Its name in the type of the document.
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
            Self::Gone => "gone",
            Self::CursorExpired => "cursor-expired",
            Self::StateConflict => "state-conflict",
            Self::IdTaken => "id-taken",
            Self::KeyReused => "idempotency-key-reused",
            Self::UniqueConflict => "unique-conflict",
            Self::QueueFull => "queue-full",
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
            Self::Internal => "internal",
        }
    }

    /// A few words for people; always the same for a kind.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Malformed => "The request cannot be read",
            Self::Validation => "A value is not allowed",
            Self::UnsupportedMediaType => "The body is of a type that is not understood",
            Self::Unauthenticated => "Nobody knows who asks",
            Self::Forbidden => "The access token does not give this right",
            Self::ReadOnly => "Nothing may be changed here",
            Self::NotFound => "There is no such thing",
            Self::MethodNotAllowed => "This cannot be asked for in this way",
            Self::Gone => "Its time is over",
            Self::CursorExpired => "What came behind the cursor is not kept any more",
            Self::StateConflict => "Its state does not allow this",
            Self::IdTaken => "Another job has this id",
            Self::KeyReused => "The key was used for something else",
            Self::UniqueConflict => "Another job holds the unique key",
            Self::RateLimited => "Too much comes from one address",
            Self::WorkerQuiet => "The worker is to take no more jobs",
            Self::QueueFull => "As many jobs wait in the queue as may",
            Self::LeaseHeld => "Somebody else has the lease",
            Self::LeaseLost => "It is not held any more under this token",
            Self::PreconditionFailed => "It has changed since",
            Self::PreconditionRequired => "It has to be said as what it was looked at",
            Self::JobFailed => "The job has failed",
            Self::JobCancelled => "The job was cancelled",
            Self::PayloadTooLarge => "The body is too large",
            Self::HeadersTooLarge => "The head of the request is too large",
            Self::StorageUnavailable => "The store cannot answer",
            Self::Draining => "The server is about to end",
            Self::CrossSite => "The request comes from a page of somebody else's",
            Self::HostNotAllowed => "The request is for somebody else",
            Self::RequestTimeout => "The request took too long",
            Self::Overloaded => "Too much is being sent at once",
            Self::Internal => "Something is wrong with the server",
        }
    }

    /// With which status it is answered.
    #[must_use]
    pub fn status(self) -> StatusCode {
        match self {
            Self::Malformed => StatusCode::BAD_REQUEST,
            Self::Validation | Self::KeyReused => StatusCode::UNPROCESSABLE_ENTITY,
            Self::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::Gone | Self::CursorExpired => StatusCode::GONE,
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
            Self::QueueFull | Self::RateLimited => StatusCode::TOO_MANY_REQUESTS,
            Self::PayloadTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::HeadersTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::StorageUnavailable | Self::Draining | Self::Overloaded => StatusCode::SERVICE_UNAVAILABLE,
            Self::Unauthenticated => StatusCode::UNAUTHORIZED,
            Self::CrossSite | Self::Forbidden | Self::ReadOnly => StatusCode::FORBIDDEN,
            Self::HostNotAllowed => StatusCode::MISDIRECTED_REQUEST,
            Self::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// A problem document: why something was not done, for programs and for people.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    problem_type: ProblemType,
    detail: String,
    retry_after: Option<Duration>,
    more: Map<String, Value>,
    trouble: Option<Trouble>,
}

impl Problem {
    /// A problem of this kind, with a sentence about this case.
    #[must_use]
    pub fn new(problem_type: ProblemType, detail: impl Into<String>) -> Self {
        Self { problem_type, detail: detail.into(), retry_after: None, more: Map::new(), trouble: None }
    }

    /// Of which kind it is.
    #[must_use]
    pub fn problem_type(&self) -> ProblemType {
        self.problem_type
    }

    /// The same, with one more thing told about it.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.more.insert(name.to_owned(), value.into());
        self
    }

    /// The same, with a wish to be asked again only after so long.
    #[must_use]
    pub fn retry_after(mut self, span: Duration) -> Self {
        self.retry_after = Some(span);
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

    /// The document.
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
            Problem::new(ProblemType::Gone, "it was removed").with("status", 200).with("field", "id");
        let document = problem.document();
        assert_eq!(document["status"], 410);
        assert_eq!(document["field"], "id");
        assert_eq!(document["type"], "urn:tenure:problem:gone");
    }

    #[test]
    fn nobody_is_asked_to_come_back_after_no_time() {
        assert_eq!(whole_seconds(Duration::ZERO), 1);
        assert_eq!(whole_seconds(Duration::from_millis(1_001)), 2);
    }
}
