//! What holds for every request: who may be addressed, what is told when nothing fits, and a number to find it by.

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, HeaderName, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;

use super::HEAD_BYTES;
use super::hosts::{Addressed, Hosts, is_cross_site};
use super::worded::TOO_LARGE;
use crate::api::Api;
use crate::metrics::measured;
use crate::problem::{Problem, ProblemType};
use crate::trace;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Longest number that a client may give its request.
const ID_BYTES: usize = 128;

/// Routes beside those of the contract: what streams without end ends with the server, which would wait for it otherwise.
pub(crate) fn until_the_end(more: Router, api: &Api) -> Router {
    more.layer(middleware::from_fn_with_state(api.clone(), cut_at_the_end))
}

async fn cut_at_the_end(State(api): State<Api>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.starts_with("text/event-stream") {
        return response;
    }
    let end = async move { api.drained().await };
    response.map(|body| Body::from_stream(body.into_data_stream().take_until(Box::pin(end))))
}

/// The routes, with all that holds for each.
pub(crate) fn wrapped(router: Router, hosts: Hosts, api: &Api) -> Router {
    router
        .fallback(nowhere)
        .method_not_allowed_fallback(not_so)
        .layer(middleware::from_fn_with_state(hosts, for_whom))
        .layer(middleware::from_fn_with_state(api.clone(), measured))
        .layer(middleware::from_fn_with_state(api.clone(), numbered))
}

async fn nowhere() -> Problem {
    Problem::new(ProblemType::NotFound, "no route at this path; see /openapi.json")
}

async fn not_so() -> Problem {
    Problem::new(ProblemType::MethodNotAllowed, "this path does not support the method; see the header Allow")
}

/// Refuses a change that the page of another site requests.
pub(crate) async fn refuse_cross_site(request: Request, next: Next) -> Response {
    if !request.method().is_safe() && is_cross_site(request.headers()) {
        return cross_site().into_response();
    }
    next.run(request).await
}

fn cross_site() -> Problem {
    let detail = "cross-site request from a browser; the server accepts changes only from its own pages";
    Problem::new(ProblemType::CrossSite, detail)
}

async fn for_whom(State(hosts): State<Hosts>, request: Request, next: Next) -> Response {
    if head_bytes(&request) > HEAD_BYTES {
        return Problem::new(ProblemType::HeadersTooLarge, TOO_LARGE).into_response();
    }
    let changes = !request.method().is_safe();
    if changes && !hosts.allow_page(request.headers()) {
        return cross_site().into_response();
    }
    let problem = match hosts.check(request.headers(), request.uri().authority()) {
        Addressed::Here => return next.run(request).await,
        Addressed::Elsewhere => {
            let detail =
                "the Host header names another host; add allowed names to the server setting `hosts`";
            Problem::new(ProblemType::HostNotAllowed, detail)
        }
        Addressed::Unclear => {
            Problem::new(ProblemType::Malformed, "no Host header, or several; expected exactly one")
        }
    };
    problem.into_response()
}

/// Size of a request's head. A head that arrives in one piece can be larger than the buffer that limits the others.
fn head_bytes(request: &Request) -> usize {
    let asked = request.uri().path_and_query().map_or(0, |asked| asked.as_str().len());
    let headers = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len());
    asked + headers.sum::<usize>()
}

/// Gives each answer the number of its request: the client's, or a new one.
async fn numbered(State(api): State<Api>, mut request: Request, next: Next) -> Response {
    let given = request.headers().get(&REQUEST_ID).filter(|given| {
        given.len() <= ID_BYTES && given.as_bytes().iter().all(|byte| byte.is_ascii_graphic())
    });
    let drawn = || HeaderValue::from_str(&api.tenure().new_id().to_string()).ok();
    let number = given.cloned().or_else(drawn);
    let trace = trace::parent(request.headers()).and_then(|parent| HeaderValue::from_str(parent).ok());
    // The audit log reads the ID from the request.
    if let Some(number) = &number {
        request.headers_mut().insert(REQUEST_ID, number.clone());
    }
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    if let Some(trace) = trace {
        headers.insert(trace::PARENT, trace);
    }
    if let Some(number) = number {
        headers.insert(REQUEST_ID, number);
    }
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
