//! A connection that ends when its client reads too slowly. Otherwise, the client could keep responses in memory forever.

use std::io::{Error, ErrorKind, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tenure::Clock;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that a slow client must read within each span of time.
const PACE_BYTES: usize = 256 * 1024;

/// A connection, and its time for the next bytes.
pub(super) struct Impatient<S> {
    stream: S,
    clock: Arc<dyn Clock>,
    within: Duration,
    /// Ends when the client is too slow; set since a write had to wait.
    over: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// Bytes written since then.
    written: usize,
}

impl<S> Impatient<S> {
    pub(super) fn new(stream: S, clock: Arc<dyn Clock>, within: Duration) -> Self {
        Self { stream, clock, within, over: None, written: 0 }
    }

    /// Returns the result of a write; an error if the client has read too little for too long.
    fn in_time(&mut self, context: &mut Context<'_>, written: Poll<Result<usize>>) -> Poll<Result<usize>> {
        if let Poll::Ready(written) = written {
            self.written += written.as_ref().map_or(0, |bytes| *bytes);
            if self.written >= PACE_BYTES {
                self.keeps_up();
            }
            return Poll::Ready(written);
        }
        ready!(self.too_slow(context));
        Poll::Ready(Err(slow()))
    }

    fn too_slow(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.over.is_none() {
            self.written = 0;
        }
        let (clock, within) = (&self.clock, self.within);
        self.over.get_or_insert_with(|| clock.sleep(within)).as_mut().poll(context)
    }

    fn keeps_up(&mut self) {
        (self.over, self.written) = (None, 0);
    }
}

fn slow() -> Error {
    Error::new(ErrorKind::TimedOut, "the client does not read the response, or reads it too slowly")
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
        if flushed.is_ready() {
            // Everything is written.
            self.keeps_up();
            return flushed;
        }
        ready!(self.too_slow(context));
        Poll::Ready(Err(slow()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tenure::ManualClock;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    /// Writes for ever to a client that reads so many bytes each second, and returns the seconds until the connection ends.
    async fn lasts(bytes: usize) -> Option<u32> {
        let (clock, (ours, mut theirs)) = (ManualClock::new(), duplex(1024));
        let mut stream = Impatient::new(ours, Arc::new(clock.clone()), Duration::from_secs(30));
        let writing = tokio::spawn(async move { while stream.write_all(&[b' '; 4096]).await.is_ok() {} });
        let mut some = vec![0; bytes];
        for second in 0..120 {
            theirs.read_exact(&mut some).await.ok()?;
            tokio::task::yield_now().await;
            clock.advance(Duration::from_secs(1));
            tokio::task::yield_now().await;
            if writing.is_finished() {
                return Some(second);
            }
        }
        writing.abort();
        None
    }

    #[tokio::test]
    async fn a_client_that_reads_a_little_now_and_then_is_let_go() {
        assert!(lasts(1024).await.is_some_and(|seconds| (28..32).contains(&seconds)));
        assert_eq!(lasts(10 * 1024).await, None);
    }
}
