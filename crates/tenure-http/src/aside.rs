//! Work on threads that serve no requests.

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::problem::{Problem, ProblemType};

/// Threads for one sort of work. Each task may use a CPU for a while, and other requests need CPU time as well.
pub(crate) struct Aside(Semaphore);

impl Aside {
    /// Allows so many tasks at once.
    pub(crate) const fn new(most: usize) -> Self {
        Self(Semaphore::const_new(most))
    }

    /// Runs a task on a thread that serves no requests.
    pub(crate) async fn run<T: Send + 'static>(
        &'static self,
        task: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let failed = || Problem::new(ProblemType::Internal, "internal error; see the server log");
        let permit = self.0.acquire().await.map_err(|_| failed())?;
        let done = spawn_blocking(move || {
            // The task keeps its permit even if the client disconnects.
            let _permit = permit;
            task()
        });
        done.await.map_err(|_| failed())
    }
}
