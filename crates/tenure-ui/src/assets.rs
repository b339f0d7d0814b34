//! The stylesheet, the script and the icon: in the program, named by their content.

use std::sync::LazyLock;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::Path;
use axum::http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use tenure_http::SharedBody;

use crate::compact::{gzip, takes_gzip};
use crate::secret::digest;

const FILES: [(&str, &str, &str); 3] = [
    ("ui.css", "text/css; charset=utf-8", include_str!("../assets/ui.css")),
    ("ui.js", "text/javascript; charset=utf-8", include_str!("../assets/ui.js")),
    ("icon.svg", "image/svg+xml", include_str!("../assets/icon.svg")),
];

/// Letters of a digest in a name.
const LETTERS: usize = 16;

static NAMES: LazyLock<[String; 3]> =
    LazyLock::new(|| FILES.map(|(name, _, text)| format!("{:.LETTERS$}-{name}", digest(&[text]))));

/// The files, compressed once: visitors without access may request them.
static PACKED: LazyLock<[Option<Bytes>; 3]> =
    LazyLock::new(|| FILES.map(|(_, _, text)| gzip(text.as_bytes()).ok().map(Bytes::from)));

/// The name by which a file is served, which is another one once it has changed.
pub(crate) fn name(file: &str) -> &'static str {
    NAMES.iter().find(|name| name.ends_with(file)).map_or("", String::as_str)
}

/// `GET assets/{name}`
pub(crate) async fn get(Path(asked): Path<String>, headers: HeaderMap) -> Response {
    let Some(place) = NAMES.iter().position(|name| *name == asked) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let (_, kind, text) = FILES[place];
    let etag = format!("\"{asked}\"");
    let kept = [(CACHE_CONTROL, "public, max-age=31536000, immutable".to_owned()), (ETAG, etag.clone())];
    if headers.get(IF_NONE_MATCH).is_some_and(|known| *known == etag) {
        return (StatusCode::NOT_MODIFIED, kept).into_response();
    }
    let about = [(CONTENT_TYPE, kind), (VARY, "accept-encoding")];
    match PACKED[place].clone().filter(|_| takes_gzip(&headers)) {
        Some(packed) => {
            (kept, about, [(CONTENT_ENCODING, "gzip")], Extension(SharedBody), packed).into_response()
        }
        None => (kept, about, Extension(SharedBody), text).into_response(),
    }
}
