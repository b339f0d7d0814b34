//! Counts the body of a response until it is sent, so that slow readers hold a bounded amount of memory.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use axum::body::{Body, HttpBody};
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use serde_json::{Value, json};

use crate::memory::{Client, FREE_BYTES, Lack, Loan, Memory};
use crate::problem::Problem;

/// Response extension for a body that all its readers share. Such a body does not count against a client.
#[derive(Debug, Clone, Copy)]
pub struct SharedBody;

/// Response extension: the memory of the client, for a caller within the program that holds more than the bytes of a response.
#[derive(Debug, Clone)]
pub struct ResponseMemory(Memory, Client);

/// Memory that counts against a client until this is dropped.
#[derive(Debug)]
pub struct HeldMemory(Loan);

impl HeldMemory {
    /// Gives memory back, except for so many bytes.
    pub fn shrink(&mut self, bytes: usize) {
        self.0.shrink(bytes);
    }
}

impl ResponseMemory {
    /// Takes so many bytes more, if the client stays within its bounds. As few bytes as those of a small body do not count.
    ///
    /// # Errors
    ///
    /// The problem names the bound that does not suffice.
    pub fn take(&self, bytes: usize) -> Result<HeldMemory, Problem> {
        let Self(memory, client) = self;
        let mut loan = memory.lend(client.clone());
        if bytes > FREE_BYTES {
            loan.grow(bytes)?;
        }
        Ok(HeldMemory(loan))
    }

    /// Takes so many bytes more for the response to a change, also beyond the bounds: the change is done already.
    #[must_use]
    pub fn take_for_change(&self, bytes: usize) -> HeldMemory {
        let Self(memory, client) = self;
        let mut loan = memory.lend(client.clone());
        if bytes > FREE_BYTES {
            loan.set(bytes);
        }
        HeldMemory(loan)
    }
}

/// Response extension of a change: the document to send if the memory of the client does not suffice for the whole body.
#[derive(Debug, Clone)]
pub(crate) struct Short(pub Value);

/// Response extension: the memory that the client took before the body was made, such as for a claim. A claim must keep its
/// body, because a worker would otherwise miss its jobs.
#[derive(Debug, Clone)]
struct Paid(Arc<Loan>);

/// Attaches the memory that was taken for a response to it. A response that is too small to count needs none.
pub(crate) fn paid(mut response: Response, loan: Option<Loan>) -> Response {
    if let Some(loan) = loan.filter(|_| !is_free(&response)) {
        response.extensions_mut().insert(Paid(Arc::new(loan)));
    }
    response
}

/// Returns `true` if a body is too small to count.
fn is_free(response: &Response) -> bool {
    response.body().size_hint().upper().is_some_and(|size| size <= FREE_BYTES as u64)
}

/// Returns a response that holds memory of its client until it is sent. If the memory does not suffice, the response is
/// refused. The response to a change then keeps its status and headers, but gets a small body.
pub(crate) fn counted(memory: &Memory, client: Client, is_change: bool, mut response: Response) -> Response {
    // The tree of values of a small body can be large.
    response.extensions_mut().insert(ResponseMemory(memory.clone(), client.clone()));
    if is_free(&response) || response.extensions().get::<SharedBody>().is_some() {
        return response;
    }
    let size = response.body().size_hint().exact();
    let size = size.map(|size| usize::try_from(size).unwrap_or(usize::MAX));
    let Some(size) = size else {
        let counting = Counting::Pieces(memory.clone(), client, Arc::default());
        return response.map(|body| Body::new(Counted { body, counting }));
    };
    let short = response.extensions_mut().remove::<Short>();
    let loan = match response.extensions_mut().remove::<Paid>().and_then(|Paid(loan)| Arc::into_inner(loan)) {
        Some(mut loan) => {
            loan.set(size);
            Ok(loan)
        }
        None => {
            let mut loan = memory.lend(client);
            let goes_beyond = is_change && short.is_none();
            let taken = if goes_beyond { loan.grow_for_change(size) } else { loan.grow(size) };
            taken.map(|()| loan)
        }
    };
    match loan {
        Ok(loan) => {
            let counting = Counting::Whole(Arc::new(loan));
            response.map(|body| Body::new(Counted { body, counting }))
        }
        Err(lack) if is_change => shortened(response, short, lack),
        Err(lack) => Problem::from(lack).into_response(),
    }
}

/// Returns the response to a change with a short document as its body.
fn shortened(response: Response, short: Option<Short>, lack: Lack) -> Response {
    let document = match short {
        Some(Short(document)) => document,
        None => {
            let problem = Problem::from(lack).document();
            let why = problem["detail"].as_str().unwrap_or_default();
            json!({ "detail": format!("the response is omitted; its status tells the result: {why}") })
        }
    };
    let (mut head, _) = response.into_parts();
    for of_the_body in [CONTENT_LENGTH, CONTENT_ENCODING] {
        head.headers.remove(of_the_body);
    }
    head.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Response::from_parts(head, Body::from(document.to_string()))
}

enum Counting {
    /// A body in memory, counted as a whole.
    Whole(Arc<Loan>),
    /// A stream, with the bytes of its unsent pieces that do not count. Each other piece counts on its own.
    Pieces(Memory, Client, Arc<AtomicUsize>),
}

struct Counted {
    body: Body,
    counting: Counting,
}

/// Bytes with their loan. The connection drops a body before it has sent it, so the loan belongs to the bytes.
struct Lent<L> {
    bytes: Bytes,
    _loan: L,
}

