//! Bounds of every request body that a server reads: the time to send it, and its memory.

use std::mem;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tenure::{Clock, Moment};

use crate::access::Who;
use crate::api::Api;
use crate::in_transit::counted;
use crate::memory::{Client, ClientSlot, FREE_BYTES, Lack, Loan, Memory};
use crate::problem::{Problem, ProblemType};

/// Longest time in which a client may send a body.
const WITHIN: Duration = Duration::from_secs(30);
/// Least number of bytes that a piece of a body counts as, because a reader may keep the pieces apart.
const PIECE_BYTES: usize = 64;
/// Size below which a piece is copied for a route that reads the body itself. Such routes keep all pieces until the end,
/// and an uncopied piece keeps the connection's whole buffer, of up to 32 KiB.
const COPIED_BELOW: usize = 16 * 1024;
/// Time for which a body waits for memory before the server refuses it.
const FOR_MEMORY: Duration = Duration::from_secs(1);
/// Interval at which a waiting body tries again.
const RETRY: Duration = Duration::from_millis(100);

/// The reason why a body is not read to its end.
#[derive(Debug, Clone, Copy, thiserror::Error)]
pub(crate) enum Broken {
    #[error("the request body did not arrive within {} s; retry, or send less at once", WITHIN.as_secs())]
    TooLate,
    #[error("no memory for the request body")]
    NoMemory(Lack),
    #[error("the request body ended early; send the whole request again")]
    Ended,
}

impl From<Broken> for Problem {
    fn from(broken: Broken) -> Self {
        let detail = broken.to_string();
        match broken {
            Broken::TooLate => Self::new(ProblemType::RequestTimeout, detail),
            Broken::NoMemory(lack) => lack.into(),
            Broken::Ended => Self::new(ProblemType::Malformed, detail),
        }
    }
}

/// Applies the bounds to routes that read bodies themselves, such as forms, and to their responses.
pub(crate) fn bounded(router: Router, api: &Api) -> Router {
    router.layer(middleware::from_fn_with_state(api.clone(), bound))
}

async fn bound(State(api): State<Api>, mut request: Request, next: Next) -> Response {
    let stranger = Client::of(api.access(), &Who(None), request.extensions());
    let (broken, slot) = (Arc::new(OnceLock::new()), ClientSlot::default());
    request.extensions_mut().insert(slot.clone());
    let is_change = !request.method().is_safe();
    let request = request.map(|body| {
        let payer = Payer { slot: slot.clone(), client: stranger.clone() };
        Body::new(Bounded { broken: Some(Arc::clone(&broken)), ..Bounded::paid_by(&api, payer, body) })
    });
    let response = next.run(request).await;
    // The route knows only that it could not read the body.
    match broken.get().copied() {
        Some(broken @ (Broken::TooLate | Broken::NoMemory(_))) => Problem::from(broken).into_response(),
        Some(Broken::Ended) | None => {
            let client = slot.client().unwrap_or(stranger);
            counted(&api.transfer().responses, client, is_change, response)
        }
    }
}

type Waiting = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The client whose memory a body takes.
struct Payer {
    slot: ClientSlot,
    /// The client, unless the slot names another one.
    client: Client,
}

/// A body within the bounds. It takes memory as bytes arrive, so a client that only announces a large body takes none.
pub(crate) struct Bounded {
    body: Body,
    memory: Memory,
    payer: Payer,
    clock: Arc<dyn Clock>,
    /// Ends when the client's time is over. The time begins with the first read.
    over: Option<Waiting>,
    /// Bytes read so far.
    read: usize,
    /// Memory beyond the first bytes.
    loan: Option<Loan>,
    /// A piece that waits for memory.
    held: Option<Held>,
    /// Keeps the reason for the layer, which answers instead of the route.
    broken: Option<Arc<OnceLock<Broken>>>,
}

struct Held {
    data: Bytes,
    since: Moment,
    pause: Waiting,
}

impl Bounded {
    pub(crate) fn new(api: &Api, body: Body) -> Self {
        Self::paid_by(api, Payer { slot: ClientSlot::default(), client: api.client().clone() }, body)
    }

    fn paid_by(api: &Api, payer: Payer, body: Body) -> Self {
        Self {
            body,
            memory: api.transfer().requests.clone(),
            payer,
            clock: api.tenure().store().clock(),
            over: None,
            read: 0,
            loan: None,
            held: None,
            broken: None,
        }
    }

