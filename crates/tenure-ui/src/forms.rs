//! Sizes of forms. A form is read before it is checked, so only small ones are read from a visitor without access.

use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, FromRequestParts, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use http_body_util::BodyExt;

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

/// Copies each piece of a form. A form keeps its pieces until it is complete, and each would keep the buffer that the
/// connection has read it into. `tenure serve` copies all bodies, but an app that mounts the pages may not.
pub(crate) async fn copied(request: Request) -> Request {
    if request.method() != Method::POST {
        return request;
    }
    let copy = |data: Bytes| Bytes::copy_from_slice(&data);
    request.map(|body| Body::new(body.map_frame(move |frame| frame.map_data(copy))))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::Router;
    use axum::middleware::map_request;
    use axum::routing::post;
    use futures_util::{StreamExt, stream};
    use tower::ServiceExt;

    use super::*;

    /// The buffer that a connection reads into.
    struct Buffer {
        bytes: Vec<u8>,
        _one: Arc<()>,
    }

    impl AsRef<[u8]> for Buffer {
        fn as_ref(&self) -> &[u8] {
            &self.bytes
        }
    }

    #[tokio::test]
    async fn a_form_in_small_pieces_keeps_none_of_their_buffers() {
        let buffers = Arc::new(());
        let of = Arc::downgrade(&buffers);
        let pieces = (0..120).map(move |_| {
            let buffer = Buffer { bytes: vec![b'a'; 8 * 1024], _one: Arc::clone(&buffers) };
            Ok::<_, std::io::Error>(Bytes::from_owner(buffer).slice(..1))
        });
        let body = Body::from_stream(stream::iter(pieces).chain(stream::pending()));
        let form = post(|form: Bytes| async move { form.len().to_string() }).layer(map_request(copied));
        let app: Router = Router::new().route("/", form);
        let sent = tokio::spawn(app.oneshot(Request::post("/").body(body).unwrap()));
        for _ in 0..200 {
            tokio::task::yield_now().await;
        }
        assert!(!sent.is_finished());
        assert!(of.strong_count() <= 2, "{} buffers", of.strong_count());
        sent.abort();
    }
}
