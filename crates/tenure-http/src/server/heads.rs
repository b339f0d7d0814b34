//! A connection that ends if its client takes too long to send a request head, or sends no request for a while.

use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use axum::body::{Body, Bytes};
use hyper::body::{Frame, SizeHint};
use tenure::Clock;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// State of a connection, shared by its stream and its service.
#[derive(Debug, Clone)]
pub(super) struct Phase(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    now: Stage,
    /// `true` until the stream has seen this stage.
    is_new: bool,
    /// Task that reads the stream. It does not look again by itself when a response ends.
    reader: Option<Waker>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The client sends a head. A new connection is expected to begin with one at once.
    Head,
    /// The server answers.
    Serving,
    /// The last response is complete, and the connection may stay open for this time.
    Idle(Duration),
}

/// Keeps a connection from timing out while its response is produced and sent.
#[derive(Debug)]
pub(super) struct Serving {
    phase: Phase,
    /// Time that the connection may be idle afterwards.
    idle: Duration,
}

impl Phase {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(State { now: Stage::Head, is_new: true, reader: None })))
    }

    /// A request head is complete.
    pub(super) fn serve(&self, idle: Duration) -> Serving {
        self.enter(Stage::Serving);
        Serving { phase: self.clone(), idle }
    }

    /// Returns `true` until the response to the last request is complete.
    pub(super) fn is_serving(&self) -> bool {
        self.lock().now == Stage::Serving
    }

    fn enter(&self, now: Stage) {
        let mut state = self.lock();
        (state.now, state.is_new) = (now, true);
    }

    /// Has this task look at the stream again once the response is complete.
    fn wake_at_the_end(&self, reader: &Waker) {
        let mut state = self.lock();
        // Without this the task could miss an end between its look at the stage and this call.
        if state.is_new {
            reader.wake_by_ref();
        } else if !state.reader.as_ref().is_some_and(|known| known.will_wake(reader)) {
            state.reader = Some(reader.clone());
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.phase.enter(Stage::Idle(self.idle));
        let reader = self.phase.lock().reader.take();
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

/// A response body during which the connection counts as busy.
pub(super) struct Busy {
    body: Body,
    _serving: Serving,
}

impl Busy {
    pub(super) fn new(body: Body, serving: Serving) -> Self {
        Self { body, _serving: serving }
    }
}

impl hyper::body::Body for Busy {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A connection, and the time until it ends without more from its client.
pub(super) struct Heads<S> {
    stream: S,
    clock: Arc<dyn Clock>,
    head_within: Duration,
    phase: Phase,
    over: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// `true` while bytes of a response wait for the client. `hyper` drops a body long before the client has read it.
    has_unsent: bool,
    /// `true` if the timer must restart once they are sent.
    is_on_hold: bool,
}

impl<S> Heads<S> {
    pub(super) fn new(stream: S, clock: Arc<dyn Clock>, head_within: Duration, phase: Phase) -> Self {
        Self { stream, clock, head_within, phase, over: None, has_unsent: false, is_on_hold: false }
    }

    /// Returns the current stage, and starts or stops its timer. No timer runs while the client still reads a response,
    /// because the server bounds slow readers elsewhere.
    fn stage(&mut self) -> Stage {
        let (now, is_new) = {
            let mut state = self.phase.lock();
            (state.now, std::mem::take(&mut state.is_new))
        };
        if self.has_unsent {
            (self.over, self.is_on_hold) = (None, true);
        } else if is_new || std::mem::take(&mut self.is_on_hold) {
            self.is_on_hold = false;
            self.over = match now {
                Stage::Head => Some(self.clock.sleep(self.head_within)),
                Stage::Serving => None,
                Stage::Idle(within) => Some(self.clock.sleep(within)),
            };
        }
        now
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Heads<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        let (stage, before) = (self.stage(), into.filled().len());
        if let Poll::Ready(read) = Pin::new(&mut self.stream).poll_read(context, into) {
            if into.filled().len() > before && matches!(stage, Stage::Idle(_)) {
                self.phase.enter(Stage::Head);
            }
            return Poll::Ready(read);
        }
        let Some(over) = &mut self.over else {
            self.phase.wake_at_the_end(context.waker());
            return Poll::Pending;
        };
        ready!(over.as_mut().poll(context));
        Poll::Ready(match stage {
            // As if the client had closed it.
            Stage::Idle(_) | Stage::Serving => Ok(()),
            Stage::Head => Err(Error::new(ErrorKind::TimedOut, "the request head did not arrive in time")),
        })
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Heads<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, from: &[u8]) -> Poll<Result<usize>> {
        self.has_unsent = true;
        Pin::new(&mut self.stream).poll_write(context, from)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        from: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        self.has_unsent = true;
        Pin::new(&mut self.stream).poll_write_vectored(context, from)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        // Only after a write: a flush with nothing to send must not wake the task again and again.
        if std::mem::take(&mut self.has_unsent) && self.is_on_hold {
            // The task then polls for reads, and the poll starts the timer.
            context.waker().wake_by_ref();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use axum::http::{Request, Response};
    use hyper::body::Incoming;
    use hyper::service::service_fn;
    use hyper_util::rt::{TokioExecutor, TokioIo};
    use hyper_util::server::conn::auto;
    use tenure::ManualClock;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    use super::*;

    const IDLE: Duration = Duration::from_secs(75);
    const BODY_BYTES: usize = 300 * 1024;

    /// Serves responses of 300 KiB on a connection that takes 1 KiB at once.
    fn served(clock: &ManualClock) -> DuplexStream {
        let (ours, theirs) = duplex(1024);
        let phase = Phase::new();
        let stream = Heads::new(ours, Arc::new(clock.clone()), Duration::from_secs(10), phase.clone());
        let service = service_fn(move |_: Request<Incoming>| {
            let serving = phase.serve(IDLE);
            let body = Body::from(vec![b' '; BODY_BYTES]);
            async move { Ok::<_, Infallible>(Response::new(Busy::new(body, serving))) }
        });
        let mut builder = auto::Builder::new(TokioExecutor::new()).http1_only();
        builder.http1().header_read_timeout(None);
        let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
        tokio::spawn(async move { connection.await.is_ok() });
        theirs
    }

    async fn rested() {
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_response_that_takes_longer_than_the_idle_time_arrives_whole() {
        let clock = ManualClock::new();
        let mut theirs = served(&clock);
        let mut some = vec![0; 2048];
        for _ in 0..2 {
            theirs.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
            let (mut read, mut seconds) = (0, 0);
            while read < BODY_BYTES {
                let bytes = theirs.read(&mut some).await.unwrap();
                assert!(bytes > 0, "closed after {read} bytes and {seconds} s");
                read += bytes;
                rested().await;
                clock.advance(Duration::from_secs(1));
                seconds += 1;
            }
            assert!(seconds > 2 * IDLE.as_secs(), "{seconds}");
            // The loop counted the head as part of the body, so a few bytes are still unread.
            rested().await;
            let _ = futures_util::FutureExt::now_or_never(theirs.read(&mut some));
        }
        rested().await;
        clock.advance(IDLE - Duration::from_secs(5));
        rested().await;
        assert!(
            futures_util::FutureExt::now_or_never(theirs.read(&mut some)).is_none(),
            "it is idle since then"
        );
        clock.advance(Duration::from_secs(5));
        assert_eq!(theirs.read(&mut some).await.unwrap(), 0);
    }
}