    /// Returns the next piece, once there is memory for it.
    fn next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        if self.held.is_none() {
            let frame = match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                None => return Poll::Ready(None),
                Some(Err(_)) => return Poll::Ready(Some(Err(Broken::Ended))),
                Some(Ok(frame)) => frame,
            };
            let data = match frame.into_data() {
                Ok(data) => data,
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            };
            self.read = self.read.saturating_add(data.len().max(PIECE_BYTES));
            let data = self.without_its_buffer(data);
            if self.cover().is_ok() {
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
            let pause = self.clock.sleep(RETRY);
            self.held = Some(Held { data, since: self.clock.moment(), pause });
        }
        loop {
            let Some(held) = &mut self.held else { return Poll::Pending };
            ready!(held.pause.as_mut().poll(context));
            let waited = self.clock.moment().since(held.since);
            let covered = self.cover();
            let Some(held) = &mut self.held else { return Poll::Pending };
            match covered {
                Ok(()) => {
                    let data = mem::take(&mut held.data);
                    self.held = None;
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                Err(lack) if waited >= FOR_MEMORY => {
                    return Poll::Ready(Some(Err(Broken::NoMemory(lack))));
                }
                Err(_) => held.pause = self.clock.sleep(RETRY),
            }
        }
    }

    /// Returns a piece that holds about as much memory as it counts.
    fn without_its_buffer(&self, data: Bytes) -> Bytes {
        // The API copies each piece at once, and drops it.
        let is_kept = self.broken.is_some();
        if is_kept && data.len() < COPIED_BELOW { Bytes::copy_from_slice(&data) } else { data }
    }

    /// Returns the loan of the body. Keep it for as long as the text, so that its memory counts.
    pub(crate) fn into_loan(self) -> Option<Loan> {
        self.loan
    }

    /// Takes memory for what was read beyond the first bytes.
    fn cover(&mut self) -> Result<(), Lack> {
        let bytes = self.read.saturating_sub(FREE_BYTES);
        if bytes == 0 {
            return Ok(());
        }
        let (memory, payer) = (&self.memory, &self.payer);
        let client = || payer.slot.client().unwrap_or_else(|| payer.client.clone());
        self.loan.get_or_insert_with(|| memory.lend(client())).grow(bytes)
    }
}

