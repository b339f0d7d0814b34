//! Writes that end even if their client hangs up.

use crate::memory::Loan;
use crate::problem::{Problem, ProblemType};

/// Does a write with the values of a request body, and keeps their memory until the store has answered.
///
/// If the client hangs up, the server drops its handler, but a command that waits in the store keeps its values. So a write
/// with large values runs in a task that owns their memory.
///
/// # Errors
/// The write has failed.
pub(crate) async fn finish<T: Send + 'static>(
    loan: Option<Loan>,
    write: impl Future<Output = Result<T, Problem>> + Send + 'static,
) -> Result<T, Problem> {
    let Some(loan) = loan else { return write.await };
    let writing = tokio::spawn(async move {
        let done = write.await;
        drop(loan);
        done
    });
    writing.await.unwrap_or_else(|_| Err(unfinished()))
}

/// Returns the error for a task of the server that did not end.
pub(crate) fn unfinished() -> Problem {
    Problem::new(ProblemType::Internal, "internal error; see the server log")
}

#[cfg(test)]
#[path = "finish_tests.rs"]
mod tests;
