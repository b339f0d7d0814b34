//! Fewer bytes for pages: an unchanged page is not sent again, and other pages are compressed.

use std::io::Write;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue,
    IF_NONE_MATCH, VARY,
};
use axum::http::{Method, Request, Response, StatusCode};
use flate2::Compression;
use flate2::write::GzEncoder;
use http_body_util::BodyExt;

use crate::secret::digest;

/// Smaller bodies are sent as they are.
const LEAST: u64 = 1024;
/// Larger bodies are sent as they are, too: compressing them would hold up other requests.
const MOST: u64 = 4 * 1024 * 1024;
/// Letters of a digest in an entity tag.
const LETTERS: usize = 32;
/// Type of pages. The stylesheet and the script are compressed already.
const PAGE: &str = "text/html";

/// Headers of a request that decide the encoding of the response.
pub(crate) struct Accepts {
    gzip: bool,
    known: Option<HeaderValue>,
    is_read: bool,
}

impl Accepts {
    pub(crate) fn of(request: &Request<Body>) -> Self {
        let headers = request.headers();
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
        Self {
            gzip: takes_gzip(headers) && !is_foreign(headers),
            known: headers.get(IF_NONE_MATCH).cloned(),
            is_read,
        }
    }
}

/// Returns true if a client accepts compressed responses.
pub(crate) fn takes_gzip(headers: &HeaderMap) -> bool {
    let said = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    said.flat_map(|value| value.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let is_refused = weight.trim().strip_prefix("q=").is_some_and(|weight| weight.parse() == Ok(0.0));
        name.trim().eq_ignore_ascii_case("gzip") && !is_refused
    })
}

/// A page of another site asks. It can choose a part of the response, and the length of the compressed rest would tell it
/// about the proof in our forms.
fn is_foreign(headers: &HeaderMap) -> bool {
    headers.get("sec-fetch-site").is_some_and(|site| site != "same-origin" && site != "none")
}

/// Sends a page that the browser has as "not modified", and compresses others.
pub(crate) async fn compact(accepts: Accepts, response: Response<Body>) -> Response<Body> {
    let size = response.body().size_hint().exact().filter(|size| (LEAST..=MOST).contains(size));
    if size.is_none() || response.headers().contains_key(CONTENT_ENCODING) || !is_page(response.headers()) {
        return response;
    }
    let (mut head, body) = response.into_parts();
    // A body of known size is in memory already.
    let Ok(body) = body.collect().await.map(http_body_util::Collected::to_bytes) else {
        head.status = StatusCode::INTERNAL_SERVER_ERROR;
        return Response::from_parts(head, Body::empty());
    };
    if accepts.is_read && head.status == StatusCode::OK {
        let tag = tag(&body);
        let is_known = accepts.known.is_some_and(|known| known == tag);
        head.headers.insert(ETAG, tag);
        if is_known {
            head.status = StatusCode::NOT_MODIFIED;
            head.headers.remove(CONTENT_LENGTH);
            head.headers.remove(CONTENT_TYPE);
            return Response::from_parts(head, Body::empty());
        }
    }
    head.headers.append(VARY, HeaderValue::from_static("accept-encoding"));
    match accepts.gzip.then(|| gzip(&body)).and_then(Result::ok) {
        Some(packed) => {
            head.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            head.headers.remove(CONTENT_LENGTH);
            Response::from_parts(head, Body::from(packed))
        }
        None => Response::from_parts(head, Body::from(body)),
    }
}

fn is_page(headers: &HeaderMap) -> bool {
    let said = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    said.is_some_and(|said| said.starts_with(PAGE))
}

/// Returns a compressed text.
pub(crate) fn gzip(body: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut packed = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::fast());
    packed.write_all(body)?;
    packed.finish()
}

/// The entity tag of a page. Two pages that differ only in how long ago something was are the same: the script counts that up.
fn tag(body: &Bytes) -> HeaderValue {
    let text = String::from_utf8_lossy(body);
    let tag = format!("W/\"{:.LETTERS$}\"", digest(&[&lasting(&text)]));
    HeaderValue::from_str(&tag).unwrap_or(HeaderValue::from_static("W/\"\""))
}

/// A page without the time at which it was made and without the words of its times.
fn lasting(page: &str) -> String {
    const NOW: &str = " data-now=\"";
    const TIME: &str = "<time ";
    let mut lasting = String::with_capacity(page.len());
    let mut rest = page;
    if let Some((before, behind)) = rest.split_once(NOW) {
        lasting.push_str(before);
        rest = behind.split_once('"').map_or("", |(_, rest)| rest);
    }
    while let Some((before, behind)) = rest.split_once(TIME) {
        lasting.push_str(before);
        let (attributes, words) = behind.split_once('>').unwrap_or((behind, ""));
        lasting.push_str(attributes);
        rest = words.find('<').map_or("", |end| &words[end..]);
    }
    lasting.push_str(rest);
    lasting
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepting(value: &'static str) -> bool {
        takes_gzip(&HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(value))]))
    }

    #[test]
    fn gzip_is_used_only_if_it_is_accepted() {
        assert!(accepting("gzip") && accepting("br;q=1, GZip;q=0.5, deflate"));
        assert!(!accepting("br") && !accepting("gzip;q=0") && !accepting("gzip; q=0.0"));
    }

    #[test]
    fn pages_that_differ_in_how_long_ago_something_was_are_the_same() {
        let page = |now: &str, ago: &str, at: &str| {
            format!("<main data-now=\"{now}\"><p>a</p><time datetime=\"{at}\" data-ago>{ago}</time> b</main>")
        };
        let tag = |page: String| tag(&Bytes::from(page));
        let one = tag(page("12:00", "5 s ago", "11:59"));
        assert_eq!(one, tag(page("12:01", "65 s ago", "11:59")));
        assert_ne!(one, tag(page("12:00", "5 s ago", "11:58")));
        assert_eq!(lasting("no times"), "no times");
    }
}
