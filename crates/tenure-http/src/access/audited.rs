//! Requests that the audit log records.

use axum::body::Body;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use hyper::body::Body as _;
use serde_json::Value;

use crate::api::Api;
use crate::audit::{Act, Detail, NotAudited, Target};
use crate::problem::{Problem, ProblemType};

/// Largest response that can name a new object.
const RESPONSE_BYTES: u64 = 1 << 20;

/// A request that needs an audit entry.
pub(super) struct Noted {
    pub act: Act,
    pub target: Target,
    /// False if the request only reveals hidden values.
    pub changes: bool,
}

/// Serves a request and writes its audit entry. Hidden values are not shown if their entry cannot be written.
pub(super) async fn audited(api: &Api, noted: Noted, request: Request, next: Next) -> Response {
    let Noted { act, target, changes } = noted;
    let path = request.uri().path().to_owned();
    let before = if changes { target.document(api, &path).await } else { None };
    let response = next.run(request).await;
    let reveals = act.reveals();
    if !reveals && response.extensions().get::<NotAudited>().is_some() {
        return response;
    }
    let (mut response, act) = match changes && response.status().is_success() {
        true => changed(api, (act, &target, &path), before, response).await,
        false => (response, act),
    };
    let status = response.status();
    if !api.audit(act.answered(status)).await && reveals {
        let detail = "failed to write the audit entry, so no hidden values are shown; see the server log";
        response = Problem::new(ProblemType::StorageUnavailable, detail).into_response();
    }
    response
}

/// Adds the change that a request made to its entry.
async fn changed(
    api: &Api,
    (mut act, target, path): (Act, &Target, &str),
    before: Option<Value>,
    mut response: Response,
) -> (Response, Act) {
    let detail = response.extensions_mut().remove::<Detail>().map(|Detail(detail)| detail);
    let mut document = None;
    if target.is_collection() {
        (response, document) = read(response).await;
        act.name(document.as_ref());
    }
    let after = match (detail, document) {
        (Some(detail), _) => Some(detail),
        (None, Some(document)) => Some(document),
        (None, None) => target.document(api, path).await,
    };
    act.change(api.hiding(), before, after);
    (response, act)
}

/// Returns the document of a response, which stays as it is.
async fn read(response: Response) -> (Response, Option<Value>) {
    if response.body().size_hint().exact().is_none_or(|bytes| bytes > RESPONSE_BYTES) {
        return (response, None);
    }
    let (head, body) = response.into_parts();
    let bytes = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let document = serde_json::from_slice(&bytes).ok();
    (Response::from_parts(head, Body::from(bytes)), document)
}
