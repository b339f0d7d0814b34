//! What waits for a task.

use tokio::sync::{mpsc, watch};

/// What waits for a task. When the store is closed it takes no more, and ends with what it has accepted.
pub(crate) struct Inbox<C> {
    waiting: mpsc::Receiver<C>,
    closed: watch::Receiver<bool>,
}

impl<C> Inbox<C> {
    pub(crate) fn new(waiting: mpsc::Receiver<C>, closed: watch::Receiver<bool>) -> Self {
        Self { waiting, closed }
    }

    /// The next; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<C> {
        // A store that was dropped without being closed has no more to wait for, either.
        let closed = async { drop(self.closed.wait_for(|closed| *closed).await) };
        tokio::select! {
            biased;
            next = self.waiting.recv() => return next,
            () = closed => self.waiting.close(),
        }
        self.waiting.recv().await
    }

    /// The next, if one waits by now.
    pub(crate) fn at_hand(&mut self) -> Option<C> {
        self.waiting.try_recv().ok()
    }

    /// All that waits by now: at least one, and no more once they weigh so much. `None` at the end.
    pub(crate) async fn gather(&mut self, most: usize, weight: impl Fn(&C) -> usize) -> Option<Vec<C>> {
        let first = self.next().await?;
        let mut weighs = weight(&first);
        let mut gathered = vec![first];
        while weighs < most {
            let Some(next) = self.at_hand() else { break };
            weighs += weight(&next);
            gathered.push(next);
        }
        Some(gathered)
    }
}
