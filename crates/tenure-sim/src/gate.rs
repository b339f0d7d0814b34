//! The gate through which everything that a host does has to pass: shut while it is frozen.

use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use tenure_store::{Chance, Fault};

/// Whether a host gets on. A frozen one stands still in the middle of whatever it did.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    door: Door,
    waiting: Vec<Waker>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Door {
    #[default]
    Open,
    Shut,
    Gone,
}

impl Gate {
    /// Stops the host where it stands.
    pub(crate) fn freeze(&self) {
        let mut inner = self.lock();
        if inner.door == Door::Open {
            inner.door = Door::Shut;
        }
    }

    /// Lets the host go on. What waited goes on in an order by chance: after a pause the task that
    /// works may well run before the one that would have told it that its time is over.
    pub(crate) fn thaw(&self, chance: &Chance) {
        let mut inner = self.lock();
        if inner.door != Door::Shut {
            return;
        }
        inner.door = Door::Open;
        let mut waiting = std::mem::take(&mut inner.waiting);
        drop(inner);
        while !waiting.is_empty() {
            let drawn = chance.below(waiting.len() as u64);
            waiting.swap_remove(usize::try_from(drawn).unwrap_or(0)).wake();
        }
    }

    /// The host is dead: whatever is left of it is turned away, so that it ends.
    pub(crate) fn kill(&self) {
        let mut inner = self.lock();
        inner.door = Door::Gone;
        std::mem::take(&mut inner.waiting).into_iter().for_each(Waker::wake);
    }

    pub(crate) fn is_open(&self) -> bool {
        self.lock().door == Door::Open
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.lock().door == Door::Gone
    }

    /// Waits until the host gets on.
    pub(crate) async fn pass(&self) -> Result<(), Fault> {
        poll_fn(|context| {
            let mut inner = self.lock();
            match inner.door {
                Door::Open => Poll::Ready(Ok(())),
                Door::Gone => Poll::Ready(Err(Fault::Closed)),
                Door::Shut => {
                    inner.waiting.push(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
