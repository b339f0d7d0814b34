//! The one place where this crate waits by real time.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use tokio::time::Instant;

/// What came of it; `None` if it took too long. It is about servers and networks, which follow no injected clock.
#[expect(clippy::disallowed_methods, reason = "a server and a network take real time")]
pub(crate) async fn within<T>(span: Duration, work: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(span, work).await.ok()
}

/// The instant at which a caller stops waiting, wherever its work waits meanwhile.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline(Instant);

impl Deadline {
    /// Returns the instant after this time. It needs no runtime: the caller may have another one than the store.
    #[expect(clippy::disallowed_methods, reason = "a server and a network take real time")]
    pub(crate) fn after(span: Duration) -> Self {
        Self(Instant::now() + span)
    }

    /// Does the work until then; `None` if it took too long.
    #[expect(clippy::disallowed_methods, reason = "a server and a network take real time")]
    pub(crate) async fn within<T>(self, work: impl Future<Output = T>) -> Option<T> {
        tokio::time::timeout_at(self.0, work).await.ok()
    }
}

/// Lets others have their turn, and answers how long that took. Whoever does so stands in line with all that is to be done: if
/// somebody keeps a thread of the runtime, another goes on with it. One that yields as tokio has it waits for its own thread, which
/// somebody may keep for ever.
#[expect(clippy::disallowed_methods, reason = "how a runtime does its tasks takes real time")]
pub(crate) async fn let_others() -> Duration {
    let (begun, mut had_it) = (Instant::now(), false);
    poll_fn(|context| {
        if std::mem::replace(&mut had_it, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
    begun.elapsed()
}

/// Waits until somebody may try again.
#[expect(clippy::disallowed_methods, reason = "a server that is down takes real time to come back")]
pub(crate) async fn pause(span: Duration) {
    tokio::time::sleep(span).await;
}
