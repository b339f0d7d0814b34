//! Answers that show a job, and what all answers have in common.

use std::time::Duration;

use axum::http::header::{
    CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, LINK, RETRY_AFTER, VARY,
};
use axum::http::{HeaderName, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use tenure::{JobId, JobRecord, State, Timestamp};

use crate::hide::{Hiding, View};
use crate::in_transit::Short;
use crate::memory::FREE_BYTES;
use crate::problem::whole_seconds;
use crate::site::Site;
use crate::tag::Tag;
use crate::wire::JobDocument;

/// Where the state of an operation is told without ever leading elsewhere.
pub(crate) const OPERATION_LOCATION: HeaderName = HeaderName::from_static("operation-location");
/// What was granted of what a client would rather have.
pub(crate) const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// That what was asked had been done before.
pub(crate) const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// When a client that looks again and again should look next.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// And at the latest, however long its job is not due.
const LOOK_AT_LEAST: Duration = Duration::from_secs(60);

/// A job as it was looked at: its document and the tag of that.
pub(crate) struct Shown {
    pub tag: Tag,
    pub is_finished: bool,
    document: JobDocument,
    body: Vec<u8>,
    retry_after: Option<Duration>,
}

impl Shown {
    /// What is shown of a job at this instant.
    pub(crate) fn of(job: &JobRecord, now: Timestamp, view: View, hiding: &Hiding) -> Self {
        let text = |document: &JobDocument| serde_json::to_vec(document).unwrap_or_default();
        let plain = JobDocument::of(job, now);
        let is_another_for_the_tag = plain.has_lapsed() || matches!(view, View::Revealed);
        let tag = is_another_for_the_tag.then(|| {
            let timeless = JobDocument::of(job, now).timeless();
            Tag::of(&text(&match view {
                View::Plain => timeless,
                // Whoever sees more than others sees the same job.
                View::Hidden | View::Revealed => timeless.hidden(hiding),
            }))
        });
        let document = match view {
            View::Plain | View::Revealed => plain,
            View::Hidden => plain.hidden(hiding),
        };
        let body = text(&document);
        Self {
            tag: tag.unwrap_or_else(|| Tag::of(&body)),
            is_finished: job.state.is_finished(),
            document,
            body,
            retry_after: look_next(job, now),
        }
    }

    /// Returns the answer with the URLs and fields of this site. Its ETag does not depend on the host name.
    pub(crate) fn on(mut self, site: &Site) -> Self {
        if self.document.address(site) {
            self.body = site.text(&self.document);
        }
        self
    }

    /// The document.
    pub(crate) fn body(&self) -> &[u8] {
        &self.body
    }

    /// The answer that shows it.
    pub(crate) fn answer(self, status: StatusCode) -> Response {
        // A change that shows a large job must not fail if its client has too many unread responses.
        let is_large = self.body.len() > FREE_BYTES;
        let mut response = (status, self.body).into_response();
        if is_large {
            response.extensions_mut().insert(Short(serde_json::json!({ "id": self.document.id })));
        }
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        mark(headers, &self.tag, self.retry_after);
        response
    }

    /// The answer to somebody who wants no more of it than its id.
    pub(crate) fn answer_minimal(self, status: StatusCode, id: JobId) -> Response {
        let mut response = json(status, &serde_json::json!({ "id": id.to_string() }));
        mark(response.headers_mut(), &self.tag, self.retry_after);
        response
    }

    /// The answer for somebody who has it already.
    pub(crate) fn not_modified(self) -> Response {
        let mut response = StatusCode::NOT_MODIFIED.into_response();
        mark(response.headers_mut(), &self.tag, self.retry_after);
        response
    }
}

fn mark(headers: &mut HeaderMap, tag: &Tag, retry_after: Option<Duration>) {
    if let Ok(tag) = HeaderValue::from_str(tag.as_str()) {
        headers.insert(ETAG, tag);
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    headers.insert(VARY, HeaderValue::from_static("Prefer, Accept, Authorization"));
    if let Some(span) = retry_after {
        headers.insert(RETRY_AFTER, HeaderValue::from(whole_seconds(span)));
    }
}

/// When to look at a job again; never if it has ended.
pub(crate) fn look_next(job: &JobRecord, now: Timestamp) -> Option<Duration> {
    match job.state {
        State::Finished { .. } => None,
        State::Waiting { due, .. } => Some(due.since(now).clamp(LOOK_AGAIN, LOOK_AT_LEAST)),
        State::Blocked { .. } | State::Running { .. } => Some(LOOK_AGAIN),
    }
}

/// An answer of JSON.
pub(crate) fn json<T: Serialize>(status: StatusCode, value: &T) -> Response {
    let body = serde_json::to_vec(value).unwrap_or_default();
    (status, [(CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response()
}

/// An answer of JSON with its tag.
pub(crate) fn tagged<T: Serialize>(status: StatusCode, tag: &Tag, value: &T) -> Response {
    let mut response = json(status, value);
    mark(response.headers_mut(), tag, None);
    response
}

/// Returns a response with this text, which is JSON, and its tag.
pub(crate) fn tagged_text(status: StatusCode, tag: &Tag, body: Vec<u8>) -> Response {
    let mut response =
        (status, [(CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response();
    mark(response.headers_mut(), tag, None);
    response
}

/// The answer for somebody who has it already.
pub(crate) fn not_modified(tag: &Tag) -> Response {
    let mut response = StatusCode::NOT_MODIFIED.into_response();
    mark(response.headers_mut(), tag, None);
    response
}

/// What need not be encoded behind a question mark.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A page, with the way to the next one if there is one.
pub(crate) fn page<T: Serialize>(asked: &Uri, cursor: Option<&str>, value: &T) -> Response {
    let mut response = json(StatusCode::OK, value);
    if let Some(cursor) = cursor {
        go_on(response.headers_mut(), asked, ("cursor", cursor));
    }
    response
}

/// Says with which value of which parameter what comes behind this is asked for.
pub(crate) fn go_on(headers: &mut HeaderMap, asked: &Uri, (name, value): (&str, &str)) {
    let kept = asked.query().unwrap_or_default().split('&');
    let is_it = |pair: &str| pair.split_once('=').is_some_and(|(said, _)| said == name);
    let mut pairs: Vec<&str> = kept.filter(|pair| !pair.is_empty() && !is_it(pair)).collect();
    let value = format!("{name}={}", utf8_percent_encode(value, PLAIN));
    pairs.push(&value);
    let link = format!("<{}?{}>; rel=\"next\"", asked.path(), pairs.join("&"));
    if let Ok(link) = HeaderValue::from_str(&link) {
        headers.insert(LINK, link);
    }
}
