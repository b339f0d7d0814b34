//! What a task is asked to do, and where the answer goes.

use std::pin::Pin;

use tenure_store::Fault;
use tokio::sync::oneshot;

use crate::link::Link;

/// Where an answer goes.
pub(crate) struct Reply<T>(oneshot::Sender<Result<T, Fault>>);

impl<T> Reply<T> {
    pub(crate) fn new() -> (Self, oneshot::Receiver<Result<T, Fault>>) {
        let (reply, answer) = oneshot::channel();
        (Self(reply), answer)
    }

    /// Whether nobody waits for it any more.
    pub(crate) fn is_in_vain(&self) -> bool {
        self.0.is_closed()
    }

    pub(crate) fn send(self, answer: Result<T, Fault>) {
        // Whoever asked may have stopped waiting.
        let _ = self.0.send(answer);
    }
}

/// Something that is done at once on a connection, and answers.
pub(crate) type Doing<'l, T> = Pin<Box<dyn Future<Output = Result<T, Fault>> + Send + 'l>>;

/// Something for a task that does one thing at a time.
pub(crate) type Errand =
    Box<dyn for<'l> FnOnce(&'l mut Link) -> Pin<Box<dyn Future<Output = ()> + Send + 'l>> + Send>;

/// An errand, and where its answer comes.
pub(crate) fn errand<T: Send + 'static>(
    work: impl for<'l> FnOnce(&'l mut Link) -> Doing<'l, T> + Send + 'static,
) -> (Errand, oneshot::Receiver<Result<T, Fault>>) {
    let (reply, answer) = Reply::new();
    let errand: Errand = Box::new(move |link| {
        Box::pin(async move {
            let done = work(link).await;
            reply.send(done);
        })
    });
    (errand, answer)
}
