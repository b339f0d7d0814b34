//! Work on threads that serve no requests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::task::spawn_blocking;

use crate::memory::Client;
use crate::problem::{Problem, ProblemType};

/// Threads for one sort of work. Each task may use a CPU for a while, and other requests need CPU time as well.
pub(crate) struct Aside {
    all: Semaphore,
    /// The turns of the clients that have tasks.
    clients: Mutex<BTreeMap<Client, Arc<Semaphore>>>,
}

impl Aside {
    /// Allows so many tasks at once.
    pub(crate) const fn new(most: usize) -> Self {
        Self { all: Semaphore::const_new(most), clients: Mutex::new(BTreeMap::new()) }
    }

    /// Waits for a thread. Each client gets one at a time, so a client with many tasks does not keep the tasks of others waiting.
    ///
    /// Many requests can wait here, so parse large values only in the task: until then, they are text that counts against the
    /// client.
    pub(crate) async fn turn(&'static self, client: &Client) -> Result<Turn, Problem> {
        let own = match client {
            Client::Trusted => None,
            Client::Named(_) | Client::Stranger(_) => {
                Some(self.turns_of(client).acquire_owned().await.map_err(|_| failed())?)
            }
        };
        let thread = self.all.acquire().await.map_err(|_| failed())?;
        Ok(Turn { thread, own })
    }

    fn turns_of(&self, client: &Client) -> Arc<Semaphore> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        // Only tasks that wait or run refer to the turns of their client.
        clients.retain(|_, turns| Arc::strong_count(turns) > 1);
        let turns = clients.entry(client.clone()).or_insert_with(|| Arc::new(Semaphore::new(1)));
        Arc::clone(turns)
    }
}

/// A free thread for a task of a client.
pub(crate) struct Turn {
    thread: SemaphorePermit<'static>,
    /// `None` for a client without a limit.
    own: Option<OwnedSemaphorePermit>,
}

impl Turn {
    /// Runs a task on the thread.
    pub(crate) async fn run<T: Send + 'static>(
        self,
        task: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let done = spawn_blocking(move || {
            // The task keeps its permits even if the client disconnects.
            let Self { thread, own } = self;
            let done = task();
            drop((thread, own));
            done
        });
        done.await.map_err(|_| failed())
    }
}

fn failed() -> Problem {
    Problem::new(ProblemType::Internal, "internal error; see the server log")
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    static ASIDE: Aside = Aside::new(2);

    fn named(name: &str) -> Client {
        Client::Named(name.into())
    }

    async fn run<T: Send + 'static>(client: Client, task: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        ASIDE.turn(&client).await.ok()?.run(task).await.ok()
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_client_with_many_tasks_leaves_a_thread_to_others() {
        let (end, ended) = mpsc::channel::<()>();
        let ended = Arc::new(Mutex::new(ended));
        let greedy: Vec<_> = (0..8)
            .map(|_| {
                let ended = Arc::clone(&ended);
                tokio::spawn(run(named("greedy"), move || ended.lock().map(|ended| ended.recv()).is_ok()))
            })
            .collect();
        tokio::task::yield_now().await;
        assert_eq!(run(named("modest"), || 7).await, Some(7));
        assert_eq!(run(Client::Trusted, || 8).await, Some(8));
        drop(end);
        for task in greedy {
            assert_eq!(task.await.unwrap(), Some(true));
        }
        assert_eq!(run(named("modest"), || 9).await, Some(9));
        assert_eq!(ASIDE.clients.lock().unwrap().len(), 1, "clients without tasks are forgotten");
    }
}
