//! Bounds of every request body that a server reads: the time to send it, and the memory that all of them take together.

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
use tenure::Clock;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::api::Api;
use crate::problem::{Problem, ProblemType};

/// Longest time in which a client may send a body.
const WITHIN: Duration = Duration::from_secs(30);
/// Memory of all bodies that a server reads at once, in KiB.
const ALL_KIB: usize = 256 * 1024;
/// First bytes of each body, which do not count: a connection needs as much without a body. So the server always reads
/// small bodies.
const FREE_BYTES: usize = 8 * 1024;
/// Least number of bytes that a piece of a body counts as, because a reader may keep the pieces apart.
const PIECE_BYTES: usize = 64;
/// Time for which a body waits for memory before the server refuses it.
const FOR_ROOM: Duration = Duration::from_secs(1);
/// Time after which a refused client should retry.
const AGAIN: Duration = Duration::from_secs(5);

/// Memory for the bodies that a server reads.
#[derive(Clone)]
pub(crate) struct Room(Arc<Semaphore>);

impl Default for Room {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(ALL_KIB)))
    }
}

/// The reason why a body is not read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Broken {
    #[error("the request body did not arrive within {} s; retry, or send less at once", WITHIN.as_secs())]
    TooLate,
    #[error("the server is already reading {} MiB of request bodies; retry later", ALL_KIB / 1024)]
    NoRoom,
    #[error("the request body ended early; send the whole request again")]
    Ended,
}

impl From<Broken> for Problem {
    fn from(broken: Broken) -> Self {
        let detail = broken.to_string();
        match broken {
            Broken::TooLate => Self::new(ProblemType::RequestTimeout, detail),
            Broken::NoRoom => Self::new(ProblemType::Overloaded, detail).retry_after(AGAIN),
            Broken::Ended => Self::new(ProblemType::Malformed, detail),
        }
    }
}

/// Applies the bounds to routes that read bodies themselves, such as forms.
pub(crate) fn bounded(router: Router, api: &Api) -> Router {
    router.layer(middleware::from_fn_with_state(api.clone(), bound))
}

async fn bound(State(api): State<Api>, request: Request, next: Next) -> Response {
    let broken = Arc::new(OnceLock::new());
    let request = request.map(|body| {
        let body = Bounded { broken: Some(Arc::clone(&broken)), ..Bounded::new(&api, body) };
        Body::new(body)
    });
    let response = next.run(request).await;
    // The route knows only that it could not read the body.
    match broken.get().copied() {
        Some(broken @ (Broken::TooLate | Broken::NoRoom)) => Problem::from(broken).into_response(),
        Some(Broken::Ended) | None => response,
    }
}

type Waiting<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A body within the bounds. It takes memory as bytes arrive, so a client that only announces a large body takes none.
pub(crate) struct Bounded {
    body: Body,
    room: Room,
    clock: Arc<dyn Clock>,
    /// Ends when the client's time is over. The time begins with the first read.
    over: Option<Waiting<()>>,
    /// Bytes read so far.
    read: usize,
    /// Bytes for which the body has memory.
    covered: usize,
    taken: Vec<OwnedSemaphorePermit>,
    /// A piece that waits for memory.
    held: Option<(Bytes, Waiting<Option<OwnedSemaphorePermit>>)>,
    /// Keeps the reason for the layer, which answers instead of the route.
    broken: Option<Arc<OnceLock<Broken>>>,
}

impl Bounded {
    pub(crate) fn new(api: &Api, body: Body) -> Self {
        Self {
            body,
            room: api.room().clone(),
            clock: api.tenure().store().clock(),
            over: None,
            read: 0,
            covered: FREE_BYTES,
            taken: Vec::new(),
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
            let lacks = self.read.saturating_sub(self.covered).div_ceil(1024);
            if lacks == 0 {
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
            self.covered = self.covered.saturating_add(lacks * 1024);
            self.held = Some((data, self.take(lacks)));
        }
        let Some((data, taking)) = &mut self.held else { return Poll::Pending };
        let Some(permit) = ready!(taking.as_mut().poll(context)) else {
            return Poll::Ready(Some(Err(Broken::NoRoom)));
        };
        let data = mem::take(data);
        self.held = None;
        self.taken.push(permit);
        Poll::Ready(Some(Ok(Frame::data(data))))
    }

    fn take(&self, kib: usize) -> Waiting<Option<OwnedSemaphorePermit>> {
        let (Room(room), clock) = (self.room.clone(), Arc::clone(&self.clock));
        Box::pin(async move {
            let wanted = u32::try_from(kib).unwrap_or(u32::MAX);
            tokio::select! {
                biased;
                permit = room.acquire_many_owned(wanted) => permit.ok(),
                () = clock.sleep(FOR_ROOM) => None,
            }
        })
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
        clock.advance(FOR_ROOM);
        rested().await;
        let refused = held.iter().filter(|one| one.is_finished()).count();
        assert!((1..=6).contains(&refused), "{refused} of 70 were refused");
        let small = sent(Body::from("token=7")).await.unwrap().unwrap();
        assert_eq!(small.status(), StatusCode::OK, "a small form needs no room");
        let large = sent(unfinished(1, 1024 * 1024));
        rested().await;
        clock.advance(FOR_ROOM);
        assert_eq!(large.await.unwrap().unwrap().status(), StatusCode::SERVICE_UNAVAILABLE);
        held.into_iter().for_each(|one| one.abort());
        rested().await;
        let large = sent(Body::from(vec![b' '; 64 * 1024])).await.unwrap().unwrap();
        assert_eq!(large.status(), StatusCode::OK, "bodies that are gone take no room");
    }

    #[tokio::test]
    async fn each_piece_of_a_body_counts_however_small_it_is() {
        let store = Arc::new(MemoryStore::new(Arc::new(ManualClock::new())));
        let api = Api::new(&Tenure::on(store, Chance::seeded(1)), Rules::default());
        let mut body = Bounded::new(&api, unfinished(1_000, 1));
        for _ in 0..1_000 {
            body.frame().await.unwrap().unwrap();
        }
        let taken = ALL_KIB - api.room().0.available_permits();
        assert_eq!(taken, (1_000 * PIECE_BYTES - FREE_BYTES).div_ceil(1024));
    }
}