/// The bytes of a piece that does not count, until it is sent. All of them together are as few as those of a small body.
struct Free {
    bytes: usize,
    of_stream: Arc<AtomicUsize>,
}

impl Free {
    fn take(of_stream: &Arc<AtomicUsize>, bytes: usize) -> Option<Self> {
        let add = |used: usize| used.checked_add(bytes).filter(|used| *used <= FREE_BYTES);
        of_stream.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok()?;
        Some(Self { bytes, of_stream: Arc::clone(of_stream) })
    }
}

impl Drop for Free {
    fn drop(&mut self) {
        self.of_stream.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl<L> AsRef<[u8]> for Lent<L> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Counting {
    /// Returns the bytes with their loan; an error cuts a stream off, so that its client comes back later.
    fn count(&self, bytes: Bytes) -> Result<Bytes, axum::Error> {
        Ok(match self {
            Self::Whole(loan) => Bytes::from_owner(Lent { bytes, _loan: Arc::clone(loan) }),
            Self::Pieces(memory, client, free) => {
                if let Some(free) = Free::take(free, bytes.len()) {
                    return Ok(Bytes::from_owner(Lent { bytes, _loan: free }));
                }
                let mut loan = memory.lend(client.clone());
                let detail = "too much of the response waits for its reader";
                loan.grow(bytes.len()).map_err(|_| axum::Error::new(io::Error::other(detail)))?;
                Bytes::from_owner(Lent { bytes, _loan: loan })
            }
        })
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
    async fn values_of_a_small_response_count() {
        let memory = Transfer::of(256).responses;
        let small = counted(&memory, client(), false, "[[],[]]".into_response());
        let of_client = small.extensions().get::<ResponseMemory>().unwrap();
        assert!(of_client.take(FREE_BYTES).is_ok());
        assert_eq!(memory.used(), 0);
        let mut held = of_client.take(25 * MIB).unwrap();
        assert!(of_client.take(MIB).is_err() && of_client.take(FREE_BYTES).is_ok());
        let of_change = of_client.take_for_change(MIB);
        assert_eq!(memory.used(), 26 * MIB);
        drop(of_change);
        held.shrink(MIB);
        held.shrink(2 * MIB);
        assert_eq!((memory.used(), of_client.take(MIB).is_ok()), (MIB, true));
    }

    async fn text(response: Response) -> String {
        String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
    }

    fn change(mib: usize) -> Response {
        let headers = [(CONTENT_LENGTH, (mib * MIB).to_string()), (CONTENT_TYPE, "text/html".to_owned())];
        (StatusCode::ACCEPTED, headers, vec![b' '; mib * MIB]).into_response()
    }

    #[tokio::test]
    async fn the_result_of_a_change_loses_its_body_when_the_client_holds_twice_its_share() {
        let memory = Transfer::of(256).responses;
        let mut held = Vec::new();
        for _ in 0..100 {
            held.push(counted(&memory, client(), true, change(10)));
        }
        assert_eq!(memory.used(), 60 * MIB, "twice the share, and one response");
        let mut last = held.pop().unwrap();
        assert_eq!(last.status(), StatusCode::ACCEPTED);
        assert_eq!(last.headers_mut().remove(CONTENT_TYPE).unwrap(), "application/json");
        assert!(last.headers().is_empty(), "{:?}", last.headers());
        assert!(text(last).await.contains("the response is omitted"));
    }

    #[tokio::test]
    async fn a_change_that_shows_a_job_tells_only_its_id_beyond_the_share() {
        let memory = Transfer::of(256).responses;
        let job = || {
            let mut job = change(10);
            job.extensions_mut().insert(Short(json!({ "id": "7" })));
            counted(&memory, client(), true, job)
        };
        let _held = [job(), job()];
        assert_eq!((text(job()).await, memory.used()), (r#"{"id":"7"}"#.to_owned(), 20 * MIB));
    }

    #[tokio::test]
    async fn the_results_of_changes_stay_within_the_memory_of_all_clients() {
        let memory = Transfer::of(16).responses;
        let of = |name: &str| counted(&memory, Client::Named(name.into()), true, change(10));
        let (_one, other) = (of("a"), of("b"));
        assert_eq!(memory.used(), 10 * MIB);
        assert!(text(other).await.contains("the response is omitted"));
    }

    #[tokio::test]
    async fn a_response_that_has_taken_its_memory_before_keeps_its_body() {
        let memory = Transfer::of(256).responses;
        let _held: Vec<_> = (0..2).map(|_| counted(&memory, client(), true, change(26))).collect();
        let mut loan = memory.lend(client());
        loan.set(9 * MIB);
        let claim = counted(&memory, client(), true, paid(change(10), Some(loan)));
        assert_eq!((memory.used(), text(claim).await.len()), (62 * MIB, 10 * MIB));
        assert_eq!(memory.used(), 52 * MIB);
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
    #[tokio::test]
    async fn small_pieces_of_a_stream_count_if_many_are_not_sent() {
        let memory = Transfer::of(256).responses;
        let pieces = (0..24).map(|_| Ok::<_, io::Error>(Bytes::from(vec![b' '; 1024])));
        let body = Body::from_stream(stream::iter(pieces));
        let mut body = counted(&memory, client(), false, body.into_response()).into_body();
        let mut unsent = Vec::new();
        for _ in 0..16 {
            unsent.push(body.frame().await.unwrap().unwrap());
        }
        assert_eq!(memory.used(), 16 * 1024 - FREE_BYTES);
        unsent.clear();
        while let Some(piece) = body.frame().await {
            drop(piece.unwrap());
            assert_eq!(memory.used(), 0, "a reader in time needs no memory");
        }
    }
}
