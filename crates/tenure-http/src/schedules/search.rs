//! Searches for runs of schedules, on threads that serve no requests.

use tokio::runtime::Handle;

use crate::aside::Aside;
use crate::memory::Client;
use crate::problem::Problem;

/// Searches at once.
static SEARCHES: Aside = Aside::new(4);

/// Runs a search of a client on a thread that serves no requests.
pub(super) async fn search<T: Send + 'static>(
    client: &Client,
    search: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    SEARCHES.turn(client).await?.run(search).await
}

/// Runs a search that also reads from the store.
pub(super) async fn search_store<T: Send + 'static>(
    client: &Client,
    found: impl Future<Output = T> + Send + 'static,
) -> Result<T, Problem> {
    search(client, move || Handle::current().block_on(found)).await
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn searches_leave_the_thread_to_other_requests_and_threads_to_other_clients() {
        let greedy = Client::Named("greedy".into());
        let mut ends = Vec::new();
        let searches: Vec<_> = (0..8)
            .map(|number| {
                let (end, ended) = mpsc::channel::<()>();
                ends.push(end);
                let greedy = greedy.clone();
                tokio::spawn(async move {
                    search(&greedy, move || ended.recv().map_or(number, |()| number)).await
                })
            })
            .collect();
        tokio::task::yield_now().await;
        // This thread gets here although the searches wait.
        assert_eq!(search(&Client::Named("modest".into()), || 7).await.ok(), Some(7));
        drop(ends);
        for (number, search) in searches.into_iter().enumerate() {
            assert_eq!(search.await.unwrap().ok(), Some(number));
        }
        assert_eq!(search_store(&greedy, async { 7 }).await.ok(), Some(7));
    }
}
