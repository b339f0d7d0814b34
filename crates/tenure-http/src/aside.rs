//! Work on threads that serve no requests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;

use crate::problem::{Problem, ProblemType};

/// Threads for one sort of work. Each task may use a CPU for a while, and other requests need CPU time as well.
pub(crate) struct Aside {
    all: Semaphore,
    /// The turns of the clients that have tasks.
    clients: Mutex<BTreeMap<String, Arc<Semaphore>>>,
}

impl Aside {
    /// Allows so many tasks at once.
    pub(crate) const fn new(most: usize) -> Self {
        Self { all: Semaphore::const_new(most), clients: Mutex::new(BTreeMap::new()) }
    }

    /// Runs a task on a thread that serves no requests.
    pub(crate) async fn run<T: Send + 'static>(
        &'static self,
        task: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        self.run_in_turn(None, task).await
    }

    /// Runs a task of a client. Each client runs one at a time, so a client with many tasks does not keep the tasks of others
    /// waiting.
    pub(crate) async fn run_for<T: Send + 'static>(
        &'static self,
        client: &str,
        task: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let turn = self.turns_of(client).acquire_owned().await.map_err(|_| failed())?;
        self.run_in_turn(Some(turn), task).await
    }

    async fn run_in_turn<T: Send + 'static>(
        &'static self,
        turn: Option<OwnedSemaphorePermit>,
        task: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let permit = self.all.acquire().await.map_err(|_| failed())?;
        let done = spawn_blocking(move || {
            // The task keeps its permits even if the client disconnects.
            let _permits = (permit, turn);
            task()
        });
        done.await.map_err(|_| failed())
    }

    fn turns_of(&self, client: &str) -> Arc<Semaphore> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        // Only tasks that wait or run refer to the turns of their client.
        clients.retain(|_, turns| Arc::strong_count(turns) > 1);
        let turns = clients.entry(client.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(1)));
        Arc::clone(turns)
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

    #[tokio::test(flavor = "current_thread")]
    async fn a_client_with_many_tasks_leaves_a_thread_to_others() {
        let (end, ended) = mpsc::channel::<()>();
        let ended = Arc::new(Mutex::new(ended));
        let greedy: Vec<_> = (0..8)
            .map(|_| {
                let ended = Arc::clone(&ended);
                tokio::spawn(ASIDE.run_for("greedy", move || ended.lock().map(|ended| ended.recv()).is_ok()))
            })
            .collect();
        tokio::task::yield_now().await;
        assert_eq!(ASIDE.run_for("modest", || 7).await.ok(), Some(7));
        assert_eq!(ASIDE.run(|| 8).await.ok(), Some(8));
        drop(end);
        for task in greedy {
            assert!(task.await.unwrap().is_ok());
        }
        assert_eq!(ASIDE.run_for("modest", || 9).await.ok(), Some(9));
        assert_eq!(ASIDE.clients.lock().unwrap().len(), 1, "clients without tasks are forgotten");
    }
}
