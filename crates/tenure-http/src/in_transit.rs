//! Counts the body of a response until it is sent, so that slow readers hold a bounded amount of memory.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, HttpBody};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

use crate::memory::{Client, FREE_BYTES, Loan, Memory};
use crate::problem::Problem;

/// Response extension for a body that all its readers share. Such a body does not count against a client.
#[derive(Debug, Clone, Copy)]
pub struct SharedBody;

/// Returns a response that holds memory of its client until it is sent. A response that does not fit is refused, unless it
/// is the result of a change.
pub(crate) fn counted(memory: &Memory, client: Client, is_change: bool, response: Response) -> Response {
    let size = response.body().size_hint().exact();
    let size = size.map(|size| usize::try_from(size).unwrap_or(usize::MAX));
    let is_free = size.is_some_and(|size| size <= FREE_BYTES);
    if is_free || response.extensions().get::<SharedBody>().is_some() {
        return response;
    }
    let counting = match size {
        None => Counting::Pieces(memory.clone(), client),
        Some(size) => {
            let mut loan = memory.lend(client);
            if is_change {
                loan.set(size);
            } else if let Err(lack) = loan.grow(size) {
                return Problem::from(lack).into_response();
            }
            Counting::Whole(Arc::new(loan))
        }
    };
    response.map(|body| Body::new(Counted { body, counting }))
}

enum Counting {
    /// A body in memory, counted as a whole.
    Whole(Arc<Loan>),
    /// A stream. Each piece counts on its own.
    Pieces(Memory, Client),
}

struct Counted {
    body: Body,
    counting: Counting,
}

/// Bytes with their loan. The connection drops a body before it has sent it, so the loan belongs to the bytes.
struct Lent {
    bytes: Bytes,
    _loan: Arc<Loan>,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Counting {
    /// Returns the bytes with their loan; an error cuts a stream off, so that its client comes back later.
    fn count(&self, bytes: Bytes) -> Result<Bytes, axum::Error> {
        let loan = match self {
            Self::Whole(loan) => Arc::clone(loan),
            Self::Pieces(..) if bytes.len() <= FREE_BYTES => return Ok(bytes),
            Self::Pieces(memory, client) => {
                let mut loan = memory.lend(client.clone());
                let detail = "too much of the response waits for its reader";
                loan.grow(bytes.len()).map_err(|_| axum::Error::new(io::Error::other(detail)))?;
                Arc::new(loan)
            }
        };
        Ok(Bytes::from_owner(Lent { bytes, _loan: loan }))
    }
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = match ready!(Pin::new(&mut self.body).poll_frame(context)) {
            Some(Ok(frame)) => frame,
            none_or_error => return Poll::Ready(none_or_error),
        };
        Poll::Ready(Some(match frame.into_data() {
            Ok(data) => self.counting.count(data).map(Frame::data),
            Err(trailers) => Ok(trailers),
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use futures_util::stream;
    use http_body_util::BodyExt;

    use super::*;
    use crate::memory::Transfer;

    const MIB: usize = 1024 * 1024;

    fn client() -> Client {
        Client::Named("a".into())
    }

    #[tokio::test]
    async fn a_response_counts_until_its_last_byte_is_dropped() {
        let memory = Transfer::of(256).responses;
        let held = |mib: usize| {
            let response = Body::from(vec![b' '; mib * MIB]).into_response();
            counted(&memory, client(), false, response)
        };
        let bytes = held(20).into_body().frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!((bytes.len(), memory.used()), (20 * MIB, 20 * MIB), "the body is gone, its bytes are not");
        assert_eq!(held(10).status(), StatusCode::TOO_MANY_REQUESTS);
        let change = counted(&memory, client(), true, Body::from(vec![b' '; 10 * MIB]).into_response());
        assert_eq!((change.status(), memory.used()), (StatusCode::OK, 30 * MIB));
        drop((bytes, change));
        assert_eq!(held(10).status(), StatusCode::OK);
        assert_eq!(memory.used(), 0);
        let small = counted(&memory, client(), false, Body::from(vec![b' '; FREE_BYTES]).into_response());
        assert_eq!((small.status(), memory.used()), (StatusCode::OK, 0));
    }

    #[tokio::test]
    async fn each_piece_of_a_stream_counts_until_it_is_sent() {
        let memory = Transfer::of(256).responses;
        let pieces = (0..3).map(|_| Ok::<_, io::Error>(Bytes::from(vec![b' '; 10 * MIB])));
        let body = Body::from_stream(stream::iter(pieces));
        let mut body = counted(&memory, client(), false, body.into_response()).into_body();
        let first = body.frame().await.unwrap().unwrap();
        let second = body.frame().await.unwrap().unwrap();
        assert_eq!(memory.used(), 20 * MIB);
        assert!(body.frame().await.unwrap().is_err(), "beyond the share, the stream is cut off");
        drop((first, second));
        assert_eq!(memory.used(), 0);
    }
}
