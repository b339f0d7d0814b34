//! What is said with every page.

use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::http::header::{self, HeaderName};
use axum::middleware::Next;
use axum::response::Response;

use crate::Ui;
use crate::compact::{Accepts, compact};

const POLICY: &str = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'";

/// Nothing of somebody else's is run or framed, no search engine lists it, nobody else is told where a link came from. This
/// server is: a browser that may tell nobody sends forms from the origin `null`, which is anybody's.
pub(crate) async fn set(State(ui): State<Ui>, request: Request, next: Next) -> Response {
    let clock = ui.tenure.store().clock();
    let began = clock.moment();
    let accepts = Accepts::of(&request);
    let response = next.run(request).await;
    let took = clock.moment().since(began).as_secs_f64() * 1_000.0;
    let mut response = compact(accepts, response).await;
    // By this a page that keeps itself up to date knows how seldom it may ask.
    if let Ok(took) = HeaderValue::from_str(&format!("page;dur={took:.1}")) {
        response.headers_mut().insert(HeaderName::from_static("server-timing"), took);
    }
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("x-robots-tag"), "noindex"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // Pages tell what is now; files have said otherwise already.
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}
