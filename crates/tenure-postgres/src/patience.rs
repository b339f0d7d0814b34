//! The one place where this crate waits by real time.

use std::time::Duration;

/// What came of it; `None` if it took too long. It is about servers and networks, which follow no injected clock.
#[expect(clippy::disallowed_methods, reason = "a server and a network take real time")]
pub(crate) async fn within<T>(span: Duration, work: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(span, work).await.ok()
}

/// Waits until somebody may try again.
#[expect(clippy::disallowed_methods, reason = "a server that is down takes real time to come back")]
pub(crate) async fn pause(span: Duration) {
    tokio::time::sleep(span).await;
}
