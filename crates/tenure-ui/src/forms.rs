//! Sizes of forms. A form is read before it is checked, so only small ones are read from a visitor without access.

use axum::extract::{DefaultBodyLimit, FromRequestParts, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;

use crate::Ui;
use crate::layout::failed;
use crate::visit::Visit;

/// Forms for visitors who are not signed in.
const SMALL_BYTES: usize = 8 * 1024;
/// All other forms.
const USUAL_BYTES: usize = 64 * 1024;
/// Forms with the args of a job, which can be three times as long in a form.
const LARGE_BYTES: usize = 1024 * 1024;

/// The limit of forms for everyone.
pub(crate) fn small() -> DefaultBodyLimit {
    DefaultBodyLimit::max(SMALL_BYTES)
}

/// The usual limit. Put [`only_signed_in`] in front.
pub(crate) fn usual() -> DefaultBodyLimit {
    DefaultBodyLimit::max(USUAL_BYTES)
}

/// The limit of forms with args. Put [`only_signed_in`] in front.
pub(crate) fn large() -> DefaultBodyLimit {
    DefaultBodyLimit::max(LARGE_BYTES)
}

/// Sends a visitor who has no access to the sign-in page, before a form is read.
pub(crate) async fn only_signed_in(State(ui): State<Ui>, request: Request, next: Next) -> Response {
    if request.method() != Method::POST {
        return next.run(request).await;
    }
    let (mut parts, body) = request.into_parts();
    let Ok(visit) = Visit::from_request_parts(&mut parts, &ui).await;
    match visit.get("/v1/whoami").await {
        Ok(_) => next.run(Request::from_parts(parts, body)).await,
        Err(trouble) => failed(&visit, trouble).await,
    }
}
