//! What a user's code leaves when it panics.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::Poll;

/// What a panic leaves.
pub(crate) type Panic = Box<dyn Any + Send>;

/// The work of a user, until it is dropped.
pub(crate) type Body<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Goes on with a user's work and answers its panic. It is not gone on with after that, so nobody sees it
/// half done.
pub(crate) async fn catching<T>(body: &mut Body<T>) -> Result<T, Panic> {
    std::future::poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| body.as_mut().poll(context))) {
        Ok(poll) => poll.map(Ok),
        Err(panic) => Poll::Ready(Err(panic)),
    })
    .await
}

/// Drops a user's work. What it holds may panic when it goes; what is known must not go with it.
pub(crate) fn let_go<T>(body: Body<T>, whose: &str) {
    if catch_unwind(AssertUnwindSafe(|| drop(body))).is_err() {
        tracing::warn!("{whose} panicked while being dropped");
    }
}

/// What a panic said.
pub(crate) fn words_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic value that is not text".to_owned())
}
