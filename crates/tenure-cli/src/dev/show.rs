//! Shows what happens, as it happens.

use std::sync::Arc;
use std::time::Duration;

use tenure::{Clock, Event, Happening, StateName, SystemClock, Tenure};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::oneshot;

use super::board::Board;
use super::line::{line, time_of};
use crate::screen::{Screen, Tone};

const SUMMARY_EVERY: Duration = Duration::from_secs(10);
/// Interval between two redraws of the pinned lines.
const BOARD_EVERY: Duration = Duration::from_millis(500);

/// What was seen while the program ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Seen {
    pub(crate) enqueued: u64,
    pub(crate) succeeded: u64,
    pub(crate) failed: u64,
    pub(crate) retried: u64,
    pub(crate) missed: u64,
}

/// Somebody who watches a store and shows what happens.
pub(crate) struct Show {
    pub(crate) tenure: Tenure,
    pub(crate) screen: Arc<Screen>,
    pub(crate) seen: Seen,
    /// Every event is a line of its own, and not only the end of an attempt.
    pub(crate) is_verbose: bool,
    /// The lines pinned to the terminal, if there is one.
    pub(crate) board: Option<Board>,
}

impl Show {
    /// Shows events until `ended`, and after that what is still to be told.
    pub(crate) async fn run(
        mut self,
        mut events: Receiver<Arc<Event>>,
        mut ended: oneshot::Receiver<()>,
    ) -> Seen {
        let every = if self.board.is_some() { BOARD_EVERY } else { SUMMARY_EVERY };
        let mut summary = SystemClock.sleep(Duration::ZERO);
        loop {
            tokio::select! {
                biased;
                _ = &mut ended => break,
                () = &mut summary => {
                    self.summarise().await;
                    summary = SystemClock.sleep(every);
                }
                event = events.recv() => match event {
                    Ok(event) => self.show(&event).await,
                    Err(RecvError::Lagged(missed)) => self.missed(missed),
                    Err(RecvError::Closed) => break,
                },
            }
        }
        loop {
            match events.try_recv() {
                Ok(event) => self.show(&event).await,
                Err(TryRecvError::Lagged(missed)) => self.missed(missed),
                Err(TryRecvError::Empty | TryRecvError::Closed) => return self.seen,
            }
        }
    }

    async fn show(&mut self, event: &Event) {
        self.seen.count(event);
        if let Some(board) = &mut self.board {
            board.note(event);
        }
        if !self.is_verbose && !ends_an_attempt(event) {
            return;
        }
        // Only where a job came into or left a state is there more to know than the event tells.
        let job = match event.what {
            Happening::Enqueued | Happening::Became { .. } => self.tenure.jobs().get(event.id).await.ok(),
            Happening::Started { .. }
            | Happening::Progressed { .. }
            | Happening::AskedToStop
            | Happening::Deleted => None,
        };
        self.screen.line(&line(event, job.as_ref(), &self.screen));
    }

    fn missed(&mut self, missed: u64) {
        self.seen.missed += missed;
        self.screen.line(&self.screen.paint(
            Tone::Careful,
            &format!("… {missed} events are not shown: too many at once; no job is lost"),
        ));
    }

    async fn summarise(&self) {
        let Ok(standings) = standings(&self.tenure).await else { return };
        if let Some(board) = &self.board {
            return board.draw(&words(&standings), &self.screen);
        }
        if !self.is_verbose {
            return;
        }
        let now = time_of(self.tenure.store().clock().now());
        let text = format!("{now}  ── {}", words(&standings));
        self.screen.line(&self.screen.paint(Tone::Faint, &text));
    }
}

/// Returns true if an attempt of a job has ended.
fn ends_an_attempt(event: &Event) -> bool {
    match &event.what {
        Happening::Became { state, failure } => {
            matches!(state, StateName::Succeeded | StateName::Failed | StateName::Cancelled)
                || failure.is_some()
        }
        Happening::Enqueued
        | Happening::Started { .. }
        | Happening::Progressed { .. }
        | Happening::AskedToStop
        | Happening::Deleted => false,
    }
}

impl Seen {
    fn count(&mut self, event: &Event) {
        match &event.what {
            Happening::Enqueued => self.enqueued += 1,
            Happening::Became { state: StateName::Succeeded, .. } => self.succeeded += 1,
            Happening::Became { state: StateName::Failed, .. } => self.failed += 1,
            Happening::Became { state: StateName::Scheduled | StateName::Queued, failure: Some(_) } => {
                self.retried += 1;
            }
            Happening::Became { .. }
            | Happening::Started { .. }
            | Happening::Progressed { .. }
            | Happening::AskedToStop
            | Happening::Deleted => {}
        }
    }
}

/// How many jobs there are in each state, over all queues.
pub(crate) async fn standings(tenure: &Tenure) -> Result<Vec<(StateName, u64)>, tenure::Error> {
    let counts = tenure.counts().await?;
    let of = |state| counts.iter().filter(|count| count.state == state).map(|count| count.jobs).sum();
    Ok(StateName::ALL.into_iter().map(|state| (state, of(state))).collect())
}

/// How many of them have not ended.
pub(crate) fn unfinished(standings: &[(StateName, u64)]) -> u64 {
    standings
        .iter()
        .filter(|(state, _)| matches!(state, StateName::Scheduled | StateName::Queued | StateName::Running))
        .map(|(_, jobs)| jobs)
        .sum()
}

fn words(standings: &[(StateName, u64)]) -> String {
    let all = standings.iter().filter(|(_, jobs)| *jobs > 0).map(|(state, jobs)| format!("{jobs} {state}"));
    let all: Vec<String> = all.collect();
    if all.is_empty() { "no jobs yet".to_owned() } else { all.join(" · ") }
}
