//! The response with the description. Clients without a token may request it, so it must cost next to nothing.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use serde_json::json;

use super::{Described, Words, document, of_all_servers};
use crate::access::Access;
use crate::answer;
use crate::in_transit::SharedBody;
use crate::tag::Tag;

/// Returns the response with the description of a server. The server builds only a description with kinds for each request;
/// only clients with a token that may read get one.
pub(super) fn shown(server: &Described, headers: &HeaderMap, words: Words) -> Response {
    if !server.kinds.is_empty() {
        let body = serde_json::to_vec(&document(words, server)).unwrap_or_default();
        let tag = Tag::of(&body);
        return match tag.is_known(headers) {
            true => answer::not_modified(&tag),
            false => answer::tagged_text(StatusCode::OK, &tag, body),
        };
    }
    let text = text_of_all_servers(words, server.access);
    let tag = Tag::of(format!("{}{}", text.tag.as_str(), server.url).as_bytes());
    if tag.is_known(headers) {
        return answer::not_modified(&tag);
    }
    let end = format!(",\"servers\":{}}}", json!([{ "url": server.url }]));
    let body = Body::new(Pieces([Some(text.beginning.clone()), Some(end.into())]));
    let mut response = answer::tagged_text(StatusCode::OK, &tag, Vec::new()).map(|_| body);
    response.extensions_mut().insert(SharedBody);
    response
}

/// The text that all servers share, without its end.
struct Text {
    beginning: Bytes,
    tag: Tag,
}

fn text_of_all_servers(words: Words, access: Access) -> &'static Text {
    static MADE: [[OnceLock<Text>; 2]; 2] = [[const { OnceLock::new() }; 2], [const { OnceLock::new() }; 2]];
    let made = &MADE[usize::from(words == Words::Old)][usize::from(access == Access::Tokens)];
    made.get_or_init(|| {
        let mut shared = of_all_servers(words, access).clone();
        shared.as_object_mut().map(|fields| fields.remove("servers"));
        let mut text = serde_json::to_vec(&shared).unwrap_or_default();
        text.pop();
        Text { tag: Tag::of(&text), beginning: text.into() }
    })
}

/// A body of two pieces. All responses share the memory of the first one.
struct Pieces([Option<Bytes>; 2]);

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = self.0.iter_mut().find_map(Option::take);
        Poll::Ready(next.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    fn size_hint(&self) -> SizeHint {
        let bytes: usize = self.0.iter().flatten().map(Bytes::len).sum();
        SizeHint::with_exact(bytes as u64)
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn responses_share_the_text_and_say_the_same_as_the_document() {
        for words in [Words::New, Words::Old] {
            let server = Described { url: "https://a.example/\"b".to_owned(), ..Described::default() };
            let ask = || shown(&server, &HeaderMap::new(), words);
            let mut bodies = [ask().into_body(), ask().into_body()];
            let mut first = Vec::new();
            for body in &mut bodies {
                first.push(body.frame().await.unwrap().unwrap().into_data().unwrap());
            }
            assert_eq!(first[0].as_ptr(), first[1].as_ptr(), "each response has made its own");
            let whole = ask().into_body().collect().await.unwrap().to_bytes();
            let told: serde_json::Value = serde_json::from_slice(&whole).unwrap();
            assert_eq!(told, document(words, &server));
            let other = shown(&Described::default(), &HeaderMap::new(), words);
            assert_ne!(ask().headers()["etag"], other.headers()["etag"]);
        }
    }
}
