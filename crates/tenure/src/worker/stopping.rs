//! How an engine stops.

use std::time::Duration;

use tenure_core::Verdict;

use super::engine::{Engine, Waiting, first_answer};
use super::look::Look;
use crate::Stopping;

impl<App: Send + Sync + 'static> Engine<App> {
    /// Stops: gives back what has not begun, waits for the rest, tells it to stop, drops it; settles
    /// all. Each part is bounded by its time; the caller bounds the whole.
    pub(crate) async fn stop(&mut self) {
        self.running.is_stopping = true;
        self.take_back();
        self.come_back().await;
        for queue in 0..self.running.ahead.len() {
            for Waiting { reserved, control } in std::mem::take(&mut self.running.ahead[queue]) {
                self.decide(reserved, Verdict::Released, control);
            }
        }
        self.settle_pending().await;
        self.finish_within(self.settings.finish_within).await;
        self.holding.stop_all(&Stopping::HostStops);
        self.finish_within(self.settings.stop_grace + Duration::from_millis(500)).await;
        self.running.attempts.abort_all();
        while let Some(ended) = self.running.attempts.join_next_with_id().await {
            self.ended(ended);
        }
        self.settle_pending().await;
        self.running.tally.unsettled = self.running.decided.len();
    }

    /// Settles attempts as they end, until none is left or the time is over.
    async fn finish_within(&mut self, span: Duration) {
        let until = self.tenure.clock().moment().after(span);
        while !self.running.attempts.is_empty() {
            let left = until.since(self.tenure.clock().moment());
            let ended = tokio::select! {
                biased;
                ended = self.running.attempts.join_next_with_id() => ended,
                () = self.tenure.pause_for(left) => return,
            };
            if let Some(ended) = ended {
                self.ended(ended);
                self.gather().await;
            }
            self.settle_pending().await;
        }
    }

    /// Settles what is decided; what cannot be settled now stays for the next time.
    async fn settle_pending(&mut self) {
        if !self.running.decided.is_empty() {
            self.send(None);
            self.come_back().await;
        }
    }

    /// Waits for the round trips that are under way. What they have reserved does not begin any more.
    async fn come_back(&mut self) {
        while let Some((which, answer)) = first_answer(&mut self.running.under_way).await {
            if let Err(fault) = self.arrive(which, answer, &mut Look::new(self.settings.queues.len())) {
                tracing::warn!(%fault, jobs = self.running.decided.len(), "failed to settle jobs while stopping");
            }
        }
    }
}
