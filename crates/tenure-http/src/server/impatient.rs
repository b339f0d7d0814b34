//! A connection that ends when its client does not read: what waits for him would wait for ever.

use std::io::{Error, ErrorKind, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tenure::Clock;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection, and since when its client has read nothing.
pub(super) struct Impatient<S> {
    stream: S,
    clock: Arc<dyn Clock>,
    /// For how long he may.
    within: Duration,
    over: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl<S> Impatient<S> {
    pub(super) fn new(stream: S, clock: Arc<dyn Clock>, within: Duration) -> Self {
        Self { stream, clock, within, over: None }
    }

    /// What came of writing; an error if nothing could be written for too long.
    fn in_time<T>(&mut self, context: &mut Context<'_>, written: Poll<Result<T>>) -> Poll<Result<T>> {
        if written.is_ready() {
            self.over = None;
            return written;
        }
        let (clock, within) = (&self.clock, self.within);
        let over = self.over.get_or_insert_with(|| clock.sleep(within));
        ready!(over.as_mut().poll(context));
        Poll::Ready(Err(Error::new(ErrorKind::TimedOut, "the client does not read the response")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Impatient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Impatient<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, from: &[u8]) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, from);
        self.in_time(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        from: &[std::io::IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, from);
        self.in_time(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.in_time(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