impl HttpBody for Bounded {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let this = &mut *self;
        let next = match this.next(context) {
            Poll::Ready(next) => next,
            Poll::Pending => {
                let clock = &this.clock;
                ready!(this.over.get_or_insert_with(|| clock.sleep(WITHIN)).as_mut().poll(context));
                Some(Err(Broken::TooLate))
            }
        };
        if let (Some(Err(broken)), Some(slot)) = (&next, &this.broken) {
            let _ = slot.set(*broken);
        }
        Poll::Ready(next)
    }

    fn is_end_stream(&self) -> bool {
        self.held.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use axum::extract::DefaultBodyLimit;
    use axum::http::StatusCode;
    use axum::routing::post;
    use futures_util::{StreamExt, stream};
    use http_body_util::BodyExt;
    use tenure::{Chance, ManualClock, MemoryStore, Tenure};
    use tower::ServiceExt;

    use super::*;
    use crate::api::Rules;

    /// A route that reads a body in its own way, on a clock that is moved by hand.
    fn app() -> (ManualClock, Router) {
        let clock = ManualClock::new();
        let store = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
        let api = Api::new(&Tenure::on(store, Chance::seeded(1)), Rules::default());
        let form = post(|body: Bytes| async move { body.len().to_string() });
        (clock, bounded(Router::new().route("/form", form.layer(DefaultBodyLimit::disable())), &api))
    }

    /// A body that has begun with so many pieces of so many bytes, and does not go on.
    fn unfinished(pieces: usize, bytes: usize) -> Body {
        let some = (0..pieces).map(move |_| Ok::<_, std::io::Error>(Bytes::from(vec![b' '; bytes])));
        Body::from_stream(stream::iter(some).chain(stream::pending()))
    }

    async fn rested() {
        for _ in 0..200 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_form_that_is_never_finished_is_given_up_after_thirty_seconds() {
        let (clock, app) = app();
        let sent = tokio::spawn(app.oneshot(Request::post("/form").body(unfinished(1, 10)).unwrap()));
        rested().await;
        clock.advance(Duration::from_secs(29));
        rested().await;
        assert!(!sent.is_finished());
        clock.advance(Duration::from_secs(1));
        assert_eq!(sent.await.unwrap().unwrap().status(), StatusCode::REQUEST_TIMEOUT);
    }

    #[tokio::test]
    async fn forms_that_are_held_open_take_so_much_memory_together_and_no_more() {
        let (clock, app) = app();
        let sent = |body: Body| tokio::spawn(app.clone().oneshot(Request::post("/form").body(body).unwrap()));
        let held: Vec<_> = (0..70).map(|_| sent(unfinished(1, 4 * 1024 * 1024))).collect();
        rested().await;
        clock.advance(FOR_MEMORY);
        rested().await;
        let refused = held.iter().filter(|one| one.is_finished()).count();
        assert!((1..=6).contains(&refused), "{refused} of 70 were refused");
        let small = sent(Body::from("token=7")).await.unwrap().unwrap();
        assert_eq!(small.status(), StatusCode::OK, "a small form needs no memory");
        let large = sent(unfinished(1, 1024 * 1024));
        rested().await;
        clock.advance(FOR_MEMORY);
        assert_eq!(large.await.unwrap().unwrap().status(), StatusCode::SERVICE_UNAVAILABLE);
        held.into_iter().for_each(|one| one.abort());
        rested().await;
        let large = sent(Body::from(vec![b' '; 64 * 1024])).await.unwrap().unwrap();
        assert_eq!(large.status(), StatusCode::OK, "bodies that are gone take no memory");
    }

    #[tokio::test]
    async fn each_piece_of_a_body_counts_however_small_it_is() {
        let store = Arc::new(MemoryStore::new(Arc::new(ManualClock::new())));
        let api = Api::new(&Tenure::on(store, Chance::seeded(1)), Rules::default());
        let mut body = Bounded::new(&api, unfinished(1_000, 1));
        for _ in 0..1_000 {
            body.frame().await.unwrap().unwrap();
        }
        assert_eq!(api.transfer().requests.used(), 1_000 * PIECE_BYTES - FREE_BYTES);
    }

    /// A connection's read buffer. Each piece of a body keeps it in memory.
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
        let (_, app) = app();
        let buffers = Arc::new(());
        let of = Arc::downgrade(&buffers);
        let pieces = (0..120).map(move |_| {
            let buffer = Buffer { bytes: vec![b'a'; 8 * 1024], _one: Arc::clone(&buffers) };
            Ok::<_, std::io::Error>(Bytes::from_owner(buffer).slice(..1))
        });
        let body = Body::from_stream(stream::iter(pieces).chain(stream::pending()));
        let sent = tokio::spawn(app.oneshot(Request::post("/form").body(body).unwrap()));
        rested().await;
        assert!(!sent.is_finished());
        assert!(of.strong_count() <= 2, "{} buffers", of.strong_count());
        sent.abort();
    }

    #[tokio::test]
    async fn forms_count_against_the_client_that_the_api_has_noted() {
        async fn sign_in(request: Request, next: Next) -> Response {
            let name = request.headers().get("x-client").map(|name| name.to_str().unwrap().into());
            if let (Some(name), Some(slot)) = (name, request.extensions().get::<ClientSlot>()) {
                slot.note(&Client::Named(name));
            }
            next.run(request).await
        }
        let clock = ManualClock::new();
        let store = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
        let rules = Rules { access: crate::access::Access::Tokens, ..Rules::default() };
        let api = Api::new(&Tenure::on(store, Chance::seeded(1)), rules);
        let form = post(|body: Bytes| async move { body.len().to_string() });
        let form = form.layer(DefaultBodyLimit::disable()).layer(middleware::from_fn(sign_in));
        let app = bounded(Router::new().route("/form", form), &api);
        let sent = |name: &str, body: Body| {
            let request = Request::post("/form").header("x-client", name).body(body).unwrap();
            tokio::spawn(app.clone().oneshot(request))
        };
        let held: Vec<_> = (0..70).map(|_| sent("a", unfinished(1, 4 * 1024 * 1024))).collect();
        rested().await;
        clock.advance(FOR_MEMORY);
        rested().await;
        assert_eq!(held.iter().filter(|one| !one.is_finished()).count(), 6);
        let other = sent("b", Body::from(vec![b' '; 64 * 1024])).await.unwrap().unwrap();
        assert_eq!(other.status(), StatusCode::OK);
    }
}
